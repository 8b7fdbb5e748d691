//! Writes: the jobs of a process share transactions, and the processes take turns at the end of the journal only.
//!
//! Whoever finds nobody writing leads: it runs its own job and all that have been queued behind it in one transaction. The
//! others wait, and the next of them whose job is not done leads the next group. So a small write on a quiet node takes no
//! detour over another thread, and on a busy one a hundred writes share a commit.
//!
//! A transaction runs at `READ COMMITTED`. It begins by locking the rows of the accounts whose things it touches, in their
//! order, so that what it has looked at stays true; it ends by locking the end of the journal. What is shared between
//! accounts (blobs, the moments of snapshots) is guarded by unique indexes: who comes second does its work again.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use shelf_base::Digest;
use tokio_postgres::error::SqlState;

use super::{
    Keys,
    pool::{Lent, Pool},
    session::{Session, is_away, is_collision, state},
    statistics::Statistics,
};
use crate::{
    Error, Result,
    sql::{Connection, Touches, Turn, params},
};

/// The most jobs that share one commit.
const GROUP: usize = 128;
/// How often a job may be overtaken by somebody else.
const TRIES: u32 = 12;
/// How long a caller waits for its turn.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a write goes on looking for a database that has gone away.
const AWAY: Duration = Duration::from_secs(5);
/// How long it takes to find out whether a commit that nobody answered was made.
const LOOKING: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);

/// The queue of a process's writes.
#[derive(Default)]
pub(super) struct Writer {
    queue: Mutex<Queue>,
    /// Told when a group has ended.
    ended: Condvar,
    pub(super) statistics: Statistics,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<dyn Job>>,
    /// Whether somebody is running a group.
    is_led: bool,
}

