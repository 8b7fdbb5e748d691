//! Snapshots as writes make them.

use shelf_base::Moment;

use super::{
    blobs::{self, Blob},
    params,
    put::Place,
    state,
    turn::Turn,
};
use crate::{Operation, Put, Result, Snapshot, SnapshotDraft, StoredListing};

/// Makes the snapshot of a put.
pub(super) fn make(turn: &Turn<'_>, put: &Put, place: &Place, draft: &SnapshotDraft) -> Result<Snapshot> {
    let inline = match &draft.stored {
        StoredListing::Inline(bytes) => Some(bytes),
        StoredListing::Blob { manifest, size } => {
            blobs::ensure(turn, &[Blob { hash: &draft.listing, size: *size, manifest }])?;
            None
        }
    };
    let at = free_moment(turn, put.now.micros())?;
    let mut insert = turn.connection.prepare_cached(
        "INSERT INTO snapshots (at, collection, label, root, listing, merkle, files, bytes, git_commit, git_branch, entries)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    insert.execute(params![
        at,
        place.row,
        draft.label,
        draft.root,
        draft.listing.as_bytes(),
        draft.merkle.as_bytes(),
        draft.files,
        draft.bytes,
        draft.git_commit,
        draft.git_branch,
        inline,
    ])?;
    let at = Moment::from_micros(at);
    let mut record = Turn::blank(&put.actor, put.now, Operation::Snapshot);
    record.collection = Some(place.id);
    record.path = at.with_micros();
    record.new = Some(draft.listing);
    record.state = Some(state::of_new_snapshot(place.id, at, draft));
    turn.record(record)?;
    Ok(Snapshot { at, collection: place.id, collection_name: place.name.clone(), draft: draft.clone() })
}

/// The id of a snapshot made now: after the newest, unless that one was made by a clock that ran far ahead.
fn free_moment(turn: &Turn<'_>, now: i64) -> Result<i64> {
    const SKEW: i64 = 2_000_000;
    let mut last = turn.connection.prepare_cached("SELECT MAX(at) FROM snapshots")?;
    let newest: Option<i64> = last.query_row(params![], |row| row.get(0))?;
    match newest {
        Some(newest) if newest >= now && newest - now < SKEW => return Ok(newest + 1),
        Some(newest) if newest >= now => {}
        _ => return Ok(now),
    }
    let mut is_taken = turn.connection.prepare_cached("SELECT 1 FROM snapshots WHERE at = ?1")?;
    let mut at = now;
    while is_taken.exists(params![at])? {
        at += 1;
    }
    Ok(at)
}
