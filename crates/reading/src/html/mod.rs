//! Web pages as Markdown-like text: headings, paragraphs, lists, tables and code; no scripts, styles or URLs.
//!
//! The stream of tags is read without building a tree. Search needs only the order of the words and where blocks begin,
//! and the stream provides both. Without a tree there is no depth that could overflow the stack, the cost does not
//! depend on the structure of the page, and tag soup needs no special handling.

mod links;
mod tags;
mod writer;

pub(crate) use links::{inline_links, links};
pub(crate) use tags::resolve as resolved;
use tags::{Tags, Token};
use writer::{Gap, Writer};

/// The text of a page.
pub(crate) fn to_markdown(page: &str) -> String {
    let mut walk = Walk::default();
    for token in Tags::new(page) {
        match token {
            Token::Text(text) => walk.text(&text),
            Token::Open { name, alternative, .. } => walk.open(&name, alternative.as_deref()),
            Token::Close { name } => walk.close(&name),
        }
    }
    walk.finish()
}

/// Elements that begin and end on their own line.
const LINES: &[&str] = &[
    "address",
    "button",
    "caption",
    "center",
    "dd",
    "dir",
    "dt",
    "fieldset",
    "figcaption",
    "form",
    "frameset",
    "label",
    "legend",
    "menu",
    "option",
    "select",
    "summary",
    "tbody",
    "tfoot",
    "thead",
    "tr",
];

/// Elements with blank lines above and below.
const BLOCKS: &[&str] = &[
    "article",
    "aside",
    "blockquote",
    "body",
    "details",
    "dialog",
    "div",
    "dl",
    "figure",
    "footer",
    "header",
    "hgroup",
    "hr",
    "main",
    "nav",
    "ol",
    "p",
    "section",
    "table",
    "title",
    "ul",
];

#[derive(Default)]
struct Walk {
    writer: Writer,
    /// The open lists, each with the number of its next item if it is numbered.
    lists: Vec<Option<u32>>,
    /// The text of an open `<pre>`, buffered because the length of the fence depends on all of it.
    code: Option<String>,
    /// Whether the current table row already has a cell.
    in_row: bool,
}

impl Walk {
    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.push_str(text),
            None => self.writer.words(text),
        }
    }

    fn open(&mut self, name: &str, alternative: Option<&str>) {
        if let Some(code) = &mut self.code {
            return line_in_code(code, name);
        }
        match name {
            "br" => self.writer.gap(Gap::Line),
            "img" => self.writer.words(alternative.unwrap_or_default()),
            "pre" | "listing" => self.code = Some(String::new()),
            "title" => self.heading(1),
            "li" => self.item(),
            "tr" => {
                self.in_row = false;
                self.writer.gap(Gap::Line);
            }
            "td" | "th" => self.cell(),
            _ => match level(name) {
                Some(level) => self.heading(level),
                None => self.writer.gap(gap_of(name)),
            },
        }
        match name {
            "ul" | "menu" | "dir" => self.lists.push(None),
            "ol" => self.lists.push(Some(1)),
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        if self.code.is_some() {
            match name {
                "pre" | "listing" => self.end_code(),
                _ => self.open(name, None),
            }
            return;
        }
        match name {
            "ul" | "ol" | "menu" | "dir" => {
                self.lists.pop();
                self.writer.no_mark();
                self.writer.gap(if self.lists.is_empty() { Gap::Block } else { Gap::Line });
            }
            "li" => {
                self.writer.no_mark();
                self.writer.gap(Gap::Line);
            }
            _ if name == "title" || level(name).is_some() => {
                self.writer.no_mark();
                self.writer.gap(Gap::Block);
            }
            _ => self.writer.gap(gap_of(name)),
        }
    }

    fn heading(&mut self, level: usize) {
        self.writer.gap(Gap::Block);
        self.writer.mark(format!("{} ", "#".repeat(level)));
    }

    fn item(&mut self) {
        self.writer.no_mark();
        self.writer.gap(Gap::Line);
        // Indentation is limited: otherwise the text of a page of nested lists would grow with the square of its size.
        let indentation = "  ".repeat(self.lists.len().saturating_sub(1).min(8));
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{indentation}{}. ", *number - 1)
            }
            _ => format!("{indentation}- "),
        };
        self.writer.mark(mark);
    }

    fn cell(&mut self) {
        if self.in_row {
            self.writer.gap(Gap::Cell);
        }
        self.in_row = true;
    }

    fn end_code(&mut self) {
        if let Some(code) = self.code.take() {
            self.writer.fenced(&code);
        }
    }

    fn finish(mut self) -> String {
        self.end_code();
        self.writer.finish()
    }

    /// The text without the marks that keep its words from being taken for something else.
    fn finish_words(mut self) -> String {
        self.end_code();
        self.writer.finish_words()
    }
}