/// A write that somebody waits for.
trait Job: Send + Sync {
    fn touches(&self) -> &Touches;
    /// Runs in a transaction, perhaps more than once.
    fn run(&self, turn: &Turn<'_>) -> Result<()>;
    /// How often it was overtaken.
    fn overtaken(&self) -> u32;
    /// Tells its caller how it ended.
    fn end(&self, outcome: Result<()>);
}

struct Work<T, F> {
    touches: Touches,
    work: Mutex<F>,
    tries: AtomicU32,
    /// What the last run made.
    made: Mutex<Option<T>>,
    outcome: Mutex<Option<Result<T>>>,
}

impl<T: Send, F: Fn(&Turn<'_>) -> Result<T> + Send> Job for Work<T, F> {
    fn touches(&self) -> &Touches {
        &self.touches
    }

    fn run(&self, turn: &Turn<'_>) -> Result<()> {
        let made = self.work.lock()(turn)?;
        *self.made.lock() = Some(made);
        Ok(())
    }

    fn overtaken(&self) -> u32 {
        self.tries.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn end(&self, outcome: Result<()>) {
        let made = self.made.lock().take();
        *self.outcome.lock() = Some(outcome.and_then(|()| made.ok_or(Error::Closed)));
    }
}

impl<T, F> Work<T, F> {
    fn new(touches: Touches, work: F) -> Arc<Self> {
        Arc::new(Self {
            touches,
            work: Mutex::new(work),
            tries: AtomicU32::new(0),
            made: Mutex::new(None),
            outcome: Mutex::new(None),
        })
    }
}

impl Writer {
    /// Runs `work` in a transaction; returns when it is durable.
    pub(super) fn write<T: Send + 'static>(
        &self,
        pool: &Pool,
        keys: &Keys,
        touches: Touches,
        work: impl Fn(&Turn<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let job = Work::new(touches, work);
        let until = Instant::now() + PATIENCE;
        let mut queue = self.queue.lock();
        queue.jobs.push_back(job.clone());
        loop {
            if let Some(outcome) = job.outcome.lock().take() {
                return outcome;
            }
            if !queue.is_led {
                queue.is_led = true;
                drop(queue);
                self.lead(pool, keys);
                queue = self.queue.lock();
            } else if Instant::now() < until {
                self.ended.wait_until(&mut queue, until);
            } else if withdraw(&mut queue.jobs, &job) {
                return Err(Error::Busy);
            } else {
                // Somebody has begun with it: its end is waited for.
                self.ended.wait(&mut queue);
            }
        }
    }

    /// Adds a job that nobody waits for.
    pub(super) fn push(&self, work: impl Fn(&Turn<'_>) -> Result<()> + Send + 'static) {
        self.queue.lock().jobs.push_back(Work::new(Touches::Nothing, work));
    }

    /// Runs what is queued, unless somebody is at it, who will come to it.
    pub(super) fn flush(&self, pool: &Pool, keys: &Keys) {
        let mut queue = self.queue.lock();
        while !queue.jobs.is_empty() {
            if queue.is_led {
                self.ended.wait(&mut queue);
                continue;
            }
            queue.is_led = true;
            drop(queue);
            self.lead(pool, keys);
            queue = self.queue.lock();
        }
    }

    /// One group, from the queue to the callers. Jobs that were overtaken go back to the front of the queue.
    fn lead(&self, pool: &Pool, keys: &Keys) {
        let _leading = Leading(self);
        let mut group = Group(self.take_group());
        let outcomes = run(pool, keys, &group.0);
        let jobs = std::mem::take(&mut group.0);
        let (outcomes, end) = match outcomes {
            Ok(done) => done,
            Err(error) => (jobs.iter().map(|_| Err(copy(&error))).collect(), None),
        };
        let mut again = Vec::new();
        for (job, outcome) in jobs.into_iter().zip(outcomes) {
            match outcome {
                Err(error) if is_collision(&error) && job.overtaken() < TRIES => again.push(job),
                Err(error) if is_collision(&error) => job.end(Err(Error::Busy)),
                outcome => job.end(outcome),
            }
        }
        let mut queue = self.queue.lock();
        again.into_iter().rev().for_each(|job| queue.jobs.push_front(job));
        drop(queue);
        if let Some(sequence) = end {
            self.statistics.note(sequence);
        }
    }

    fn take_group(&self) -> Vec<Arc<dyn Job>> {
        let mut queue = self.queue.lock();
        let count = queue.jobs.len().min(GROUP);
        queue.jobs.drain(..count).collect()
    }
}

fn withdraw<J: Job + 'static>(jobs: &mut VecDeque<Arc<dyn Job>>, job: &Arc<J>) -> bool {
    let before = jobs.len();
    jobs.retain(|queued| !std::ptr::addr_eq(Arc::as_ptr(queued), Arc::as_ptr(job)));
    jobs.len() < before
}

/// The lead, given back also when a job ends by a defect.
struct Leading<'w>(&'w Writer);

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.0.queue.lock().is_led = false;
        self.0.ended.notify_all();
    }
}

/// Jobs under way. Those that a defect has cut short are told so.
struct Group(Vec<Arc<dyn Job>>);

impl Drop for Group {
    fn drop(&mut self) {
        self.0.iter().for_each(|job| job.end(Err(Error::Closed)));
    }
}

/// An error that all jobs of a group share.
fn copy(error: &Error) -> Error {
    match error {
        Error::Away { reason, is_unsure } => Error::Away { reason: reason.clone(), is_unsure: *is_unsure },
        Error::Refused { what, hint } => Error::Refused { what: what.clone(), hint: hint.clone() },
        Error::ReadOnly => Error::ReadOnly,
        Error::Busy => Error::Busy,
        Error::Moved => Error::Moved,
        other => Error::Away { reason: other.to_string(), is_unsure: false },
    }
}

/// How an attempt at a group ended.
enum Attempt {
    /// With a commit; each job's own outcome, and the last journal record.
    Done(Vec<Result<()>>, Option<u64>),
    /// Without one: it can be tried again.
    Again(Error),
    /// Nobody answered the commit; the last record that it would have written.
    Unanswered(Error, Option<(u64, Digest)>, Vec<Result<()>>),
}

