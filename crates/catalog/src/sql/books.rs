//! Books: unique in the library, open or closed to writes, with paths of their own form.

use shelf_base::{
    Moment,
    book_names::{is_book_id, is_book_path},
    ids::CollectionId,
};

use super::{
    Backend, Touches, params, put, read,
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
        Some(_) => Err(Error::NotABook(name.to_owned())),
        None => {
            must_be_free(turn, name)?;
            put::make(turn, actor, name, CollectionKind::Book, now)
        }
    }
}

/// Refuses the name of a book that is not of the right form or belongs to somebody: addresses carry it, so it is unique
/// in the library.
pub(super) fn must_be_free(turn: &Turn<'_>, name: &str) -> Result<()> {
    if !is_book_id(name) {
        return Err(Error::BookName);
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
