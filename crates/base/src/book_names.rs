//! Names of books and of the files in them. The catalog enforces these rules and the books family explains them, so
//! they are here.

/// Longest path of a file in a book, in bytes.
pub const PATH_BYTES: usize = 255;

/// Whether this can be the id of a book: 3 to 50 lowercase letters and digits, with single hyphens between them.
pub fn is_book_id(id: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    (3..=50).contains(&id.len()) && id.split('-').all(is_part)
}

/// Whether no book may be made with this id: every account has a collection of this name, for what is added without one.
pub fn is_reserved(id: &str) -> bool {
    id == "default"
}

/// Whether this can be the path of a file in a book. Names of assets may contain letters and digits of any script.
pub fn is_book_path(path: &str) -> bool {
    let mut allows: fn(char) -> bool = is_plain;
    if asset_name(path).is_some() {
        allows = is_asset_char;
    }
    (1..=PATH_BYTES).contains(&path.len())
        && path.chars().all(|letter| letter == '/' || allows(letter))
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// The type and the name of an asset; `None` when the path is not one of an asset.
pub fn asset_name(path: &str) -> Option<(&str, &str)> {
    let (kind, name) = path.strip_prefix("assets/")?.split_once('/')?;
    ASSET_TYPES.contains(&kind).then_some((kind, name))
}

/// The types of assets, each a folder below `assets/`.
pub const ASSET_TYPES: [&str; 4] = ["images", "slides", "videos", "audio"];

/// Whether a character may stand in the path of a lesson.
pub fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-')
}

/// Whether a character may stand in the name of an asset.
pub fn is_asset_char(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_the_rule() {
        for id in ["abc", "ai-native-python", "a1-b2", &"a".repeat(50)] {
            assert!(is_book_id(id), "{id}");
        }
        for id in ["", "ab", "Abc", "a--b", "-abc", "abc-", "a_b", "a/b", "äbc", &"a".repeat(51)] {
            assert!(!is_book_id(id), "{id}");
        }
    }

    #[test]
    fn paths_follow_the_rule() {
        let longest = "a".repeat(PATH_BYTES);
        for path in ["a", "lessons/part-1/.x.md", "a..b", "...", "assets/images/größe.png", &longest] {
            assert!(is_book_path(path), "{path}");
        }
        let too_long = "a".repeat(PATH_BYTES + 1);
        for path in [
            "",
            "/a",
            "a/",
            "a//b",
            "../a",
            "a/..",
            "./a",
            "a b",
            "a\0",
            "a%2e",
            "é",
            "a\\b",
            "lessons/größe.md",
            "assets/images/a b.png",
            "assets/images/a//b.png",
            "assets/images/../b.png",
            &too_long,
        ] {
            assert!(!is_book_path(path), "{path}");
        }
    }
}
