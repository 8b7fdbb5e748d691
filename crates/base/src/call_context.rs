//! The context of a call: its deadline, its cancellation and its progress reports.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Receives the progress of a long-running call.
pub trait Progress: Send + Sync {
    /// Reports that `done` of `total` units, if the total is known, are finished.
    fn report(&self, done: u64, total: Option<u64>, message: &str);
}

/// The slot that a running call takes among others of its kind.
pub trait Slot: Send + Sync {
    /// Gives the slot to others, because the call is about to wait for something slow. Fails if too many calls wait
    /// already. Doing it again changes nothing.
    fn step_aside(&self) -> bool;
}

/// Why a call had to stop before it was finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// The caller cancelled it.
    #[error("the call was cancelled")]
    Cancelled,
    /// Its deadline passed.
    #[error("the call took longer than its time limit")]
    TimedOut,
}

/// A call in progress. Cheap to clone; every clone sees the same cancellation.
#[derive(Clone, Default)]
pub struct CallContext {
    cancelled: Arc<AtomicBool>,
    deadline: Option<Instant>,
    progress: Option<Arc<dyn Progress>>,
    slot: Option<Arc<dyn Slot>>,
    /// Whether the call was about to wait, if it runs where it must not.
    in_place: Option<Arc<AtomicBool>>,
    is_repeated: bool,
}

impl CallContext {
    /// A call without deadline or progress.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the call at most `time` from now.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.deadline = Instant::now().checked_add(time);
        self
    }

    /// Sends progress to `progress`.
    #[must_use]
    pub fn reporting_to(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Tells which slot the call takes.
    #[must_use]
    pub fn in_slot(mut self, slot: Arc<dyn Slot>) -> Self {
        self.slot = Some(slot);
        self
    }

    /// Says that the call may run on a thread on which others depend: there it must not wait for anybody.
    #[must_use]
    pub fn in_place(mut self) -> Self {
        self.in_place = Some(Arc::default());
        self
    }

    /// The same call on a thread of its own, where it may wait.
    #[must_use]
    pub fn elsewhere(mut self) -> Self {
        self.is_repeated = self.had_to_wait();
        self.in_place = None;
        self
    }

    /// Whether the call has been tried in place before.
    pub const fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// Whether the call may run in place.
    pub const fn is_in_place(&self) -> bool {
        self.in_place.is_some()
    }

    /// Whether the call may wait for a lock that others have. If it may not, it gives up without having changed anything, and
    /// is run once more elsewhere.
    pub fn may_wait(&self) -> bool {
        self.in_place.as_ref().is_none_or(|had_to_wait| {
            had_to_wait.store(true, Ordering::Relaxed);
            false
        })
    }

    /// Whether the call has given up because it must not wait.
    pub fn had_to_wait(&self) -> bool {
        self.in_place.as_ref().is_some_and(|had_to_wait| had_to_wait.load(Ordering::Relaxed))
    }

    /// Lets other calls pass while this one waits for something slow, such as another program. Returns false if too many
    /// calls wait already; the call should fail then.
    pub fn step_aside(&self) -> bool {
        self.slot.as_ref().is_none_or(|slot| slot.step_aside())
    }

    /// Asks the work to stop at its next check.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Fails when the call should stop. Every loop whose length depends on the caller must check this.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Stopped::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Stopped::TimedOut),
            _ => Ok(()),
        }
    }

    /// Reports progress, if a receiver is set.
    pub fn report(&self, done: u64, total: Option<u64>, message: &str) {
        if let Some(progress) = &self.progress {
            progress.report(done, total, message);
        }
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CallContext").field("state", &self.check()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_in_place_remembers_that_it_had_to_wait() {
        let call = CallContext::new().in_place();
        assert!(!call.had_to_wait());
        let copy = call.clone();
        assert!(!copy.may_wait());
        assert!(call.had_to_wait() && copy.had_to_wait());
        let elsewhere = call.elsewhere();
        assert!(elsewhere.may_wait() && !elsewhere.had_to_wait() && elsewhere.is_repeated());
        assert!(!CallContext::new().in_place().elsewhere().is_repeated());
    }

    #[test]
    fn clones_share_cancellation_and_deadlines_pass() {
        let call = CallContext::new();
        let other = call.clone();
        assert_eq!(call.check(), Ok(()));
        other.cancel();
        assert_eq!(call.check(), Err(Stopped::Cancelled));
        assert_eq!(CallContext::new().within(Duration::ZERO).check(), Err(Stopped::TimedOut));
    }
}