/// Breaks the line at block elements, since syntax highlighters put each line of code into one.
fn line_in_code(code: &mut String, name: &str) {
    let breaks = name == "br" || (gap_of(name) != Gap::None && !code.is_empty() && !code.ends_with('\n'));
    if breaks {
        code.push('\n');
    }
}

fn level(name: &str) -> Option<usize> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some((level - b'0').into()),
        _ => None,
    }
}

fn gap_of(name: &str) -> Gap {
    if BLOCKS.contains(&name) {
        Gap::Block
    } else if LINES.contains(&name) {
        Gap::Line
    } else {
        Gap::None
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    fn check(page: &str, expect: &str) {
        assert_eq!(to_markdown(page), expect, "{page}");
    }

    #[test]
    fn headings_and_paragraphs() {
        check(
            "<!DOCTYPE html><html><head><title>The\n page</title><style>p{}</style><meta charset=utf-8></head>\
             <body><h1>One</h1><p>Some <b>bold</b> and\n <a href='x'>linked</a> text.<h2><div>Two</div></h2>More<br>lines",
            "# The page\n\n# One\n\nSome bold and linked text.\n\n## Two\n\nMore\nlines\n",
        );
    }

    #[test]
    fn lists_and_tables() {
        check(
            "<p>x</p><ul><li>a<li><p>b</p><ol><li>c</li><li>d</li></ol></li></ul>y",
            "x\n\n- a\n- b\n\n  1. c\n  2. d\n\ny\n",
        );
        check("x<ul><li></li></ul>y<h1> </h1>z", "x\n\ny\n\nz\n");
        check(
            "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td></td><td>2</td></tr></table>z",
            "a | b\n1 | 2\n\nz\n",
        );
    }

    #[test]
    fn code_is_fenced_verbatim() {
        check("<pre><code>a  &lt; b\n  # c\n</code></pre>d", "```\na  < b\n  # c\n```\n\nd\n");
        check("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````\n");
        check("<pre><div>a</div><div>b</div></pre>", "```\na\nb\n```\n");
        check("<pre></pre>x<pre>open", "x\n\n```\nopen\n```\n");
    }

    #[test]
    fn invisible_content_is_dropped() {
        check("a<script>if (1 < 2) '</p>'</script>b<!-- c -->d<svg><text>e</text></svg>f", "abdf\n");
        check("<template><p>x</p></template>a<SCRIPT>never closed", "a\n");
        check("<img alt='A cat' src=x> 3 < 4 & 5 > 1 <3", "A cat 3 < 4 & 5 > 1 <3\n");
        check("", "");
        check("<", "<\n");
        check("a<b", "a\n");
    }

    #[test]
    fn references() {
        check(
            "&lt;&amp;&#65;&#x42;&nbsp;&eacute;&hellip;&#128;&unknown; &amp &copy;",
            "<&AB é…€&unknown; & ©\n",
        );
        check("&#xFFFFFFFFFF;&#0;&#;&;", "\u{fffd}\u{fffd}&#;&;\n");
    }

    #[test]
    fn words_are_no_headings() {
        check(
            "<p># a</p><h2>Two</h2><p>&lt;!-- b</p><p>c<br>---</p>",
            "\\# a\n\n## Two\n\n\\<!-- b\n\nc\n\\---\n",
        );
        check(
            "<ul><li>```sh</li><li># b</li></ul><h1># c</h1><p>a # b",
            "- \\```sh\n- \\# b\n\n# # c\n\na # b\n",
        );
    }

    #[test]
    fn deep_and_long_pages_are_fast() {
        let shapes = [
            "<div>",
            "<b>",
            "<ul><li>",
            "<table><tr><td>",
            "<pre>",
            "<svg>",
            "<!--",
            "<a href=\"",
            "&",
            "<",
            "<h1>x",
            "</",
        ];
        for shape in shapes {
            let page = format!("start {} end", shape.repeat(200_000));
            let begun = Instant::now();
            let text = to_markdown(&page);
            assert!(text.starts_with("start"), "{shape}");
            assert!(text.len() < 8 * page.len() && begun.elapsed() < Duration::from_secs(5), "{shape}");
        }
    }

    proptest! {
        #[test]
        fn any_page_can_be_read(page in "(<|>|/|!|-|\\?|\\[|\"|'|=|&|#|;| |\n|p|pre|li|ul|h1|script|title|td|tr|svg|é|漢){0,60}") {
            to_markdown(&page);
        }
    }
}
