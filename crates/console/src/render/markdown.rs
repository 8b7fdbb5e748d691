//! Markdown as HTML that cannot do anything: what the author wrote as HTML is sanitized, links between documents stay in
//! the library, and pictures come from the library only.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    ops::RangeInclusive,
};

use ammonia::{Builder, UrlRelative};
use maud::{Markup, PreEscaped};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::{dress::dressed, tiring};
use crate::links;

/// A heading of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heading {
    /// 1 to 6.
    pub level: u8,
    /// Its text.
    pub text: String,
    /// The fragment that leads to it.
    pub anchor: String,
}

/// A rendered document.
pub(crate) struct Rendered {
    /// The page.
    pub body: Markup,
    /// Its headings.
    pub outline: Vec<Heading>,
}

/// Where a text stands, which its links and pictures start from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Home<'a> {
    /// The id of the document.
    pub document: Option<&'a str>,
    /// The address of this server, such as `http://127.0.0.1:7433`: what an author wrote with it is a path.
    pub base_url: &'a str,
    /// The book that is being read, and the path of the text in it: links to other texts stay in the book.
    pub book: Option<(&'a str, &'a str)>,
}

impl<'a> Home<'a> {
    /// A document that is read by itself.
    pub(crate) const fn of(document: &'a str, base_url: &'a str) -> Self {
        Self { document: Some(document), base_url, book: None }
    }

    /// A text without a place: its relative links lead nowhere.
    pub(crate) const fn nowhere() -> Self {
        Self { document: None, base_url: "", book: None }
    }
}

/// Characters before every name that a document gives to one of its parts, so that it cannot take the name of a part of
/// the page around it.
const PREFIX: &str = "u-";

/// How deep quotations and lists may lie in each other; what lies deeper is shown at that depth.
const DEPTH: usize = 12;

/// Renders Markdown; blocks on the marked lines are emphasized.
pub(crate) fn page(text: &str, home: &Home<'_>, marked: Option<&RangeInclusive<u64>>) -> Rendered {
    if tiring::is_tiring(text) {
        return as_written(text);
    }
    let text = without_front_matter(text);
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS;
    let (mut outline, mut anchors) = (Vec::new(), Anchors::default());
    let mut events: Vec<Event<'_>> = Vec::new();
    let mut depth = 0_usize;
    let mut heading: Option<(HeadingLevel, String)> = None;
    let mut is_marked = false;
    let mut lines = LineCounter::new(&text);
    let mut nested = 0_usize;
    for (event, range) in Parser::new_ext(&text, options).into_offset_iter() {
        match &event {
            Event::Start(tag) => {
                if depth == 0 {
                    let span =
                        (lines.at(range.start), lines.at(range.end.saturating_sub(1).max(range.start)));
                    is_marked =
                        marked.is_some_and(|marked| span.0 <= *marked.end() && span.1 >= *marked.start());
                    if is_marked {
                        events.push(Event::Html("<div class=\"hit\">\n\n".into()));
                    }
                }
                depth += 1;
                if let Tag::Heading { level, .. } = tag {
                    heading = Some((*level, String::new()));
                    // The opening tag is written when the text, and with it the name, is known.
                    events.push(Event::Html(CowStr::Borrowed("")));
                    continue;
                }
            }
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                if matches!(end, TagEnd::Heading(_))
                    && let Some((level, text)) = heading.take()
                {
                    close_heading(&mut events, (&mut outline, &mut anchors), (level, text));
                    close_mark(&mut events, depth, &mut is_marked);
                    continue;
                }
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some((_, text)) = &mut heading {
                    text.push_str(part);
                }
            }
            _ => {}
        }
        let opens = matches!(&event, Event::Start(tag) if nests(&tag.to_end()));
        let closes = matches!(&event, Event::End(end) if nests(end));
        nested += usize::from(opens);
        let is_too_deep = (opens || closes) && nested > DEPTH;
        nested -= usize::from(closes);
        match event {
            // A box that cannot be ticked is a sign; boxes without a name are no help to those who listen.
            Event::TaskListMarker(done) => events.push(Event::Text(if done { "☑ " } else { "☐ " }.into())),
            event if is_too_deep => events.push(hollow(&event)),
            event => events.push(event),
        }
        if matches!(events.last(), Some(Event::End(_))) {
            close_mark(&mut events, depth, &mut is_marked);
        }
    }
    let mut output = String::with_capacity(text.len() * 3 / 2);
    let events = dressed(events, &|address| picture(address, home).is_some());
    html::push_html(&mut output, events.into_iter());
    if tiring::leaves_open(&output) {
        return as_written(&text);
    }
    Rendered { body: PreEscaped(clean(&output, home)), outline }
}

