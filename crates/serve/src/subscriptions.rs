//! Subscriptions: clients are told when the journal says that a document or a collection changed, whichever process
//! wrote.
//!
//! One task follows the journal while anybody has subscribed. It only marks what changed for each client; sending is left
//! to a task per client. What a slow client has not been told yet is a set of its own URIs, so it never grows beyond what
//! it subscribed to, and a document that changes a hundred times in between is one message.

use std::{
    collections::{BTreeSet, HashMap},
    future::Future,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use shelf_engine::{Changes, Pass};
use shelf_tools::resources::Subject;
use tokio::sync::Notify;

use crate::{
    App,
    app::{BlockingError, Work},
    stdio::Identity,
};

/// How often the journal is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How often the identity behind a subscription is checked when there is nothing to tell it.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Clients that may wait to be told something, in all and of one identity.
const MOST_CLIENTS: usize = 4_096;
const MOST_OF_ONE: usize = 512;
/// Resources to which one client may subscribe.
pub(crate) const MOST_SUBJECTS: usize = 1_000;
/// Resources to which all clients together may subscribe.
const MOST_IN_ALL: usize = 100_000;

/// Everybody who wants to be told.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<State>);

#[derive(Default)]
struct State {
    clients: Vec<Weak<Subscriber>>,
    /// The last record of the journal that clients have been told of.
    position: u64,
    is_following: bool,
}

impl Subscriptions {
    /// A place for another client; `None` when there are too many. Dropping it ends its subscriptions.
    pub(crate) fn join(&self, pass: &Pass) -> Option<Arc<Subscriber>> {
        let mut state = self.0.lock();
        state.clients.retain(|client| client.strong_count() > 0);
        let own = state.clients.iter().filter_map(Weak::upgrade).filter(|client| client.pass == *pass);
        if state.clients.len() >= MOST_CLIENTS || own.count() >= MOST_OF_ONE {
            return None;
        }
        let client =
            Arc::new(Subscriber { pass: pass.clone(), wanted: Mutex::default(), changed: Notify::new() });
        state.clients.push(Arc::downgrade(&client));
        Some(client)
    }

    fn count(&self) -> usize {
        let clients: Vec<_> = self.0.lock().clients.iter().filter_map(Weak::upgrade).collect();
        clients.iter().map(|client| client.wanted.lock().subjects.len()).sum()
    }

    /// Where to go on, or `None` when nobody wants to be told anything.
    fn go_on(&self) -> Option<u64> {
        let mut state = self.0.lock();
        state.clients.retain(|client| client.strong_count() > 0);
        let wants = |client: Arc<Subscriber>| !client.wanted.lock().subjects.is_empty();
        state.is_following = state.clients.iter().filter_map(Weak::upgrade).any(wants);
        state.is_following.then_some(state.position)
    }

    fn note(&self, changes: &Changes) {
        let clients: Vec<_> = {
            let mut state = self.0.lock();
            state.position = changes.position;
            state.clients.iter().filter_map(Weak::upgrade).collect()
        };
        if !changes.is_empty() {
            clients.iter().for_each(|client| client.note(changes));
        }
    }
}

/// One client: what it subscribed to, and what it has to be told.
pub(crate) struct Subscriber {
    pass: Pass,
    wanted: Mutex<Wanted>,
    changed: Notify,
}

#[derive(Default)]
struct Wanted {
    subjects: HashMap<String, Subject>,
    untold: BTreeSet<String>,
}

impl Subscriber {
    /// Whose subscriptions these are.
    pub(crate) const fn pass(&self) -> &Pass {
        &self.pass
    }

    fn add(&self, uri: &str, subject: Subject) -> bool {
        let mut wanted = self.wanted.lock();
        if wanted.subjects.len() >= MOST_SUBJECTS && !wanted.subjects.contains_key(uri) {
            return false;
        }
        wanted.subjects.insert(uri.to_owned(), subject);
        true
    }

    /// Ends the subscription to a resource, if there is one.
    pub(crate) fn remove(&self, uri: &str) {
        let mut wanted = self.wanted.lock();
        wanted.subjects.remove(uri);
        wanted.untold.remove(uri);
    }

    fn note(&self, changes: &Changes) {
        let mut wanted = self.wanted.lock();
        let Wanted { subjects, untold } = &mut *wanted;
        let before = untold.len();
        untold.extend(
            subjects.iter().filter(|(_, subject)| subject.is_in(changes)).map(|(uri, _)| uri.clone()),
        );
        if untold.len() > before {
            self.changed.notify_one();
        }
    }

    fn next(&self) -> Option<String> {
        self.wanted.lock().untold.pop_first()
    }

    /// Tells the client what changed, by `send`, until that gives `false` or the identity is no longer what it was.
    pub(crate) async fn tell<F: Future<Output = bool>>(
        &self,
        app: &Arc<App>,
        identity: &Identity,
        mut send: impl FnMut(String) -> F,
    ) {
        loop {
            let _ = tokio::time::timeout(LOOK_AGAIN, self.changed.notified()).await;
            if !self.is_still(app, identity).await {
                return;
            }
            while let Some(uri) = self.next() {
                if !send(uri).await {
                    return;
                }
            }
        }
    }

    /// Whether the token, if there is one, still stands for the same identity with the same rights.
    async fn is_still(&self, app: &Arc<App>, identity: &Identity) -> bool {
        let Identity::Token(token) = identity else { return true };
        let token = token.clone();
        let verify = move |app: &Arc<App>| app.library.verify_token(token.reveal());
        match app.blocking(Work::Check, app.new_call(), verify).await {
            Ok(verified) => verified.is_ok_and(|pass| pass == self.pass),
            // Nothing is known; the next look will tell.
            Err(BlockingError::Busy) => true,
            Err(BlockingError::Defect) => false,
        }
    }
}

/// Why there is no subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubscribeError {
    TooMany,
    Busy,
}

