//! What is made of Markdown on its way to HTML: code gets its colours, cells of tables their side, and pictures that are
//! not shown leave a word.

use std::vec::IntoIter;

use pulldown_cmark::{Alignment, CodeBlockKind, CowStr, Event, LinkType, Tag, TagEnd};

use super::code;

/// The events of a text with what pages add to them. `shows` says whether a picture with this address can be shown.
pub(super) fn dressed<'a>(events: Vec<Event<'a>>, shows: &dyn Fn(&str) -> bool) -> Vec<Event<'a>> {
    let mut dresser =
        Dresser { events: events.into_iter(), done: Vec::new(), cells: Cells::default(), links: 0 };
    while let Some(event) = dresser.events.next() {
        dresser.take(event, shows);
    }
    dresser.done
}

struct Dresser<'a> {
    events: IntoIter<Event<'a>>,
    done: Vec<Event<'a>>,
    cells: Cells,
    /// Links that are open: there is none within another.
    links: usize,
}

/// Where a table stands.
#[derive(Default)]
struct Cells {
    sides: Vec<Alignment>,
    column: usize,
    is_head: bool,
}

impl Cells {
    const fn tag(&self) -> &'static str {
        if self.is_head { "th" } else { "td" }
    }

    fn class(&self) -> &'static str {
        match self.sides.get(self.column) {
            Some(Alignment::Right) => " class=\"to-right\"",
            Some(Alignment::Center) => " class=\"to-centre\"",
            Some(Alignment::Left | Alignment::None) | None => "",
        }
    }
}

impl<'a> Dresser<'a> {
    fn take(&mut self, event: Event<'a>, shows: &dyn Fn(&str) -> bool) {
        match &event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(word))) if code::knows(word) => {
                let word = word.to_string();
                return self.code(&word);
            }
            Event::Start(Tag::Image { dest_url, .. }) if !shows(dest_url) => {
                let address = dest_url.to_string();
                return self.absent(&address);
            }
            Event::Start(Tag::Table(sides)) => self.cells.sides.clone_from(sides),
            Event::Start(Tag::TableHead) => (self.cells.is_head, self.cells.column) = (true, 0),
            Event::End(TagEnd::TableHead) => self.cells.is_head = false,
            Event::Start(Tag::TableRow) => self.cells.column = 0,
            Event::Start(Tag::TableCell) => {
                let open = format!("<{}{}>", self.cells.tag(), self.cells.class());
                return self.done.push(Event::Html(open.into()));
            }
            Event::End(TagEnd::TableCell) => {
                self.cells.column += 1;
                return self.done.push(Event::Html(format!("</{}>", self.cells.tag()).into()));
            }
            Event::Start(Tag::Link { .. }) => self.links += 1,
            Event::End(TagEnd::Link) => self.links = self.links.saturating_sub(1),
            _ => {}
        }
        self.done.push(event);
    }

    /// The text up to the end of a block or picture, which is taken out.
    fn text_until(&mut self, end: TagEnd) -> String {
        let mut text = String::new();
        for event in self.events.by_ref() {
            match event {
                Event::End(found) if found == end => break,
                Event::Text(part) | Event::Code(part) => text.push_str(&part),
                Event::SoftBreak | Event::HardBreak => text.push(' '),
                _ => {}
            }
        }
        text
    }

    fn code(&mut self, word: &str) {
        let text = self.text_until(TagEnd::CodeBlock);
        let block = format!("<pre><code>{}</code></pre>\n", code::block(&text, word).into_string());
        self.done.push(Event::Html(block.into()));
    }

    /// A picture from elsewhere is not fetched, so that nobody learns who reads this: its words lead to it.
    fn absent(&mut self, address: &str) {
        let words = self.text_until(TagEnd::Image);
        let words = if words.trim().is_empty() { address } else { words.trim() };
        let words = Event::Text(CowStr::from(words.to_owned()));
        let is_link = self.links == 0 && (address.starts_with("https://") || address.starts_with("http://"));
        let link = Tag::Link {
            link_type: LinkType::Inline,
            dest_url: CowStr::from(address.to_owned()),
            title: CowStr::Borrowed("A picture from elsewhere is not shown here"),
            id: CowStr::Borrowed(""),
        };
        self.done.extend(is_link.then_some(Event::Start(link)));
        self.done.extend([
            Event::InlineHtml("<span class=\"absent\">".into()),
            words,
            Event::InlineHtml("</span>".into()),
        ]);
        self.done.extend(is_link.then_some(Event::End(TagEnd::Link)));
    }
}
