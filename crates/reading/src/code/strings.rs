//! Strings, characters and regular expressions of each language.

use super::{
    Language,
    lex::{Lexer, is_word},
    tokens::Kind,
};

/// Strings with code inside them within such code, at most.
const DEEPEST: usize = 64;
/// Bytes of a regular expression at most.
const LONGEST_EXPRESSION: usize = 4_096;

/// Code that is written inside a string, and how the string goes on after it.
pub(super) struct Inside {
    pub(super) string: Quoted,
    /// Braces that are open in the code.
    pub(super) depth: u32,
}

/// What introduces code inside a string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    /// There is none.
    No,
    /// A brace; two of them are a brace.
    Brace,
    /// This character and a brace.
    After(u8),
}

/// How a string ends, and what may stand inside it.
#[derive(Clone, Copy)]
pub(super) struct Quoted {
    /// The character that ends it, and how many of them.
    close: u8,
    times: usize,
    /// What opens a further level, when brackets nest: `%w(a (b))`.
    open: u8,
    has_escapes: bool,
    /// Whether two of the closing character are one of them.
    doubles: bool,
    pub(super) may_wrap: bool,
    code: Code,
}

/// A string that ends with its line at the latest.
const fn line_string(close: u8) -> Quoted {
    Quoted { close, times: 1, open: 0, has_escapes: true, doubles: false, may_wrap: false, code: Code::No }
}

/// A string that may have several lines.
const fn wrapping(close: u8, code: Code) -> Quoted {
    Quoted { may_wrap: true, code, ..line_string(close) }
}

/// What was found where a string may begin.
enum Taken {
    /// No string.
    No,
    /// Something that has been passed.
    Passed,
    /// A string whose opening has this length.
    Opens(usize, Quoted),
}

impl<'a> Lexer<'a> {
    /// Takes a string, a character or a regular expression, if one begins here.
    pub(super) fn takes_string(&mut self, byte: u8) -> bool {
        let taken = match self.language {
            Language::Rust => self.string_of_rust(byte),
            Language::Python => self.string_of_python(),
            Language::JavaScript | Language::TypeScript => self.string_of_script(byte),
            Language::Go if byte == b'`' => {
                Taken::Opens(1, Quoted { has_escapes: false, ..wrapping(b'`', Code::No) })
            }
            Language::Java if self.starts_with(b"\"\"\"") => {
                Taken::Opens(3, Quoted { times: 3, ..wrapping(b'"', Code::No) })
            }
            Language::CSharp => self.string_of_c_sharp(byte),
            Language::Ruby => self.string_of_ruby(byte),
            Language::Cpp if byte == b'R' && self.peek(1) == b'"' => self.raw_string_of_cpp(),
            Language::Cpp | Language::C
                if matches!(byte, b'L' | b'u' | b'U') && matches!(self.peek(1), b'"' | b'\'') =>
            {
                Taken::Opens(2, line_string(self.peek(1)))
            }
            _ if matches!(byte, b'"' | b'\'') => Taken::Opens(1, line_string(byte)),
            _ => Taken::No,
        };
        match taken {
            Taken::No => return false,
            Taken::Passed => {}
            Taken::Opens(length, string) => {
                let start = self.at;
                self.at += length;
                self.string_body(string, start);
            }
        }
        true
    }

    /// Reads a string to its end, or to the code inside it.
    pub(super) fn string_body(&mut self, string: Quoted, start: usize) {
        let first_line = self.line;
        let (mut depth, mut at) = (0usize, self.at);
        let end = loop {
            let Some(&byte) = self.bytes.get(at) else { break at };
            if byte == b'\\' && string.has_escapes {
                at += 2;
            } else if byte == b'\n' && !string.may_wrap {
                break at;
            } else if byte == string.close {
                if depth > 0 {
                    depth -= 1;
                    at += 1;
                } else if let Some(end) = self.closing(string, at) {
                    break end;
                } else {
                    at += 1 + usize::from(string.doubles);
                }
            } else if string.open != 0 && byte == string.open {
                depth += 1;
                at += 1;
            } else if let Some(code) = self.code_in(string, at) {
                self.move_to(code);
                self.push_on(Kind::Text, start, 0, first_line);
                if self.inside.len() < DEEPEST {
                    self.inside.push(Inside { string, depth: 0 });
                }
                return;
            } else {
                at += 1;
            }
        };
        self.move_to(end);
        self.push_on(Kind::Text, start, 0, first_line);
    }

    /// Where a string ends whose closing character stands at this place; `None` when it goes on.
    fn closing(&self, string: Quoted, at: usize) -> Option<usize> {
        let run = self.bytes[at..].iter().take_while(|one| **one == string.close).take(64).count();
        let is_doubled = string.doubles && run >= 2;
        (run >= string.times && !is_doubled).then_some(at + string.times)
    }

    /// Where the code begins that stands inside a string at this place.
    fn code_in(&self, string: Quoted, at: usize) -> Option<usize> {
        let next = self.bytes.get(at + 1).copied().unwrap_or(0);
        match string.code {
            Code::No => None,
            Code::Brace => {
                let is_code = self.bytes[at] == b'{' && next != b'{' && self.bytes[at - 1] != b'{';
                is_code.then_some(at + 1)
            }
            Code::After(sign) => (self.bytes[at] == sign && next == b'{').then_some(at + 2),
        }
    }

