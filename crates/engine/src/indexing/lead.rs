//! What a passage is about beside its own words: the title of its document and the headings above it.
//!
//! A passage in the middle of a document often does not say what the document is about, and a stored document often has
//! its question in the title and only the answer in its text. Both are part of a passage's words and of its vector, as
//! if they stood at its beginning, unless they stand there anyway.

/// The title of a document, if somebody gave it one: the last part of its path is none.
pub(super) fn given_title<'a>(path: &str, title: &'a str) -> Option<&'a str> {
    let title = title.trim();
    let name = path.rsplit('/').next().unwrap_or(path);
    (!title.is_empty() && title != name).then_some(title)
}

/// The lead of a passage that stands under these headings.
pub(super) fn of(title: Option<&str>, headings: &str, passage: &str) -> String {
    let title = title.filter(|title| !begins_with(passage, title) && !begins_with(headings, title));
    match (title, headings.is_empty()) {
        (None, true) => String::new(),
        (None, false) => headings.to_owned(),
        (Some(title), true) => title.to_owned(),
        (Some(title), false) => format!("{title}\n{headings}"),
    }
}

/// Whether a text begins with a title, whatever their case, after marks of headings.
fn begins_with(text: &str, title: &str) -> bool {
    let text = text.trim_start_matches(|mark: char| mark == '#' || mark.is_whitespace());
    let mut letters = text.chars().flat_map(char::to_lowercase);
    title.chars().flat_map(char::to_lowercase).all(|letter| letters.next() == Some(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_is_no_title() {
        assert_eq!(given_title("/notes/a.md", "a.md"), None);
        assert_eq!(given_title("documents/1", "Why is the sky blue?"), Some("Why is the sky blue?"));
        assert_eq!(given_title("documents/1", "  "), None);
    }

    #[test]
    fn nothing_is_said_twice() {
        assert_eq!(of(Some("Sky"), "", "# SKY\nIt is blue."), "");
        assert_eq!(of(Some("Sky"), "", "It is blue."), "Sky");
        assert_eq!(of(Some("Sky"), "Sky\nColours", "It is blue."), "Sky\nColours");
        assert_eq!(of(Some("Sky"), "Colours", "It is blue."), "Sky\nColours");
        assert_eq!(of(None, "", "It is blue."), "");
    }
}
