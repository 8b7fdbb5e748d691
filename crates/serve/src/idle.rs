//! When nobody calls, memory goes back to the system: a server that waits for weeks should not hold what one busy minute
//! needed.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use shelf_engine::Idle;

use crate::App;

/// How often a busy server looks whether it still is. A server that rests does not look at all.
const LOOK: Duration = Duration::from_secs(1);
/// Looks without a call after which pages of the index are given back. The next search takes half as long again to have
/// them back, so it is not done between the calls of somebody who is at work.
const SHORT: u32 = 5;
/// Looks after which everything is given back that can be had again: a minute.
const LONG: u32 = 60;

/// Knows whether anybody calls.
#[derive(Default)]
pub(crate) struct Watch {
    calls: AtomicU64,
    is_on: AtomicBool,
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
    let (mut seen, mut quiet) = (0, 0);
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(app) = app.upgrade() else { return };
        let calls = app.watch.calls.load(Ordering::Relaxed);
        let copied = app.clone();
        let _ = tokio::task::spawn_blocking(move || copied.library.copy_when_due()).await;
        if calls != seen {
            (seen, quiet) = (calls, 0);
            continue;
        }
        quiet += 1;
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

async fn give_back(app: &Arc<App>, idle: Idle) {
    let app = app.clone();
    let work = move || {
        app.library.release_memory(idle);
        (app.give_back)();
    };
    let _ = tokio::task::spawn_blocking(work).await;
}