    fn string_of_rust(&mut self, byte: u8) -> Taken {
        if byte == b'\'' {
            let letter = self.bytes[self.at + 1..].iter().skip(1).take_while(|byte| **byte & 0xc0 == 0x80);
            let width = 1 + letter.count();
            if self.peek(1) == b'\\' || self.peek(1 + width) == b'\'' {
                return Taken::Opens(1, line_string(b'\''));
            }
            // A lifetime or a label says nothing here.
            self.at += 1;
            while is_word(self.peek(0)) {
                self.at += 1;
            }
            return Taken::Passed;
        }
        let prefix = match (byte, self.peek(1)) {
            (b'b' | b'c', b'r') => 2,
            (b'b' | b'c' | b'r', _) => 1,
            _ => 0,
        };
        if prefix > 0 && self.peek(prefix - 1) == b'r' {
            let hashes = self.bytes[self.at + prefix..].iter().take_while(|one| **one == b'#').count();
            if self.peek(prefix + hashes) == b'"' {
                self.raw_string_of_rust(prefix + hashes + 1, hashes);
                return Taken::Passed;
            }
            if byte == b'r' && hashes == 1 && is_word(self.peek(2)) {
                // `r#type` is a name.
                self.at += 2;
            }
            return Taken::No;
        }
        match self.peek(prefix) {
            b'"' => Taken::Opens(prefix + 1, wrapping(b'"', Code::No)),
            b'\'' if byte == b'b' => Taken::Opens(2, line_string(b'\'')),
            _ => Taken::No,
        }
    }

    fn raw_string_of_rust(&mut self, opening: usize, hashes: usize) {
        let (start, line) = (self.at, self.line);
        let mut at = self.at + opening;
        let end = loop {
            let Some(found) = memchr::memchr(b'"', &self.bytes[at..]) else { break self.bytes.len() };
            at += found + 1;
            if self.bytes[at..].iter().take(hashes).take_while(|one| **one == b'#').count() == hashes {
                break at + hashes;
            }
        };
        self.move_to(end);
        self.push_on(Kind::Text, start, 0, line);
    }

    fn string_of_python(&self) -> Taken {
        let is_prefix = |byte: u8| matches!(byte.to_ascii_lowercase(), b'r' | b'b' | b'f' | b'u');
        let prefix = (0..2).take_while(|ahead| is_prefix(self.peek(*ahead))).count();
        let quote = self.peek(prefix);
        if !matches!(quote, b'"' | b'\'') {
            return Taken::No;
        }
        let has_code = self.bytes[self.at..self.at + prefix].iter().any(|one| matches!(one, b'f' | b'F'));
        let is_triple = self.peek(prefix + 1) == quote && self.peek(prefix + 2) == quote;
        let times = if is_triple { 3 } else { 1 };
        let code = if has_code { Code::Brace } else { Code::No };
        Taken::Opens(prefix + times, Quoted { times, may_wrap: is_triple, code, ..line_string(quote) })
    }

    fn string_of_script(&mut self, byte: u8) -> Taken {
        match byte {
            b'`' => Taken::Opens(1, wrapping(b'`', Code::After(b'$'))),
            b'"' | b'\'' => {
                // An apostrophe in the text of a page does not begin a string.
                let rest = &self.bytes[self.at + 1..];
                let line = memchr::memchr(b'\n', rest).map_or(rest, |end| &rest[..end]);
                let ends = memchr::memchr(byte, line).is_some() || line.ends_with(b"\\");
                if ends { Taken::Opens(1, line_string(byte)) } else { Taken::No }
            }
            b'/' if self.expects_value(true) => {
                let Some(length) = self.regular_expression() else { return Taken::No };
                let start = self.at;
                self.at += length;
                self.push(Kind::Text, start, 0);
                Taken::Passed
            }
            _ => Taken::No,
        }
    }

    /// The length of the regular expression that begins here, with its flags.
    fn regular_expression(&self) -> Option<usize> {
        let (mut at, mut in_class) = (self.at + 1, false);
        loop {
            match *self.bytes.get(at)? {
                b'\n' => return None,
                b'\\' => at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => break,
                _ if at - self.at > LONGEST_EXPRESSION => return None,
                _ => {}
            }
            at += 1;
        }
        at += 1;
        at += self.bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
        Some(at - self.at)
    }

    /// Whether a value may begin here, going by the token before. After a name it may when that can be called without
    /// parentheses.
    fn expects_value(&self, names_end_values: bool) -> bool {
        const BEFORE_VALUES: [&str; 22] = [
            "return", "typeof", "case", "in", "of", "do", "else", "void", "delete", "throw", "new", "await",
            "yield", "if", "unless", "while", "until", "when", "and", "or", "not", "then",
        ];
        let Some(last) = self.tokens.last() else { return true };
        match last.kind {
            Kind::Number | Kind::Text => false,
            Kind::Word => !names_end_values || BEFORE_VALUES.contains(&self.tokens.text_of(last)),
            Kind::Mark => !matches!(last.mark, b')' | b']' | b'}'),
            Kind::Directive => true,
        }
    }

