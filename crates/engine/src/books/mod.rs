//! Books: collections whose documents are the files of a book, written with compare-and-swap.
//!
//! A book is a collection of kind `book` that is named by its `book_id`. Its lessons, summaries and assets are documents
//! at the contract's paths, so they are versioned, searched and protected like all others. What a book has beside them
//! (title, status) is kept with the collection and mirrored in `registry.yaml`.

mod archive;
mod assets;
mod error;
mod exports;
mod folder;
mod glob;
mod history;
mod lessons;
mod lines;
pub(crate) mod links;
mod names;
mod paths;
mod registry;
mod search;
mod unpack;
mod uploads;

pub use archive::{Archive, OpenFile};
pub(crate) use archive::{PackedFile, Packing};
pub use assets::{Asset, OpenAsset, UploadRequest};
pub use error::{BookError, name_of as book_error_name};
pub use folder::FolderTally;
pub use history::{BookVersion, PathHash, Plan};
pub use lessons::{BookFile, BookWritten};
use names::{
    asset_path, check_asset_type, check_book_id, check_path, full_path, is_summary, stored_name,
    summary_path, without_book,
};
pub(crate) use paths::BookPaths;
pub use search::BookMatch;
use shelf_base::{CallContext, Digest, Moment};
use shelf_catalog::{
    Actor, BookChange, BookStatus, Collection, Expected, Metadata, PutState, Scope, UploadUse,
};
pub use uploads::{OpenUpload, Ticket};

use crate::{
    Caller, Error, Library, Result,
    commit::{Content, Draft, Writing, book_document},
    ingest::Facts,
};

type Answer<T> = Result<T, BookError>;

/// A book of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Book {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// When it was created.
    pub created_at: Moment,
    /// Whether it takes writes.
    pub status: BookStatus,
    /// Whether everybody may read its assets.
    pub is_public: bool,
}

/// Writes one file of a book.
struct BookDraft<'a> {
    actor: &'a Actor,
    book: &'a str,
    path: &'a str,
    content: Content<'a>,
    metadata: Metadata,
    expected: Expected,
    upload: Option<UploadUse>,
}

/// What became of a file.
struct Written {
    hash: Digest,
    size: u64,
    mime: String,
    is_new: bool,
}

impl Draft for BookDraft<'_> {
    type Receipt = Written;

    fn write(self, writing: &mut Writing<'_>) -> Result<Written> {
        let facts = Facts::of_content(0, writing.library.now());
        let mut document = book_document(writing, self.path, self.content, &facts)?;
        document.expected = self.expected;
        document.metadata = self.metadata;
        let (hash, size, mime) = (document.hash, document.size, document.mime.clone());
        let results = writing.put_in_book(self.actor, self.book, vec![document], self.upload)?;
        let is_new = results.first().is_some_and(|result| result.state == PutState::Added);
        Ok(Written { hash, size, mime, is_new })
    }
}

/// What a failed write to a file of a book means to its caller.
fn failed(book: &str, path: &str, error: Error) -> BookError {
    use shelf_catalog::Error as Catalog;
    let full = full_path(book, path);
    let of_book = format!("books/{book}");
    match error {
        Error::Catalog(Catalog::ContentChanged { current }) => {
            let message = match current {
                Some(_) => format!("Hash mismatch: {full} was changed by somebody else; read it again"),
                None => format!("Hash mismatch: {full} does not exist"),
            };
            BookError::Conflict { path: full, message, current }
        }
        Error::Catalog(error @ Catalog::NotABook(_)) => {
            BookError::Closed { path: of_book, message: error.to_string() }
        }
        Error::Catalog(error @ Catalog::BookClosed { .. }) => {
            let path = if path.is_empty() { of_book } else { full };
            BookError::Closed { path, message: error.to_string() }
        }
        Error::Catalog(error @ Catalog::UploadUsed) => {
            BookError::Closed { path: full, message: error.to_string() }
        }
        Error::Catalog(error @ (Catalog::BookTaken | Catalog::BookName)) => {
            BookError::Validation { path: of_book, message: error.to_string() }
        }
        Error::Catalog(
            error @ (Catalog::BookPath(_) | Catalog::BelowFile { .. } | Catalog::BookFolder(_)),
        ) => {
            let path = if path.is_empty() { of_book } else { full };
            BookError::InvalidPath { path, message: format!("Invalid path: {error}") }
        }
        error => BookError::Engine { path: full, error },
    }
}

impl Library {
    /// The caller's books, by id.
    pub fn books(&self, caller: &Caller, call: &CallContext) -> Answer<Vec<Book>> {
        let list = || -> Result<Vec<Book>> {
            let books = self.own_books(caller)?;
            books.into_iter().map(|book| self.described(caller, book, call)).collect()
        };
        list().map_err(|error| BookError::Engine { path: "books".into(), error })
    }

    fn own_books(&self, caller: &Caller) -> Result<Vec<Collection>> {
        caller.must_read()?;
        Ok(self.catalog.books(caller.pass.scope())?)
    }