/// A text that is shown as it is written.
fn as_written(text: &str) -> Rendered {
    Rendered { body: maud::html! { pre tabindex="0" { (text) } }, outline: Vec::new() }
}

/// Whether a block may hold others of its kind without end.
const fn nests(end: &TagEnd) -> bool {
    matches!(end, TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item)
}

/// What stands for the edge of a block that lies too deep: it still keeps apart what is in it.
fn hollow<'a>(event: &Event<'_>) -> Event<'a> {
    Event::Html(if matches!(event, Event::End(_)) { "</div>\n" } else { "<div>\n" }.into())
}

fn close_heading(
    events: &mut Vec<Event<'_>>,
    (outline, anchors): (&mut Vec<Heading>, &mut Anchors),
    (level, text): (HeadingLevel, String),
) {
    let number = level as u8;
    let anchor = anchors.give(slug(&text));
    let open = events.iter_mut().rev().find(|event| matches!(event, Event::Html(text) if text.is_empty()));
    if let Some(open) = open {
        *open = Event::Html(format!("<h{number} id=\"{anchor}\">").into());
    }
    events.push(Event::Html(format!("</h{number}>\n").into()));
    outline.push(Heading { level: number, text, anchor: format!("{PREFIX}{anchor}") });
}

fn close_mark(events: &mut Vec<Event<'_>>, depth: usize, is_marked: &mut bool) {
    if depth == 0 && std::mem::take(is_marked) {
        events.push(Event::Html("\n</div>\n".into()));
    }
}

/// The line of a byte, for bytes that are asked for in about ascending order.
struct LineCounter<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl<'a> LineCounter<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text: text.as_bytes(), at: 0, line: 1 }
    }

    fn at(&mut self, byte: usize) -> u64 {
        let byte = byte.min(self.text.len());
        let count = |part: &[u8]| part.iter().filter(|byte| **byte == b'\n').count() as u64;
        if byte >= self.at {
            self.line += count(&self.text[self.at..byte]);
        } else {
            self.line -= count(&self.text[byte..self.at]);
        }
        self.at = byte;
        self.line
    }
}

/// Blanks out a block of YAML at the beginning, so that lines keep their numbers.
fn without_front_matter(text: &str) -> Cow<'_, str> {
    let Some(rest) = text.strip_prefix("---\n") else { return Cow::Borrowed(text) };
    match rest.find("\n---\n") {
        Some(end) if end < 16 << 10 => {
            let lines = rest[..end + 5].matches('\n').count() + 1;
            Cow::Owned(format!("{}{}", "\n".repeat(lines), &rest[end + 5..]))
        }
        _ => Cow::Borrowed(text),
    }
}

fn slug(text: &str) -> String {
    let sign =
        |sign: char| if sign.is_alphanumeric() { sign.to_lowercase().next().unwrap_or(sign) } else { '-' };
    let joined: String = text.trim().chars().map(sign).take(80).collect();
    let parts: Vec<&str> = joined.split('-').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "part".to_owned() } else { parts.join("-") }
}

/// The anchors of a page that are given, each with the number that its next heading of that name tries.
#[derive(Default)]
struct Anchors(HashMap<String, usize>);

impl Anchors {
    /// A name that no heading has yet.
    fn give(&mut self, name: String) -> String {
        let Some(tried) = self.0.get(&name).copied() else {
            self.0.insert(name.clone(), 1);
            return name;
        };
        let mut numbers = (tried..).map(|number| (number, format!("{name}-{number}")));
        let (number, free) =
            numbers.find(|(_, free)| !self.0.contains_key(free)).unwrap_or_else(|| (tried, name.clone()));
        self.0.insert(name, number + 1);
        self.0.insert(free.clone(), 1);
        free
    }
}

/// The sides to which cells of a table are set.
const SIDES: [&str; 2] = ["to-right", "to-centre"];

