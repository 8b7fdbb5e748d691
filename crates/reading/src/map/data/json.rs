//! The keys of JSON objects, and the elements of a list that is a whole file.

use super::{LEVELS, MOST_NODES, Mark, SECTION, TextLines, key, unescaped};

/// Bytes of a key that are kept, as it is written.
const KEY_BYTES: usize = 2_400;

/// Keys of objects, with the lines that their values take. Keys of objects in lists have no node, but the elements of a
/// list that is the whole file have one each where they begin on lines of their own.
pub(in crate::map) fn json(lines: &TextLines<'_>) -> Vec<Mark> {
    let mut reader = Reader::default();
    for (number, line) in lines.iter() {
        reader.line(number, line);
        if reader.marks.len() >= MOST_NODES {
            break;
        }
    }
    // A list on one line has no parts that could be told apart by lines.
    if reader.elements > 1 && reader.marks.len() == 1 {
        reader.marks.clear();
    }
    reader.marks
}

/// One pass over the characters; what follows a mistake in the syntax is read as well as it can be.
#[derive(Default)]
struct Reader {
    marks: Vec<Mark>,
    /// The open containers: whether each is an object, and the mark of the key that it is the value of.
    open: Vec<(bool, Option<usize>)>,
    /// A text that may turn out to be a key, and its line.
    pending: Option<(String, u32)>,
    /// The mark of a key whose value follows.
    waiting: Option<usize>,
    /// The text that is being read.
    string: Option<String>,
    is_escaped: bool,
    in_comment: bool,
    /// The elements of the list that is the whole file: how many there were, and whether one is being read.
    elements: usize,
    in_element: bool,
}

impl Reader {
    fn line(&mut self, number: u32, line: &str) {
        let mut rest = line.chars();
        while let Some(each) = rest.next() {
            let next = rest.as_str();
            if self.in_comment {
                if each == '*' && next.starts_with('/') {
                    self.in_comment = false;
                    rest.next();
                }
            } else if self.string.is_some() {
                self.text(number, each);
            } else if each == '/' && next.starts_with('/') {
                break;
            } else if each == '/' && next.starts_with('*') {
                self.in_comment = true;
                rest.next();
            } else {
                self.syntax(number, each);
            }
        }
        // A value that goes on: a long text, for example.
        self.is_escaped = false;
    }

    fn text(&mut self, number: u32, each: char) {
        let Some(text) = &mut self.string else { return };
        if each == '"' && !self.is_escaped {
            self.pending = self.string.take().map(|text| (text, number));
            self.reach(number);
            return;
        }
        self.is_escaped = each == '\\' && !self.is_escaped;
        if text.len() < KEY_BYTES {
            text.push(each);
        }
    }

    fn syntax(&mut self, number: u32, each: char) {
        if !each.is_whitespace() && !matches!(each, ']' | '}' | ',' | ':') {
            self.begin_element(number);
        }
        match each {
            '"' => self.string = Some(String::new()),
            ':' if self.open.last().is_some_and(|(is_object, _)| *is_object) => self.key(number),
            '{' | '[' => self.open.push((each == '{', self.waiting.take())),
            '}' | ']' => {
                self.in_element &= !self.is_in_root_list();
                if let Some((_, Some(mark))) = self.open.pop() {
                    self.marks[mark].last = Some(number);
                }
                self.waiting = None;
                self.reach(number);
            }
            ',' => {
                self.waiting = None;
                self.in_element &= !self.is_in_root_list();
            }
            _ if each.is_whitespace() => {}
            _ => self.reach(number),
        }
    }

    fn key(&mut self, number: u32) {
        let depth = self.open.iter().filter(|(is_object, _)| *is_object).count();
        let in_list = self.open.iter().any(|(is_object, _)| !is_object);
        let is_shown = depth <= LEVELS && !in_list && self.marks.len() < MOST_NODES;
        let named = self.pending.take().filter(|_| is_shown);
        let Some((title, first)) = named else { return };
        self.waiting = Some(self.marks.len());
        self.marks.push(Mark { last: Some(number), ..key(depth, &unescaped(&title), first) });
    }

    fn is_in_root_list(&self) -> bool {
        matches!(self.open.as_slice(), [(false, _)])
    }

    /// Something begins: an element, if this is in the list that is the whole file.
    fn begin_element(&mut self, number: u32) {
        if !self.is_in_root_list() || self.in_element {
            return;
        }
        self.in_element = true;
        self.elements += 1;
        let is_on_own_line = self.marks.last().is_none_or(|mark| mark.last < Some(number));
        if is_on_own_line && self.marks.len() < MOST_NODES {
            let title = format!("Item {}", self.elements);
            self.marks.push(Mark { kind: SECTION, ..key(1, &title, number) });
        }
    }

    /// The value that is being read goes on to this line.
    fn reach(&mut self, number: u32) {
        let reached = match self.waiting {
            Some(waiting) => self.marks.get_mut(waiting),
            None if self.in_element => self.marks.last_mut(),
            None => None,
        };
        if let Some(mark) = reached {
            mark.last = mark.last.max(Some(number));
        }
    }
}
