//! Packs that garbage collection has marked: nobody may rely on them any more, and they are deleted later, while others
//! write. Only a catalog that several machines use has any; on one machine packs are deleted at once.
//!
//! Beside them is noted where the packs are, so that all machines look for them at one place. The note is kept among the
//! secrets, the values of the library that have names.

use shelf_base::{Fence, Moment};

use super::{Connection, Row, fences, params, rows::collect, turn::Turn};
use crate::{Error, PackState, Result, RetiredPack, Standing};

const RETIRED: i64 = 0;
const GOING: i64 = 1;
const GONE: i64 = 2;
/// What stands in the place of a state in the row that says where the packs are.
const NOTE: i64 = -1;
/// The name under which that is noted.
const OBJECTS: &str = "objects.place";

/// The marks and the place of the packs: writers ask for both each time, so it is one question.
pub(super) fn standing(connection: Connection<'_>) -> Result<Standing> {
    let Connection::Postgres(_) = connection else { return Ok(Standing::default()) };
    let mut query = connection.prepare_cached(
        "SELECT name, sequence, at, state FROM retired_packs
         UNION ALL SELECT convert_from(value, 'UTF8'), 0, 0, -1 FROM secrets WHERE name = ?1",
    )?;
    let mut rows = query.query(params![OBJECTS])?;
    let mut standing = Standing::default();
    while let Some(row) = rows.next()? {
        match row.get::<i64>(3)? {
            NOTE => standing.objects = Some(row.get(0)?),
            _ => standing.retired.push(retired(&row)?),
        }
    }
    Ok(standing)
}

/// Notes where the packs are, unless somebody has; what is noted now.
pub(super) fn claim_objects(turn: &Turn<'_>, place: &str) -> Result<String> {
    turn.connection
        .prepare_cached("INSERT INTO secrets (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute(params![OBJECTS, place.as_bytes()])?;
    let mut find = turn.connection.prepare_cached("SELECT value FROM secrets WHERE name = ?1")?;
    let noted: Option<Vec<u8>> = find.first(params![OBJECTS], |row| row.get(0))?;
    noted.and_then(|text| String::from_utf8(text).ok()).ok_or(Error::Unreadable("the place of the packs"))
}

/// Notes that the packs are somewhere else now.
pub(super) fn move_objects(turn: &Turn<'_>, place: &str, fence: Option<&Fence>) -> Result<()> {
    fences::check(turn, fence)?;
    turn.connection
        .prepare_cached(
            "INSERT INTO secrets (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )?
        .execute(params![OBJECTS, place.as_bytes()])?;
    Ok(())
}

pub(super) fn all(connection: Connection<'_>) -> Result<Vec<RetiredPack>> {
    let Connection::Postgres(_) = connection else { return Ok(Vec::new()) };
    let mut query =
        connection.prepare_cached("SELECT name, sequence, at, state FROM retired_packs ORDER BY name")?;
    collect(query.query(params![])?, retired)
}

fn retired(row: &Row<'_>) -> Result<RetiredPack> {
    let state = match row.get::<i64>(3)? {
        RETIRED => PackState::Retired,
        GOING => PackState::Going,
        _ => PackState::Gone,
    };
    Ok(RetiredPack { name: row.get(0)?, sequence: row.get(1)?, at: Moment::from_micros(row.get(2)?), state })
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
