//! The port for locks and leases between processes.
//!
//! Only what every backend can offer is promised: a named lock is held shared or exclusively, is tried without waiting,
//! and is released when its guard is dropped or its process ends. Waiting, deadlines and fairness are built on top.

use std::{
    any::Any,
    collections::HashMap,
    fmt, io,
    sync::{Arc, Mutex, PoisonError},
};

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Together with other shared holders.
    Shared,
    /// Alone.
    Exclusive,
}

/// How often a lock had been held by one alone when it was taken, its present holder included. When the number has grown
/// since, the lock was lost, whatever its holder believes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The lock.
    pub name: String,
    /// The number: 1 for the first who holds it alone, and so on.
    pub number: u64,
}

/// A lock that can be lost while it is held: its holder is cut off from those who keep it.
pub trait Lease: Send + Sync {
    /// The fencing number.
    fn fence(&self) -> Option<&Fence>;
    /// Asks whether the lock is still held. A holder asks before it does what nobody else may do meanwhile and what cannot
    /// be refused by its fencing number.
    fn is_current(&self) -> bool;
}

/// A lock that is held until this is dropped.
pub struct Held(Guard);

enum Guard {
    /// Cannot be lost.
    Firm(#[expect(dead_code, reason = "held, not read")] Box<dyn Any + Send + Sync>),
    Leased(Box<dyn Lease>),
}

impl Held {
    /// Wraps what releases the lock when it is dropped.
    pub fn new(guard: impl Any + Send + Sync) -> Self {
        Self(Guard::Firm(Box::new(guard)))
    }

    /// Wraps what releases the lock when it is dropped, and knows when it is lost.
    pub fn leased(lease: impl Lease + 'static) -> Self {
        Self(Guard::Leased(Box::new(lease)))
    }

    /// The fencing number, where locks have one.
    pub fn fence(&self) -> Option<&Fence> {
        match &self.0 {
            Guard::Firm(_) => None,
            Guard::Leased(lease) => lease.fence(),
        }
    }

    /// Whether the lock is still held. Those of one machine cannot be lost.
    pub fn is_current(&self) -> bool {
        match &self.0 {
            Guard::Firm(_) => true,
            Guard::Leased(lease) => lease.is_current(),
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Held")
    }
}

/// Named locks that all processes of a library share.
pub trait Coordination: Send + Sync {
    /// Tries to take a lock; `None` when others hold it.
    fn attempt(&self, name: &str, mode: LockMode) -> io::Result<Option<Held>>;
}

/// Locks within one process: for libraries that no other process uses, and for tests.
#[derive(Clone, Default)]
pub struct MemoryLocks(Arc<Mutex<HashMap<String, Holders>>>);

#[derive(Default)]
struct Holders {
    shared: usize,
    is_exclusive: bool,
}

struct MemoryGuard {
    locks: MemoryLocks,
    name: String,
    mode: LockMode,
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        let mut locks = self.locks.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holders) = locks.get_mut(&self.name) {
            match self.mode {
                LockMode::Shared => holders.shared -= 1,
                LockMode::Exclusive => holders.is_exclusive = false,
            }
        }
    }
}

impl Coordination for MemoryLocks {
    fn attempt(&self, name: &str, mode: LockMode) -> io::Result<Option<Held>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let holders = locks.entry(name.to_owned()).or_default();
        let is_free = match mode {
            LockMode::Shared => !holders.is_exclusive,
            LockMode::Exclusive => !holders.is_exclusive && holders.shared == 0,
        };
        if !is_free {
            return Ok(None);
        }
        match mode {
            LockMode::Shared => holders.shared += 1,
            LockMode::Exclusive => holders.is_exclusive = true,
        }
        drop(locks);
        Ok(Some(Held::new(MemoryGuard { locks: self.clone(), name: name.to_owned(), mode })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_holders_exclude_an_exclusive_one() {
        let locks = MemoryLocks::default();
        let one = locks.attempt("a", LockMode::Shared).unwrap().unwrap();
        let two = locks.attempt("a", LockMode::Shared).unwrap().unwrap();
        assert!(locks.attempt("a", LockMode::Exclusive).unwrap().is_none());
        drop((one, two));
        let alone = locks.attempt("a", LockMode::Exclusive).unwrap().unwrap();
        assert!(locks.attempt("a", LockMode::Shared).unwrap().is_none());
        assert!(locks.attempt("b", LockMode::Exclusive).unwrap().is_some());
        drop(alone);
        assert!(locks.attempt("a", LockMode::Shared).unwrap().is_some());
    }
}
