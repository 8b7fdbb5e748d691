//! The blocks that each account has, from which it is told what of its content is new, without a word of what others have.

use std::collections::HashSet;

use super::{Connection, params, rows::collect, turn::Turn};
use crate::Result;

/// Adds the blocks to the account's own and tells new bytes from known ones.
pub(super) fn add(turn: &Turn<'_>, account: i64, blocks: &[(i64, u32)]) -> Result<(u64, u64)> {
    let (mut stored, mut deduplicated) = (0, 0);
    let names: Vec<i64> = blocks.iter().map(|(block, _)| *block).collect();
    add_named(turn.connection, account, &names, |at, is_new| {
        let length = u64::from(blocks[at].1);
        if is_new {
            stored += length;
        } else {
            deduplicated += length;
        }
    })?;
    Ok((stored, deduplicated))
}

/// Adds blocks to an account's own. `told` hears of each of them, by its place in the list, whether it is new.
pub(super) fn add_named(
    connection: Connection<'_>,
    account: i64,
    blocks: &[i64],
    mut told: impl FnMut(usize, bool),
) -> Result<()> {
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
