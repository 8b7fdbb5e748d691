//! Finding files of books by glob, and lines by pattern.

use shelf_base::{CallContext, Digest, ErrorInfo, Kind};
use shelf_catalog::{Chosen, Collection, Filter};
use shelf_index::{Needs, Word, needed_words};

use super::{
    Answer, BookError, check_book_id, full_path,
    glob::Glob,
    lines::{Lines, Pattern},
};
use crate::{Caller, Error, Library, Result, blobs::Given, texts::Breadth};

/// Bytes that a compiled glob may take.
const PATTERN_BYTES: usize = 4 << 20;
/// Characters of a pattern or glob at most.
const PATTERN_CHARS: usize = 1_000;
/// Files that are read at once, in the order in which they lie.
const AT_ONCE: usize = 64;
/// Paths that are looked at before a call is asked whether it goes on.
const PATHS_AT_ONCE: usize = 4_096;

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

/// A file that may match.
struct Sought {
    path: String,
    hash: Digest,
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
        let path = format!("books/{book}");
        check_pattern(&path, pattern)?;
        let glob = Glob::new(pattern, PATTERN_BYTES).map_err(|error| BookError::Validation {
            path: path.clone(),
            message: format!("invalid glob pattern: {error}"),
        })?;
        let look = || -> Result<Vec<String>> {
            let mut found = Vec::new();
            for book in self.books_meant(caller, book, all)? {
                let prefix = full_path(&book.name, "");
                for share in self.book_paths(&book, call)?.chunks(PATHS_AT_ONCE) {
                    call.check()?;
                    let fitting = share.iter().filter(|path| glob.fits(path));
                    found.extend(fitting.map(|path| format!("{prefix}{path}")));
                }
            }
            found.sort_unstable();
            Ok(found)
        };
        look().map_err(|error| BookError::Engine { path, error })
    }

    /// Lines of Markdown files that match a regular expression, in the order of files and lines: at most `most`.
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
        check_pattern(&path, pattern)?;
        let compiled =
            Pattern::new(pattern).map_err(|message| BookError::Validation { path: path.clone(), message })?;
        let look = || {
            let books = self.books_meant(caller, book, all)?;
            let files = self.with_index_repair(call, || self.files_sought(caller, &books, pattern, call))?;
            self.matching_lines(&compiled, &files, most, call)
        };
        look().map_err(|error| BookError::Engine { path, error })
    }

    /// The book, or all of the caller's. An unknown book has no files.
    fn books_meant(&self, caller: &Caller, book: &str, all: bool) -> Result<Vec<Collection>> {
        let mut books = self.own_books(caller)?;
        books.retain(|known| all || known.name == book);
        Ok(books)
    }

    /// The Markdown files that hold what the pattern needs, by path: the index names them.
    fn files_sought(
        &self,
        caller: &Caller,
        books: &[Collection],
        pattern: &str,
        call: &CallContext,
    ) -> Result<Vec<Sought>> {
        let (needs, words) = needs(pattern);
        let view = if needs.is_anything() {
            None
        } else {
            match self.indexing.view(call) {
                // Without room for the index every file is read instead.
                Err(error) if error.kind() == Kind::StorageFull => None,
                view => Some(view?),
            }
        };
        let mut sought = Vec::new();
        for book in books {
            call.check()?;
            let filter = Filter { collection: Some(book.name.clone()), ..Filter::default() };
            let mut keep = |path: &str, hash| {
                if path.ends_with(".md") {
                    sought.push(Sought { path: full_path(&book.name, path), hash });
                }
            };
            match &view {
                Some(view) => {
                    let allowed = self.index_filter(caller, view, &filter, &[])?;
                    let (found, _) = view.candidates_with(&needs, &words, &allowed)?;
                    found.iter().for_each(|one| keep(one.path, one.hash));
                    // What the index holds no text of may match all the same.
                    view.without_text(&allowed, |path| path.ends_with(".md"))
                        .for_each(|one| keep(one.path, one.hash));
                }
                None => {
                    let chosen: Vec<Chosen> = self.catalog.choose(caller.pass.scope(), &filter)?;
                    chosen.iter().for_each(|one| keep(&one.path, one.version.hash));
                }
            }
        }
        sought.sort_by(|one, other| one.path.cmp(&other.path));
        // The index holds a large file in several parts.
        sought.dedup_by(|one, other| one.path == other.path);
        Ok(sought)
    }

    fn matching_lines(
        &self,
        pattern: &Pattern,
        files: &[Sought],
        most: usize,
        call: &CallContext,
    ) -> Result<Vec<BookMatch>> {
        let mut searched = Lines::of(pattern);
        let mut reader = self.blobs.blocks.reader();
        let mut found: Vec<BookMatch> = Vec::new();
        for share in files.chunks(AT_ONCE) {
            let hashes: Vec<Digest> = share.iter().map(|file| file.hash).collect();
            // They are read as they lie, and answered in their order.
            let mut lines: Vec<Vec<BookMatch>> = vec![Vec::new(); share.len()];
            let room = most - found.len();
            self.blobs.read_each(call, &mut reader, (&hashes, Breadth::Few), |at, given| {
                let file = &share[at];
                match given? {
                    Given::Whole(bytes) => search_in(&mut searched, bytes, file, room, &mut lines[at]),
                    Given::Large => {
                        let bytes = self.blobs.read_blob(call, &file.hash)?;
                        search_in(&mut searched, &bytes, file, room, &mut lines[at])
                    }
                }
            })?;
            found.extend(lines.into_iter().flatten().take(room));
            if found.len() >= most {
                break;
            }
        }
        Ok(found)
    }
}

fn check_pattern(path: &str, pattern: &str) -> Answer<()> {
    if !pattern.is_empty() && pattern.chars().count() <= PATTERN_CHARS {
        return Ok(());
    }
    let message = format!("pattern must have 1 to {PATTERN_CHARS} characters");
    Err(BookError::Validation { path: path.to_owned(), message })
}

fn search_in(
    lines: &mut Lines<'_>,
    bytes: &[u8],
    file: &Sought,
    most: usize,
    found: &mut Vec<BookMatch>,
) -> Result<()> {
    let searched = lines.find(bytes, |line, text| {
        found.push(BookMatch { path: file.path.clone(), line, text });
        found.len() < most
    });
    searched.map_err(|error| Error::reading(&file.path, error))
}

/// What a file must hold for the pattern to match: trigrams and whole words.
fn needs(pattern: &str) -> (Needs, Vec<Word>) {
    let mut parser = regex_syntax::ParserBuilder::new();
    match parser.multi_line(true).crlf(true).utf8(false).build().parse(pattern) {
        Ok(pattern) => (Needs::of(&pattern), needed_words(&pattern)),
        Err(_) => (Needs::Anything, Vec::new()),
    }
}
