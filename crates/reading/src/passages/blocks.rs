//! What a line of Markdown opens: a fence or a block of HTML, possibly within lists and quotations.

/// Lists and quotations within each other that are followed at most.
const DEEPEST: usize = 32;
/// Digits of a number that begins an item of a list, at most.
const MOST_DIGITS: usize = 9;
/// Elements whose text is taken as it is, up to their end.
const RAW: [&str; 4] = ["pre", "script", "style", "textarea"];
/// Elements that begin a block wherever they begin a line.
const BLOCKS: [&str; 62] = [
    "address",
    "article",
    "aside",
    "base",
    "basefont",
    "blockquote",
    "body",
    "caption",
    "center",
    "col",
    "colgroup",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "iframe",
    "legend",
    "li",
    "link",
    "main",
    "menu",
    "menuitem",
    "nav",
    "noframes",
    "ol",
    "optgroup",
    "option",
    "p",
    "param",
    "search",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "track",
    "ul",
];

/// The lists and quotations that a line begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Container {
    quotations: usize,
    /// How far what stands in the innermost list is indented, from the last mark of a quotation.
    column: usize,
}

impl Container {
    /// What a later line has in it; `None` when the line is not in it any more.
    pub(super) fn content(self, line: &str) -> Option<&str> {
        let mut rest = line;
        for _ in 0..self.quotations {
            rest = rest.trim_start_matches([' ', '\t']).strip_prefix('>')?;
        }
        let content = rest.trim_ascii();
        (content.is_empty() || indentation(rest) >= self.column).then_some(content)
    }
}

fn indentation(line: &str) -> usize {
    let widths = line.bytes().map_while(|byte| match byte {
        b' ' => Some(1),
        b'\t' => Some(4),
        _ => None,
    });
    widths.sum()
}

/// The lists and quotations that a line begins, and what stands in them.
pub(super) fn unpacked(line: &str) -> (Container, &str) {
    let mut container = Container::default();
    let (mut at, mut from, mut in_list) = (0, 0, false);
    for _ in 0..DEEPEST {
        let rest = line[at..].trim_start_matches([' ', '\t']);
        at = line.len() - rest.len();
        if in_list {
            container.column = at - from;
        }
        if rest.starts_with('>') {
            at += 1;
            (from, in_list) = (at, false);
            container.quotations += 1;
            container.column = 0;
        } else if let Some(length) = list_mark(rest) {
            at += length;
            in_list = true;
        } else {
            break;
        }
    }
    (container, line[at..].trim_ascii())
}

/// The length of the mark of an item that a text begins with.
pub(super) fn list_mark(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let is_mark = matches!(
        (digits, text.as_bytes().get(digits)?),
        (0, b'-' | b'*' | b'+') | (1..=MOST_DIGITS, b'.' | b')')
    );
    let after = text[digits..].get(1..).filter(|_| is_mark)?;
    let is_apart = after.is_empty() || after.starts_with([' ', '\t', '\r', '\n']);
    is_apart.then_some(digits + 1)
}

/// What ends a block of HTML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HtmlEnd {
    /// A line with this text.
    Text(&'static str),
    /// A line with the end of an element whose text is taken as it is.
    RawElement,
    /// A blank line.
    Blank,
}

impl HtmlEnd {
    /// Whether the block ends with a line of it.
    pub(super) fn is_in(self, content: &str) -> bool {
        match self {
            Self::Text(end) => content.contains(end),
            Self::RawElement => {
                let content = content.to_ascii_lowercase();
                RAW.iter().any(|name| {
                    let mut ends = content.split("</").skip(1);
                    ends.any(|end| end.strip_prefix(name).is_some_and(|rest| rest.starts_with('>')))
                })
            }
            Self::Blank => content.is_empty(),
        }
    }
}

/// The end of the block of HTML that a line begins, by the rules of CommonMark, and whether it is in the same line.
pub(super) fn html_block(content: &str, in_paragraph: bool) -> Option<(HtmlEnd, bool)> {
    let rest = content.strip_prefix('<')?;
    let marked = [("!--", "-->"), ("?", "?>"), ("![CDATA[", "]]>")];
    if let Some((_, end)) = marked.into_iter().find(|(begin, _)| rest.starts_with(begin)) {
        // The dashes that open a comment may be those that close it.
        let from = if end == "-->" { 1 } else { 0 };
        return Some((HtmlEnd::Text(end), rest[from..].contains(end)));
    }
    if rest.strip_prefix('!').is_some_and(|rest| rest.starts_with(|each: char| each.is_ascii_alphabetic())) {
        return Some((HtmlEnd::Text(">"), rest.contains('>')));
    }
    let is_end = rest.starts_with('/');
    let rest = &rest[usize::from(is_end)..];
    let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'-').count();
    let (name, after) = (rest[..length].to_ascii_lowercase(), &rest[length..]);
    let is_whole_name = after.is_empty() || after.starts_with([' ', '\t', '>']);
    if RAW.contains(&name.as_str()) && !is_end {
        return is_whole_name.then(|| (HtmlEnd::RawElement, HtmlEnd::RawElement.is_in(after)));
    }
    let begins_block = BLOCKS.contains(&name.as_str()) && (is_whole_name || after.starts_with("/>"));
    let is_alone = || !in_paragraph && name.starts_with(|each: char| each.is_ascii_alphabetic());
    (begins_block || (is_alone() && ends_tag(after))).then_some((HtmlEnd::Blank, false))
}

/// Whether what follows the name of a tag is its end, with nothing behind it.
fn ends_tag(after: &str) -> bool {
    let Some(attributes) = after.strip_suffix('>') else { return false };
    let is_apart = attributes.is_empty() || attributes.starts_with([' ', '\t', '/']);
    let mut quote = None;
    for each in attributes.chars() {
        match (quote, each) {
            (Some(open), _) if open == each => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(each),
            (None, '<' | '>' | '`') => return false,
            (None, _) => {}
        }
    }
    is_apart && quote.is_none()
}
