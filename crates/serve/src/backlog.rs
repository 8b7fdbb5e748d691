//! Answers that a client has not taken yet. A client that sends and does not read must not fill the server's memory: when
//! too much waits for it, nothing more is taken from it.

use std::collections::HashSet;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

/// Bytes of answers that may wait before nothing more is asked of the library for this client.
const MOST_BYTES: usize = 2 << 20;
/// Requests of one client that may be unanswered.
const MOST_REQUESTS: usize = 1_024;

#[derive(Default)]
struct Waiting {
    bytes: usize,
    /// Ids of the requests that will be answered. One that is cancelled may never be.
    requests: HashSet<String>,
    is_over: bool,
}

/// What waits for one client.
pub(crate) struct Backlog {
    most_requests: usize,
    waiting: Mutex<Waiting>,
    room: Notify,
}

impl Default for Backlog {
    fn default() -> Self {
        Self::of(MOST_REQUESTS)
    }
}

impl Waiting {
    fn is_full(&self, most_requests: usize) -> bool {
        !self.is_over && (self.bytes > MOST_BYTES || self.requests.len() > most_requests)
    }
}

impl Backlog {
    /// For a client with so many unanswered requests at most.
    pub(crate) fn of(most_requests: usize) -> Self {
        Self { most_requests, waiting: Mutex::default(), room: Notify::new() }
    }

    /// A line on its way to the client.
    pub(crate) fn add(&self, line: &[u8]) {
        let mut waiting = self.waiting.lock();
        waiting.bytes += line.len();
        if let Some(id) = answered(line) {
            waiting.requests.remove(&id);
            self.room.notify_waiters();
        }
    }

    /// The client has taken so many bytes.
    pub(crate) fn taken(&self, bytes: usize) {
        let mut waiting = self.waiting.lock();
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        self.room.notify_waiters();
    }

    /// A message of the client: a request will be answered, unless a later message cancels it.
    pub(crate) fn took(&self, message: &Message) {
        let mut waiting = self.waiting.lock();
        match message {
            Message::Request(id) => drop(waiting.requests.insert(id.clone())),
            Message::Cancellation(id) => {
                waiting.requests.remove(id);
                self.room.notify_waiters();
            }
            Message::Other => {}
        }
    }

    /// Whether the client waits for a single answer.
    pub(crate) fn is_single(&self) -> bool {
        self.waiting.lock().requests.len() == 1
    }

    /// Whether the client should read before it asks more.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.lock().is_full(self.most_requests)
    }

    /// Waits until the client has read enough.
    pub(crate) async fn wait_for_room(&self) {
        loop {
            // Made before the look, so that room which appears in between is not missed.
            let notified = self.room.notified();
            if !self.is_full() {
                return;
            }
            notified.await;
        }
    }

    /// The client will read no more.
    pub(crate) fn end(&self) {
        self.waiting.lock().is_over = true;
        self.room.notify_waiters();
    }
}

/// The id of the request that a line answers; the other lines are notifications.
fn answered(line: &[u8]) -> Option<String> {
    let rest = line.strip_prefix(br#"{"jsonrpc":"2.0","id":"#)?;
    let id: Value = serde_json::Deserializer::from_slice(rest).into_iter().next()?.ok()?;
    Some(id.to_string())
}

/// What a message of a client means for what waits for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// It will be answered.
    Request(String),
    /// The request of this id may never be answered.
    Cancellation(String),
    /// A notification or an answer.
    Other,
}

impl Message {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        #[derive(serde::Deserialize)]
        struct Head {
            id: Option<Value>,
            method: Option<String>,
            params: Option<Parameters>,
        }
        #[derive(serde::Deserialize)]
        struct Parameters {
            #[serde(rename = "requestId")]
            request_id: Option<Value>,
        }
        match serde_json::from_slice::<Head>(bytes) {
            Ok(Head { id: Some(id), method: Some(_), .. }) => Self::Request(id.to_string()),
            Ok(Head { method: Some(method), params: Some(Parameters { request_id: Some(id) }), .. })
                if method == "notifications/cancelled" =>
            {
                Self::Cancellation(id.to_string())
            }
            _ => Self::Other,
        }
    }

    pub(crate) const fn is_request(&self) -> bool {
        matches!(self, Self::Request(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_does_not_read_is_not_served_on() {
        let backlog = Backlog::default();
        backlog.add(&vec![b' '; MOST_BYTES]);
        assert!(!backlog.is_full());
        backlog.add(b"x");
        assert!(backlog.is_full());
        backlog.taken(1_000);
        assert!(!backlog.is_full());
        for id in 0..=MOST_REQUESTS {
            backlog.took(&Message::Request(id.to_string()));
        }
        assert!(backlog.is_full());
        backlog.add(br#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        assert!(!backlog.is_full());
        backlog.took(&Message::Request("\"again\"".into()));
        assert!(backlog.is_full());
        backlog.took(&Message::Cancellation("9".into()));
        assert!(!backlog.is_full(), "what was cancelled is not waited for");
    }

    #[test]
    fn requests_and_notifications_are_told_apart() {
        let of = |text: &str| Message::of(text.as_bytes());
        assert_eq!(
            of(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[1]}}"#),
            Message::Request("1".into())
        );
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#), Message::Request("\"x\"".into()));
        assert_eq!(of(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), Message::Other);
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Message::Other);
        let cancelled =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x","reason":"r"}}"#;
        assert_eq!(of(cancelled), Message::Cancellation("\"x\"".into()));
    }
}
