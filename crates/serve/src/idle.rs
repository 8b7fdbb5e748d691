//! When nobody calls, memory goes back to the system: a server that waits for weeks should not hold what one busy minute
//! needed. Before that, the time is used to deepen the library.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use shelf_base::CallContext;
use shelf_engine::{Deepen, Idle};
use tokio::sync::Mutex;

use crate::App;

/// How often a busy server looks whether it still is. A server that rests does not look at all.
const LOOK: Duration = Duration::from_secs(1);
/// Looks without a call after which pages of the index are given back. The next search takes half as long again to have
/// them back, so it is not done between the calls of somebody who is at work.
const SHORT: u32 = 5;
/// Looks without a call after which deepening begins: longer than an agent thinks between two calls.
const DEEPEN: u32 = 20;
/// Looks after which everything is given back that can be had again: a minute.
const LONG: u32 = 60;
/// Looks of a busy server after which free pages between those in use are given back. Many threads allocate and free
/// in few heaps, which leaves holes: after 60,000 writes, 23 MB of 58.
const TRIM: u32 = 30;

/// Knows whether anybody calls.
#[derive(Default)]
pub(crate) struct Watch {
    calls: AtomicU64,
    is_on: AtomicBool,
    deepening: Mutex<Option<(JoinHandle<()>, CallContext)>>,
}

impl Watch {
    /// Notes a call.
    pub(crate) fn called(&self, app: &Arc<App>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if !self.is_on.swap(true, Ordering::AcqRel) {
            tokio::spawn(watch(Arc::downgrade(app)));
        }
    }
}

/// Looks after the memory of a server from its first call until it has rested for long.
async fn watch(app: Weak<App>) {
    let (mut seen, mut quiet, mut busy) = (0, 0, 0);
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(app) = app.upgrade() else { return };
        let calls = app.watch.calls.load(Ordering::Relaxed);
        let copied = app.clone();
        let _ = tokio::task::spawn_blocking(move || copied.library.copy_when_due()).await;
        if app.library.deepen_when() == Deepen::Always && quiet == 0 {
            start_deepening(&app, None).await;
        }
        if calls != seen || app.is_working() {
            (seen, quiet, busy) = (calls, 0, busy + 1);
            if busy % TRIM == 0 {
                trim(&app).await;
            }
            continue;
        }
        quiet += 1;
        if quiet == DEEPEN {
            start_deepening(&app, Some(calls)).await;
        }
        if quiet == SHORT {
            give_back(&app, Idle::Short).await;
        }
        if quiet == LONG {
            give_back(&app, Idle::Long).await;
            app.watch.is_on.store(false, Ordering::Release);
            // A call that came in between saw the watch on and left it to this one.
            let is_left = app.watch.calls.load(Ordering::Relaxed) != seen;
            if !is_left || app.watch.is_on.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }
}

/// Deepens the library on a thread of its own, unless one does. With a number of calls it stops at the next one.
async fn start_deepening(app: &Arc<App>, calls: Option<u64>) {
    let mut deepening = app.watch.deepening.lock().await;
    if deepening.as_ref().is_some_and(|(thread, _)| !thread.is_finished()) {
        return;
    }
    let (app, call) = (app.clone(), CallContext::new());
    let own_call = call.clone();
    let work = move || {
        let is_quiet = || {
            calls.is_none_or(|calls| app.watch.calls.load(Ordering::Relaxed) == calls && !app.is_working())
        };
        match app.library.deepen_quietly(&|| is_quiet() && own_call.check().is_ok(), &own_call) {
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "deepening stopped"),
        }
        if is_quiet() {
            app.library.release_memory(Idle::Short);
            (app.give_back)();
        }
    };
    let started = thread::Builder::new().name("deepen".into()).spawn(work);
    *deepening = started.ok().map(|thread| (thread, call));
}

/// Ends deepening, so that nothing uses the library any more.
pub(crate) async fn stop_deepening(app: &Arc<App>) {
    if let Some((thread, call)) = app.watch.deepening.lock().await.take() {
        call.cancel();
        let _ = tokio::task::spawn_blocking(move || thread.join()).await;
    }
}

/// Returns what the allocator has free to the system.
async fn trim(app: &Arc<App>) {
    let app = app.clone();
    let _ = tokio::task::spawn_blocking(move || (app.give_back)()).await;
}

async fn give_back(app: &Arc<App>, idle: Idle) {
    let app = app.clone();
    let work = move || {
        app.library.release_memory(idle);
        (app.give_back)();
    };
    let _ = tokio::task::spawn_blocking(work).await;
}
