//! Pages of PDF documents as they were set, with their text beside them.

use std::ops::RangeInclusive;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_tools::Attachment;

use super::{Answer, document::Shown, invalid, missing};
use crate::{Host, Reply, Request, fields::Fields, links, words};

/// Width of an image of a page, in pixels: sharp on screens with two dots to a pixel.
const WIDTH: u64 = 1_400;
/// Matching lines that are listed.
const MATCHES: usize = 200;

/// The address of the image of a page.
fn address(id: &str, hash: &str, page: u64) -> String {
    links::with(&format!("{}/page", links::document(id)), &[("n", &page.to_string()), ("version", hash)])
}

/// The image of a page.
pub(super) fn image(host: &dyn Host, request: &Request, id: &str) -> Answer {
    let page = request.query("n").and_then(|page| page.parse::<u64>().ok());
    let page = page.ok_or_else(|| invalid("n must be the number of a page"))?;
    let mut arguments = json!({ "document_id": id, "page": page, "width": WIDTH });
    if let Some(hash) = request.query("version") {
        arguments["hash"] = json!(hash);
    }
    let answer = host.call("page_image", arguments)?;
    let data = answer.attachments.iter().find_map(|attachment| match attachment {
        Attachment::Image { data, .. } => STANDARD.decode(data).ok(),
        _ => None,
    });
    Ok(Reply::image("image/png", data.ok_or_else(|| missing("the page has no image"))?))
}

/// A page as an image, with a part of it marked: left, top, right and bottom from 0 to 1.
pub(super) fn sheet(id: &str, hash: &str, page: u64, marked: Option<[f64; 4]>) -> Markup {
    html! {
        figure.sheet {
            img src=(address(id, hash, page)) alt={ "Page " (page) } loading="lazy" decoding="async";
            @if let Some(region) = marked { (region_of(region)) }
        }
    }
}

/// A marked region of whatever it lies on.
pub(super) fn region_of([left, top, right, bottom]: [f64; 4]) -> Markup {
    let number = |value: f64| format!("{:.4}", value.clamp(0.0, 1.0));
    html! {
        svg.region viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true" {
            rect x=(number(left)) y=(number(top)) width=(number((right - left).max(0.002))) height=(number((bottom - top).max(0.002))) {}
        }
    }
}

/// Four numbers from 0 to 1, as an address gives them.
pub(super) fn region(text: Option<&str>) -> Option<[f64; 4]> {
    let numbers: Vec<f64> = text?.split(',').filter_map(|part| part.parse().ok()).collect();
    let region: [f64; 4] = numbers.try_into().ok()?;
    region.iter().all(|value| (0.0..=1.0).contains(value)).then_some(region)
}

/// Lines of a text by the page that they stand on.
fn by_page(text: &Value) -> Vec<(u64, Vec<(u64, &str)>)> {
    let starts: Vec<u64> = text.list("pages").iter().filter_map(Value::as_u64).collect();
    let mut pages: Vec<(u64, Vec<(u64, &str)>)> = Vec::new();
    for (number, line) in (text.number("first_line")..).zip(text.text("text").lines()) {
        let page = starts.partition_point(|start| *start <= number).max(1) as u64;
        // A page without text is a page all the same.
        while let Some((last, _)) = pages.last()
            && last + 1 < page
        {
            pages.push((last + 1, Vec::new()));
        }
        match pages.last_mut() {
            Some((last, lines)) if *last == page => lines.push((number, line)),
            _ => pages.push((page, vec![(number, line)])),
        }
    }
    if !text.flag("truncated") {
        let last = pages.last().map_or(0, |(last, _)| *last);
        pages.extend((last + 1..=starts.len() as u64).map(|page| (page, Vec::new())));
    }
    pages
}