    fn string_of_c_sharp(&self, byte: u8) -> Taken {
        if byte == b'\'' {
            return Taken::Opens(1, line_string(byte));
        }
        let rest = &self.bytes[self.at..];
        let prefix = rest.iter().take(3).take_while(|one| matches!(one, b'$' | b'@')).count();
        let quotes = rest[prefix..].iter().take_while(|one| **one == b'"').count();
        let code = if rest[..prefix].contains(&b'$') { Code::Brace } else { Code::No };
        let is_verbatim = rest[..prefix].contains(&b'@');
        match quotes {
            0 => Taken::No,
            3.. if !is_verbatim => {
                let string = Quoted { times: quotes, has_escapes: false, ..wrapping(b'"', code) };
                Taken::Opens(prefix + quotes, string)
            }
            _ if is_verbatim => {
                let string = Quoted { has_escapes: false, doubles: true, ..wrapping(b'"', code) };
                Taken::Opens(prefix + 1, string)
            }
            _ => Taken::Opens(prefix + 1, Quoted { code, ..line_string(b'"') }),
        }
    }

    /// `R"name(…)name"`.
    fn raw_string_of_cpp(&mut self) -> Taken {
        let rest = &self.bytes[self.at + 2..];
        let Some(open) = rest.iter().take(17).position(|byte| *byte == b'(') else { return Taken::No };
        let closing = [b")", &rest[..open], b"\""].concat();
        let (start, line) = (self.at, self.line);
        self.skip_past(&closing);
        self.push_on(Kind::Text, start, 0, line);
        Taken::Passed
    }

    fn string_of_ruby(&mut self, byte: u8) -> Taken {
        let next = self.peek(1);
        let has_space = self.at == 0 || self.bytes[self.at - 1].is_ascii_whitespace();
        let is_argument = has_space && !next.is_ascii_whitespace() && next != b'=';
        let is_value = self.expects_value(true) || (is_argument && self.expects_value(false));
        match byte {
            b'"' | b'`' => Taken::Opens(1, wrapping(byte, Code::After(b'#'))),
            b'\'' => Taken::Opens(1, wrapping(byte, Code::No)),
            b'/' if is_value && self.regular_expression().is_some() => {
                Taken::Opens(1, wrapping(b'/', Code::After(b'#')))
            }
            b'%' if is_value => self.percent_string(),
            b':' if next == b'"' => Taken::Opens(2, wrapping(b'"', Code::After(b'#'))),
            b'<' if next == b'<' => self.heredoc(is_value),
            b'?' if is_value && is_word(next) && !is_word(self.peek(2)) => {
                let start = self.at;
                self.at += 2;
                self.push(Kind::Text, start, 0);
                Taken::Passed
            }
            _ => Taken::No,
        }
    }

    fn percent_string(&self) -> Taken {
        let letter = self.peek(1);
        let skip = if letter.is_ascii_alphabetic() { 2 } else { 1 };
        let (open, close) = match self.peek(skip) {
            b'(' => (b'(', b')'),
            b'[' => (b'[', b']'),
            b'{' => (b'{', b'}'),
            b'<' => (b'<', b'>'),
            other @ (b'|' | b'!' | b'/' | b'-') if skip == 2 => (0, other),
            _ => return Taken::No,
        };
        let code = if matches!(letter, b'w' | b'q' | b'i' | b's') { Code::No } else { Code::After(b'#') };
        Taken::Opens(skip + 1, Quoted { open, ..wrapping(close, code) })
    }

    /// `<<~WORD`: its text begins on the next line.
    fn heredoc(&mut self, is_value: bool) -> Taken {
        let mut at = self.at + 2;
        let is_dashed = matches!(self.bytes.get(at), Some(b'~' | b'-'));
        at += usize::from(is_dashed);
        let is_quoted = matches!(self.bytes.get(at), Some(b'\'' | b'"'));
        at += usize::from(is_quoted);
        let length = self.bytes[at.min(self.bytes.len())..].iter().take_while(|byte| is_word(**byte)).count();
        let word = self.bytes.get(at..at + length).unwrap_or_default();
        let is_named = word.first().is_some_and(u8::is_ascii_uppercase) || (is_dashed && length > 0);
        if !is_named || !(is_value || is_dashed) || self.heredocs.len() >= DEEPEST {
            return Taken::No;
        }
        let start = self.at;
        self.at = at + length + usize::from(is_quoted);
        self.push(Kind::Text, start, 0);
        self.heredocs.push(word);
        Taken::Passed
    }

    /// Passes the texts whose ends were announced on the line before.
    pub(super) fn heredoc_bodies(&mut self) {
        for word in std::mem::take(&mut self.heredocs) {
            while self.at < self.bytes.len() {
                let rest = &self.bytes[self.at..];
                let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
                let is_end = rest[..length].trim_ascii() == word;
                self.move_to(self.at + length);
                self.line_start = self.at;
                if is_end {
                    break;
                }
            }
        }
    }
}
