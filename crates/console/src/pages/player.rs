//! Recordings with their chapters.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::{around, ask, document::Shown};
use crate::{Host, Request, fields::Fields, links, words};

/// Seconds as people read them: `1:02:03`.
pub(super) fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    let (hours, minutes, seconds) = (whole / 3_600, whole / 60 % 60, whole % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// A player for a recording that begins at a time.
pub(super) fn player(source: &str, mime: &str, from: Option<(f64, Option<f64>)>) -> Markup {
    let source = match from {
        Some((start, Some(end))) => format!("{source}#t={start:.3},{end:.3}"),
        Some((start, None)) => format!("{source}#t={start:.3}"),
        None => source.to_owned(),
    };
    html! {
        @if mime.starts_with("audio/") { audio controls preload="metadata" src=(source) data-player="" {} }
        @else { video controls preload="metadata" src=(source) data-player="" {} }
    }
}

/// A recording and, beside it, its chapters or what is said in it.
pub(super) fn recording(host: &dyn Host, request: &Request, shown: &Shown<'_>) -> (Markup, Markup) {
    let from = request.query("t").and_then(|text| text.parse::<f64>().ok()).filter(|at| *at >= 0.0);
    let body = player(&links::raw(shown.id, shown.hash), shown.mime(), from.map(|from| (from, None)));
    (body, chapters(host, shown))
}

fn chapters(host: &dyn Host, shown: &Shown<'_>) -> Markup {
    let asked = json!({ "resource_id": shown.id });
    let structure = match ask(host, "getStructure", asked) {
        Ok(structure) if shown.hash.is_none() => structure,
        Ok(_) => return html! {},
        Err(error) => return html! { aside.outline { p.note { (words::plain(&error.message)) } } },
    };
    let mut found = Vec::new();
    around::nodes(structure.list("nodes"), 0, &mut found);
    let timed: Vec<(&usize, &Value, f64)> = found
        .iter()
        .filter_map(|(depth, node)| Some((depth, *node, node["location"].get("start")?.as_f64()?)))
        .collect();
    html! {
        @if timed.len() > 1 {
            aside.outline aria-label="Chapters" { h2 { "Chapters" }
                ol.chapters { @for (depth, node, start) in timed {
                    li class={ "d" (depth.min(&3)) } {
                        a href=(links::with(&links::document(shown.id), &[("t", &format!("{start:.3}"))])) data-seek=(format!("{start:.3}")) {
                            time { (clock(start)) } " " (words::plain(node.text("title"))) }
                    }
                } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (seconds, text) in
            [(0.0, "0:00"), (59.9, "0:59"), (61.0, "1:01"), (3_723.4, "1:02:03"), (-1.0, "0:00")]
        {
            assert_eq!(clock(seconds), text);
        }
    }
}
