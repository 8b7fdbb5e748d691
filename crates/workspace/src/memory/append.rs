//! Appending a line: whole, whoever else appends; told of only when it is durable.
//!
//! The side chain says first what is about to be written, then the line is written, then the chain says that it was. A
//! stop in between leaves a plan that the next append settles by looking at the file.

use std::{collections::HashSet, io::Write, path::Path};

use rustix::fs::{FlockOperation, OFlags};
use shelf_base::{Digest, Moment};

use super::{
    Appended, MemoryFile, Workspace, WorkspaceError, chain::Chain, count, lines, open_locked, read_all, told,
};
use crate::plain;

/// A line to append.
pub(super) struct Order<'a> {
    pub(super) line: &'a str,
    pub(super) key: Option<&'a str>,
    pub(super) at: Moment,
    /// The file of the side chain.
    pub(super) chain: &'a Path,
}

impl Workspace {
    pub(super) fn append(&self, file: MemoryFile, order: &Order<'_>) -> Result<Appended, WorkspaceError> {
        let folder = self.memory_folder(true)?;
        let unnoted = |error: std::io::Error| {
            told(
                &error,
                &format!("the side chain in the data directory cannot be written: {}", plain(&error)),
            )
        };
        let mut chain = Chain::open(order.chain).map_err(unnoted)?;
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::APPEND;
        let mut open = open_locked(&folder, file.name(), flags, FlockOperation::LockExclusive)?;
        let before = read_all(&mut open)?;
        let (valid, invalid_lines) = count(&before);
        chain.settle(&before);
        if let Some(key) = order.key
            && was_used(&chain, key, order.line, &before)?
        {
            return Ok(Appended { entry_count: valid, invalid_lines, was_there: true });
        }
        chain.adopt(&before, order.at);
        // A line that was never ended must not swallow this one.
        let repair = if before.last().is_some_and(|last| *last != b'\n') { "\n" } else { "" };
        chain.plan(order.line, before.len() + repair.len(), order.at, order.key);
        chain.write(true).map_err(unnoted)?;
        open.write_all(format!("{repair}{}\n", order.line).as_bytes())?;
        open.sync_data()?;
        if before.is_empty() {
            self.sync_memory_folders()?;
        }
        chain.done();
        // Neither synced nor waited for: the line is durable, and without this row the next append finds it itself.
        let _ = chain.write(false);
        Ok(Appended { entry_count: valid + 1, invalid_lines, was_there: false })
    }
}

/// Whether the key has brought this line into the file already. A key whose line is not in the file is as good as new.
fn was_used(chain: &Chain, key: &str, line: &str, file: &[u8]) -> Result<bool, WorkspaceError> {
    let known: Vec<Digest> = chain.with_key(key).collect();
    if known.is_empty() {
        return Ok(false);
    }
    let there: HashSet<Digest> = lines(file).map(|(_, _, line)| Digest::of(line)).collect();
    match known.into_iter().find(|known| there.contains(known)) {
        None => Ok(false),
        Some(known) if known == Digest::of(line.as_bytes()) => Ok(true),
        Some(_) => Err(WorkspaceError::Invalid(
            "idempotency_key was used for another entry; take a new key for a new entry".into(),
        )),
    }
}
