//! What all transports share: the library, the tools on offer, limits, and the one way to run a call.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use shelf_base::{CallContext, Kind, Slot, bounds::PAGE_CHARS};
use shelf_engine::{Caller, FileAccess, Library};
use shelf_tools::{
    Answer, Context, ErrorReply, Limits, Tool,
    policy::{self, Access, Selection},
    prompts::Prompts,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    idle::{Watch, stop_deepening},
    subscriptions::Subscriptions,
};

/// How long calls may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// One tool call; `None` for no limit.
    pub call: Option<Duration>,
}

/// What a server is made of, beside its library.
pub struct Setup {
    /// The tools on offer.
    pub selection: Selection,
    /// Rate limits.
    pub limits: Limits,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Prompts on offer.
    pub prompts: Prompts,
    /// Has the allocator give free memory back to the system; called when nobody has called for long.
    pub give_back: fn(),
    /// Whether there is a single client, on stdio.
    pub is_single: bool,
}

/// The shared state of a server.
pub struct App {
    /// The library.
    pub library: Library,
    /// The tools on offer; a request may only narrow it.
    pub selection: Selection,
    /// Rate limits.
    pub limits: Limits,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Prompts on offer.
    pub prompts: Prompts,
    pub(crate) give_back: fn(),
    is_single: bool,
    pub(crate) watch: Watch,
    pub(crate) subscriptions: Subscriptions,
    slots: Slots,
    pub(crate) door: Mutex<Option<String>>,
}

/// What a piece of work does, which decides whom it may have to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Finds out who calls, or how the server is: short, and needed by all others.
    Check,
    /// Reads the library.
    Read,
    /// Changes it, and so may wait for others who do.
    Write,
}

/// Calls that run at once; more wait for their turn. Each kind has its own, so that writers who wait for a lock keep
/// no reader waiting.
struct Slots {
    checks: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    writes: Arc<Semaphore>,
    /// Calls that wait for other programs, such as `ffmpeg`, and have given their slot to others.
    aside: Arc<Semaphore>,
}

/// The slot of a call that runs.
struct OwnSlot {
    held: Mutex<Held>,
    aside: Arc<Semaphore>,
}

enum Held {
    /// One of its kind.
    Own { _slot: OwnedSemaphorePermit },
    /// One of those that wait for other programs.
    Aside { _slot: OwnedSemaphorePermit },
}

impl Slot for OwnSlot {
    fn step_aside(&self) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*held, Held::Aside { .. }) {
            return true;
        }
        match self.aside.clone().try_acquire_owned() {
            Ok(slot) => {
                *held = Held::Aside { _slot: slot };
                true
            }
            Err(_) => false,
        }
    }
}

/// Threads that all slots together need.
pub const BLOCKING_THREADS: usize = CHECKS + READS + WRITES + ASIDE + 8;
const CHECKS: usize = 8;
const READS: usize = 40;
const WRITES: usize = 24;
const ASIDE: usize = 16;
/// How long a call waits for its turn.
const TURN: Duration = Duration::from_secs(30);

impl Default for Slots {
    fn default() -> Self {
        let of = |count| Arc::new(Semaphore::new(count));
        Self { checks: of(CHECKS), reads: of(READS), writes: of(WRITES), aside: of(ASIDE) }
    }
}

impl Slots {
    const fn of(&self, work: Work) -> &Arc<Semaphore> {
        match work {
            Work::Check => &self.checks,
            Work::Read => &self.reads,
            Work::Write => &self.writes,
        }
    }
}

/// Why blocking work has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockingError {
    /// Its turn did not come.
    Busy,
    /// It ended by a defect.
    Defect,
}

impl App {
    /// A server over `library`.
    pub fn new(library: Library, setup: Setup) -> Arc<Self> {
        let Setup { selection, limits, timeouts, prompts, give_back, is_single } = setup;
        let (watch, slots, door) = (Watch::default(), Slots::default(), Mutex::default());
        let subscriptions = Subscriptions::default();
        Arc::new(Self {
            library,
            selection,
            limits,
            timeouts,
            prompts,
            give_back,
            is_single,
            watch,
            subscriptions,
            slots,
            door,
        })
    }

    /// Begins to use the time in which nobody calls.
    pub fn begin(self: &Arc<Self>) {
        self.watch.called(self);
    }

    /// Ends what the server does beside its calls.
    pub async fn end(self: &Arc<Self>) {
        stop_deepening(self).await;
        self.library.clear_archives();
    }

    /// Whether a call is under way.
    pub(crate) fn is_working(&self) -> bool {
        self.slots.reads.available_permits() < READS || self.slots.writes.available_permits() < WRITES
    }

    /// A call with this server's time limit.
    pub(crate) fn new_call(&self) -> CallContext {
        self.timeouts.call.map_or_else(CallContext::new, |limit| CallContext::new().within(limit))
    }

