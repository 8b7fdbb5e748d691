//! The blocks that each account has, from which it is told what of its content is new, without a word of what others have.

use std::collections::HashSet;

use super::{Connection, params, rows::collect, turn::Turn};
use crate::Result;

/// Adds the blocks of documents to the account's own; for each document, how many bytes are new and how many were known.
pub(super) fn add<'b>(
    turn: &Turn<'_>,
    account: i64,
    documents: impl Iterator<Item = &'b [(i64, u32)]>,
) -> Result<Vec<(u64, u64)>> {
    let mut figures = Vec::new();
    let (mut names, mut places) = (Vec::new(), Vec::new());
    for (at, blocks) in documents.enumerate() {
        figures.push((0, 0));
        names.extend(blocks.iter().map(|(block, _)| *block));
        places.extend(blocks.iter().map(|(_, length)| (at, u64::from(*length))));
    }
    add_named(turn.connection, account, &names, |block, is_new| {
        let (at, length) = places[block];
        let (stored, deduplicated) = &mut figures[at];
        *(if is_new { stored } else { deduplicated }) += length;
    })?;
    Ok(figures)
}

/// Adds blocks to an account's own. `told` hears of each of them, by its place in the list, whether it is new.
pub(super) fn add_named(
    connection: Connection<'_>,
    account: i64,
    blocks: &[i64],
    mut told: impl FnMut(usize, bool),
) -> Result<()> {
    if blocks.is_empty() {
        return Ok(());
    }
    if let Connection::Postgres(_) = connection {
        // All in one statement: each would be a way to the database and back.
        let mut insert = connection.prepare_cached(
            "INSERT INTO account_blocks (account, block)
             SELECT CAST(?1 AS BIGINT), b.block FROM unnest(CAST(?2 AS BIGINT[])) AS b (block)
             ON CONFLICT DO NOTHING RETURNING block",
        )?;
        let new = collect(insert.query(params![account, blocks])?, |row| row.get(0))?;
        let mut new: HashSet<i64> = new.into_iter().collect();
        blocks.iter().enumerate().for_each(|(at, block)| told(at, new.remove(block)));
        return Ok(());
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO account_blocks (account, block) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    )?;
    for (at, block) in blocks.iter().enumerate() {
        told(at, insert.execute(params![account, block])? > 0);
    }
    Ok(())
}
