//! Tables: values separated by commas, tabs or semicolons.

use maud::{Markup, html};

use crate::words;

/// Rows that are shown.
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

/// A table whose first row names the columns.
pub(crate) fn page(text: &str, mime: &str) -> Markup {
    let rows = rows(text, separator(text, mime), ROWS + 1);
    let is_cut = rows.len() > ROWS;
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
        @if is_cut { p.note { "Only the first " (ROWS) " rows are shown. The source has all of them." } }
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
    fn values_are_escaped() {
        let html = page("<b>,c\n<script>x</script>,1.5", "text/csv").into_string();
        assert!(!html.contains("<script>") && html.contains("&lt;b&gt;"), "{html}");
        assert!(html.contains("<td class=\"figure\">1.5</td>"), "{html}");
    }
}