    /// Runs a tool on a thread where blocking is fine, and makes of its answer what the transport wants: an answer can be
    /// megabytes, which would keep other connections waiting. Dropping the future cancels the call.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        tool: &'static Tool,
        selection: Selection,
        caller: Caller,
        call: CallContext,
        arguments: Map<String, Value>,
        finish: impl FnOnce(Answer) -> T + Send + 'static,
    ) -> Result<T, ErrorReply> {
        let started = Instant::now();
        let work = if tool.access == Access::Read { Work::Read } else { Work::Write };
        let in_place = self.runs_in_place(tool, &call, &arguments).then(|| {
            self.watch.called(self);
            self.answer(tool, &selection, &caller, &call, arguments.clone())
        });
        let done = match in_place {
            Some(answer) if !call.had_to_wait() => Ok(answer.map(finish)),
            _ => {
                let make = move |app: &Arc<Self>, call: &CallContext| {
                    app.answer(tool, &selection, &caller, call, arguments).map(finish)
                };
                self.blocking_call(work, call.elsewhere(), make).await
            }
        };
        let outcome = match done {
            Ok(outcome) => outcome,
            Err(BlockingError::Busy) => Err(shelf_tools::busy(tool, TURN.as_secs())),
            Err(BlockingError::Defect) => Err(shelf_tools::defect(tool)),
        };
        note(tool, started, outcome.as_ref().err());
        outcome
    }

    /// Runs a tool on this thread.
    fn answer(
        self: &Arc<Self>,
        tool: &'static Tool,
        selection: &Selection,
        caller: &Caller,
        call: &CallContext,
        arguments: Map<String, Value>,
    ) -> Result<Answer, ErrorReply> {
        let (library, limits, page_chars) = (&self.library, &self.limits, PAGE_CHARS);
        let upload_door = &|| self.open_door();
        let context = Context { library, caller, call, limits, selection, page_chars, upload_door };
        shelf_tools::call(tool, &context, arguments)
    }

    /// The tools that are listed for a caller.
    pub(crate) async fn listed(
        self: &Arc<Self>,
        caller: Caller,
        selection: Selection,
    ) -> Result<Vec<&'static Tool>, BlockingError> {
        // Nothing has to be looked up for callers of this machine.
        if caller.file_access == FileAccess::OperatingSystem {
            return Ok(policy::listed(&self.library, &caller, &selection));
        }
        let look = move |app: &Arc<Self>| policy::listed(&app.library, &caller, &selection);
        self.blocking(Work::Check, self.new_call(), look).await
    }

    /// Whether a call runs on the runtime's own thread: with a single client and no other call under way nobody waits
    /// for that thread, and going to another one and back takes longer than a short read, and a tenth of a short write. A
    /// write may find that it has to wait for others; then it goes to another thread after all. With more than one request
    /// they all do, and share a sync.
    fn runs_in_place(&self, tool: &Tool, call: &CallContext, arguments: &Map<String, Value>) -> bool {
        let is_short = tool.is_short()
            || call.is_in_place() && !self.library.is_shared() && tool.is_short_write(arguments);
        self.is_single && is_short && !self.is_working()
    }

    /// Runs blocking work.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        kind: Work,
        call: CallContext,
        work: impl FnOnce(&Arc<Self>) -> T + Send + 'static,
    ) -> Result<T, BlockingError> {
        self.blocking_call(kind, call, |app, _| work(app)).await
    }

    /// Runs blocking work that gets the call with its slot, and may give that to others while it waits.
    pub(crate) async fn blocking_call<T: Send + 'static>(
        self: &Arc<Self>,
        kind: Work,
        call: CallContext,
        work: impl FnOnce(&Arc<Self>, &CallContext) -> T + Send + 'static,
    ) -> Result<T, BlockingError> {
        // Probes of a server's health would keep it from ever being idle.
        if kind != Work::Check {
            self.watch.called(self);
        }
        let turn = tokio::time::timeout(TURN, self.slots.of(kind).clone().acquire_owned()).await;
        let slot = turn.ok().and_then(Result::ok).ok_or(BlockingError::Busy)?;
        let mut guard = CancelOnDrop(Some(call.clone()));
        let app = self.clone();
        // A slot is taken for as long as the thread is, whether or not anybody still waits for it.
        let work = move || {
            let held = Mutex::new(Held::Own { _slot: slot });
            let slot = Arc::new(OwnSlot { held, aside: app.slots.aside.clone() });
            work(&app, &call.in_slot(slot))
        };
        let done = tokio::task::spawn_blocking(work).await;
        guard.0 = None;
        done.map_err(|error| {
            tracing::error!(%error, "a call ended by a defect");
            BlockingError::Defect
        })
    }

    /// Whether a write would have to wait for others to finish before it could even begin.
    pub(crate) fn is_crowded(&self) -> bool {
        self.slots.writes.available_permits() == 0
    }
}

/// Cancels the call when whoever waited for it has gone.
struct CancelOnDrop(Option<CallContext>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(call) = &self.0 {
            call.cancel();
        }
    }
}

/// Counts and logs a call that has ended.
pub(crate) fn note(tool: &Tool, started: Instant, failure: Option<&ErrorReply>) {
    let seconds = started.elapsed().as_secs_f64();
    let code = failure.map_or("ok", |failure| failure.kind.row().code);
    metrics::counter!("shelf_tool_calls_total", "tool" => tool.name, "outcome" => code).increment(1);
    metrics::histogram!("shelf_tool_call_seconds", "tool" => tool.name).record(seconds);
    match failure {
        Some(failure) if matches!(failure.kind, Kind::Internal | Kind::Corrupt | Kind::Io) => {
            tracing::error!(tool = tool.name, seconds, code, message = failure.message, "call failed");
        }
        Some(failure) => {
            tracing::info!(tool = tool.name, seconds, code, message = failure.message, "call refused");
        }
        None => tracing::debug!(tool = tool.name, seconds, "call"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_steps_aside_frees_its_slot() {
        let slots = Slots::default();
        let running: Vec<OwnSlot> = (0..READS)
            .map(|_| {
                let slot = slots.reads.clone().try_acquire_owned().unwrap();
                OwnSlot { held: Mutex::new(Held::Own { _slot: slot }), aside: slots.aside.clone() }
            })
            .collect();
        assert_eq!(slots.reads.available_permits(), 0);
        let stepped = running.iter().filter(|slot| slot.step_aside() && slot.step_aside()).count();
        assert_eq!((stepped, slots.reads.available_permits()), (ASIDE, ASIDE));
        drop(running);
        assert_eq!((slots.reads.available_permits(), slots.aside.available_permits()), (READS, ASIDE));
    }
}
