//! Books: unique in the library, open or closed to writes, with paths of their own form.

use std::collections::{BTreeMap, BTreeSet};

use shelf_base::{
    Moment,
    book_names::{is_book_id, is_book_path, is_reserved},
    ids::CollectionId,
};

use super::{
    Backend, Connection, Row, Touches, params, put, read,
    rows::{Conditions, collect},
    turn::Turn,
};
use crate::{
    Actor, BookChange, BookStatus, Books, Collection, CollectionKind, Error, Operation, Record, Result,
    Scope, UploadUse,
};

impl<B: Backend> Books for B {
    fn books(&self, scope: &Scope) -> Result<Vec<Collection>> {
        self.read(|connection| {
            let conditions = Conditions::in_scope(scope);
            let sql = format!(
                "SELECT {} FROM collections c JOIN accounts a ON a.id = c.account
                 WHERE c.kind = 'book' AND {} ORDER BY c.name",
                read::COLLECTION,
                conditions.sql()
            );
            let mut query = connection.prepare_cached(&sql)?;
            collect(query.query(&conditions.parameters())?, read::read_collection)
        })
    }

    fn set_book(&self, actor: &Actor, id: &str, change: &BookChange, now: Moment) -> Result<Collection> {
        let (actor, id, change) = (actor.clone(), id.to_owned(), change.clone());
        // The id of a book is unique in the library.
        self.write(Touches::Library, move |turn| set(turn, &actor, &id, &change, now))
    }

    fn is_upload_used(&self, id: &[u8; 16]) -> Result<bool> {
        self.read(|connection| {
            connection.prepare_cached("SELECT 1 FROM used_uploads WHERE id = ?1")?.exists(params![id])
        })
    }

    fn history(
        &self,
        collection: CollectionId,
        path: Option<&str>,
        before: Option<u64>,
        most: usize,
    ) -> Result<Vec<Record>> {
        self.read(|connection| {
            let mut query = connection.prepare_cached(
                "SELECT sequence, at, account, token, operation, collection, document, path, previous, new, state, seal
                 FROM journal
                 WHERE collection = ?1 AND (CAST(?2 AS TEXT) IS NULL OR path = ?2) AND sequence < ?3
                 ORDER BY sequence DESC LIMIT ?4",
            )?;
            let before = before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
            let rows = query.query(params![collection.as_bytes(), path, before, most as i64])?;
            collect(rows, read::record)
        })
    }
}

/// The account's book of this id, made when it is not there.
pub(super) fn make(turn: &Turn<'_>, actor: &Actor, name: &str, now: Moment) -> Result<Collection> {
    match read::collection(turn.connection, &Scope::Account(actor.account), name)? {
        Some(found) if found.kind == CollectionKind::Book => Ok(found),
        Some(_) => Err(not_a_book(name)),
        None => {
            must_be_free(turn, name)?;
            put::make(turn, actor, name, CollectionKind::Book, now)
        }
    }
}

/// Why a collection that is there cannot be written to as a book.
pub(super) fn not_a_book(name: &str) -> Error {
    if is_reserved(name) { Error::BookTaken } else { Error::NotABook(name.to_owned()) }
}

/// Refuses the name of a book that is not of the right form or belongs to somebody: addresses carry it, so it is unique
/// in the library.
pub(super) fn must_be_free(turn: &Turn<'_>, name: &str) -> Result<()> {
    if !is_book_id(name) {
        return Err(Error::BookName);
    }
    if is_reserved(name) {
        return Err(Error::BookTaken);
    }
    let mut find = turn.connection.prepare_cached(
        "SELECT 1 FROM collections WHERE name = ?1 AND kind = 'book' AND deleted_at IS NULL",
    )?;
    if find.exists(params![name])? { Err(Error::BookTaken) } else { Ok(()) }
}

/// Refuses a document that the collection cannot take because it is a book.
pub(super) fn must_take(place: &put::Place, path: &str) -> Result<()> {
    if !place.is_book {
        return Ok(());
    }
    if !is_book_path(path) {
        return Err(Error::BookPath(path.to_owned()));
    }
    match place.status {
        BookStatus::Active => Ok(()),
        closed => Err(Error::BookClosed { book: place.name.clone(), status: closed.word() }),
    }
}

/// Refuses paths of new files of a book that lead through a file, or that are folders: no tree of files could hold both.
pub(super) fn must_have_room(turn: &Turn<'_>, place: &put::Place, paths: &[&str]) -> Result<()> {
    if !place.is_book || paths.is_empty() {
        return Ok(());
    }
    let new: BTreeSet<&str> = paths.iter().copied().collect();
    let folders: BTreeMap<&str, &str> =
        paths.iter().flat_map(|path| folders_of(path).map(|folder| (folder, *path))).collect();
    let among_new = folders.keys().find(|folder| new.contains(*folder)).map(|folder| (*folder).to_owned());
    let taken = match among_new {
        Some(file) => Some(file),
        None => first_file(turn, place, &folders.keys().copied().collect::<Vec<_>>())?,
    };
    if let Some((file, path)) = taken.and_then(|file| folders.get(&file[..]).map(|path| (file, *path))) {
        return Err(Error::BelowFile { path: path.to_owned(), file });
    }
    first_folder(turn, place, paths)?.map_or(Ok(()), |path| Err(Error::BookFolder(path)))
}

