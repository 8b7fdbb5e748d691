//! Tables of text: columns as wide as they look, shortened to fit a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns between two cells.
const GAP: usize = 2;
/// No column is made narrower than this to fit.
const LEAST: usize = 8;
/// Nor is the first column, which says what a line is about, made narrower than this.
const LEAST_OF_FIRST: usize = 20;

/// Columns whose values mean nothing when a part of them is missing: they are never shortened.
const WHOLE: &[&str] = &[
    "ID",
    "SNAPSHOT",
    "TIMESTAMP",
    "WHEN",
    "MODIFIED",
    "CREATED",
    "UPDATED",
    "SIZE",
    "BYTES",
    "FILES",
    "HASH",
    "BEFORE",
    "AFTER",
];
/// Columns that a narrow terminal does without, the first of them first.
const SPARE: &[&str] = &["ROOT", "HASH", "BEFORE", "TYPE", "SNAPSHOTS", "CREATED", "TAGS"];

/// The lines of a table, its head first. With `fit`, columns are shortened or left out until a line has at most that many
/// columns; data for other programs is always whole.
pub(crate) fn lines(heads: &[&str], rows: &[Vec<String>], fit: Option<usize>) -> Vec<String> {
    let widths: Vec<usize> = (0..heads.len())
        .map(|at| rows.iter().map(|row| row[at].width()).chain([heads[at].width()]).max().unwrap_or(0))
        .collect();
    let Some(most) = fit else { return laid_out(heads, rows, &widths) };
    let (kept, widths) = fitted(heads, &widths, most);
    let heads: Vec<&str> = kept.iter().map(|at| heads[*at]).collect();
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| kept.iter().map(|at| row[*at].clone()).collect()).collect();
    laid_out(&heads, &rows, &widths)
}

/// The lines of a table whose columns have these widths.
fn laid_out(heads: &[&str], rows: &[Vec<String>], widths: &[usize]) -> Vec<String> {
    let numeric: Vec<bool> = (0..heads.len())
        .map(|at| {
            let is_number = |row: &Vec<String>| {
                row[at].starts_with(|sign: char| sign.is_ascii_digit()) && row[at].len() < 12
            };
            !rows.is_empty() && rows.iter().all(is_number)
        })
        .collect();
    let line = |cells: &[&str]| {
        let mut line = String::new();
        for (at, cell) in cells.iter().enumerate() {
            let cell = shorten(cell, widths[at]);
            let space = " ".repeat(widths[at] - cell.width());
            let is_last = at + 1 == cells.len();
            match (numeric[at], is_last) {
                (true, _) => line.push_str(&(space + &cell)),
                (false, true) => line.push_str(&cell),
                (false, false) => line.push_str(&(cell + &space)),
            }
            if !is_last {
                line.push_str(&" ".repeat(GAP));
            }
        }
        line.trim_end().to_owned()
    };
    let mut all = vec![line(heads)];
    all.extend(rows.iter().map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>())));
    all
}

/// The lines of a table whose last column is wrapped at `most` columns.
pub(crate) fn wrapped(heads: &[&str], rows: &[Vec<String>], most: usize) -> Vec<String> {
    let last = heads.len().saturating_sub(1);
    let before: usize = (0..last)
        .map(|at| rows.iter().map(|row| row[at].width()).chain([heads[at].width()]).max().unwrap_or(0) + GAP)
        .sum();
    let room = most.saturating_sub(before).max(20);
    let mut split = Vec::new();
    for row in rows {
        for (at, part) in wrap(&row[last], room).into_iter().enumerate() {
            let mut cells = if at == 0 { row[..last].to_vec() } else { vec![String::new(); last] };
            cells.push(part);
            split.push(cells);
        }
    }
    lines(heads, &split, None)
}

