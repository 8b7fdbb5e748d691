//! Ids and paths of books.

use super::BookError;

/// Checks a book id: 3 to 50 lowercase letters and digits, with single hyphens between them.
pub(super) fn check_book_id(book: &str) -> Result<(), BookError> {
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if (3..=50).contains(&book.len()) && book.split('-').all(is_part) {
        return Ok(());
    }
    let shown: String = book.chars().filter(|c| !c.is_control()).take(60).collect();
    Err(BookError::Validation {
        path: format!("books/{shown}"),
        message: "book_id must be 3 to 50 lowercase letters, digits and single hyphens between them".into(),
    })
}

/// Checks a path within a book, and the id of the book.
pub(super) fn check_path(book: &str, path: &str) -> Result<(), BookError> {
    check_book_id(book)?;
    let invalid = |message: &str| {
        let shown: String = path.chars().filter(|c| !c.is_control()).take(255).collect();
        Err(BookError::InvalidPath {
            path: full_path(book, &shown),
            message: format!("Invalid path: {message}"),
        })
    };
    if path.is_empty() || path.len() > 255 {
        return invalid("it must have 1 to 255 characters");
    }
    if !path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/_.-".contains(&b)) {
        return invalid("only letters, digits and the characters / _ . - are allowed");
    }
    if path.starts_with('/') {
        return invalid("it must be relative to the book");
    }
    if path.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
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

/// The path as replies show it.
pub(super) fn full_path(book: &str, path: &str) -> String {
    format!("books/{book}/{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_paths_follow_the_rules() {
        for id in ["abc", "ai-native-python", "a1-b2", &"a".repeat(50)] {
            assert!(check_book_id(id).is_ok(), "{id}");
        }
        for id in ["", "ab", "Abc", "a--b", "-abc", "abc-", "a_b", "a/b", "äbc", &"a".repeat(51)] {
            assert!(check_book_id(id).is_err(), "{id}");
        }
        for path in ["a", "lessons/part-1/.x.md", "a..b", "...", &"a".repeat(255)] {
            assert!(check_path("abc", path).is_ok(), "{path}");
        }
        for path in [
            "",
            "/a",
            "a//b",
            "../a",
            "a/..",
            "./a",
            "a b",
            "a\0",
            "a%2e",
            "é",
            "a\\b",
            "a/",
            &"a".repeat(256),
        ] {
            assert!(matches!(check_path("abc", path), Err(BookError::InvalidPath { .. })), "{path}");
        }
        assert!(summary_path("abc", "chapter-01").is_ok());
        for chapter in ["chapter-1", "chapter-001", "chapter-ab", "1", ""] {
            assert!(summary_path("abc", chapter).is_err(), "{chapter}");
        }
    }
}
