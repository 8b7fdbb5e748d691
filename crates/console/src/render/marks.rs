//! Snippets of search hits. The search tool marks matches as a terminal would; here the same marks become HTML.

use maud::{Markup, html};

use crate::words;

const START: &str = "\u{1b}[1;31m";
const END: &str = "\u{1b}[0m";
const NUMBER: &str = "\u{1b}[32m";

/// A line of a snippet.
pub(crate) struct Line<'a> {
    pub number: Option<u64>,
    pub is_match: bool,
    text: &'a str,
}

/// The lines of a snippet that was made with numbers and colours.
pub(crate) fn lines(snippet: &str) -> impl Iterator<Item = Line<'_>> {
    snippet.split('\n').map(|line| {
        let numbered = line.strip_prefix(NUMBER).and_then(|rest| rest.split_once(END));
        match numbered {
            Some((number, rest)) => Line {
                number: number.parse().ok(),
                is_match: rest.starts_with(':'),
                text: rest.get(1..).unwrap_or_default(),
            },
            None => Line { number: None, is_match: line.contains(START), text: line },
        }
    })
}

impl Line<'_> {
    /// The text with its matches marked.
    pub(crate) fn markup(&self) -> Markup {
        let mut parts = Vec::new();
        let mut rest = self.text;
        while let Some((before, after)) = rest.split_once(START) {
            let (hit, left) = after.split_once(END).unwrap_or((after, ""));
            parts.push((before, hit));
            rest = left;
        }
        html! {
            @for (before, hit) in parts { (words::plain(before)) mark { (words::plain(hit)) } }
            (words::plain(rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_html_and_the_rest_is_escaped() {
        let snippet = format!("{NUMBER}12{END}:a {START}<b>{END} c\n{NUMBER}13{END}-<script>");
        let lines: Vec<(Option<u64>, bool, String)> =
            lines(&snippet).map(|line| (line.number, line.is_match, line.markup().into_string())).collect();
        assert_eq!(lines[0], (Some(12), true, "a <mark>&lt;b&gt;</mark> c".into()));
        assert_eq!(lines[1], (Some(13), false, "&lt;script&gt;".into()));
        // A document that holds such signs itself marks itself, and nothing worse.
        let odd = format!("{START}{START}x");
        assert!(super::lines(&odd).next().unwrap().markup().into_string().contains("<mark>"));
    }
}