/// A text in lines of at most `most` columns, broken between words.
fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let current = lines.last().map_or(0, |line| line.width());
        if current > 0 && current + 1 + word.width() > most {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// The columns that are shown, and their widths: space is taken from the widest columns, and where that is not enough,
/// columns are left out.
fn fitted(heads: &[&str], widths: &[usize], most: usize) -> (Vec<usize>, Vec<usize>) {
    let mut kept: Vec<usize> = (0..heads.len()).collect();
    let mut spare = SPARE.iter();
    loop {
        let mut narrowed: Vec<usize> = kept.iter().map(|at| widths[*at]).collect();
        let least = |at: usize| match at {
            0 => LEAST_OF_FIRST,
            _ => LEAST,
        };
        let gives: Vec<Option<usize>> =
            kept.iter().map(|at| (!WHOLE.contains(&heads[*at])).then(|| least(*at))).collect();
        if narrow(&mut narrowed, &gives, most) {
            return (kept, narrowed);
        }
        let Some(next) = spare.find(|name| kept.iter().any(|at| heads[*at] == **name)) else {
            return (kept, narrowed);
        };
        kept.retain(|at| heads[*at] != *next);
    }
}

/// Takes space from the widest columns that give some; says whether everything fits then.
fn narrow(widths: &mut [usize], least: &[Option<usize>], most: usize) -> bool {
    let gaps = GAP * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > most {
        let giving = widths.iter_mut().zip(least).filter_map(|(width, least)| {
            let least = (*least)?;
            (*width > least).then_some(width)
        });
        let Some(widest) = giving.max_by_key(|width| **width) else { return false };
        *widest -= 1;
    }
    true
}

/// A text of at most `most` columns: when it is longer, its middle gives way, since the end of a path says more than its
/// beginning.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let room = most.saturating_sub(1);
    let head = taken(text.chars(), room / 3);
    let tail = taken(text.chars().rev(), room - head.width());
    format!("{head}…{}", tail.chars().rev().collect::<String>())
}

/// The first signs that fit into so many columns.
fn taken(signs: impl Iterator<Item = char>, most: usize) -> String {
    let mut used = 0;
    let fits = |sign: &char| {
        used += sign.width().unwrap_or(0);
        used <= most
    };
    signs.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(paths: &[&str]) -> Vec<Vec<String>> {
        paths.iter().map(|path| vec![(*path).to_owned(), "12 B".into(), "tag".into()]).collect()
    }

    #[test]
    fn wide_signs_take_two_columns() {
        let lines = lines(&["PATH", "SIZE", "TAGS"], &rows(&["a.md", "日本.md"]), None);
        assert_eq!(lines[1], "a.md     12 B  tag");
        assert_eq!(lines[2], "日本.md  12 B  tag");
        assert!(lines.iter().skip(1).all(|line| line.width() == 18), "{lines:?}");
    }

    #[test]
    fn a_terminal_gets_lines_that_fit_and_a_pipe_gets_all() {
        let long = format!("/home/ada/{}/report.md", "deeper/".repeat(20));
        let fitted = lines(&["PATH", "SIZE", "TAGS"], &rows(&[&long, "b"]), Some(80));
        assert!(fitted.iter().all(|line| line.width() <= 80), "{fitted:?}");
        assert!(fitted[1].contains('…') && fitted[1].contains("/report.md"), "{}", fitted[1]);
        assert!(lines(&["PATH", "SIZE", "TAGS"], &rows(&[&long]), None)[1].contains(&long));
    }

    #[test]
    fn times_and_ids_are_whole_or_not_there() {
        let heads = ["SNAPSHOT", "COLLECTION", "LABEL", "FILES", "BYTES", "ROOT"];
        let id = "2026-01-31T12:00:00.123456Z";
        let row = [id, "a-collection-with-a-long-name", "", "12", "1.0 GiB", &"f".repeat(64)];
        let fitted = lines(&heads, &[row.map(str::to_owned).to_vec()], Some(80));
        assert!(fitted[1].contains(id) && fitted[1].width() <= 80, "{fitted:?}");
        let heads = ["PATH", "COLLECTION", "SIZE", "TYPE", "MODIFIED", "HASH", "TAGS"];
        let time = "2026-01-31 12:00:00";
        let path = format!("/home/ada/{}report.md", "deeper/".repeat(20));
        let row =
            [path.as_str(), "default", "12.3 KiB", "text/markdown", time, "0123456789ab", "one, two, three"];
        let fitted = lines(&heads, &[row.map(str::to_owned).to_vec()], Some(80));
        assert!(fitted[1].contains(time) && fitted[1].width() <= 80, "{fitted:?}");
        assert!(!fitted[0].contains("HASH"), "{fitted:?}");
    }

    #[test]
    fn the_last_column_is_wrapped_between_words() {
        let rows = vec![vec!["name".to_owned(), "one two three four five six seven".to_owned()]];
        let lines = wrapped(&["ARGUMENT", "MEANING"], &rows, 30);
        assert_eq!(lines, ["ARGUMENT  MEANING", "name      one two three four", "          five six seven"]);
    }

    #[test]
    fn shortening_never_exceeds_its_room() {
        for most in 1..12 {
            assert!(shorten("図書館の長い名前.md", most).width() <= most, "{most}");
        }
        assert_eq!(shorten("short", 5), "short");
    }
}
