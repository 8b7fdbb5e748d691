//! Tables: values separated by commas, tabs or semicolons.

use maud::{Markup, html};

use crate::words;

/// Rows on a page.
const ROWS: usize = 500;
/// Columns that are shown.
const COLUMNS: usize = 60;

/// The separator of a table's values: the one that the first line has most of.
fn separator(text: &str, mime: &str) -> char {
    if mime.contains("tab-separated") {
        return '\t';
    }
    let first = text.lines().next().unwrap_or_default();
    let count = |sign: char| first.matches(sign).count();
    [',', ';', '\t'].into_iter().max_by_key(|sign| (count(*sign), *sign == ',')).unwrap_or(',')
}

/// The rows of a table, at most so many; a quoted value may hold separators, quotes and line ends.
fn rows(text: &str, separator: char, most: usize) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row: Vec<String> = Vec::new();
    let mut value = String::new();
    let mut quoted = false;
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '"' if quoted && signs.peek() == Some(&'"') => {
                value.push('"');
                signs.next();
            }
            '"' if quoted => quoted = false,
            '"' if value.is_empty() => quoted = true,
            '\r' if !quoted && signs.peek() == Some(&'\n') => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut value));
                rows.push(std::mem::take(&mut row));
                if rows.len() >= most {
                    return rows;
                }
            }
            sign if sign == separator && !quoted => row.push(std::mem::take(&mut value)),
            sign => value.push(sign),
        }
    }
    if !value.is_empty() || !row.is_empty() {
        row.push(value);
        rows.push(row);
    }
    rows
}

/// A page of a table whose first row names the columns, from a row on, which are counted from 1. `to` is the address of the
/// page that begins with a row.
pub(crate) fn page(text: &str, mime: &str, from: usize, to: &dyn Fn(usize) -> String) -> Markup {
    let all = rows(text, separator(text, mime), usize::MAX);
    let total = all.len().saturating_sub(1);
    let from = from.clamp(1, total.max(1));
    let last = (from + ROWS - 1).min(total);
    let rows: Vec<&Vec<String>> = all.first().into_iter().chain(all.iter().skip(from).take(ROWS)).collect();
    let number = |value: &str| !value.is_empty() && value.trim().parse::<f64>().is_ok();
    // The name of a column stands over its values.
    let is_figure = |column: usize| {
        let mut values =
            rows.iter().skip(1).filter_map(|row| row.get(column)).filter(|value| !value.is_empty());
        values.next().is_some_and(|value| number(value)) && values.all(|value| number(value))
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table" {
            table.data {
                @if let Some(head) = rows.first() {
                    thead { tr { @for (column, name) in head.iter().take(COLUMNS).enumerate() { th.figure[is_figure(column)] scope="col" { (words::plain(name)) } } } }
                }
                tbody {
                    @for row in rows.iter().skip(1).take(ROWS) {
                        tr { @for value in row.iter().take(COLUMNS) {
                            td.figure[number(value)] { (words::plain(value)) }
                        } }
                    }
                }
            }
        }
        @if total > ROWS { p.pager {
            @if from > 1 { a href=(to(from.saturating_sub(ROWS).max(1))) rel="prev" { "Rows before" } }
            span.note { "Rows " (words::count(from as u64)) "–" (words::count(last as u64)) " of " (words::count(total as u64)) }
            @if last < total { a href=(to(last + 1)) rel="next" { "Rows after" } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_values_keep_separators_and_line_ends() {
        let found = rows("a,b\n\"x, y\",\"say \"\"hi\"\"\nthere\"\r\n1,2", ',', 10);
        assert_eq!(found, [vec!["a", "b"], vec!["x, y", "say \"hi\"\nthere"], vec!["1", "2"]]);
        assert_eq!(separator("a;b;c\n1,2;3", "text/csv"), ';');
        assert_eq!(rows("a\nb\nc", ',', 2).len(), 2);
    }

    #[test]
    fn long_tables_have_pages() {
        let text: String =
            std::iter::once("n\n".to_owned()).chain((1..=1_200).map(|n| format!("row{n}\n"))).collect();
        let to = |row: usize| format!("/at/{row}");
        let first = page(&text, "text/csv", 1, &to).into_string();
        assert!(
            first.contains("row500<") && !first.contains("row501<") && first.contains("/at/501"),
            "{first}"
        );
        let last = page(&text, "text/csv", 1_001, &to).into_string();
        assert!(last.contains("row1200<") && last.contains("/at/501") && last.contains(">n<"), "{last}");
    }

    #[test]
    fn values_are_escaped() {
        let html = page("<b>,c\n<script>x</script>,1.5", "text/csv", 1, &|_| String::new()).into_string();
        assert!(!html.contains("<script>") && html.contains("&lt;b&gt;"), "{html}");
        assert!(html.contains("<td class=\"figure\">1.5</td>"), "{html}");
    }
}
