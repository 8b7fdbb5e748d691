//! Books: collections whose documents are the files of a book, written with compare-and-swap.
//!
//! A book is a collection of kind `book` that is named by its `book_id`. Its lessons, summaries and assets are documents
//! at the contract's paths, so they are versioned, searched and protected like all others.

mod error;
mod names;
mod search;

pub use error::{BookError, name_of as book_error_name};
use names::{check_book_id, check_path, full_path, summary_path};
pub use search::BookMatch;
use shelf_base::{CallContext, Digest, Moment};
use shelf_catalog::{Actor, Collection, CollectionKind, Document, Expected, PutState, Shelf};

use crate::{
    Caller, Error, Library, Result,
    commit::{Content, DeleteDraft, Draft, Writing, book_document},
    ingest::Facts,
};

/// Bytes of a lesson at most.
const CONTENT_BYTES: usize = 1 << 20;
/// Bytes of a summary at most.
const SUMMARY_BYTES: usize = 100 << 10;

type Answer<T> = Result<T, BookError>;

/// A text file of a book.
#[derive(Clone, Debug)]
pub struct BookFile {
    /// Its full path.
    pub path: String,
    /// Its content.
    pub content: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was written.
    pub modified_at: Moment,
    /// The SHA-256 of its content.
    pub hash: Digest,
}

/// What a write did.
#[derive(Clone, Debug)]
pub struct BookWritten {
    /// The full path.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    /// The SHA-256 of the content.
    pub hash: Digest,
    /// Whether the file is new.
    pub is_new: bool,
}

/// A book of the registry.
#[derive(Clone, Debug)]
pub struct Book {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// When it was created.
    pub created_at: Moment,
}

/// Writes one file of a book.
struct BookDraft<'a> {
    actor: &'a Actor,
    book: &'a str,
    path: &'a str,
    bytes: &'a [u8],
    expected: Expected,
}

impl Draft for BookDraft<'_> {
    type Receipt = (Digest, PutState);

    fn write(self, writing: &mut Writing<'_>) -> Result<Self::Receipt> {
        let facts = Facts::of_content(self.bytes.len() as u64, writing.library.now());
        let mut document = book_document(writing, self.path, Content::Bytes(self.bytes), &facts)?;
        document.expected = self.expected;
        let hash = document.hash;
        let results = writing.put_documents(self.actor, Shelf::Book(self.book.to_owned()), vec![document])?;
        let state = results.first().map_or(PutState::Unchanged, |result| result.state);
        Ok((hash, state))
    }
}

impl Library {
    /// The caller's books, by id.
    pub fn books(&self, caller: &Caller, call: &CallContext) -> Answer<Vec<Book>> {
        let failed = |error: Error| BookError::Engine { path: "books".into(), error };
        self.own_books(caller)
            .and_then(|books| {
                books
                    .into_iter()
                    .map(|book| {
                        let title = self.book_title(caller, &book, call)?;
                        Ok(Book { id: book.name, title, created_at: book.created_at })
                    })
                    .collect()
            })
            .map_err(failed)
    }

    fn own_books(&self, caller: &Caller) -> Result<Vec<Collection>> {
        caller.must_read()?;
        let all = self.catalog.collections(caller.pass.scope())?;
        let books = all.into_iter().map(|summary| summary.collection);
        Ok(books.filter(|collection| collection.kind == CollectionKind::Book).collect())
    }

    /// The title that `book.yaml` gives, or the id.
    fn book_title(&self, caller: &Caller, book: &Collection, call: &CallContext) -> Result<String> {
        let Some(document) = self.book_document(caller, &book.name, "book.yaml")? else {
            return Ok(book.name.clone());
        };
        let bytes =
            self.blobs.read_range(call, &document.version.hash, 0..document.version.size.min(64 << 10))?;
        let text = String::from_utf8_lossy(&bytes);
        let title = text.lines().find_map(|line| line.strip_prefix("title:")).map(str::trim);
        let title = title.map(|title| title.trim_matches(['"', '\'']).to_owned());
        Ok(title.filter(|title| !title.is_empty()).unwrap_or_else(|| book.name.clone()))
    }

    /// Reads a lesson.
    pub fn read_book_content(
        &self,
        caller: &Caller,
        book: &str,
        path: &str,
        call: &CallContext,
    ) -> Answer<BookFile> {
        check_path(book, path)?;
        self.read_book_file(caller, book, path, "Content", call)
    }

    /// Reads the summary of a chapter.
    pub fn read_book_summary(
        &self,
        caller: &Caller,
        book: &str,
        chapter: &str,
        call: &CallContext,
    ) -> Answer<BookFile> {
        let path = summary_path(book, chapter)?;
        self.read_book_file(caller, book, &path, "Summary", call)
    }