/// The pages of a document: their images, where it has some, and their text.
pub(super) fn pages(host: &dyn Host, request: &Request, shown: &Shown<'_>, text: &Value) -> Markup {
    let has_images = shown.mime() == "application/pdf" && host.may("page_image");
    let pages = by_page(text);
    let find = request.query("find").map(str::to_lowercase);
    let fits = |line: &str| find.as_ref().is_some_and(|find| line.to_lowercase().contains(find.as_str()));
    let is_marked = |number: u64| shown.marked.as_ref().is_some_and(|marked| marked.contains(&number));
    html! {
        form.filters role="search" action=(links::document(shown.id)) {
            @if let Some(hash) = shown.hash { input type="hidden" name="version" value=(hash); }
            label { "Find in this document " input type="search" name="find" value=(request.query("find").unwrap_or_default()); } button { "Find" }
        }
        @if find.is_some() { (matches(&pages, &fits)) }
        @if !has_images { p.note { "This is the text of the pages. The file itself has their look: " a href=(links::raw(shown.id, shown.hash)) { "download it" } "." } }
        @for (page, lines) in &pages {
            @let here = lines.iter().any(|(number, line)| is_marked(*number) || fits(line));
            section.page.with-sheet[has_images] id={ "p" (page) } aria-label={ "Page " (page) } {
                h2.quiet { a href={ "#p" (page) } { "Page " (page) } }
                @if has_images {
                    @let region = if here { region(request.query("box")) } else { None };
                    (sheet(shown.id, shown.hash_or_present(), *page, region))
                    @if !lines.is_empty() { details open[here] { summary.note { "Text of page " (page) } (text_lines(lines, &is_marked, &fits)) } }
                } @else { (text_lines(lines, &is_marked, &fits)) }
            }
        }
    }
}

fn text_lines(lines: &[(u64, &str)], is_marked: &dyn Fn(u64) -> bool, fits: &dyn Fn(&str) -> bool) -> Markup {
    html! { @for (number, line) in lines {
        div.text-line.marked[is_marked(*number) || fits(line)] id={ "L" (number) } { (words::plain(line)) }
    } }
}

/// Where words stand in a document.
fn matches(pages: &[(u64, Vec<(u64, &str)>)], fits: &dyn Fn(&str) -> bool) -> Markup {
    let found: Vec<(u64, u64, &str)> = pages
        .iter()
        .flat_map(|(page, lines)| lines.iter().map(move |(number, line)| (*page, *number, *line)))
        .filter(|(_, _, line)| fits(line))
        .collect();
    html! {
        p.tally role="status" { (words::counted(found.len() as u64, "line", "lines")) }
        ol.plain { @for (page, number, line) in found.iter().take(MATCHES) {
            li { a href={ "#L" (number) } { "Page " (page) } " " (words::clipped(&words::plain(line.trim()), 160)) }
        } }
        @if found.len() > MATCHES { p.note { "Only the first " (MATCHES) " are listed." } }
    }
}

/// The way to each page.
pub(super) fn list(text: &Value) -> Markup {
    let count = text.list("pages").len();
    html! {
        @if count > 1 { aside.outline aria-label="Pages" { h2 { "Pages" } ol.grid { @for page in 1..=count.min(400) { li { a href={ "#p" (page) } { (page) } } } } } }
    }
}

/// The first and last page that some lines stand on.
pub(super) fn pages_of(text: &Value, lines: &RangeInclusive<u64>) -> Option<(u64, u64)> {
    let starts: Vec<u64> = text.list("pages").iter().filter_map(Value::as_u64).collect();
    let page = |line: u64| starts.partition_point(|start| *start <= line).max(1) as u64;
    (!starts.is_empty()).then(|| (page(*lines.start()), page(*lines.end())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_there_also_those_without_text() {
        let text = json!({ "pages": [1, 2, 2, 3, 4], "first_line": 1, "text": "one\ntwo\nthree\n" });
        let found: Vec<(u64, usize)> =
            by_page(&text).iter().map(|(page, lines)| (*page, lines.len())).collect();
        assert_eq!(found, [(1, 1), (2, 0), (3, 1), (4, 1), (5, 0)]);
        assert_eq!(pages_of(&text, &(1..=3)), Some((1, 4)));
    }

    #[test]
    fn regions_are_four_numbers_from_0_to_1() {
        assert_eq!(region(Some("0.1,0.2,0.3,0.4")), Some([0.1, 0.2, 0.3, 0.4]));
        for wrong in ["", "1", "0,0,1,2", "a,b,c,d", "0,0,1,NaN", "0,0,1,1,1"] {
            assert_eq!(region(Some(wrong)), None, "{wrong}");
        }
    }
}
