//! Answers that a client has not taken yet. A client that sends and does not read must not fill the server's memory: when
//! too much waits for it, nothing more is taken from it.

use parking_lot::{Condvar, Mutex};

/// Bytes of answers that may wait before nothing more is asked of the library for this client.
const MOST_BYTES: usize = 2 << 20;
/// Requests of one client that may be unanswered.
const MOST_REQUESTS: usize = 1_024;

#[derive(Default)]
struct Waiting {
    bytes: usize,
    requests: usize,
    is_over: bool,
}

/// What waits for one client.
pub(crate) struct Backlog {
    most_requests: usize,
    waiting: Mutex<Waiting>,
    room: Condvar,
}

impl Default for Backlog {
    fn default() -> Self {
        Self::of(MOST_REQUESTS)
    }
}

impl Waiting {
    const fn is_full(&self, most_requests: usize) -> bool {
        !self.is_over && (self.bytes > MOST_BYTES || self.requests > most_requests)
    }
}

impl Backlog {
    /// For a client with so many unanswered requests at most.
    pub(crate) fn of(most_requests: usize) -> Self {
        Self { most_requests, waiting: Mutex::default(), room: Condvar::new() }
    }

    /// A line on its way to the client.
    pub(crate) fn add(&self, line: &[u8]) {
        let mut waiting = self.waiting.lock();
        waiting.bytes += line.len();
        if is_answer(line) {
            waiting.requests = waiting.requests.saturating_sub(1);
            self.room.notify_all();
        }
    }

    /// The client has taken so many bytes.
    pub(crate) fn taken(&self, bytes: usize) {
        let mut waiting = self.waiting.lock();
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        self.room.notify_all();
    }

    /// A request that will be answered.
    pub(crate) fn asked(&self) {
        self.waiting.lock().requests += 1;
    }

    /// Whether the client should read before it asks more.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.lock().is_full(self.most_requests)
    }

    /// Waits until the client has read enough; on a thread that may block.
    pub(crate) fn wait_for_room(&self) {
        let mut waiting = self.waiting.lock();
        while waiting.is_full(self.most_requests) {
            self.room.wait(&mut waiting);
        }
    }

    /// The client will read no more.
    pub(crate) fn end(&self) {
        self.waiting.lock().is_over = true;
        self.room.notify_all();
    }
}

/// Whether a line answers a request; the others are notifications.
fn is_answer(line: &[u8]) -> bool {
    line.starts_with(br#"{"jsonrpc":"2.0","id":"#)
}

/// Whether a message is a request, which gets an answer.
pub(crate) fn is_request(message: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Head {
        id: Option<serde::de::IgnoredAny>,
        method: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<Head>(message).is_ok_and(|head| head.id.is_some() && head.method.is_some())
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
        (0..=MOST_REQUESTS).for_each(|_| backlog.asked());
        assert!(backlog.is_full());
        backlog.add(br#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        assert!(!backlog.is_full());
    }

    #[test]
    fn requests_and_notifications_are_told_apart() {
        assert!(is_request(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#));
        assert!(!is_request(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
        assert!(!is_request(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    }
}
