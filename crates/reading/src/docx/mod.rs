//! Word documents: a ZIP archive of XML parts, of which the body, the notes and the styles are read.

mod body;
mod styles;

use crate::archive::Parts;
use crate::{Markup, Text, Unreadable};
use body::Body;
use styles::Styles;

/// The text of a document.
pub(crate) fn text<'a>(bytes: &[u8]) -> Result<Text<'a>, Unreadable> {
    let mut parts = Parts::open(bytes)?;
    let styles = parts.read("word/styles.xml")?.map(|part| Styles::read(&part)).unwrap_or_default();
    let name = body_name(&parts);
    let main = parts.read(&name)?.ok_or_else(|| Unreadable::damaged("it has no body"))?;
    let mut body = Body::new(styles);
    let damage = body.read(&main);
    for notes in ["word/footnotes.xml", "word/endnotes.xml"] {
        // Notes are optional: errors in them must not discard the body.
        if let Ok(Some(part)) = parts.read(notes) {
            body.read(&part).ok();
        }
    }
    let text = body.finish();
    match damage {
        // The beginning of a damaged body is still useful.
        Err(what) if text.is_empty() => Err(Unreadable::Damaged { what }),
        _ => Ok(Text::made(text, Markup::Markdown)),
    }
}

/// The usual name, or a numbered one, as some programs write.
fn body_name(parts: &Parts<'_>) -> String {
    const USUAL: &str = "word/document.xml";
    let names = parts.names();
    let is_body = |name: &&String| name.starts_with("word/document") && name.ends_with(".xml");
    if names.iter().any(|name| name == USUAL) {
        return USUAL.into();
    }
    names.iter().find(is_body).cloned().unwrap_or_else(|| USUAL.into())
}

#[cfg(test)]
mod tests;
