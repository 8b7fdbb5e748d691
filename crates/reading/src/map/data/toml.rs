//! The tables of TOML, nested by their names, and the keys of each.

use super::{LEVELS, MOST_NODES, Mark, TextLines, key, quoted};

/// Tables, and the keys of each. A table lies within the nearest table above it whose name its own goes on from, and
/// otherwise within none: what stands between two parts of a table belongs to neither.
pub(in crate::map) fn toml(lines: &TextLines<'_>) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    // The names of the tables that are open, from the outermost.
    let mut open: Vec<Vec<String>> = Vec::new();
    let mut value = Value::default();
    for (number, line) in lines.iter() {
        let line = line.trim();
        if value.is_open() {
            value.read(line);
            reach(&mut marks, number);
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((name, title)) = header(line) {
            while open.last().is_some_and(|outer| outer.len() >= name.len() || !name.starts_with(outer)) {
                open.pop();
            }
            open.push(name);
            marks.push(key(open.len().min(LEVELS), title, number));
        } else if let Some((name, rest)) = dotted(line)
            && let Some(text) = rest.strip_prefix('=')
        {
            let title = line[..line.len() - rest.len()].trim();
            let title = if let [single] = name.as_slice() { single.as_str() } else { title };
            marks.push(key(open.len().min(LEVELS) + 1, title, number));
            value.read(text);
        }
        if marks.len() >= MOST_NODES {
            break;
        }
    }
    marks
}

fn reach(marks: &mut [Mark], number: u32) {
    if let Some(mark) = marks.last_mut() {
        mark.last = Some(number);
    }
}

/// The name of a table in its parts, and as it is written.
fn header(line: &str) -> Option<(Vec<String>, &str)> {
    let inner = line.strip_prefix("[[").or_else(|| line.strip_prefix('['))?;
    let (name, rest) = dotted(inner)?;
    rest.starts_with(']').then(|| (name, inner[..inner.len() - rest.len()].trim()))
}

/// A dotted name, in its parts, and what follows it.
fn dotted(text: &str) -> Option<(Vec<String>, &str)> {
    let mut name = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let (part, after) = match quoted(rest) {
            Some(found) => found,
            None => {
                let is_part = |each: char| each.is_alphanumeric() || matches!(each, '_' | '-');
                let end = rest.find(|each| !is_part(each)).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        if part.is_empty() {
            return None;
        }
        name.push(part);
        rest = after.trim_start();
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start(),
            None => return Some((name, rest)),
        }
    }
}

/// How far a value goes: it may be a list over many lines, or a text of many.
#[derive(Default)]
struct Value {
    depth: usize,
    /// The quotes that end the text of many lines.
    until: Option<&'static str>,
}

impl Value {
    const fn is_open(&self) -> bool {
        self.depth > 0 || self.until.is_some()
    }

    fn read(&mut self, line: &str) {
        let mut rest = line;
        while !rest.is_empty() {
            if let Some(end) = self.until {
                let Some(at) = rest.find(end) else { return };
                self.until = None;
                // More quotes may stand before the three that end it.
                rest = rest[at + 3..].trim_start_matches(['"', '\'']);
                continue;
            }
            if let Some(quotes) = ["\"\"\"", "'''"].into_iter().find(|quotes| rest.starts_with(quotes)) {
                self.until = Some(quotes);
                rest = &rest[3..];
                continue;
            }
            if let Some((_, after)) = quoted(rest) {
                rest = after;
                continue;
            }
            let mut characters = rest.chars();
            match characters.next() {
                Some('#') => return,
                Some('[' | '{') => self.depth += 1,
                Some(']' | '}') => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            rest = characters.as_str();
        }
    }
}