/// Runs a group, again and again while the database is away for a moment or somebody else is faster. Gives each job's outcome,
/// and the last journal record if it is known.
fn run(pool: &Pool, keys: &Keys, jobs: &[Arc<dyn Job>]) -> Result<(Vec<Result<()>>, Option<u64>)> {
    let until = Instant::now() + AWAY;
    let mut tries = 0;
    loop {
        let (attempt, lent) = match pool.take() {
            Ok(lent) => (attempt(lent.session()?, keys, jobs), Some(lent)),
            Err(error) => (Attempt::Again(error), None),
        };
        let error = match attempt {
            Attempt::Done(outcomes, end) => return Ok((outcomes, end)),
            Attempt::Again(error) => {
                clean(pool, lent, &error);
                error
            }
            Attempt::Unanswered(error, end, outcomes) => {
                clean(pool, lent, &error);
                match was_made(pool, end) {
                    Some(true) => return Ok((outcomes, None)),
                    Some(false) => error,
                    None => return Err(Error::Away { reason: error.to_string(), is_unsure: true }),
                }
            }
        };
        tries += 1;
        let is_hopeless = match &error {
            Error::Away { .. } => Instant::now() >= until,
            error if is_collision(error) => tries >= TRIES,
            _ => true,
        };
        if is_hopeless {
            return Err(error);
        }
        thread::sleep(PAUSE.min(Duration::from_millis(5 << tries.min(5))));
    }
}

/// Puts a connection on which something failed aside, or back to its beginning.
fn clean(pool: &Pool, lent: Option<Lent<'_>>, error: &Error) {
    let Some(lent) = lent else { return };
    let is_clean = !is_away(error) && lent.session().and_then(|session| session.batch("ROLLBACK")).is_ok();
    if !is_clean {
        lent.discard();
        // What else is idle was most likely cut with it.
        pool.close_idle(0);
    }
}

fn attempt(session: &Session, keys: &Keys, jobs: &[Arc<dyn Job>]) -> Attempt {
    session.ahead("BEGIN");
    if let Err(error) = lock(session, keys, jobs.iter().map(|job| job.touches())) {
        return Attempt::Again(error);
    }
    let turn = Turn::beside_others(Connection::Postgres(session));
    let mut outcomes = Vec::with_capacity(jobs.len());
    for (at, job) in jobs.iter().enumerate() {
        match in_savepoint(session, &turn, &**job, (jobs.len() > 1).then_some(at)) {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) => return Attempt::Again(error),
        }
    }
    if let [Err(_)] = outcomes[..] {
        return match session.batch("ROLLBACK") {
            Ok(()) => Attempt::Done(outcomes, None),
            Err(error) => Attempt::Again(error),
        };
    }
    let last = match turn.close() {
        Ok(last) => last,
        Err(error) => return Attempt::Again(error),
    };
    match session.end(&last, "COMMIT") {
        Ok(()) => Attempt::Done(outcomes, turn.end().map(|(sequence, _)| sequence)),
        Err(error) if is_away(&error) => Attempt::Unanswered(error, turn.end(), outcomes),
        Err(error) => Attempt::Again(error),
    }
}

/// Runs a job so that its failure leaves nothing behind; an error when the whole transaction has failed.
///
/// In company, each job has a savepoint with a number of its own (`at`): a command that fails on its way with the next job's
/// then undoes nothing but the whole group.
fn in_savepoint(session: &Session, turn: &Turn<'_>, job: &dyn Job, at: Option<usize>) -> Result<Result<()>> {
    let Some(at) = at else {
        return match job.run(turn) {
            Err(error) if is_away(&error) => Err(error),
            outcome => Ok(outcome),
        };
    };
    let mark = turn.mark();
    session.ahead(&format!("SAVEPOINT job_{at}"));
    match job.run(turn) {
        Ok(()) => {
            session.ahead(&format!("RELEASE job_{at}"));
            Ok(Ok(()))
        }
        Err(error) if is_away(&error) => Err(error),
        Err(error) => {
            turn.go_back(&mark);
            match session.batch(&format!("ROLLBACK TO job_{at}; RELEASE job_{at}")) {
                Ok(()) => Ok(Err(error)),
                Err(lost) if is_away(&lost) => Err(lost),
                // There is no such savepoint: what went ahead of the job has failed, and its error says why.
                Err(_) => Err(error),
            }
        }
    }
}

