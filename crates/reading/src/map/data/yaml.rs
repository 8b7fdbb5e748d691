//! The keys of YAML by their indentation.

use super::{LEVELS, MOST_NODES, Mark, TextLines, key, quoted, quoted_length};

/// Keys by indentation; blocks of text are skipped, and so are lists, whose items have no names.
pub(in crate::map) fn yaml(lines: &TextLines<'_>) -> Vec<Mark> {
    let mut reader = Reader::default();
    for (number, line) in lines.iter() {
        if reader.line(number, line)
            && let Some(mark) = reader.marks.last_mut().filter(|_| !reader.open.is_empty())
        {
            mark.last = Some(number);
        }
        if reader.marks.len() >= MOST_NODES {
            break;
        }
    }
    reader.marks
}

#[derive(Default)]
struct Reader {
    marks: Vec<Mark>,
    /// The indentation of the keys that are open, from the outermost.
    open: Vec<usize>,
    /// The indentation of the key or item whose block of text is being read.
    block: Option<usize>,
    /// The value in quotes or brackets that is being read.
    value: Value,
}

impl Reader {
    /// Reads a line, and says whether it belongs to the last key.
    fn line(&mut self, number: u32, line: &str) -> bool {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        if content.is_empty() {
            return false;
        }
        if indent == 0 && is_document_mark(content) {
            *self = Self { marks: std::mem::take(&mut self.marks), ..Self::default() };
            return false;
        }
        if self.value.is_open() {
            self.value.read(content);
            return true;
        }
        let in_block = self.block.is_some_and(|block| indent > block);
        if in_block {
            return true;
        }
        if content.starts_with('#') {
            return false;
        }
        self.block = None;
        if let Some(item) = item(content) {
            // What is in the item belongs to the key above.
            self.block = Some(indent);
            let value = split_key(item).map_or(item, |(_, value)| value);
            self.value.begin(value);
        } else if let Some((name, value)) = split_key(content) {
            self.key(number, indent, &name);
            match value.trim_start().starts_with(['|', '>']) {
                true => self.block = Some(indent),
                false => self.value.begin(value),
            }
        } else {
            self.value.begin(content);
        }
        true
    }

    fn key(&mut self, number: u32, indent: usize, name: &str) {
        self.open.retain(|known| *known < indent);
        self.open.push(indent);
        if self.open.len() <= LEVELS {
            self.marks.push(key(self.open.len(), name, number));
        }
    }
}

/// What stands in the item of a list that a line begins.
fn item(content: &str) -> Option<&str> {
    let mut rest =
        content.strip_prefix('-').filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))?;
    while let Some(inner) = rest.trim_start().strip_prefix("- ") {
        rest = inner;
    }
    Some(rest.trim_start())
}

/// A value in quotes or brackets, which may take many lines.
#[derive(Default)]
struct Value {
    /// Brackets that are open.
    depth: usize,
    quote: Option<char>,
}

impl Value {
    const fn is_open(&self) -> bool {
        self.depth > 0 || self.quote.is_some()
    }

    /// Reads the line on which a value begins. A name or type may stand before it.
    fn begin(&mut self, value: &str) {
        let mut value = value.trim_start();
        while value.starts_with(['&', '!']) {
            value = value.split_once(char::is_whitespace).map_or("", |(_, rest)| rest).trim_start();
        }
        if value.starts_with(['"', '\'', '[', '{']) {
            self.read(value);
        }
    }

    fn read(&mut self, line: &str) {
        let mut rest = line;
        let mut before = ' ';
        while !rest.is_empty() {
            if let Some(quote) = self.quote {
                let Some(length) = quoted_length(rest, quote) else { return };
                (self.quote, rest, before) = (None, &rest[length..], quote);
                if self.depth == 0 {
                    return;
                }
                continue;
            }
            let Some(each) = rest.chars().next() else { return };
            rest = &rest[each.len_utf8()..];
            let begins = before.is_whitespace() || matches!(before, '[' | '{' | ',' | ':');
            match each {
                '#' if before.is_whitespace() => return,
                '"' | '\'' if begins => self.quote = Some(each),
                '[' | '{' => self.depth += 1,
                ']' | '}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return;
                    }
                }
                _ => {}
            }
            before = each;
        }
    }
}

/// A line that begins or ends a document, or is a directive before one.
fn is_document_mark(content: &str) -> bool {
    let mark = content.get(..3).unwrap_or_default();
    (matches!(mark, "---" | "...") && !content[3..].starts_with(|each: char| !each.is_whitespace()))
        || content.starts_with('%')
}

/// A key and its value: `name: value`, with or without quotes, or `? name`, whose value follows.
fn split_key(content: &str) -> Option<(String, &str)> {
    if let Some(name) = content.strip_prefix("? ") {
        let name = name.trim();
        let is_name = !name.is_empty() && !name.starts_with(['|', '>', '-', '#']);
        return is_name.then(|| (quoted(name).map_or_else(|| name.to_owned(), |(name, _)| name), ""));
    }
    if let Some((name, rest)) = quoted(content) {
        let value = rest.trim_start().strip_prefix(':')?;
        let is_key = !name.is_empty() && (value.is_empty() || value.starts_with([' ', '\t']));
        return is_key.then_some((name, value));
    }
    let (name, value) = match content.find(": ") {
        Some(at) => (&content[..at], &content[at + 2..]),
        None => (content.trim_end().strip_suffix(':')?, ""),
    };
    let name = name.trim();
    let is_name = !name.is_empty() && !name.starts_with(['"', '\'']) && !name.contains(['{', '[', '#']);
    is_name.then(|| (name.to_owned(), value))
}
