//! Fencing numbers: a transaction that was prepared under a lock is refused when the lock was lost since.

use shelf_base::Fence;

use super::{Connection, params, turn::Turn};
use crate::{Error, Result};

/// Refuses a transaction whose lock somebody has held alone since it was taken. Locks of one machine cannot be lost, and
/// have no number.
pub(super) fn check(turn: &Turn<'_>, fence: Option<&Fence>) -> Result<()> {
    let (Some(fence), Connection::Postgres(_)) = (fence, turn.connection) else { return Ok(()) };
    let mut find = turn.connection.prepare_cached("SELECT number FROM fences WHERE name = ?1")?;
    let newest: u64 = find.first(params![fence.name], |row| row.get(0))?.unwrap_or(0);
    if newest == fence.number { Ok(()) } else { Err(Error::LockLost) }
}
