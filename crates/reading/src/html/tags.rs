//! The stream of tags and text in a page, without the parts that are not displayed.

use std::borrow::Cow;

use encoding_rs::WINDOWS_1252;
use quick_xml::escape::resolve_html5_entity;

/// One step of the stream.
pub(super) enum Token<'a> {
    /// Text, with references resolved.
    Text(Cow<'a, str>),
    /// The start of an element.
    Open {
        /// Its name, lowercase.
        name: String,
        /// The alternative text of an image.
        alternative: Option<String>,
        /// The whole tag.
        tag: &'a str,
    },
    /// The end of an element.
    Close {
        /// Its name, lowercase.
        name: String,
    },
}

/// Elements whose content is not markup: it ends at the next end tag of the same name.
const RAW: &[&str] = &["iframe", "noembed", "noframes", "script", "style", "xmp"];

/// Elements whose whole content is skipped.
const HIDDEN: &[&str] = &["canvas", "datalist", "math", "object", "svg", "template"];

pub(super) struct Tags<'a> {
    rest: &'a str,
    /// The open hidden element and how deeply it is nested within itself.
    hidden: Option<(String, usize)>,
}

impl<'a> Tags<'a> {
    pub(super) fn new(page: &'a str) -> Self {
        Self { rest: page.trim_start_matches('\u{feff}'), hidden: None }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Takes everything up to and including `end`, or everything that is left.
    fn take_through(&mut self, end: &str) -> &'a str {
        let length = self.rest.find(end).map_or(self.rest.len(), |at| at + end.len());
        self.take(length)
    }

    fn step(&mut self) -> Option<Token<'a>> {
        let text = self.rest.find('<').unwrap_or(self.rest.len());
        if text > 0 {
            return Some(Token::Text(resolve(self.take(text))));
        }
        let second = *self.rest.as_bytes().get(1)?;
        match second {
            b'!' if self.rest.starts_with("<![CDATA[") => {
                let section = self.take_through("]]>");
                Some(Token::Text(section["<![CDATA[".len()..].trim_end_matches("]]>").into()))
            }
            b'!' => {
                self.take_through(if self.rest.starts_with("<!--") { "-->" } else { ">" });
                Some(Token::Text("".into()))
            }
            b'?' => {
                self.take_through(">");
                Some(Token::Text("".into()))
            }
            b'/' if self.rest.as_bytes().get(2).is_some_and(u8::is_ascii_alphabetic) => Some(self.end_tag()),
            _ if second.is_ascii_alphabetic() => Some(self.start_tag()),
            _ => Some(Token::Text(self.take(1).into())),
        }
    }

    fn end_tag(&mut self) -> Token<'a> {
        let tag = self.take_through(">");
        Token::Close { name: name_of(&tag[2..]) }
    }

    fn start_tag(&mut self) -> Token<'a> {
        let tag = self.take(tag_length(self.rest));
        let name = name_of(&tag[1..]);
        let alternative = if name == "img" { attribute(tag, "alt") } else { None };
        if RAW.contains(&name.as_str()) {
            self.skip_raw(&name);
        }
        if HIDDEN.contains(&name.as_str()) && !tag.ends_with("/>") && self.hidden.is_none() {
            self.hidden = Some((name.clone(), 0));
        }
        Token::Open { name, alternative, tag }
    }

    fn skip_raw(&mut self, name: &str) {
        while let Some(at) = self.rest.find("</") {
            self.take(at);
            let end = self.rest.as_bytes().get(2..2 + name.len());
            if end.is_some_and(|end| end.eq_ignore_ascii_case(name.as_bytes())) {
                return;
            }
            self.take(2);
        }
        self.rest = "";
    }

    /// Whether a token is inside a hidden element. Tracks the start and end tags of that element.
    fn hides(&mut self, token: &Token<'_>) -> bool {
        let Some((hidden, depth)) = &mut self.hidden else { return false };
        match token {
            Token::Open { name, .. } if name == hidden => *depth += 1,
            Token::Close { name } if name == hidden => *depth = depth.saturating_sub(1),
            _ => {}
        }
        if *depth == 0 {
            self.hidden = None;
        }
        true
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let token = match self.step() {
                Some(token) => token,
                // A lone `<` at the end is text.
                None if !self.rest.is_empty() => Token::Text(self.take(1).into()),
                None => return None,
            };
            if !self.hides(&token) {
                return Some(token);
            }
        }
    }
}

fn name_of(tag: &str) -> String {
    let end =
        tag.find(|next: char| next.is_ascii_whitespace() || matches!(next, '/' | '>')).unwrap_or(tag.len());
    tag[..end].to_ascii_lowercase()
}

/// Length of the start tag at the beginning of `rest`; a `>` in a quoted value does not end it.
fn tag_length(rest: &str) -> usize {
    let mut quote = None;
    let mut previous = b' ';
    for (at, byte) in rest.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            // Only after `=`: a stray quote elsewhere must not swallow the page.
            (None, b'"' | b'\'') if previous == b'=' => quote = Some(byte),
            (Some(open), _) if byte == open => quote = None,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            previous = byte;
        }
    }
    rest.len()
}

pub(super) fn attribute(tag: &str, wanted: &str) -> Option<String> {
    let mut rest = tag;
    while let Some(at) = rest.find('=') {
        let name =
            rest[..at].trim_end().rsplit([' ', '\t', '\n', '\r', '\'', '"', '/']).next().unwrap_or_default();
        let value = rest[at + 1..].trim_start();
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            _ => value.split_once([' ', '\t', '\n', '\r', '>']).unwrap_or((value, "")),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(resolve(value).into_owned());
        }
        rest = after;
    }
    None
}

/// Maximum length of the name of a reference.
const LONGEST: usize = 32;

/// The text with the meaning of its references, such as `&amp;`.
pub(crate) fn resolve(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find('&') else { return text.into() };
    let mut resolved = String::with_capacity(text.len());
    resolved.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(after) = rest.strip_prefix('&') {
        let (meaning, length) = reference(after).unwrap_or(("&".into(), 0));
        resolved.push_str(&meaning);
        rest = &after[length..];
        let plain = rest.find('&').unwrap_or(rest.len());
        resolved.push_str(&rest[..plain]);
        rest = &rest[plain..];
    }
    resolved.into()
}

/// The meaning of a reference and its length without the `&`.
fn reference(after: &str) -> Option<(Cow<'static, str>, usize)> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    let length = after.bytes().take(LONGEST).take_while(is_name).count();
    let name = &after[..length];
    let closed = after.as_bytes().get(length) == Some(&b';');
    let meaning = match name.strip_prefix('#') {
        Some(number) => Some(numbered(number)?.to_string().into()),
        None if closed => resolve_html5_entity(name).map(Cow::Borrowed),
        // The few that old pages write without a semicolon.
        None => ["amp", "lt", "gt", "quot", "nbsp"]
            .contains(&name)
            .then(|| resolve_html5_entity(name).map(Cow::Borrowed))
            .flatten(),
    };
    Some((meaning?, length + usize::from(closed)))
}

fn numbered(number: &str) -> Option<char> {
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| char::from(byte).is_digit(radix)) {
        return None;
    }
    Some(match u32::from_str_radix(digits, radix) {
        // Pages use these codes for Windows-1252 characters, and browsers accept that.
        Ok(code @ 0x80..=0x9F) => {
            WINDOWS_1252.decode_without_bom_handling(&[code as u8]).0.chars().next().unwrap_or('\u{fffd}')
        }
        Ok(code) if code != 0 => char::from_u32(code).unwrap_or('\u{fffd}'),
        _ => '\u{fffd}',
    })
}