/// The folders that a path leads through.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// One of these paths at which there is a file.
fn first_file(turn: &Turn<'_>, place: &put::Place, paths: &[&str]) -> Result<Option<String>> {
    const FILE: &str = "SELECT path FROM documents WHERE collection = ?1 AND deleted_at IS NULL AND path";
    let path = |row: &Row<'_>| row.get::<String>(0);
    if let Connection::Postgres(_) = turn.connection {
        let find = format!("{FILE} = ANY (CAST(?2 AS TEXT[])) LIMIT 1");
        return turn.connection.prepare_cached(&find)?.first(params![place.row, paths[..]], path);
    }
    let mut find = turn.connection.prepare_cached(&format!("{FILE} = ?2"))?;
    for wanted in paths {
        if let Some(found) = find.first(params![place.row, *wanted], path)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// One of these paths below which there are files.
fn first_folder(turn: &Turn<'_>, place: &put::Place, paths: &[&str]) -> Result<Option<String>> {
    // Everything that begins with the path and `/`: `0` is the character after `/`.
    if let Connection::Postgres(_) = turn.connection {
        let mut find = turn.connection.prepare_cached(
            "SELECT w.path FROM unnest(CAST(?2 AS TEXT[])) AS w(path) WHERE EXISTS (
                 SELECT 1 FROM documents d WHERE d.collection = ?1 AND d.deleted_at IS NULL
                   AND d.path > w.path || '/' AND d.path < w.path || '0') LIMIT 1",
        )?;
        return find.first(params![place.row, paths[..]], |row| row.get(0));
    }
    let mut find = turn.connection.prepare_cached(
        "SELECT 1 FROM documents WHERE collection = ?1 AND deleted_at IS NULL AND path > ?2 AND path < ?3",
    )?;
    for path in paths {
        if find.exists(params![place.row, format!("{path}/"), format!("{path}0")])? {
            return Ok(Some((*path).to_owned()));
        }
    }
    Ok(None)
}

/// Refuses to change what is in a book that takes no writes. `which` selects the collection for `row`.
pub(super) fn must_be_open(turn: &Turn<'_>, which: &str, row: i64) -> Result<()> {
    let sql = format!("SELECT name, status FROM collections WHERE id = ({which}) AND status <> 'active'");
    let closed: Option<(String, String)> =
        turn.connection.prepare_cached(&sql)?.first(params![row], |row| Ok((row.get(0)?, row.get(1)?)))?;
    closed.map_or(Ok(()), |(book, status)| {
        let status = BookStatus::from_word(&status).ok_or(Error::Unreadable("a book's status"))?;
        Err(Error::BookClosed { book, status: status.word() })
    })
}

/// Notes that an upload is completed. Those that nobody could complete any more are forgotten.
pub(super) fn use_upload(turn: &Turn<'_>, upload: &UploadUse, now: Moment) -> Result<()> {
    turn.connection
        .prepare_cached("DELETE FROM used_uploads WHERE expires_at < ?1")?
        .execute(params![now.micros()])?;
    let added = turn
        .connection
        .prepare_cached("INSERT INTO used_uploads (id, expires_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute(params![upload.id, upload.expires_at.micros()])?;
    if added == 0 { Err(Error::UploadUsed) } else { Ok(()) }
}

fn set(turn: &Turn<'_>, actor: &Actor, name: &str, change: &BookChange, now: Moment) -> Result<Collection> {
    let mut book = make(turn, actor, name, now)?;
    let before = book.clone();
    if let Some(title) = &change.title {
        book.title = Some(title.clone()).filter(|title| !title.is_empty());
    }
    book.status = change.status.unwrap_or(book.status);
    book.is_public = change.is_public.unwrap_or(book.is_public);
    book.created_at = change.created_at.unwrap_or(book.created_at);
    if book == before {
        return Ok(book);
    }
    turn.connection.execute(
        "UPDATE collections SET title = ?2, status = ?3, is_public = ?4, created_at = ?5 WHERE uuid = ?1",
        params![book.id.as_bytes(), book.title, book.status.word(), book.is_public, book.created_at.micros()],
    )?;
    let mut record = Turn::blank(actor, now, Operation::SetBook);
    record.collection = Some(book.id);
    record.path = name.to_owned();
    turn.record(record)?;
    Ok(book)
}
