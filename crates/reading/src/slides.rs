//! PowerPoint presentations: each slide is a section under its title.

use quick_xml::events::Event;

use crate::archive::{Parts, attribute, reference, relationships, xml};
use crate::passages::escaped;
use crate::{Markup, Text, Unreadable};

/// Slides that are read at most.
const MOST_SLIDES: usize = 5_000;

/// The text of a presentation.
pub(crate) fn text<'a>(bytes: &[u8]) -> Result<Text<'a>, Unreadable> {
    let mut parts = Parts::open(bytes)?;
    let slides = slides(&mut parts)?;
    if slides.is_empty() {
        return Err(Unreadable::damaged("it has no slides"));
    }
    let mut text = String::new();
    for (number, name) in slides.iter().enumerate() {
        let slide = parts.read(name)?.map(|part| Slide::read(&part)).unwrap_or_default();
        if !text.is_empty() {
            text.push('\n');
        }
        let title = if slide.title.is_empty() { format!("Slide {}", number + 1) } else { slide.title };
        text.push_str(&format!("# {title}\n"));
        for paragraph in slide.paragraphs {
            text.push_str(&format!("\n{}\n", escaped(&paragraph)));
        }
    }
    Ok(Text::made(text, Markup::Markdown))
}

/// The parts of the slides, in the order in which they are shown.
fn slides(parts: &mut Parts<'_>) -> Result<Vec<String>, Unreadable> {
    let targets = relationships(parts, "ppt/", "presentation.xml");
    let presentation = parts.read("ppt/presentation.xml")?.unwrap_or_default();
    let mut slides = Vec::new();
    let mut reader = xml(&presentation);
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(tag) | Event::Empty(tag) if tag.local_name().as_ref() == "sldId" => {
                // Two attributes are called `id`; that of the relationship begins with letters.
                let id = tag.attributes().flatten().find_map(|each| {
                    let value = String::from_utf8_lossy(each.value.as_ref().as_ref()).into_owned();
                    targets.get(&value).cloned()
                });
                slides.extend(id);
            }
            Event::Eof => break,
            _ => {}
        }
        if slides.len() == MOST_SLIDES {
            break;
        }
    }
    Ok(slides)
}

#[derive(Default)]
struct Slide {
    title: String,
    paragraphs: Vec<String>,
}

impl Slide {
    fn read(part: &str) -> Self {
        let mut slide = Self::default();
        let (mut in_title, mut in_text) = (false, false);
        let mut paragraph = String::new();
        let mut reader = xml(part);
        while let Ok(event) = reader.read_event() {
            match event {
                Event::Start(tag) | Event::Empty(tag) if tag.local_name().as_ref() == "sp" => {
                    in_title = false;
                    let _ = tag;
                }
                Event::Start(tag) | Event::Empty(tag) if tag.local_name().as_ref() == "ph" => {
                    in_title = matches!(attribute(&tag, "type").as_deref(), Some("title" | "ctrTitle"));
                }
                Event::Start(tag) if tag.local_name().as_ref() == "t" => in_text = true,
                Event::Empty(tag) if matches!(tag.local_name().as_ref(), "br" | "tab") => paragraph.push(' '),
                Event::Text(text) if in_text => paragraph.push_str(&text.xml10_content()),
                Event::GeneralRef(name) if in_text => paragraph.push_str(&reference(&name)),
                Event::End(tag) => match tag.local_name().as_ref() {
                    "t" => in_text = false,
                    "p" => slide.end_paragraph(&mut paragraph, in_title),
                    "sp" => in_title = false,
                    _ => {}
                },
                Event::Eof => break,
                _ => {}
            }
        }
        slide.end_paragraph(&mut paragraph, in_title);
        slide
    }

    fn end_paragraph(&mut self, paragraph: &mut String, in_title: bool) {
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        paragraph.clear();
        if words.is_empty() {
            return;
        }
        if in_title {
            if !self.title.is_empty() {
                self.title.push(' ');
            }
            self.title.push_str(&words);
        } else {
            self.paragraphs.push(words);
        }
    }
}
