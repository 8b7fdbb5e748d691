//! Packs that garbage collection has marked: nobody may rely on them any more, and they are deleted later, while others
//! write. Only a catalog that several machines use has any; on one machine packs are deleted at once.

use shelf_base::{Fence, Moment};

use super::{Connection, fences, params, rows::collect, turn::Turn};
use crate::{PackState, Result, RetiredPack};

const RETIRED: i64 = 0;
const GOING: i64 = 1;
const GONE: i64 = 2;

pub(super) fn all(connection: Connection<'_>) -> Result<Vec<RetiredPack>> {
    let Connection::Postgres(_) = connection else { return Ok(Vec::new()) };
    let mut query =
        connection.prepare_cached("SELECT name, sequence, at, state FROM retired_packs ORDER BY name")?;
    collect(query.query(params![])?, |row| {
        let state = match row.get::<i64>(3)? {
            RETIRED => PackState::Retired,
            GOING => PackState::Going,
            _ => PackState::Gone,
        };
        Ok(RetiredPack {
            name: row.get(0)?,
            sequence: row.get(1)?,
            at: Moment::from_micros(row.get(2)?),
            state,
        })
    })
}

/// Marks exactly these packs: those that were marked before and are needed again are not marked any more, and those that
/// are gone are forgotten.
pub(super) fn retire(turn: &Turn<'_>, names: &[String], now: Moment, fence: Option<&Fence>) -> Result<()> {
    let Connection::Postgres(_) = turn.connection else { return Ok(()) };
    fences::check(turn, fence)?;
    let (sequence, _) = super::read::journal_end(turn.connection)?;
    let known = all(turn.connection)?;
    let mut forget = turn.connection.prepare_cached("DELETE FROM retired_packs WHERE name = ?1")?;
    for pack in &known {
        let is_needed = pack.state == PackState::Retired && !names.contains(&pack.name);
        if is_needed || pack.state == PackState::Gone {
            forget.execute(params![pack.name])?;
        }
    }
    let mut mark = turn.connection.prepare_cached(
        "INSERT INTO retired_packs (name, sequence, at, state) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO NOTHING",
    )?;
    for name in names {
        mark.execute(params![name, sequence, now.micros(), RETIRED])?;
    }
    Ok(())
}

/// Decides for good that packs go which were marked up to this moment, and those that somebody was about to delete before.
pub(super) fn claim(turn: &Turn<'_>, until: Moment) -> Result<Vec<String>> {
    let Connection::Postgres(_) = turn.connection else { return Ok(Vec::new()) };
    turn.connection.execute(
        "UPDATE retired_packs SET state = ?1 WHERE state = ?2 AND at <= ?3",
        params![GOING, RETIRED, until.micros()],
    )?;
    let going = all(turn.connection)?.into_iter().filter(|pack| pack.state == PackState::Going);
    Ok(going.map(|pack| pack.name).collect())
}

/// Notes that packs have been deleted.
pub(super) fn gone(turn: &Turn<'_>, names: &[String]) -> Result<()> {
    let mut note = turn.connection.prepare_cached("UPDATE retired_packs SET state = ?1 WHERE name = ?2")?;
    for name in names {
        note.execute(params![GONE, name])?;
    }
    Ok(())
}

/// Takes the mark off a pack that is about to be written again; `false` while somebody is deleting it.
pub(super) fn revive(turn: &Turn<'_>, name: &str) -> Result<bool> {
    let Connection::Postgres(_) = turn.connection else { return Ok(true) };
    turn.connection
        .prepare_cached("DELETE FROM retired_packs WHERE name = ?1 AND state <> ?2")?
        .execute(params![name, GOING])?;
    let mut find = turn.connection.prepare_cached("SELECT 1 FROM retired_packs WHERE name = ?1")?;
    Ok(!find.exists(params![name])?)
}
