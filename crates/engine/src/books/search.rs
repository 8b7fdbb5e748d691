//! Finding files of books by glob, and lines by pattern.

use globset::GlobBuilder;
use regex::RegexBuilder;
use shelf_base::CallContext;
use shelf_catalog::{Chosen, Filter};

use super::{Answer, BookError, check_book_id, full_path};
use crate::{Caller, Error, Library, Result};

/// Bytes that a compiled pattern may take.
const PATTERN_BYTES: usize = 4 << 20;
/// Characters of a pattern or glob at most.
const PATTERN_CHARS: usize = 1_000;

/// A line of a book that a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookMatch {
    /// The full path of its file.
    pub path: String,
    /// Its number, from 1.
    pub line: u64,
    /// The line without its end.
    pub text: String,
}

impl Library {
    /// Full paths of the files that fit a glob, in order. `*` and `?` do not match `/`.
    pub fn glob_books(
        &self,
        caller: &Caller,
        book: &str,
        pattern: &str,
        all: bool,
        call: &CallContext,
    ) -> Answer<Vec<String>> {
        check_book_id(book)?;
        let invalid = |message: String| BookError::Validation { path: format!("books/{book}"), message };
        if pattern.is_empty() || pattern.len() > PATTERN_CHARS {
            return Err(invalid(format!("pattern must have 1 to {PATTERN_CHARS} characters")));
        }
        let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| invalid(format!("invalid glob pattern: {}", error.kind())))?;
        let matcher = glob.compile_matcher();
        let mut found = Vec::new();
        for (book, files) in self.files_of(caller, book, all, call)? {
            let fitting = files.iter().filter(|file| matcher.is_match(&file.path));
            found.extend(fitting.map(|file| full_path(&book, &file.path)));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Lines of Markdown files that match a regular expression, in the order of files and lines.
    pub fn grep_books(
        &self,
        caller: &Caller,
        (book, all): (&str, bool),
        pattern: &str,
        most: usize,
        call: &CallContext,
    ) -> Answer<Vec<BookMatch>> {
        check_book_id(book)?;
        let path = format!("books/{book}");
        let invalid = |message: String| BookError::Validation { path: path.clone(), message };
        if pattern.is_empty() || pattern.len() > PATTERN_CHARS {
            return Err(invalid(format!("pattern must have 1 to {PATTERN_CHARS} characters")));
        }
        let regex = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
        let regex = regex.map_err(|error| invalid(format!("invalid regular expression: {error}")))?;
        let mut files: Vec<(String, Chosen)> = Vec::new();
        for (book, chosen) in self.files_of(caller, book, all, call)? {
            let markdown = chosen.into_iter().filter(|file| file.path.ends_with(".md"));
            files.extend(markdown.map(|file| (full_path(&book, &file.path), file)));
        }
        files.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut found = Vec::new();
        for (path, file) in files {
            let bytes = self.blobs.read_blob(call, &file.version.hash);
            let bytes = bytes.map_err(|error| BookError::Engine { path: path.clone(), error })?;
            let text = String::from_utf8_lossy(&bytes);
            for (number, line) in (1..).zip(text.lines()) {
                if regex.is_match(line) {
                    found.push(BookMatch { path: path.clone(), line: number, text: line.to_owned() });
                    if found.len() == most {
                        return Ok(found);
                    }
                }
            }
        }
        Ok(found)
    }

    /// The files of a book, or of all of the caller's books. An unknown book has none.
    fn files_of(
        &self,
        caller: &Caller,
        book: &str,
        all: bool,
        call: &CallContext,
    ) -> Answer<Vec<(String, Vec<Chosen>)>> {
        let look = || -> Result<Vec<(String, Vec<Chosen>)>> {
            let books = self.own_books(caller)?;
            let wanted = books.into_iter().filter(|known| all || known.name == book);
            wanted
                .map(|known| {
                    call.check().map_err(Error::from)?;
                    let filter = Filter { collection: Some(known.name.clone()), ..Filter::default() };
                    Ok((known.name, self.catalog.choose(caller.pass.scope(), &filter)?))
                })
                .collect()
        };
        look().map_err(|error| BookError::Engine { path: format!("books/{book}"), error })
    }
}
