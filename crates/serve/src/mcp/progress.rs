//! Progress notifications: for calls whose caller gave a token, a few a second, before the reply.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rmcp::{RoleServer, model::ProgressNotificationParam, service::RequestContext};
use shelf_base::{CallContext, Progress};
use tokio::{sync::mpsc, task::JoinHandle};

/// How long a notification may take to leave before it is given up.
pub(super) const PATIENCE: Duration = Duration::from_millis(250);
/// Time between two notifications.
const PACE: Duration = Duration::from_millis(100);

struct Sink {
    sender: mpsc::UnboundedSender<(u64, Option<u64>, String)>,
    last: Mutex<(Option<Instant>, u64)>,
}

impl Progress for Sink {
    fn report(&self, done: u64, total: Option<u64>, message: &str) {
        let mut last = self.last.lock();
        let paced = last.0.is_none_or(|last| last.elapsed() >= PACE);
        // Progress must grow; phases that count anew stay quiet until they pass the old mark.
        let grows = last.0.is_none() || done > last.1;
        if grows && (paced || total == Some(done)) {
            *last = (Some(Instant::now()), done);
            let _ = self.sender.send((done, total, message.to_owned()));
        }
    }
}

/// Lets the call report to its caller, when the caller asked for it. The task ends when the call is dropped.
pub(super) fn attach(
    call: CallContext,
    context: &RequestContext<RoleServer>,
) -> (CallContext, Option<JoinHandle<()>>) {
    let Some(token) = context.meta.get_progress_token() else { return (call, None) };
    let (sender, mut reports) = mpsc::unbounded_channel();
    let peer = context.peer.clone();
    let task = tokio::spawn(async move {
        while let Some((done, total, message)) = reports.recv().await {
            let mut params = ProgressNotificationParam::new(token.clone(), done as f64).with_message(message);
            if let Some(total) = total {
                params = params.with_total(total as f64);
            }
            let _ = tokio::time::timeout(PATIENCE, peer.notify_progress(params)).await;
        }
    });
    (call.reporting_to(Arc::new(Sink { sender, last: Mutex::default() })), Some(task))
}
