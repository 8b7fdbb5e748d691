//! Finding files of books by glob, and lines by pattern.

use globset::{GlobBuilder, GlobMatcher};
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, sinks::Lossy};
use shelf_base::{CallContext, Digest, ErrorInfo, Kind};
use shelf_catalog::{Chosen, Collection, Filter};
use shelf_index::{Needs, Word, needed_words};

use super::{Answer, BookError, check_book_id, full_path};
use crate::{Caller, Error, Library, Result, blobs::Given, texts::Breadth};

/// Bytes that a compiled pattern may take.
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
        let matcher = compile(pattern).map_err(|error| BookError::Validation {
            path: path.clone(),
            message: format!("invalid glob pattern: {}", error.kind()),
        })?;
        let look = || -> Result<Vec<String>> {
            let mut found = Vec::new();
            for book in self.books_meant(caller, book, all)? {
                let prefix = full_path(&book.name, "");
                for share in self.book_paths(&book, call)?.chunks(PATHS_AT_ONCE) {
                    call.check()?;
                    let fitting = share.iter().filter(|path| matcher.is_match(&***path));
                    found.extend(fitting.map(|path| format!("{prefix}{path}")));
                }
            }
            found.sort_unstable();
            Ok(found)
        };
        look().map_err(|error| BookError::Engine { path, error })
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
        check_pattern(&path, pattern)?;
        let mut builder = RegexMatcherBuilder::new();
        builder.crlf(true).size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
        let matcher = builder.build(pattern).map_err(|error| BookError::Validation {
            path: path.clone(),
            message: format!("invalid regular expression: {error}"),
        })?;
        let look = || {
            let books = self.books_meant(caller, book, all)?;
            let files = self.with_index_repair(call, || self.files_sought(caller, &books, pattern, call))?;
            self.matching_lines(&matcher, &files, most, call)
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
                }
                None => {
                    let chosen: Vec<Chosen> = self.catalog.choose(caller.pass.scope(), &filter)?;
                    chosen.iter().for_each(|one| keep(&one.path, one.version.hash));
                }
            }
        }
        sought.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(sought)
    }

    fn matching_lines(
        &self,
        matcher: &RegexMatcher,
        files: &[Sought],
        most: usize,
        call: &CallContext,
    ) -> Result<Vec<BookMatch>> {
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .line_terminator(LineTerminator::crlf())
            .binary_detection(BinaryDetection::none())
            .build();
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
                    Given::Whole(bytes) => {
                        search_in(&mut searcher, matcher, bytes, file, room, &mut lines[at])
                    }
                    Given::Large => {
                        let bytes = self.blobs.read_blob(call, &file.hash)?;
                        search_in(&mut searcher, matcher, &bytes, file, room, &mut lines[at])
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

fn compile(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build()?;
    Ok(glob.compile_matcher())
}

fn check_pattern(path: &str, pattern: &str) -> Answer<()> {
    if !pattern.is_empty() && pattern.chars().count() <= PATTERN_CHARS {
        return Ok(());
    }
    let message = format!("pattern must have 1 to {PATTERN_CHARS} characters");
    Err(BookError::Validation { path: path.to_owned(), message })
}

fn search_in(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    bytes: &[u8],
    file: &Sought,
    most: usize,
    found: &mut Vec<BookMatch>,
) -> Result<()> {
    let sink = Lossy(|line, text: &str| {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text).to_owned();
        found.push(BookMatch { path: file.path.clone(), line, text });
        Ok(found.len() < most)
    });
    searcher.search_slice(matcher, bytes, sink).map_err(|error| Error::reading(&file.path, error))
}

/// What a file must hold for the pattern to match: trigrams and whole words.
fn needs(pattern: &str) -> (Needs, Vec<Word>) {
    let mut parser = regex_syntax::ParserBuilder::new();
    match parser.multi_line(true).crlf(true).utf8(false).build().parse(pattern) {
        Ok(pattern) => (Needs::of(&pattern), needed_words(&pattern)),
        Err(_) => (Needs::Anything, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a glob means, spelt out: part by part, character by character.
    fn fits(pattern: &[&str], path: &[&str]) -> bool {
        match pattern {
            [] => path.is_empty(),
            // At the end, everything below; elsewhere, any number of parts.
            ["**"] => !path.is_empty(),
            ["**", rest @ ..] => (0..=path.len()).any(|skipped| fits(rest, &path[skipped..])),
            [part, rest @ ..] => match path {
                [first, others @ ..] => fits_part(part.as_bytes(), first.as_bytes()) && fits(rest, others),
                [] => false,
            },
        }
    }

    fn fits_part(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => {
                fits_part(rest, text) || (!text.is_empty() && fits_part(pattern, &text[1..]))
            }
            ([b'?', rest @ ..], [_, others @ ..]) => fits_part(rest, others),
            ([letter, rest @ ..], [first, others @ ..]) => letter == first && fits_part(rest, others),
            _ => false,
        }
    }

    #[test]
    fn globs_know_alternatives_and_classes() {
        for (pattern, path, is_match) in [
            ("*.{md,png}", "a.png", true),
            ("*.{md,png}", "a.txt", false),
            ("[a-c]*.md", "beta.md", true),
            ("[!a-c]*.md", "beta.md", false),
            ("*.md", ".summary.md", true),
            ("*.md", "a/b.md", false),
            ("a?b", "a/b", false),
            ("**/*.md", "a.md", true),
            ("chapters/chapter-01/*", "chapters/chapter-01/.summary.md", true),
        ] {
            assert_eq!(compile(pattern).unwrap().is_match(path), is_match, "{pattern} {path}");
        }
        assert!(compile("[a").is_err() && compile("{a").is_err());
    }

    proptest! {
        #[test]
        fn globs_mean_what_the_reference_says(
            pattern in proptest::collection::vec("(\\*\\*|[ab.?*]{1,4})", 1..5),
            path in proptest::collection::vec("[ab.]{1,4}", 1..5),
        ) {
            // Two stars within a part are not a part of two stars.
            let is_plain = |part: &String| part == "**" || !part.contains("**");
            let pattern: Vec<String> = pattern.into_iter().filter(is_plain).collect();
            prop_assume!(!pattern.is_empty());
            let parts: Vec<&str> = pattern.iter().map(String::as_str).collect();
            let steps: Vec<&str> = path.iter().map(String::as_str).collect();
            let matcher = compile(&pattern.join("/")).unwrap();
            prop_assert_eq!(matcher.is_match(path.join("/")), fits(&parts, &steps), "{:?} {:?}", pattern, path);
        }
    }
}