    /// Writes a lesson; with an expected hash only if the file has that hash now.
    pub fn write_book_content(
        &self,
        caller: &Caller,
        (book, path): (&str, &str),
        content: &str,
        expected: Option<&str>,
        call: &CallContext,
    ) -> Answer<BookWritten> {
        check_path(book, path)?;
        let expected = expected
            .map(|hash| {
                hash.parse::<Digest>().map(Expected::Content).map_err(|_| BookError::Validation {
                    path: full_path(book, path),
                    message: "file_hash must be 64 hexadecimal digits".into(),
                })
            })
            .transpose()?;
        self.write_book_file(
            caller,
            (book, path),
            content,
            (CONTENT_BYTES, expected.unwrap_or_default()),
            call,
        )
    }

    /// Writes the summary of a chapter.
    pub fn write_book_summary(
        &self,
        caller: &Caller,
        (book, chapter): (&str, &str),
        content: &str,
        call: &CallContext,
    ) -> Answer<BookWritten> {
        let path = summary_path(book, chapter)?;
        self.write_book_file(caller, (book, &path), content, (SUMMARY_BYTES, Expected::Anything), call)
    }

    /// Deletes a lesson; its full path, and whether it was there.
    pub fn delete_book_content(
        &self,
        caller: &Caller,
        book: &str,
        path: &str,
        call: &CallContext,
    ) -> Answer<(String, bool)> {
        check_path(book, path)?;
        self.delete_book_file(caller, book, path, call)
    }

    /// Deletes the summary of a chapter; its full path.
    pub fn delete_book_summary(
        &self,
        caller: &Caller,
        book: &str,
        chapter: &str,
        call: &CallContext,
    ) -> Answer<String> {
        let path = summary_path(book, chapter)?;
        match self.delete_book_file(caller, book, &path, call)? {
            (path, true) => Ok(path),
            (path, false) => Err(BookError::NotFound { path, what: "Summary" }),
        }
    }

    /// A document of a book, at exactly this path.
    fn book_document(&self, caller: &Caller, book: &str, path: &str) -> Result<Option<Document>> {
        let scope = caller.pass.scope();
        let Some(collection) = self.catalog.collection(scope, book)? else { return Ok(None) };
        if collection.kind != CollectionKind::Book {
            return Ok(None);
        }
        let found = self.catalog.named(scope, Some(book), path, 1)?;
        Ok(found.into_iter().find(|document| document.path == path))
    }

    fn read_book_file(
        &self,
        caller: &Caller,
        book: &str,
        path: &str,
        what: &'static str,
        call: &CallContext,
    ) -> Answer<BookFile> {
        let full = full_path(book, path);
        let read = || -> Result<Option<BookFile>> {
            caller.must_read()?;
            let Some(document) = self.book_document(caller, book, path)? else { return Ok(None) };
            let bytes = self.blobs.read_blob(call, &document.version.hash)?;
            let content = String::from_utf8(bytes)
                .map_err(|_| Error::invalid("path", "does not name a text file; use get_asset"))?;
            Ok(Some(BookFile {
                path: full.clone(),
                content,
                size: document.version.size,
                modified_at: document.version.indexed_at,
                hash: document.version.hash,
            }))
        };
        let found = read().map_err(|error| BookError::Engine { path: full.clone(), error })?;
        found.ok_or(BookError::NotFound { path: full, what })
    }

    fn write_book_file(
        &self,
        caller: &Caller,
        (book, path): (&str, &str),
        content: &str,
        (most, expected): (usize, Expected),
        call: &CallContext,
    ) -> Answer<BookWritten> {
        let full = full_path(book, path);
        if content.len() > most {
            let message = format!("content has {} bytes; at most {most} are allowed", content.len());
            return Err(BookError::Validation { path: full, message });
        }
        let draft = BookDraft { actor: caller.pass.actor(), book, path, bytes: content.as_bytes(), expected };
        let written = caller.must_write().and_then(|()| self.commit(draft, call));
        match written {
            Ok((hash, state)) => {
                let is_new = state == PutState::Added;
                Ok(BookWritten { path: full, size: content.len() as u64, hash, is_new })
            }
            Err(Error::Catalog(shelf_catalog::Error::ContentChanged { current })) => {
                let message = match current {
                    Some(_) => format!("Hash mismatch: {full} was changed by somebody else; read it again"),
                    None => format!("Hash mismatch: {full} does not exist"),
                };
                Err(BookError::Conflict { path: full, message, current })
            }
            Err(Error::Catalog(error @ shelf_catalog::Error::NotABook(_))) => {
                let path = format!("books/{book}");
                Err(BookError::Conflict { path, message: error.to_string(), current: None })
            }
            Err(error) => Err(BookError::Engine { path: full, error }),
        }
    }

    fn delete_book_file(
        &self,
        caller: &Caller,
        book: &str,
        path: &str,
        call: &CallContext,
    ) -> Answer<(String, bool)> {
        let full = full_path(book, path);
        let delete = || -> Result<bool> {
            caller.must_write()?;
            let Some(document) = self.book_document(caller, book, path)? else { return Ok(false) };
            let (actor, scope) = (caller.pass.actor(), caller.pass.scope());
            Ok(!self.commit(DeleteDraft { actor, scope, ids: &[document.id] }, call)?.is_empty())
        };
        let existed = delete().map_err(|error| BookError::Engine { path: full.clone(), error })?;
        Ok((full, existed))
    }
}