/// Takes out of HTML whatever could act, and leads its links and pictures into the library.
fn clean(html: &str, home: &Home<'_>) -> String {
    let mut cleaner = Builder::default();
    cleaner
        .add_tags(["section", "sup", "figure", "figcaption", "details", "summary"])
        // What scrolls must be reached by keyboard.
        .set_tag_attribute_value("pre", "tabindex", "0")
        .add_tag_attributes("ol", ["start"])
        .add_tag_attributes("th", ["align"])
        .add_tag_attributes("td", ["align"])
        .add_allowed_classes("th", SIDES)
        .add_allowed_classes("td", SIDES)
        .add_allowed_classes("span", ["k", "s", "n", "c", "absent"])
        .add_generic_attributes(["id"])
        .add_allowed_classes("div", ["hit", "footnote-definition"])
        .add_allowed_classes("sup", ["footnote-reference", "footnote-definition-label"])
        .rm_tags(["map", "area", "bdo"])
        .url_schemes(HashSet::from(["http", "https", "mailto", "doc", "text", "image", "video", "audio"]))
        .url_relative(UrlRelative::PassThrough)
        .link_rel(Some("noopener noreferrer"))
        .id_prefix(Some(PREFIX));
    let [document, base_url] = [home.document.unwrap_or_default(), home.base_url].map(str::to_owned);
    let book = home.book.map(|(book, path)| (book.to_owned(), path.to_owned()));
    cleaner.attribute_filter(move |element, attribute, value| {
        let home = Home {
            document: Some(document.as_str()).filter(|id| !id.is_empty()),
            base_url: &base_url,
            book: book.as_ref().map(|(book, path)| (book.as_str(), path.as_str())),
        };
        match (element, attribute) {
            ("a", "href") => href(value, &home).map(Cow::Owned),
            ("img", "src") => picture(value, &home).map(Cow::Owned),
            (_, "src" | "cite" | "longdesc") => None,
            _ => Some(Cow::Borrowed(value)),
        }
    });
    with_alternatives(&cleaner.clean(html).to_string())
}

/// Pictures without an alternative text get an empty one: a reader that speaks would read out their addresses. Pictures
/// that may not be shown leave their alternative text. The tags are those of the sanitizer, which always writes them alike;
/// what looks like a tag within a value is none.
fn with_alternatives(html: &str) -> String {
    let mut whole = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        let mut quoted = false;
        let end = tag.find(|sign| {
            quoted ^= sign == '"';
            sign == '>' && !quoted
        });
        let end = end.unwrap_or(tag.len());
        whole.push_str(before);
        let (tag, after) = tag.split_at(end);
        let alternative =
            tag.split_once(" alt=\"").map(|(_, rest)| rest.split('"').next().unwrap_or_default());
        if tag.starts_with("<img") && !tag.contains(" src=\"") {
            whole.push_str("<span class=\"absent\">");
            whole.push_str(alternative.unwrap_or_default());
            whole.push_str("</span");
        } else {
            whole.push_str(tag);
            if tag.starts_with("<img") && alternative.is_none() {
                whole.push_str(" alt=\"\"");
            }
        }
        rest = after;
    }
    whole.push_str(rest);
    whole
}

/// Where a link leads: to another place of the document, into the library, to the evidence viewer, or outside.
fn href(value: &str, home: &Home<'_>) -> Option<String> {
    if let Some(fragment) = value.strip_prefix('#') {
        return Some(format!("#{PREFIX}{fragment}"));
    }
    let scheme = value.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("http" | "https" | "mailto") => Some(value.to_owned()),
        Some("doc" | "text" | "image" | "video" | "audio") => {
            Some(links::with("/cite", &[("address", value)]))
        }
        _ => in_book(value, home).or_else(|| inside(value, home)),
    }
}

/// A link from one text of a book to another, which is read there too.
fn in_book(value: &str, home: &Home<'_>) -> Option<String> {
    let (book, from) = home.book?;
    let (path, fragment) = value.split_once('#').unwrap_or((value, ""));
    if !path.ends_with(".md") || path.starts_with('/') || path.contains(['?', ':', '\\', '%']) {
        return None;
    }
    let fragment =
        if fragment.is_empty() { String::new() } else { format!("#{PREFIX}{}", links::encoded(fragment)) };
    let path = links::encoded_path(&links::joined(from, path));
    Some(format!("/books/{}/{path}{fragment}", links::encoded(book)))
}

/// An asset of a book on this server: its path, without the name that the server had for the author.
fn asset<'a>(value: &'a str, home: &Home<'_>) -> Option<&'a str> {
    let own = |base: &str| value.strip_prefix(base).filter(|_| !base.is_empty());
    let other_name = home.base_url.replacen("//127.0.0.1", "//localhost", 1);
    let third_name = home.base_url.replacen("//localhost", "//127.0.0.1", 1);
    let path = own(home.base_url).or_else(|| own(&other_name)).or_else(|| own(&third_name)).unwrap_or(value);
    path.starts_with("/cdn/books/").then_some(path).filter(|path| !path.contains(['\\', '"']))
}

