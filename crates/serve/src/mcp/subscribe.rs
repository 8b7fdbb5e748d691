//! The protocol's side of subscriptions: `resources/subscribe` of the older revisions, whose messages come down the
//! connection or the stream of a session, and `subscriptions/listen` of 2026-07-28, which is a stream of its own.

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::{
    ErrorData,
    model::{ErrorCode, ResourceUpdatedNotificationParam},
    service::SubscriptionContext,
};
use serde_json::json;
use shelf_tools::resources::Subject;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Admitted, Context, Handler, Who};
use crate::{
    backlog::Backlog,
    http::sessions::SessionError,
    stdio::Identity,
    subscriptions::{MOST_SUBJECTS, SubscribeError, Subscriber},
};

/// The subscriptions of a connection; they end with it.
pub(super) struct OwnSubscriptions {
    client: Mutex<Option<Arc<Subscriber>>>,
    stop: CancellationToken,
    _ends: DropGuard,
}

impl Default for OwnSubscriptions {
    fn default() -> Self {
        let stop = CancellationToken::new();
        Self { client: Mutex::default(), _ends: stop.clone().drop_guard(), stop }
    }
}

impl Handler {
    /// Subscribes the client of a request to a resource that it can see.
    pub(super) async fn subscribe_to(&self, uri: String, context: &Context) -> Result<(), ErrorData> {
        let client = self.subscriber(context)?;
        #[cfg(feature = "conformance")]
        if super::fixture::is_watched(&uri) {
            return Ok(());
        }
        let subject = Subject::of(&uri).ok_or_else(|| not_found(&uri))?;
        let position = self.app.journal_position().await.map_err(refused)?;
        let is_visible = self.in_library(context, move |app, Admitted { caller, selection }, _| {
            subject.is_visible(&app.library, caller, selection)
        });
        if !is_visible.await? {
            return Err(not_found(&uri));
        }
        self.app.subscribe(&client, &uri, subject, position).map_err(refused)
    }

    /// Ends a subscription; there need not be one.
    pub(super) fn unsubscribe_from(&self, uri: &str, context: &Context) -> Result<(), ErrorData> {
        self.subscriber(context)?.remove(uri);
        Ok(())
    }

    /// Who is told what a request subscribes to.
    fn subscriber(&self, context: &Context) -> Result<Arc<Subscriber>, ErrorData> {
        let pass = self.admitted(context)?.caller.pass;
        let identity = match &self.who {
            Who::EachRequest(sessions) => {
                let parts = context.extensions.get::<http::request::Parts>();
                let id = parts.and_then(|parts| sessions.id_of(&parts.headers));
                return sessions.subscriber(&self.app, id, &pass).map_err(|error| session_refused(&error));
            }
            Who::Stream(_, identity) | Who::Process(identity) => identity.clone(),
        };
        let mut own = self.own.client.lock();
        if let Some(client) = own.as_ref().filter(|client| *client.pass() == pass) {
            return Ok(client.clone());
        }
        let client = self.app.subscriptions.join(&pass).ok_or_else(|| refused(SubscribeError::TooMany))?;
        tokio::spawn(tell(self.clone_for_telling(), client.clone(), identity, context.peer.clone()));
        *own = Some(client.clone());
        Ok(client)
    }

    fn clone_for_telling(&self) -> Telling {
        Telling { app: self.app.clone(), backlog: self.backlog.clone(), stop: self.own.stop.clone() }
    }

    /// Runs one stream of 2026-07-28 until its client goes.
    pub(super) async fn listen_to(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        let pass = self.admitted(request)?.caller.pass;
        let client = self.app.subscriptions.join(&pass).ok_or_else(|| refused(SubscribeError::TooMany))?;
        let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        let position = self.app.journal_position().await.map_err(refused)?;
        let visible = self.in_library(request, move |app, Admitted { caller, selection }, _| {
            let known = uris.into_iter().filter_map(|uri| Subject::of(&uri).map(|subject| (uri, subject)));
            let mut visible = Vec::new();
            for (uri, subject) in known {
                if subject.is_visible(&app.library, caller, selection)? {
                    visible.push((uri, subject));
                }
            }
            Ok(visible)
        });
        for (uri, subject) in visible.await? {
            self.app.subscribe(&client, &uri, subject, position).map_err(refused)?;
        }
        let identity = self.identity(request);
        let send = |uri| async {
            self.room().await;
            context.sink().notify_resource_updated(uri).await.is_ok()
        };
        tokio::select! {
            () = client.tell(&self.app, &identity, send) => {}
            () = context.cancelled() => {}
        }
        Ok(())
    }

    fn identity(&self, context: &Context) -> Identity {
        match &self.who {
            Who::EachRequest(_) => {
                let parts = context.extensions.get::<http::request::Parts>();
                parts.and_then(|parts| parts.extensions.get().cloned()).unwrap_or(Identity::Owner)
            }
            Who::Stream(_, identity) | Who::Process(identity) => identity.clone(),
        }
    }

    async fn room(&self) {
        if let Some(backlog) = &self.backlog {
            backlog.wait_for_room().await;
        }
    }
}

/// URIs of a request to listen that can be subscribed to, whoever asks.
pub(super) fn accepted(uris: &[String]) -> Vec<String> {
    uris.iter().filter(|uri| Subject::of(uri).is_some()).take(MOST_SUBJECTS).cloned().collect()
}

/// What telling a connection needs, without what would keep the connection's handler alive.
struct Telling {
    app: Arc<crate::App>,
    backlog: Option<Arc<Backlog>>,
    stop: CancellationToken,
}

async fn tell(
    telling: Telling,
    client: Arc<Subscriber>,
    identity: Identity,
    peer: rmcp::Peer<rmcp::RoleServer>,
) {
    let Telling { app, backlog, stop } = telling;
    let send = |uri| async {
        if let Some(backlog) = &backlog {
            backlog.wait_for_room().await;
        }
        peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok()
    };
    tokio::select! {
        () = client.tell(&app, &identity, send) => {}
        () = stop.cancelled() => {}
    }
}

fn not_found(uri: &str) -> ErrorData {
    let message = format!(
        "no resource {uri} that can be subscribed to: use shelf://documents/ or shelf://collections/ with an id"
    );
    ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
}

fn refused(why: SubscribeError) -> ErrorData {
    match why {
        SubscribeError::TooMany => ErrorData::invalid_request(
            format!("too many subscriptions: one client may have {MOST_SUBJECTS}; end some first"),
            None,
        ),
        SubscribeError::Busy => ErrorData::internal_error("the server is busy; nothing was done", None),
    }
}

fn session_refused(why: &SessionError) -> ErrorData {
    match why {
        SessionError::None => ErrorData::invalid_request(
            "a subscription over HTTP needs a session: send the Mcp-Session-Id that the reply to initialize had, \
             and open a stream with GET",
            None,
        ),
        SessionError::Ended => ErrorData::new(
            ErrorCode::INVALID_REQUEST,
            "the session has ended: initialize again, then subscribe again",
            None,
        ),
        SessionError::TooMany => refused(SubscribeError::TooMany),
    }
}
