//! Locks between the processes of a library, on as many machines as there are.
//!
//! They are advisory locks of one connection. The database releases them when the connection ends, whatever the reason: a
//! process that is killed, a machine that fails, a network that is cut. A holder cannot see the last two at once; what it
//! does under a lock carries the lock's *fencing number*: how often the lock had been held by one alone. The transaction
//! that matters compares it with the newest, so that a holder that slept through the end of its lock is refused.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use shelf_base::{Coordination, Fence, Held, Lease, LockMode, MemoryLocks};

use super::{Shared, session::Session};
use crate::{
    Error, Result,
    sql::{Connection, params},
};

/// Locks that all processes of a library share.
#[derive(Clone)]
pub struct PostgresLocks {
    /// A connection may take its own lock again; between the threads of this process these decide.
    local: MemoryLocks,
    line: Arc<Line>,
}

/// The connection that holds the locks of this process.
struct Line {
    shared: Arc<Shared>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    session: Option<Session>,
    /// Which connection it is, counted from the first: locks of former ones are gone.
    number: u64,
    /// How many in this process hold each shared lock, and the number that it had when the first of them took it.
    holders: HashMap<i64, (usize, u64)>,
}

struct Guard {
    line: Weak<Line>,
    /// Released after the lock itself.
    _local: Held,
    key: i64,
    mode: LockMode,
    number: u64,
    fence: Option<Fence>,
}

impl PostgresLocks {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { local: MemoryLocks::default(), line: Arc::new(Line { shared, state: Mutex::default() }) }
    }
}

impl Coordination for PostgresLocks {
    fn attempt(&self, name: &str, mode: LockMode) -> io::Result<Option<Held>> {
        let Some(local) = self.local.attempt(name, mode)? else { return Ok(None) };
        let key = self.line.shared.keys.named(name);
        let taken = self.line.take(name, key, mode).map_err(io::Error::other)?;
        Ok(taken.map(|(number, fence)| {
            Held::leased(Guard { line: Arc::downgrade(&self.line), _local: local, key, mode, number, fence })
        }))
    }
}

impl Line {
    /// Takes a lock; the connection that holds it, and its fencing number.
    fn take(&self, name: &str, key: i64, mode: LockMode) -> Result<Option<(u64, Option<Fence>)>> {
        let mut state = self.state.lock();
        // A connection that was cut unnoticed is found so here, and another one is made once.
        for is_last in [false, true] {
            match state.take(&self.shared, name, key, mode) {
                Err(Error::Away { .. }) if !is_last => state.lose(),
                Err(error) => {
                    state.lose();
                    return Err(error);
                }
                outcome => return outcome,
            }
        }
        Ok(None)
    }
}

impl State {
    fn take(
        &mut self,
        shared: &Shared,
        name: &str,
        key: i64,
        mode: LockMode,
    ) -> Result<Option<(u64, Option<Fence>)>> {
        if self.session.is_none() {
            let session = shared.pool.connect()?;
            // It has nothing to do for as long as it holds a lock.
            session.batch("SET idle_session_timeout = 0")?;
            self.session = Some(session);
        }
        let Some(session) = &self.session else { return Err(Error::Closed) };
        let connection = Connection::Postgres(session);
        let ask = |sql: &str| -> Result<bool> { connection.query_row(sql, params![key], |row| row.get(0)) };
        match mode {
            LockMode::Shared => {
                let (holders, number) = match self.holders.get(&key) {
                    Some(held) => *held,
                    None if !ask("SELECT pg_try_advisory_lock_shared(?1)")? => return Ok(None),
                    None => (0, newest(connection, name)?),
                };
                self.holders.insert(key, (holders + 1, number));
                Ok(Some((self.number, Some(Fence { name: name.to_owned(), number }))))
            }
            LockMode::Exclusive => {
                if !ask("SELECT pg_try_advisory_lock(?1)")? {
                    return Ok(None);
                }
                let number = connection.query_row(
                    "INSERT INTO fences (name, number) VALUES (?1, 1)
                     ON CONFLICT (name) DO UPDATE SET number = fences.number + 1 RETURNING number",
                    params![name],
                    |row| row.get(0),
                )?;
                Ok(Some((self.number, Some(Fence { name: name.to_owned(), number }))))
            }
        }
    }

    /// Gives up the connection, and with it every lock of this process.
    fn lose(&mut self) {
        self.session = None;
        self.number += 1;
        self.holders.clear();
    }

    fn release(&mut self, key: i64, mode: LockMode) {
        let Some(session) = &self.session else { return };
        let connection = Connection::Postgres(session);
        let sql = match mode {
            LockMode::Shared => {
                let Some((holders, _)) = self.holders.get_mut(&key) else { return };
                *holders -= 1;
                if *holders > 0 {
                    return;
                }
                self.holders.remove(&key);
                "SELECT pg_advisory_unlock_shared(?1)"
            }
            LockMode::Exclusive => "SELECT pg_advisory_unlock(?1)",
        };
        if connection.execute(sql, params![key]).is_err() {
            self.lose();
        }
    }
}

/// How often a lock has been held by one alone.
fn newest(connection: Connection<'_>, name: &str) -> Result<u64> {
    let mut find = connection.prepare_cached("SELECT number FROM fences WHERE name = ?1")?;
    Ok(find.first(params![name], |row| row.get(0))?.unwrap_or(0))
}

impl Lease for Guard {
    fn fence(&self) -> Option<&Fence> {
        self.fence.as_ref()
    }

    fn is_current(&self) -> bool {
        let Some(line) = self.line.upgrade() else { return false };
        let mut state = line.state.lock();
        let answers = |session: &Session| session.batch("SELECT 1").is_ok();
        let is_current = state.number == self.number && state.session.as_ref().is_some_and(answers);
        if !is_current && state.number == self.number {
            state.lose();
        }
        is_current
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(line) = self.line.upgrade() {
            let mut state = line.state.lock();
            if state.number == self.number {
                state.release(self.key, self.mode);
            }
        }
    }
}