fn picture(value: &str, home: &Home<'_>) -> Option<String> {
    if let Some(path) = asset(value, home) {
        return Some(path.to_owned());
    }
    let is_foreign =
        value.starts_with("//") || value.split('/').next().is_some_and(|first| first.contains(':'));
    if is_foreign { None } else { inside(value, home).map(|path| format!("{path}&raw=1")) }
}

/// A relative path, to be looked up from the document that holds it.
fn inside(path: &str, home: &Home<'_>) -> Option<String> {
    let is_path = !path.starts_with("//") && !path.split('/').next().is_some_and(|first| first.contains(':'));
    let document = home.document.filter(|_| is_path && !path.is_empty())?;
    Some(links::with("/to", &[("from", document), ("path", path)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> String {
        page(text, &Home::of("the-id", "http://127.0.0.1:7433"), None).body.into_string()
    }

    #[test]
    fn prose_is_rendered_with_an_outline() {
        let rendered = page("# One *two*\n\ntext\n\n## Three\n\n## Three\n", &Home::nowhere(), None);
        let html = rendered.body.into_string();
        assert!(html.contains("<h1 id=\"u-one-two\">One <em>two</em></h1>"), "{html}");
        let anchors: Vec<&str> = rendered.outline.iter().map(|heading| heading.anchor.as_str()).collect();
        assert_eq!(anchors, ["u-one-two", "u-three", "u-three-1"]);
        assert!(html.contains("id=\"u-three-1\""), "{html}");
    }

    #[test]
    fn pictures_have_alternatives() {
        assert!(body("<img src=\"a.png\"> b").contains("raw=1\" alt=\"\"> b"));
        assert!(body("![a > b](a.png)").contains("alt=\"a &gt; b\""));
        assert_eq!(
            with_alternatives("<img alt=\"x > y\"><img src=\"z\">"),
            "<span class=\"absent\">x > y</span><img src=\"z\" alt=\"\">"
        );
    }

    #[test]
    fn what_looks_like_a_picture_in_a_value_opens_no_tag() {
        let html = body("<a title=\"<img ><script>alert(1)</script>\" href=\"a.md\">x</a>");
        let mut quoted = false;
        let outside: String = html
            .chars()
            .filter(|sign| {
                quoted ^= *sign == '"';
                !quoted
            })
            .collect();
        assert!(!outside.contains("script"), "{html}");
    }

    #[test]
    fn fields_are_dropped_and_boxes_are_signs() {
        let html = body("- [x] done\n- [ ] open\n\n<input type=\"text\"> <input type=\"checkbox\">");
        assert!(html.contains("☑ done") && html.contains("☐ open") && !html.contains("<input"), "{html}");
    }

    #[test]
    fn cells_of_a_table_keep_their_side() {
        let html = body("| a | b | c |\n| --- | ---: | :-: |\n| 1 | 2 | 3 |\n");
        assert!(
            html.contains("<th>a</th><th class=\"to-right\">b</th><th class=\"to-centre\">c</th>"),
            "{html}"
        );
        assert!(
            html.contains("<td>1</td><td class=\"to-right\">2</td><td class=\"to-centre\">3</td>"),
            "{html}"
        );
    }

    #[test]
    fn code_of_a_known_language_has_its_colours() {
        let html = body(
            "```rust\nlet x = \"<b>\"; // one\n```\n\n```js title=a\nreturn 1;\n```\n\n```unheard\nlet\n```",
        );
        assert!(html.contains("<pre tabindex=\"0\"><code><span class=\"k\">let</span> x"), "{html}");
        assert!(html.contains("<span class=\"s\">\"&lt;b&gt;\"</span>"), "{html}");
        assert!(html.contains("<span class=\"k\">return</span> <span class=\"n\">1</span>"), "{html}");
        assert!(html.contains("<code>let\n</code>"), "{html}");
    }

    #[test]
    fn pictures_from_elsewhere_are_not_fetched_but_told() {
        let html = body(
            "![1 < 2 herons](https://evil.example/pixel.png) [![badge](//evil.example/b)](https://own.example)",
        );
        assert!(!html.contains("<img") && !html.contains("src="), "{html}");
        assert!(html.contains("href=\"https://evil.example/pixel.png\""), "{html}");
        assert!(html.contains("<span class=\"absent\">1 &lt; 2 herons</span>"), "{html}");
        assert_eq!(html.matches("<a ").count(), 2, "{html}");
        assert!(
            body("<img src=\"https://evil.example/p\" alt=\"a map\">")
                .contains("<span class=\"absent\">a map</span>")
        );
    }

    #[test]
    fn what_scrolls_is_reached_by_keyboard() {
        assert!(body("```\ncode\n```").contains("<pre tabindex=\"0\">"));
    }

    #[test]
    fn quotations_do_not_lie_in_each_other_without_end() {
        let html = body(&format!("{} deep", ">".repeat(500)));
        assert_eq!(html.matches("<blockquote>").count(), DEPTH, "{html}");
        assert!(html.contains("deep"));
    }

    #[test]
    fn pictures_of_this_server_are_shown_and_lessons_lead_to_lessons() {
        let home =
            Home { book: Some(("lake", "lessons/a/one.md")), ..Home::of("the-id", "http://127.0.0.1:7433") };
        let html = |text: &str| page(text, &home, None).body.into_string();
        for own in ["http://127.0.0.1:7433", "http://localhost:7433", ""] {
            let picture = html(&format!("![x]({own}/cdn/books/lake/x.png?k=1)"));
            assert!(picture.contains("src=\"/cdn/books/lake/x.png?k=1\""), "{picture}");
        }
        assert!(!html("![x](http://127.0.0.1:9999/cdn/books/lake/x.png)").contains("src"));
        assert!(html("[x](../b/two.md#part)").contains("href=\"/books/lake/lessons/b/two.md#u-part\""));
    }

    #[test]
    fn nothing_in_a_document_acts() {
        for hostile in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "<svg onload=alert(1)><a xlink:href='javascript:alert(1)'>x</a></svg>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "<a href=\"vbscript:x\">x</a>",
            "<iframe src=https://evil.example></iframe>",
            "<form action=https://evil.example><input name=a><button>x</button></form>",
            "<div style=\"position:fixed\" onclick=alert(1)>x</div>",
            "<base href=https://evil.example>",
            "<meta http-equiv=refresh content=0>",
            "<link rel=stylesheet href=https://evil.example>",
            "<object data=x></object><embed src=x>",
            "<img src=\"//evil.example/pixel.png\">",
            "# <img src=x onerror=alert(1)>",
            "```html\"><script>alert(1)</script>\nx\n```",
        ] {
            let html = body(hostile).to_lowercase();
            for tag in html.split('<').skip(1).filter_map(|part| part.split('>').next()) {
                for name in [
                    "script", "iframe", "form", "button", "base", "meta", "link", "object", "embed", "svg",
                    "style",
                ] {
                    assert!(!tag.starts_with(name), "{hostile} gave {html}");
                }
                for part in [
                    " on",
                    "javascript:",
                    "vbscript:",
                    "data:",
                    "style=",
                    "src=\"http",
                    "src=\"//",
                    "evil.example",
                ] {
                    assert!(!tag.contains(part), "{hostile} gave {html}");
                }
            }
        }
    }

    #[test]
    fn links_between_documents_stay_in_the_library() {
        assert!(body("[x](../b.md#part)").contains("href=\"/to?from=the-id&amp;path=..%2Fb.md%23part\""));
        assert!(body("![x](p/c.png)").contains("src=\"/to?from=the-id&amp;path=p%2Fc.png&amp;raw=1\""));
        assert!(body("[x](#part)").contains("href=\"#u-part\""));
        assert!(body("[x](doc://book#pages=1-2)").contains("href=\"/cite?address=doc"));
        let outside = body("[x](https://example.org)");
        assert!(outside.contains("rel=\"noopener noreferrer\"") && outside.contains("https://example.org"));
    }

    #[test]
    fn marked_lines_are_emphasized_and_counted_from_the_top() {
        let text = "---\ntitle: x\n---\n# A\n\nsecond\n\nthird\n";
        let html = page(text, &Home::nowhere(), Some(&(6..=6))).body.into_string();
        assert!(html.contains("<div class=\"hit\">") && !html.contains("title: x"), "{html}");
        let hit = html.split("<div class=\"hit\">").nth(1).unwrap().split("</div>").next().unwrap();
        assert!(hit.contains("second") && !hit.contains("third"), "{html}");
    }
}
