//! Cuts source code into words, numbers, texts and marks, by the rules of each language for comments and strings.
//!
//! Comments and lifetimes are dropped, strings are single tokens except for the code that is written inside them
//! (`f"{…}"`, `` `${…}` ``, `"#{…}"`), and of the two halves of a condition of C's preprocessor that would not fit
//! together only the first is kept.

use super::{
    Language,
    strings::Inside,
    tokens::{Kind, Token, Tokens, mark},
};

/// The tokens of a text.
pub(super) fn tokens(language: Language, text: &str) -> Tokens<'_> {
    let mut lexer = Lexer {
        language,
        bytes: text.as_bytes(),
        at: 0,
        line: 1,
        line_start: 0,
        tokens: Tokens::new(text),
        inside: Vec::new(),
        conditions: Vec::new(),
        braces: 0,
        heredocs: Vec::new(),
    };
    lexer.run();
    lexer.tokens.finish()
}

pub(super) struct Lexer<'a> {
    pub(super) language: Language,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) line: u32,
    pub(super) line_start: usize,
    pub(super) tokens: Tokens<'a>,
    /// The strings around the code at this place, innermost last.
    pub(super) inside: Vec<Inside>,
    /// Open braces at the beginning of each condition of the preprocessor.
    conditions: Vec<u32>,
    braces: u32,
    /// Words that end the texts which begin on the next line.
    pub(super) heredocs: Vec<&'a [u8]>,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) {
        while self.at < self.bytes.len() {
            let byte = self.bytes[self.at];
            match byte {
                b'\n' => self.new_line(),
                b' ' | b'\t' | b'\r' | 0x0c => self.at += 1,
                b'\\' if self.peek(1) == b'\n' => {
                    // The next line goes on with this one.
                    self.at += 2;
                    self.line += 1;
                    self.tokens.continued();
                }
                _ if self.skips_comment(byte) => {}
                _ if self.takes_string(byte) => {}
                b'0'..=b'9' => self.number(),
                _ if is_word(byte) => self.word(),
                _ => self.mark(byte),
            }
        }
    }

    pub(super) fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(super) fn starts_with(&self, what: &[u8]) -> bool {
        self.bytes[self.at..].starts_with(what)
    }

    fn new_line(&mut self) {
        self.at += 1;
        self.line += 1;
        self.line_start = self.at;
        if !self.heredocs.is_empty() {
            self.heredoc_bodies();
        }
        if self.inside.last().is_some_and(|inside| !inside.string.may_wrap) {
            self.inside.clear();
        }
        let rest = &self.bytes[self.at..];
        match self.language {
            Language::C | Language::Cpp | Language::CSharp => {
                let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
                if rest.get(blank) == Some(&b'#') {
                    self.at += blank;
                    self.directive();
                }
            }
            Language::Ruby if rest.starts_with(b"=begin") => self.skip_past(b"\n=end"),
            Language::Ruby if rest.starts_with(b"__END__\n") => self.move_to(self.bytes.len()),
            _ => {}
        }
    }

    pub(super) fn move_to(&mut self, end: usize) {
        let end = end.min(self.bytes.len());
        let passed = &self.bytes[self.at..end];
        self.line += memchr::memchr_iter(b'\n', passed).count() as u32;
        self.at = end;
    }

    pub(super) fn skip_past(&mut self, what: &[u8]) {
        let found = memchr::memmem::find(&self.bytes[self.at..], what);
        self.move_to(found.map_or(self.bytes.len(), |at| self.at + at + what.len()));
    }

    fn skip_line(&mut self) {
        let end = memchr::memchr(b'\n', &self.bytes[self.at..]).map_or(self.bytes.len(), |at| self.at + at);
        self.at = end;
    }

    fn skips_comment(&mut self, byte: u8) -> bool {
        let has_hashes = matches!(self.language, Language::Python | Language::Ruby);
        match (byte, self.peek(1)) {
            (b'#', _) if has_hashes => self.skip_line(),
            (b'#', b'!') if self.at == 0 && self.peek(2) != b'[' => self.skip_line(),
            (b'#', _) if self.at == 0 && matches!(self.language, Language::C | Language::Cpp) => {
                self.directive()
            }
            (b'/', b'/') if !has_hashes => self.skip_line(),
            (b'/', b'*') if !has_hashes => self.skip_block_comment(),
            _ => return false,
        }
        true
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0usize;
        let (begun, mut at) = (self.at, self.at);
        while let Some(found) = memchr::memchr2(b'*', b'/', &self.bytes[at..]) {
            at += found;
            match (self.bytes[at], self.bytes.get(at + 1)) {
                (b'*', Some(b'/')) => {
                    depth = depth.saturating_sub(1);
                    at += 2;
                    if depth == 0 {
                        return self.move_to(at);
                    }
                }
                (b'/', Some(b'*')) if at == begun || self.language == Language::Rust => {
                    depth += 1;
                    at += 2;
                }
                _ => at += 1,
            }
        }
        self.move_to(self.bytes.len());
    }

    pub(super) fn push(&mut self, kind: Kind, start: usize, mark: u8) {
        self.push_on(kind, start, mark, self.line);
    }

    pub(super) fn push_on(&mut self, kind: Kind, start: usize, mark: u8, line: u32) {
        self.tokens.push(Token {
            start: start as u32,
            end: self.at as u32,
            line,
            column: (start.saturating_sub(self.line_start)).min(u16::MAX as usize) as u16,
            kind,
            mark,
        });
    }

    fn number(&mut self) {
        let start = self.at;
        while is_word(self.peek(0))
            || (self.peek(0) == b'.' && self.peek(1).is_ascii_digit())
            || (self.peek(0) == b'\'' && self.language == Language::Cpp && is_word(self.peek(1)))
        {
            self.at += 1;
        }
        self.push(Kind::Number, start, 0);
    }

    fn word(&mut self) {
        let start = self.at;
        while is_word(self.peek(0)) {
            self.at += 1;
        }
        if self.language == Language::Ruby {
            // `name?`, and variables such as `$'`.
            let is_marked = matches!(self.peek(0), b'?' | b'!') && self.peek(1) != b'=';
            let is_sign =
                self.at == start + 1 && self.bytes[start] == b'$' && self.peek(0).is_ascii_punctuation();
            self.at += usize::from(is_marked || is_sign);
        }
        self.push(Kind::Word, start, 0);
    }

    fn mark(&mut self, byte: u8) {
        let start = self.at;
        if let Some((code, length)) = self.compound(byte) {
            self.at += length;
            return self.push(Kind::Mark, start, code);
        }
        match byte {
            b'@' if self.language == Language::Ruby => return self.word_with_prefix(b'@'),
            b'#' if self.language == Language::JavaScript || self.language == Language::TypeScript => {
                return self.word_with_prefix(b'#');
            }
            b'{' => self.braces += 1,
            b'}' => {
                self.braces = self.braces.saturating_sub(1);
                if let Some(inside) = self.inside.last_mut() {
                    if inside.depth == 0 {
                        let string = inside.string;
                        self.inside.pop();
                        self.at += 1;
                        return self.string_body(string, start);
                    }
                    inside.depth -= 1;
                }
            }
            _ => {}
        }
        if byte == b'{'
            && let Some(inside) = self.inside.last_mut()
        {
            inside.depth += 1;
        }
        self.at += 1;
        self.push(Kind::Mark, start, byte);
    }

    fn word_with_prefix(&mut self, prefix: u8) {
        let start = self.at;
        while self.peek(0) == prefix {
            self.at += 1;
        }
        while is_word(self.peek(0)) {
            self.at += 1;
        }
        self.push(Kind::Word, start, 0);
    }

    /// Marks of more than one character that mean something here.
    fn compound(&self, byte: u8) -> Option<(u8, usize)> {
        let (next, third) = (self.peek(1), self.peek(2));
        let code = match (byte, next) {
            (b':', b':') => mark::PATH,
            (b'-', b'>') => mark::ARROW,
            (b'=', b'>') => mark::FAT_ARROW,
            (b':', b'=') => mark::ASSIGN,
            (b'?', b'.') if !third.is_ascii_digit() => b'.',
            (b'&', b'.') if self.language == Language::Ruby => b'.',
            (b'.', b'.') => {
                return Some((mark::OPERATOR, if third == b'.' || third == b'=' { 3 } else { 2 }));
            }
            (b'=', b'=') if third == b'=' => return Some((mark::OPERATOR, 3)),
            (b'!', b'=') if third == b'=' => return Some((mark::OPERATOR, 3)),
            (b'=' | b'!' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'|' | b'^', b'=')
            | (b'&' | b'=', b'~')
            | (b'&', b'=') => mark::OPERATOR,
            (b'|', b'|') | (b'+', b'+') | (b'-', b'-') => mark::OPERATOR,
            (b'&', b'&') if self.language != Language::Rust && self.language != Language::Cpp => {
                mark::OPERATOR
            }
            _ => return None,
        };
        Some((code, 2))
    }

    /// A line of the preprocessor, with the lines that go on with it.
    fn directive(&mut self) {
        let (start, line) = (self.at, self.line);
        let end = logical_line_end(self.bytes, self.at);
        let what = directive_word(&self.bytes[start..end]);
        self.move_to(end);
        match what {
            b"if" | b"ifdef" | b"ifndef" => {
                self.conditions.push(self.braces);
                let condition =
                    self.bytes[start..end].trim_ascii_end().strip_suffix(b"0").unwrap_or_default();
                if what == b"if" && condition.trim_ascii_end().ends_with(b"if") {
                    self.skip_branch();
                }
            }
            b"else" | b"elif" if self.conditions.last().is_some_and(|braces| *braces != self.braces) => {
                // Both halves open a brace that one half closes.
                self.skip_branch();
            }
            b"endif" => {
                self.conditions.pop();
            }
            b"include" | b"define" => self.push_on(Kind::Directive, start, 0, line),
            _ => {}
        }
    }

    /// Moves to the line that ends this branch of a condition.
    fn skip_branch(&mut self) {
        let mut nested = 0usize;
        while self.at < self.bytes.len() {
            let next = memchr::memchr(b'\n', &self.bytes[self.at..]).map(|at| self.at + at + 1);
            let Some(next) = next else { return self.move_to(self.bytes.len()) };
            let rest = self.bytes[next..].trim_ascii_start();
            if rest.first() == Some(&b'#') {
                match directive_word(&rest[..rest.len().min(64)]) {
                    b"if" | b"ifdef" | b"ifndef" => nested += 1,
                    b"endif" if nested == 0 => return,
                    b"endif" => nested -= 1,
                    b"else" | b"elif" if nested == 0 && self.conditions.last() == Some(&self.braces) => {
                        return;
                    }
                    _ => {}
                }
            }
            self.move_to(next);
        }
    }
}

/// Where a line ends whose backslashes join it to the next ones, and whose comments may wrap.
fn logical_line_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(found) = memchr::memchr2(b'\n', b'*', &bytes[at..]) {
        at += found;
        if bytes[at] == b'*' {
            at += 1;
            if at >= 2 && bytes[at - 2] == b'/' {
                let closed = memchr::memmem::find(&bytes[at..], b"*/");
                at = closed.map_or(bytes.len(), |end| at + end + 2);
            }
            continue;
        }
        let before = bytes[from..at].trim_ascii_end();
        let is_joined = bytes[from..at].strip_suffix(b"\r").unwrap_or(&bytes[from..at]).ends_with(b"\\");
        if !is_joined || before.is_empty() {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// The word after the `#`.
fn directive_word(line: &[u8]) -> &[u8] {
    let rest = line.get(1..).unwrap_or_default().trim_ascii_start();
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    &rest[..length]
}

pub(super) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}