impl App {
    /// The place in the journal after which a subscription that is about to begin hears of changes.
    pub(crate) async fn journal_position(self: &Arc<Self>) -> Result<u64, SubscribeError> {
        let position = self.blocking(Work::Check, self.new_call(), |app| app.library.sequence()).await;
        position.ok().and_then(Result::ok).ok_or(SubscribeError::Busy)
    }

    /// Subscribes a client to something that it was found to see after the journal was at `position`.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        client: &Subscriber,
        uri: &str,
        subject: Subject,
        position: u64,
    ) -> Result<(), SubscribeError> {
        if self.subscriptions.count() >= MOST_IN_ALL || !client.add(uri, subject) {
            return Err(SubscribeError::TooMany);
        }
        let mut state = self.subscriptions.0.lock();
        if !state.is_following {
            (state.is_following, state.position) = (true, position);
            tokio::spawn(follow(Arc::downgrade(self)));
        }
        Ok(())
    }
}

/// Follows the journal for as long as anybody has subscribed.
async fn follow(app: Weak<App>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(app) = app.upgrade() else { return };
        let Some(position) = app.subscriptions.go_on() else { return };
        let look = move |app: &Arc<App>| app.library.changes_since(position);
        match app.blocking(Work::Check, app.new_call(), look).await {
            Ok(Ok(changes)) => app.subscriptions.note(&changes),
            Ok(Err(error)) => tracing::warn!(%error, "the journal could not be read for subscribers"),
            Err(_) => tracing::warn!("the journal was not looked at for subscribers; the server is busy"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(number: u8) -> (String, Subject) {
        let uri = format!("shelf://documents/00000000-0000-4000-8000-0000000000{number:02x}");
        let subject = Subject::of(&uri).unwrap();
        (uri, subject)
    }

    fn change(subject: Subject, position: u64) -> Changes {
        let mut changes = Changes { position, ..Changes::default() };
        match subject {
            Subject::Document(id) => changes.documents.insert(id),
            Subject::Collection(id) => changes.collections.insert(id),
        };
        changes
    }

    #[test]
    fn a_client_hears_once_of_what_it_wants_and_of_nothing_else() {
        let all = Subscriptions::default();
        let client = all.join(&Pass::owner()).unwrap();
        let ((wanted, subject), (_, other)) = (document(1), document(2));
        assert!(client.add(&wanted, subject));
        for position in 1..5 {
            all.note(&change(subject, position));
            all.note(&change(other, position));
        }
        assert_eq!((client.next(), client.next()), (Some(wanted.clone()), None));
        all.note(&change(subject, 5));
        client.remove(&wanted);
        assert_eq!(client.next(), None, "what nobody waits for any more is not told");
        assert_eq!(all.go_on(), None, "nobody wants anything");
    }

    #[test]
    fn clients_and_their_subscriptions_are_bounded() {
        let all = Subscriptions::default();
        let clients: Vec<_> = std::iter::from_fn(|| all.join(&Pass::owner())).collect();
        assert_eq!(clients.len(), MOST_OF_ONE);
        let subject = document(1).1;
        let added = (0..).take_while(|number| clients[0].add(&format!("uri {number}"), subject)).count();
        assert_eq!(added, MOST_SUBJECTS);
        assert!(clients[0].add("uri 0", subject), "what is there already may be said again");
        drop(clients);
        assert!(all.join(&Pass::owner()).is_some(), "the place of a client that went is free");
        assert_eq!(all.count(), 0);
    }
}