/// Locks what a transaction touches. Rows are locked in their order, so that no two transactions wait for each other.
fn lock<'t>(session: &Session, keys: &Keys, touches: impl Iterator<Item = &'t Touches>) -> Result<()> {
    let (mut accounts, mut collections, mut documents) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_alone = false;
    for touched in touches {
        match touched {
            Touches::Nothing => {}
            Touches::Account(id) => accounts.push(*id.as_bytes()),
            Touches::Collection(id) => collections.push(*id.as_bytes()),
            Touches::Documents(ids) => documents.extend(ids.iter().map(|id| *id.as_bytes())),
            Touches::Library => is_alone = true,
        }
    }
    let kind = if is_alone { "lock" } else { "lock_shared" };
    session.ahead(&format!("SELECT pg_advisory_xact_{kind}({})", keys.library()));
    if is_alone || accounts.is_empty() && collections.is_empty() && documents.is_empty() {
        return Ok(());
    }
    Connection::Postgres(session).execute(
        "SELECT a.id FROM accounts a
         WHERE a.uuid = ANY (CAST(?1 AS BYTEA[]))
            OR a.id IN (SELECT c.account FROM collections c WHERE c.uuid = ANY (CAST(?2 AS BYTEA[])))
            OR a.id IN (SELECT c.account FROM documents d JOIN collections c ON c.id = d.collection
                        WHERE d.uuid = ANY (CAST(?3 AS BYTEA[])))
         ORDER BY a.id FOR NO KEY UPDATE",
        params![accounts[..], collections[..], documents[..]],
    )?;
    Ok(())
}

/// Whether the commit that nobody answered was made; `None` when it cannot be told.
fn was_made(pool: &Pool, end: Option<(u64, Digest)>) -> Option<bool> {
    let (sequence, seal) = end?;
    let until = Instant::now() + LOOKING;
    loop {
        match pool.connect().and_then(|session| is_there(&session, sequence, &seal)) {
            Ok(answer) => return Some(answer),
            Err(_) if Instant::now() >= until => return None,
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// Looks for a record. The end of the journal is locked first: a transaction that is still committing holds it.
fn is_there(session: &Session, sequence: u64, seal: &Digest) -> Result<bool> {
    session.batch("BEGIN")?;
    let connection = Connection::Postgres(session);
    connection.execute("SELECT sequence FROM journal_head FOR UPDATE", params![])?;
    let mut find = connection.prepare_cached("SELECT 1 FROM journal WHERE sequence = ?1 AND seal = ?2")?;
    let is_there = find.exists(params![sequence, seal.as_bytes()])?;
    session.batch("ROLLBACK")?;
    Ok(is_there)
}

/// Runs long work in a transaction beside which nobody writes; once more when the connection turns out to have been cut.
pub(super) fn alone<T>(pool: &Pool, keys: &Keys, work: impl Fn(&Turn<'_>) -> Result<T>) -> Result<T> {
    let until = Instant::now() + AWAY;
    loop {
        let outcome = pool.take().and_then(|lent| {
            let outcome = alone_on(lent.session()?, keys, &work);
            if let Err(error) = &outcome {
                clean(pool, Some(lent), error);
            }
            outcome
        });
        match outcome {
            Err(Error::Away { is_unsure: false, .. }) if Instant::now() < until => thread::sleep(PAUSE),
            // What it was about to forget is needed by somebody who wrote meanwhile.
            Err(error) if state(&error) == Some(&SqlState::FOREIGN_KEY_VIOLATION) => return Err(Error::Busy),
            outcome => return outcome,
        }
    }
}

fn alone_on<T>(session: &Session, keys: &Keys, work: &impl Fn(&Turn<'_>) -> Result<T>) -> Result<T> {
    session.is_slow();
    session.ahead(
        "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = '15min'",
    );
    lock(session, keys, [Touches::Library].iter())?;
    let turn = Turn::beside_others(Connection::Postgres(session));
    let made = work(&turn)?;
    let last = turn.close()?;
    match session.end(&last, "COMMIT") {
        Err(Error::Away { reason, .. }) => Err(Error::Away { reason, is_unsure: true }),
        ended => ended.map(|()| made),
    }
}
