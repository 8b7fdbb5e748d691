//! Ids and paths of books, and the names that assets are stored under.

use shelf_base::{
    Digest,
    book_names::{ASSET_TYPES, PATH_BYTES, asset_name, is_asset_char, is_book_id, is_book_path, is_plain},
};

use super::BookError;

/// Longest name that an asset may be given, in characters.
const NAME_CHARS: usize = 255;
/// Bytes of a stored name at most; the folder of its type comes before it.
const STORED_BYTES: usize = 200;
/// Hexadecimal digits of the hash that tells names apart.
const MARK: usize = 16;

/// Checks a book id.
pub(super) fn check_book_id(book: &str) -> Result<(), BookError> {
    if is_book_id(book) {
        return Ok(());
    }
    Err(BookError::Validation {
        path: format!("books/{}", shown(book, 60)),
        message: "book_id must be 3 to 50 lowercase letters, digits and single hyphens between them".into(),
    })
}

/// Checks a path within a book, and the id of the book.
pub(super) fn check_path(book: &str, path: &str) -> Result<(), BookError> {
    check_book_id(book)?;
    let invalid = |message: &str| {
        Err(BookError::InvalidPath {
            path: full_path(book, &shown(path, PATH_BYTES)),
            message: format!("Invalid path: {message}"),
        })
    };
    if path.is_empty() || path.len() > PATH_BYTES {
        return invalid("it must have 1 to 255 characters");
    }
    let allows = if asset_name(path).is_some() { is_asset_char } else { is_plain };
    if !path.chars().all(|letter| letter == '/' || allows(letter)) {
        return invalid("only letters, digits and the characters / _ . - are allowed");
    }
    if path.starts_with('/') {
        return invalid("it must be relative to the book");
    }
    if !is_book_path(path) {
        return invalid("it must not contain empty parts, '.' or '..'");
    }
    Ok(())
}

/// The path of a chapter's summary.
pub(super) fn summary_path(book: &str, chapter: &str) -> Result<String, BookError> {
    check_book_id(book)?;
    let digits = chapter.strip_prefix("chapter-").unwrap_or_default();
    if digits.len() != 2 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(BookError::Validation {
            path: format!("books/{book}"),
            message: "chapter_id must be 'chapter-' and two digits, as in chapter-01".into(),
        });
    }
    Ok(format!("chapters/{chapter}/.summary.md"))
}

/// Whether a path is that of a chapter's summary.
pub(super) fn is_summary(path: &str) -> bool {
    let chapter = path.strip_prefix("chapters/").and_then(|rest| rest.strip_suffix("/.summary.md"));
    chapter.is_some_and(|chapter| !chapter.contains('/'))
}

/// Checks the type of an asset, and the id of the book.
pub(super) fn check_asset_type(book: &str, kind: &str) -> Result<(), BookError> {
    check_book_id(book)?;
    if ASSET_TYPES.contains(&kind) {
        return Ok(());
    }
    Err(BookError::Validation {
        path: format!("books/{book}"),
        message: format!("asset_type must be one of: {}", ASSET_TYPES.join(", ")),
    })
}

/// The path that an asset of this name is stored at.
///
/// Letters and digits of any script, `_`, `.` and `-` stay as they are; everything else becomes `_`. Whatever was
/// changed, and whatever looks as if it had been, gets a hash of the name it was given, so that different names are never
/// stored at the same path.
pub(super) fn asset_path(book: &str, kind: &str, name: &str) -> Result<String, BookError> {
    check_asset_type(book, kind)?;
    let invalid = |message: &str| {
        Err(BookError::InvalidPath {
            path: format!("books/{book}/assets/{kind}/{}", shown(name, 60)),
            message: format!("Invalid filename: {message}"),
        })
    };
    if name.is_empty() || name.chars().count() > NAME_CHARS {
        return invalid("it must have 1 to 255 characters");
    }
    let decoded = percent_decoded(name);
    if [name, &decoded].into_iter().any(|name| name.chars().any(is_separator)) {
        return invalid("it must not contain slashes or their look-alikes");
    }
    if [name, &decoded].into_iter().any(|name| name.chars().any(is_invisible)) {
        return invalid("it must not contain control or invisible characters");
    }
    if matches!(decoded.trim(), "" | "." | "..") || decoded.starts_with("..") {
        return invalid("it must not be empty or begin with '..'");
    }
    Ok(format!("assets/{kind}/{}", stored_name(name, is_asset_char)))
}

/// A name with only allowed characters, which no other name becomes.
pub(super) fn stored_name(name: &str, allows: fn(char) -> bool) -> String {
    let cleaned: String = name.chars().map(|letter| if allows(letter) { letter } else { '_' }).collect();
    let is_kept = cleaned == name && cleaned.len() <= STORED_BYTES && !matches!(name, "." | "..");
    if is_kept && !is_marked(name) {
        return cleaned;
    }
    let mark = Digest::of(name.as_bytes()).to_string();
    let (stem, extension) = split_extension(&cleaned);
    let stem = cut(stem, STORED_BYTES - MARK - 1 - extension.len());
    format!("{stem}-{}{extension}", &mark[..MARK])
}