    /// The caller's book of this id.
    fn own_book(&self, caller: &Caller, book: &str) -> Answer<Option<Collection>> {
        check_book_id(book)?;
        let books = self.own_books(caller);
        let books = books.map_err(|error| BookError::Engine { path: format!("books/{book}"), error })?;
        Ok(books.into_iter().find(|known| known.name == book))
    }

    fn described(&self, caller: &Caller, book: Collection, call: &CallContext) -> Result<Book> {
        let title = match book.title {
            Some(title) => title,
            None => {
                let title = self.title_in_file(caller.pass.scope(), &book.name, call)?;
                title.unwrap_or_else(|| book.name.clone())
            }
        };
        let Collection { name: id, created_at, status, is_public, .. } = book;
        Ok(Book { id, title, created_at, status, is_public })
    }

    /// Makes a book, or changes what is known of one. A new title goes into its `book.yaml` too.
    pub fn set_book(
        &self,
        caller: &Caller,
        book: &str,
        change: &BookChange,
        call: &CallContext,
    ) -> Answer<Book> {
        self.set_as_told(caller, book, change, true, call)
    }

    /// The same for a book that was imported, whose files stay as they came.
    pub fn set_imported_book(
        &self,
        caller: &Caller,
        book: &str,
        change: &BookChange,
        call: &CallContext,
    ) -> Answer<Book> {
        self.set_as_told(caller, book, change, false, call)
    }

    fn set_as_told(
        &self,
        caller: &Caller,
        book: &str,
        change: &BookChange,
        is_written: bool,
        call: &CallContext,
    ) -> Answer<Book> {
        check_book_id(book)?;
        if change.title.as_ref().is_some_and(|title| title.chars().count() > registry::TITLE_CHARS) {
            let message = format!("title may have at most {} characters", registry::TITLE_CHARS);
            return Err(BookError::Validation { path: format!("books/{book}"), message });
        }
        caller.must_write().map_err(|error| failed(book, registry::BOOK_FILE, error))?;
        let turn = self.turn_of_change();
        let set = || -> Result<Book> {
            // A change that closes the book comes after the title in its file, one that opens it comes before.
            let is_told = !is_written || self.retitle_file(caller, book, change, call)?;
            let set = self.catalog.set_book(caller.pass.actor(), book, change, self.now())?;
            if !is_told && !self.retitle_file(caller, book, change, call)? {
                tracing::warn!(book, "book.yaml keeps its former title; change it there too");
            }
            self.described(caller, set, call)
        };
        let set = set().map_err(|error| failed(book, registry::BOOK_FILE, error))?;
        if let Some(turn) = turn {
            self.export_in_turn(caller.pass.actor(), &turn);
        }
        Ok(set)
    }

    /// Gives the `book.yaml` of a book its new title; whether the file says now what it should.
    fn retitle_file(
        &self,
        caller: &Caller,
        book: &str,
        change: &BookChange,
        call: &CallContext,
    ) -> Result<bool> {
        let Some(title) = change.title.as_deref().filter(|title| !title.trim().is_empty()) else {
            return Ok(true);
        };
        let path = registry::BOOK_FILE;
        let Some(document) = self.book_document(caller, book, path)? else { return Ok(true) };
        if document.version.size > registry::BOOK_FILE_BYTES {
            return Ok(false);
        }
        let bytes = self.blobs.read_blob(call, &document.version.hash)?;
        let Ok(text) = String::from_utf8(bytes) else { return Ok(false) };
        if registry::title_of(&text).as_deref() == Some(title.trim()) {
            return Ok(true);
        }
        let Some(text) = registry::with_title(&text, title) else { return Ok(false) };
        let draft = BookDraft {
            actor: caller.pass.actor(),
            book,
            path,
            content: Content::Bytes(text.as_bytes()),
            metadata: Metadata::new(),
            expected: Expected::Content(document.version.hash),
            upload: None,
        };
        match self.commit(draft, call) {
            Ok(_) => Ok(true),
            Err(Error::Catalog(shelf_catalog::Error::BookClosed { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the actor's account has a book of this id.
    fn has_book(&self, actor: &Actor, book: &str) -> Result<bool> {
        Ok(self.catalog.collection(&Scope::Account(actor.account), book)?.is_some())
    }

    /// Notes what a write may have changed of the book itself. A title is read from `book.yaml` as it is now: of several who
    /// write it at once, the last one to note it has seen what all have written.
    fn book_changed(&self, actor: &Actor, book: &str, (is_titled, is_new): (bool, bool)) {
        if !is_titled && !is_new {
            return;
        }
        let turn = self.turn_of_change();
        if is_titled && let Err(error) = self.note_title(actor, book) {
            tracing::warn!(book, %error, "the title of book.yaml could not be noted");
        }
        if let Some(turn) = turn {
            self.export_in_turn(actor, &turn);
        }
    }

    /// Notes the title that the `book.yaml` of a book gives, if it gives one.
    fn note_title(&self, actor: &Actor, book: &str) -> Result<()> {
        let scope = Scope::Account(actor.account);
        if let title @ Some(_) = self.title_in_file(&scope, book, &CallContext::new())? {
            let change = BookChange { title, ..BookChange::default() };
            self.catalog.set_book(actor, book, &change, self.now())?;
        }
        Ok(())
    }
}
