//! Lessons and summaries: text files of a book, written with compare-and-swap.

use shelf_base::{
    CallContext, Digest, Moment,
    book_names::{asset_name, is_book_path},
};
use shelf_catalog::{BookStatus, CollectionKind, Document, Expected, Metadata, Scope};

use super::{
    Answer, BookDraft, BookError, check_path, failed, full_path, is_summary, registry, summary_path,
    without_book,
};
use crate::{
    Caller, Error, Library, Result,
    commit::{Content, DeleteDraft},
};

/// Bytes of a lesson at most.
const CONTENT_BYTES: usize = 1 << 20;
/// Bytes of a summary at most.
const SUMMARY_BYTES: usize = 100 << 10;

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

impl Library {
    /// Reads a lesson.
    pub fn read_book_content(
        &self,
        caller: &Caller,
        book: &str,
        path: &str,
        call: &CallContext,
    ) -> Answer<BookFile> {
        let path = self.meant_path(caller, book, path)?;
        self.read_book_file(caller, book, path, call)
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
        self.read_book_file(caller, book, &path, call)
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
        let path = self.meant_path(caller, book, path)?;
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
            (if is_summary(path) { SUMMARY_BYTES } else { CONTENT_BYTES }, expected.unwrap_or_default()),
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
        let path = self.meant_path(caller, book, path)?;
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
            (path, false) => Err(BookError::NotFound { path }),
        }
    }

    /// The path in the book that is meant: of a full path, as replies give it, what comes after the book, unless there is a
    /// file of just this path in the book.
    pub(super) fn meant_path<'a>(&self, caller: &Caller, book: &str, path: &'a str) -> Answer<&'a str> {
        let rest = without_book(book, path);
        check_path(book, rest)?;
        if rest.len() == path.len() || !is_book_path(path) {
            return Ok(rest);
        }
        let exact = self.book_document(caller, book, path);
        let exact = exact.map_err(|error| BookError::Engine { path: full_path(book, path), error })?;
        Ok(if exact.is_some() { path } else { rest })
    }

    /// A document of the caller's book, at exactly this path.
    pub(super) fn book_document(&self, caller: &Caller, book: &str, path: &str) -> Result<Option<Document>> {
        self.document_in_book(caller.pass.scope(), book, path)
    }

    /// The same within a scope.
    pub(super) fn document_in_book(&self, scope: &Scope, book: &str, path: &str) -> Result<Option<Document>> {
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
        call: &CallContext,
    ) -> Answer<BookFile> {
        let full = full_path(book, path);
        let read = || -> Result<Option<BookFile>> {
            caller.must_read()?;
            let Some(document) = self.book_document(caller, book, path)? else { return Ok(None) };
            let bytes = self.blobs.read_blob(call, &document.version.hash)?;
            let content = String::from_utf8(bytes).map_err(|_| not_text(book, path))?;
            Ok(Some(BookFile {
                path: full.clone(),
                content,
                size: document.version.size,
                modified_at: document.version.indexed_at,
                hash: document.version.hash,
            }))
        };
        let found = read().map_err(|error| BookError::Engine { path: full.clone(), error })?;
        found.ok_or(BookError::NotFound { path: full })
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
        let draft = BookDraft {
            actor: caller.pass.actor(),
            book,
            path,
            content: Content::Bytes(content.as_bytes()),
            metadata: Metadata::new(),
            expected,
            upload: None,
        };
        let write = || {
            caller.must_write()?;
            Ok((self.has_book(draft.actor, book)?, self.commit(draft, call)?))
        };
        let (is_known, written) = write().map_err(|error| failed(book, path, error))?;
        self.book_changed(caller.pass.actor(), book, (path == registry::BOOK_FILE, !is_known));
        Ok(BookWritten { path: full, size: written.size, hash: written.hash, is_new: written.is_new })
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
            let Some(document) = self.book_document(caller, book, path)? else {
                return self.must_be_open(caller, book).map(|()| false);
            };
            let (actor, scope) = (caller.pass.actor(), caller.pass.scope());
            Ok(!self.commit(DeleteDraft { actor, scope, ids: &[document.id] }, call)?.is_empty())
        };
        let existed = delete().map_err(|error| failed(book, path, error))?;
        Ok((full, existed))
    }
    /// Refuses what the book's status forbids, where there is nothing that the catalog could refuse to change.
    fn must_be_open(&self, caller: &Caller, book: &str) -> Result<()> {
        match self.catalog.collection(caller.pass.scope(), book)? {
            Some(found) if found.kind == CollectionKind::Book && found.status != BookStatus::Active => {
                let status = found.status.word();
                Err(shelf_catalog::Error::BookClosed { book: found.name, status }.into())
            }
            _ => Ok(()),
        }
    }
}

/// What cannot be given as text, and how to have it all the same.
fn not_text(book: &str, path: &str) -> Error {
    let way = match asset_name(path) {
        Some((kind, name)) => format!("use get_asset with asset_type {kind} and filename {name}"),
        None => format!("its bytes are written by `shelf get {path} --collection {book}`"),
    };
    Error::invalid("path", format!("names a file that is not text in UTF-8; {way}"))
}