/// Whether a name ends, before its extension, as those do that were marked with a hash.
fn is_marked(name: &str) -> bool {
    let (stem, _) = split_extension(name);
    stem.rsplit_once('-').is_some_and(|(_, mark)| {
        mark.len() == MARK && mark.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// A name and its extension with the dot; an extension is short and plain.
fn split_extension(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(dot) if name.len() - dot <= 17 && name[dot + 1..].bytes().all(|b| b.is_ascii_alphanumeric()) => {
            name.split_at(dot)
        }
        _ => (name, ""),
    }
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn percent_decoded(name: &str) -> String {
    // Twice, because what is decoded twice somewhere is attacked that way.
    let once = percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned();
    percent_encoding::percent_decode_str(&once).decode_utf8_lossy().into_owned()
}

/// Slashes, and characters that are drawn or normalized as one.
fn is_separator(letter: char) -> bool {
    matches!(
        letter,
        '/' | '\\'
            | '\u{2044}'
            | '\u{2215}'
            | '\u{29f8}'
            | '\u{29f9}'
            | '\u{ff0f}'
            | '\u{ff3c}'
            | '\u{2216}'
            | '\u{fe68}'
    )
}

/// Control characters, and those that only change how others are shown.
fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fffd}'
        )
}

fn shown(text: &str, most: usize) -> String {
    text.chars().filter(|letter| !is_invisible(*letter)).take(most).collect()
}

/// What a full path, as replies show it, says within the book; any other path as it is.
pub(super) fn without_book<'a>(book: &str, path: &'a str) -> &'a str {
    let rest = path.strip_prefix("books/").and_then(|rest| rest.strip_prefix(book));
    rest.and_then(|rest| rest.strip_prefix('/')).unwrap_or(path)
}

/// The path as replies show it.
pub(super) fn full_path(book: &str, path: &str) -> String {
    format!("books/{book}/{path}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored(name: &str) -> Result<String, BookError> {
        asset_path("abc", "images", name).map(|path| path["assets/images/".len()..].to_owned())
    }

    #[test]
    fn paths_and_chapters_follow_the_rules() {
        assert!(check_path("abc", "lessons/part-1/lesson-01.md").is_ok());
        assert!(check_path("abc", "assets/images/é.png").is_ok());
        for path in ["", "/a", "a//b", "../a", "a b", "a\0", "a%2e", "lessons/é.md", &"a".repeat(256)] {
            assert!(matches!(check_path("abc", path), Err(BookError::InvalidPath { .. })), "{path}");
        }
        assert!(summary_path("abc", "chapter-01").is_ok_and(|path| is_summary(&path)));
        assert!(!is_summary("lessons/chapter-01/.summary.md") && !is_summary("chapters/a/b/.summary.md"));
        for chapter in ["chapter-1", "chapter-001", "chapter-ab", "1", ""] {
            assert!(summary_path("abc", chapter).is_err(), "{chapter}");
        }
    }

    #[test]
    fn a_full_path_is_one_of_its_own_book_only() {
        for (path, within) in [
            ("books/abc/lessons/a.md", "lessons/a.md"),
            ("books/abc/books/abc/a.md", "books/abc/a.md"),
            ("books/abcd/a.md", "books/abcd/a.md"),
            ("books/abc", "books/abc"),
            ("books/abc/", ""),
            ("lessons/a.md", "lessons/a.md"),
        ] {
            assert_eq!(without_book("abc", path), within);
        }
    }

    #[test]
    fn usual_names_stay() {
        for name in [
            "diagram.png",
            "größe-2.svg",
            "图.png",
            ".hidden",
            "a.tar.gz",
            "no extension".replace(' ', "-").as_str(),
        ] {
            assert_eq!(stored(name).unwrap(), name);
        }
        assert!(stored("my diagram (1).png").unwrap().starts_with("my_diagram__1_-"));
        assert!(stored(&"x".repeat(250)).unwrap().len() <= STORED_BYTES);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [
            "",
            ".",
            "..",
            "../a.png",
            "a/b.png",
            "a\\b.png",
            "a%2fb.png",
            "%2e%2e%2fa",
            "a%252fb",
            "a\0.png",
            "a%00.png",
            "a\u{ff0f}b",
            "a\u{2215}b",
            "a\u{202e}gnp.exe",
            "..%5ca",
            " ",
            &"x".repeat(256),
        ] {
            assert!(matches!(stored(name), Err(BookError::InvalidPath { .. })), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn different_names_are_stored_apart(one in "[a-cA-C é_.*-]{1,6}", other in "[a-cA-C é_.*-]{1,6}") {
            if let (Ok(first), Ok(second)) = (stored(&one), stored(&other)) {
                prop_assert_eq!(one == other, first == second);
                // A stored name that is given as a name of its own is another name.
                if first != one {
                    prop_assert_ne!(stored(&first).unwrap(), first);
                }
            }
        }

        #[test]
        fn every_stored_name_is_a_path_of_a_book(name in "\\PC{1,300}") {
            if let Ok(path) = asset_path("abc", "audio", &name) {
                prop_assert!(is_book_path(&path), "{}", path);
            }
        }
    }
}
