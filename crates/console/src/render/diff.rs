//! Differences between two texts: in one column, or side by side.

use maud::{Markup, html};
use similar::{ChangeTag, TextDiff};

use crate::words;

/// Lines around a change that are shown.
const CONTEXT: usize = 3;
/// Bytes of both texts together that are compared.
pub(crate) const MOST: usize = 4 << 20;

/// What changed, in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    pub added: usize,
    pub removed: usize,
}

/// Compares two texts. Returns `None` when they are too large for that.
pub(crate) fn page(before: &str, after: &str, side_by_side: bool) -> Option<(Markup, Tally)> {
    if before.len() + after.len() > MOST {
        return None;
    }
    let diff = TextDiff::from_lines(before, after);
    let mut tally = Tally { added: 0, removed: 0 };
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => tally.added += 1,
            ChangeTag::Delete => tally.removed += 1,
            ChangeTag::Equal => {}
        }
    }
    let groups = diff.grouped_ops(CONTEXT);
    let markup = html! {
        @if groups.is_empty() { p.note { "Both texts are the same." } }
        @for group in &groups {
            @let rows: Vec<Row> = group.iter().flat_map(|operation| diff.iter_changes(operation)).map(|change| Row {
                tag: change.tag(),
                old: change.old_index(),
                new: change.new_index(),
                text: change.value().trim_end_matches(['\n', '\r']).to_owned(),
            }).collect();
            @if side_by_side { (in_two(&rows)) } @else { (in_one(&rows)) }
        }
    };
    Some((markup, tally))
}

struct Row {
    tag: ChangeTag,
    old: Option<usize>,
    new: Option<usize>,
    text: String,
}

fn number(index: Option<usize>) -> String {
    index.map_or_else(String::new, |index| (index + 1).to_string())
}

const fn class(tag: ChangeTag) -> &'static str {
    match tag {
        ChangeTag::Insert => "added",
        ChangeTag::Delete => "removed",
        ChangeTag::Equal => "same",
    }
}

const fn sign(tag: ChangeTag) -> &'static str {
    match tag {
        ChangeTag::Insert => "+",
        ChangeTag::Delete => "−",
        ChangeTag::Equal => " ",
    }
}

fn in_one(rows: &[Row]) -> Markup {
    html! {
        table.diff { tbody { @for row in rows {
            tr class=(class(row.tag)) {
                td.number { (number(row.old)) }
                td.number { (number(row.new)) }
                td.sign { (sign(row.tag)) }
                td { code { (words::plain(&row.text)) } }
            }
        } } }
    }
}

fn in_two(rows: &[Row]) -> Markup {
    let mut pairs: Vec<(Option<&Row>, Option<&Row>)> = Vec::new();
    // Where the next added line goes beside a removed one.
    let mut open = 0;
    for row in rows {
        match row.tag {
            ChangeTag::Equal => {
                pairs.push((Some(row), Some(row)));
                open = pairs.len();
            }
            ChangeTag::Delete => pairs.push((Some(row), None)),
            ChangeTag::Insert => match pairs.get_mut(open) {
                Some(pair) if pair.1.is_none() => {
                    pair.1 = Some(row);
                    open += 1;
                }
                _ => {
                    pairs.push((None, Some(row)));
                    open = pairs.len();
                }
            },
        }
    }
    let cell = |row: Option<&Row>, index: Option<usize>| {
        html! {
            td.number { (number(index)) }
            td class=(row.map_or("none", |row| class(row.tag))) { @if let Some(row) = row { code { (words::plain(&row.text)) } } }
        }
    };
    html! {
        table.diff.two { tbody { @for (left, right) in pairs {
            tr {
                (cell(left, left.and_then(|row| row.old)))
                (cell(right, right.and_then(|row| row.new)))
            }
        } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_in_one_column_and_in_two() {
        let (one, tally) = page("a\nb\nc\n", "a\nB\nc\nd\n", false).unwrap();
        assert_eq!(tally, Tally { added: 2, removed: 1 });
        let one = one.into_string();
        assert!(one.contains("<tr class=\"removed\">") && one.contains("<tr class=\"added\">"), "{one}");
        let two = page("a\nb\nc\n", "a\nB\nc\nd\n", true).unwrap().0.into_string();
        assert_eq!(two.matches("<tr>").count(), 4, "{two}");
        assert!(page("x\n", "x\n", false).unwrap().0.into_string().contains("same"));
        let hostile = page("<script>\n", "</td><script>\n", true).unwrap().0.into_string();
        assert!(!hostile.contains("<script>"), "{hostile}");
        assert!(page(&"x".repeat(MOST), "y", false).is_none());
    }
}
