//! Books: their chapters, reading, and writing without overwriting somebody else.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_tools::ErrorReply;

use super::{Answer, ask, invalid, missing, now};
use crate::{
    Host, Method, Reply, Request,
    fields::Fields,
    frame, links,
    render::{code, diff, markdown},
    words,
};

pub(super) fn list(host: &dyn Host, request: &Request) -> Answer {
    if let (Some(book), Some(lesson)) = (request.query("book"), request.query("lesson")) {
        return begin(host, book, lesson);
    }
    let found = ask(host, "list_books", json!({}))?;
    let books = found.as_array().map_or(&[][..], Vec::as_slice);
    Ok(frame::page(
        host,
        request,
        "Books",
        html! {
            h1 { "Books" }
            @if books.is_empty() { (frame::empty("No books yet", html! { p { "The first lesson that is written to a book makes it: here, or by an agent." @if frame::has_commands(host) { " " code { "shelf books import" } " takes in a folder of them." } } })) }
            @else { table.data {
                thead { tr { th scope="col" { "Book" } th scope="col" { "Id" } th scope="col" { "State" } th scope="col" { "Made" } } }
                tbody { @for book in books { tr {
                    td { a href=(address(book.text("book_id"), "")) { (words::plain(book.text("title"))) } }
                    td { code { (book.text("book_id")) } } td { (book.text("status")) } td { (frame::when(book.text("created_at"), now())) }
                } } }
            } }
            @if host.may("write_content") { (new_lesson("")) }
        },
    ))
}

/// The form that begins a lesson; with the first one of a book the book is made.
fn new_lesson(book: &str) -> Markup {
    html! {
        details id="write" { summary { "Write a lesson" } form.stack action="/books" {
            label { "Book: small letters, digits and hyphens" input name="book" required minlength="3" maxlength="50" pattern="[a-z0-9]+(-[a-z0-9]+)*" value=(book) placeholder="birds-of-the-lake"; }
            label { "Path in the book" input name="lesson" required maxlength="500" value="lessons/part-1/chapter-01/lesson-01.md"; }
            button { "Write it" }
        } }
    }
}

/// The editor for the lesson that the form names.
fn begin(host: &dyn Host, book: &str, lesson: &str) -> Answer {
    must_write(host)?;
    Ok(Reply::to(links::with(&address(book.trim(), lesson.trim().trim_start_matches('/')), &[("edit", "1")])))
}

fn must_write(host: &dyn Host) -> Result<(), ErrorReply> {
    if host.may("write_content") {
        return Ok(());
    }
    Err(super::problem(Kind::Denied, "You may read this book, but not write to it."))
}

/// What the texts of a book are called, by their paths: as their first heading says, or the title before it.
fn titles(host: &dyn Host, book: &str) -> BTreeMap<String, String> {
    let asked = json!({ "book_id": book, "pattern": "^(# |title:)", "max_results": 1_000 });
    let found = ask(host, "grep_search", asked).unwrap_or_default();
    let start = format!("books/{book}/");
    let mut titles = BTreeMap::new();
    for line in found.as_array().into_iter().flatten() {
        let path = line.text("file_path");
        let text = line.text("matched_line");
        let title = text.strip_prefix("title:").or_else(|| text.strip_prefix('#')).unwrap_or(text);
        let title = title.trim().trim_matches(['"', '\'']);
        if !title.is_empty() {
            titles
                .entry(path.strip_prefix(&start).unwrap_or(path).to_owned())
                .or_insert_with(|| title.to_owned());
        }
    }
    titles
}

/// What a book is called.
fn title_of(host: &dyn Host, book: &str) -> String {
    let found = ask(host, "list_books", json!({})).unwrap_or_default();
    let known = found.as_array().into_iter().flatten().find(|one| one.text("book_id") == book);
    known.map(|one| one.text("title")).filter(|title| !title.is_empty()).unwrap_or(book).to_owned()
}

fn address(book: &str, path: &str) -> String {
    let path = if path.is_empty() { String::new() } else { format!("/{}", links::encoded_path(path)) };
    format!("/books/{}{path}", links::encoded(book))
}

/// The texts of a book in reading order, by their paths in it.
fn texts(host: &dyn Host, book: &str) -> Result<Vec<String>, ErrorReply> {
    let found = ask(host, "glob_search", json!({ "book_id": book, "pattern": "**/*.md" }))?;
    let start = format!("books/{book}/");
    let paths = found.as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut paths: Vec<String> =
        paths.map(|path| path.strip_prefix(&start).unwrap_or(path).to_owned()).collect();
    paths.sort();
    Ok(paths)
}

pub(super) fn contents(host: &dyn Host, request: &Request, book: &str) -> Answer {
    if request.query("archive").is_some() {
        let made = ask(host, "get_book_archive", json!({ "book_id": book }))?;
        let url = made.text("archive_url");
        return Ok(Reply::to(links::local(url, &request.base_url)));
    }
    let paths = texts(host, book)?;
    let assets = ask(host, "list_assets", json!({ "book_id": book })).unwrap_or_default();
    let assets = assets.as_array().map_or(&[][..], Vec::as_slice);
    if paths.is_empty() && assets.is_empty() {
        return Err(missing(format!("there is no book '{book}', or it is empty")));
    }
    let mut folders: Vec<(&str, Vec<&str>)> = Vec::new();
    for path in &paths {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        match folders.last_mut() {
            Some((last, inner)) if *last == folder => inner.push(path),
            _ => folders.push((folder, vec![path])),
        }
    }
    let (title, titles) = (title_of(host, book), titles(host, book));
    let name = |path: &str| {
        let title = titles.get(path).map_or("", String::as_str);
        words::plain(if title.is_empty() { last_part(path) } else { title })
    };
    Ok(frame::page(
        host,
        request,
        &title,
        html! {
            nav.crumbs { a href="/books" { "Books" } }
            h1 { (words::plain(&title)) }
            p.actions { a href=(links::with(&address(book, ""), &[("archive", "1")])) { "Download as ZIP" }
                a href=(links::with("/search", &[("collection", book)])) { "Search in it" }
                a href=(links::with("/activity", &[("collection", book)])) { "What happened" } }
            @for (folder, inner) in &folders {
                h2 { (words::plain(if folder.is_empty() { "Book" } else { folder })) }
                ul.plain { @for path in inner { li { a href=(address(book, path)) { (name(path)) } @if name(path) != last_part(path) { " " span.note { (words::plain(last_part(path))) } } } } }
            }
            @if host.may("write_content") { (new_lesson(book)) }
            (asset_table(host, request, book, assets))
        },
    ))
}

/// Assets whose uses are looked up.
const LOOKED_UP: usize = 200;
/// The kinds of assets, as tools name them and as people do.
const ASSETS: [(&str, &str); 4] =
    [("images", "images"), ("slides", "slides"), ("videos", "videos"), ("audio", "sound")];

fn asset_table(host: &dyn Host, request: &Request, book: &str, assets: &[Value]) -> Markup {
    let may_add = host.may("upload_asset");
    let used = used_in(host, book, assets);
    html! {
        @if !assets.is_empty() || may_add { h2 id="assets" { "Assets" } }
        @if !assets.is_empty() {
            div.scroll { table.data { thead { tr { th scope="col" { "File" } th scope="col" { "Type" } th.figure scope="col" { "Size" } th scope="col" { "Used in" } th scope="col" { "By" } th scope="col" { "Stored" } } }
                tbody { @for (asset, paths) in assets.iter().zip(&used) { tr {
                    td { a href=(links::local(asset.text("cdn_url"), &request.base_url)) { (words::plain(asset.text("filename"))) } }
                    td.note { (asset.text("mime_type")) } td.figure { (words::bytes(asset.number("file_size"))) }
                    td { (uses(book, paths)) }
                    td { (words::plain(asset.text("uploaded_by_agent_id"))) } td { (frame::when(asset.text("upload_timestamp"), now())) }
                } } } } }
        } @else if may_add { p.note { "None yet." } }
        @if may_add { details { summary { "Add assets" }
            @for (kind, name) in ASSETS { div.drop data-drop="" data-most="10485759" data-to=(format!("{}/assets/{kind}", address(book, ""))) hidden {
                p { "Drop " (name) " here or " label.link { "choose files" input type="file" multiple hidden data-pick=""; } "." }
                (super::upload::progress())
            } }
            p.note { "Below 10 MiB each; larger ones are sent by " @if frame::has_commands(host) { code { "shelf books import" } " or " } "an agent's " code { "upload_asset" } ". The same name again makes a new version." }
        } }
    }
}

/// The texts of a book that name each of these assets: one search for all of them.
fn used_in(host: &dyn Host, book: &str, assets: &[Value]) -> Vec<Vec<String>> {
    let names: Vec<&str> = assets.iter().map(|asset| last_part(asset.text("filename"))).collect();
    let pattern: Vec<String> = names.iter().take(LOOKED_UP).map(|name| regex_of(name)).collect();
    let asked = json!({ "book_id": book, "pattern": pattern.join("|"), "max_results": 1_000 });
    let found =
        if names.is_empty() { Value::Null } else { ask(host, "grep_search", asked).unwrap_or_default() };
    let start = format!("books/{book}/");
    let lines = found.as_array().map_or(&[][..], Vec::as_slice);
    let uses = |name: &str| {
        let here = lines.iter().filter(|line| line.text("matched_line").contains(name));
        let paths = here.map(|line| line.text("file_path"));
        let mut paths: Vec<String> =
            paths.map(|path| path.strip_prefix(&start).unwrap_or(path).to_owned()).collect();
        paths.dedup();
        paths
    };
    names.into_iter().map(uses).collect()
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn uses(book: &str, paths: &[String]) -> Markup {
    html! {
        @if paths.is_empty() { span.note { "nothing" } }
        @for (at, path) in paths.iter().take(5).enumerate() { @if at > 0 { ", " } a href=(address(book, path)) { (words::plain(last_part(path))) } }
        @if paths.len() > 5 { " and " (paths.len() - 5) " more" }
    }
}

/// A pattern that fits exactly this text.
fn regex_of(text: &str) -> String {
    let mut pattern = String::new();
    for sign in text.chars() {
        if !sign.is_alphanumeric() && sign.is_ascii() {
            pattern.push('\\');
        }
        pattern.push(sign);
    }
    pattern
}

/// Takes one asset: its bytes are the body.
pub(super) fn upload(host: &dyn Host, request: &Request, book: &str, kind: &str) -> Answer {
    let name = request.query("name").ok_or_else(|| invalid("the file has no name"))?;
    let name = name.rsplit('/').next().unwrap_or(name);
    let data = STANDARD.encode(&request.body);
    let asked = json!({ "book_id": book, "asset_type": kind, "filename": name, "binary_data": data });
    ask(host, "upload_asset", asked).map(|stored| Reply::json(200, &stored))
}

fn read(host: &dyn Host, book: &str, path: &str) -> Result<Value, ErrorReply> {
    let got = ask(host, "get", json!({ "name": path, "collection": book, "include_content": true }))?;
    if got.flag("found") && got.text("document_path") == path {
        Ok(got)
    } else {
        Err(missing(format!("the book has no file '{path}'")))
    }
}

pub(super) fn lesson(host: &dyn Host, request: &Request, book: &str, path: &str) -> Answer {
    let got = read(host, book, path);
    if request.query("edit").is_some() {
        must_write(host)?;
        let none = Value::Null;
        let got = match &got {
            Ok(got) => got,
            Err(error) if error.kind == Kind::NotFound => &none,
            Err(error) => return Err(error.clone()),
        };
        let draft = Draft { text: got.text("content"), hash: got.text("hash"), preview: false };
        return Ok(editor(host, request, (book, path), &draft, None));
    }
    let got = got?;
    let paths = texts(host, book)?;
    let at = paths.iter().position(|known| known == path);
    let beside = |step: isize| at.and_then(|at| at.checked_add_signed(step)).and_then(|at| paths.get(at));
    let is_history = request.query("history").is_some();
    let home = markdown::Home {
        document: got.maybe("document_id"),
        base_url: &request.base_url,
        book: Some((book, path)),
    };
    let rendered = markdown::page(got.text("content"), &home, None);
    let titles = titles(host, book);
    let name = |path: &str| {
        let title = titles.get(path).map_or("", String::as_str);
        words::plain(if title.is_empty() { last_part(path) } else { title })
    };
    Ok(frame::page(
        host,
        request,
        &name(path),
        html! {
            nav.crumbs { a href="/books" { "Books" } " / " a href=(address(book, "")) { (words::plain(book)) } " / " (words::plain(path)) }
            h1.quiet { (name(path)) }
            p.actions {
                @if host.may("write_content") { a href=(links::with(&address(book, path), &[("edit", "1")])) { "Edit" } }
                @if is_history { a href=(address(book, path)) { "Read" } } @else if host.may("book_history") { a href=(links::with(&address(book, path), &[("history", "1")])) { "History" } }
                a href=(links::document(got.text("document_id"))) { "As a document" }
                span.note { "stored " (frame::when(got.text("indexed_at"), now())) " · " code { (words::short(got.text("hash"))) } }
            }
            @if is_history { (history(host, book, path)) }
            @else if path.ends_with(".md") { div.document { article.content { div.prose { (rendered.body) } (turns(book, &name, beside(-1), beside(1))) } } }
            @else { (code::lines(got.text("content"), 1, (got.text("mime_type"), path), None)) }
        },
    ))
}

fn turns(
    book: &str,
    name: &dyn Fn(&str) -> String,
    before: Option<&String>,
    after: Option<&String>,
) -> Markup {
    html! {
        nav.turn aria-label="Other lessons" {
            span { @if let Some(path) = before { a href=(address(book, path)) rel="prev" { "← " (name(path)) } } }
            span { @if let Some(path) = after { a href=(address(book, path)) rel="next" { (name(path)) " →" } } }
        }
    }
}

fn history(host: &dyn Host, book: &str, path: &str) -> Markup {
    let found = match ask(host, "book_history", json!({ "book_id": book, "path": path })) {
        Ok(found) => found,
        Err(error) => return html! { p.note { (words::plain(&error.message)) } },
    };
    html! {
        h2 { "History" }
        div.scroll { table.data { tbody { @for change in found.as_array().into_iter().flatten() {
            tr { td { (frame::when(change.text("timestamp"), now())) } td { (words::plain(change.text("agent_id"))) } td { (change.text("operation")) }
                td { code { (words::short(change.text("new_hash"))) } }
                td { @if let (Some(before), Some(after)) = (change.maybe("previous_hash"), change.maybe("new_hash")) {
                    a href=(links::with("/snapshots/diff", &[("before", before), ("after", after), ("path", path)])) { "Differences" } } } }
        } } } }
    }
}

/// A text that is being written, and the hash of what it is based on.
struct Draft<'a> {
    text: &'a str,
    hash: &'a str,
    preview: bool,
}

fn editor(
    host: &dyn Host,
    request: &Request,
    (book, path): (&str, &str),
    draft: &Draft<'_>,
    theirs: Option<&Value>,
) -> Reply {
    let status = if theirs.is_some() { 409 } else { 200 };
    let changes = theirs.and_then(|theirs| diff::page(theirs.text("content"), draft.text, true));
    frame::with_status(
        host,
        request,
        status,
        "Edit",
        html! {
            nav.crumbs { a href="/books" { "Books" } " / " a href=(address(book, "")) { (words::plain(book)) } " / " a href=(address(book, path)) { (words::plain(path)) } }
            h1 { @if draft.hash.is_empty() { "Write " } @else { "Edit " } (words::plain(last_part(path))) }
            @if theirs.is_some() {
                p.refusal role="alert" { strong { "Somebody else changed this text" } " while you were writing. Nothing is lost: their text stands on the left, yours on the right. Merge what you need into yours below, then save again." }
            }
            @if let Some((markup, _)) = changes { h2 { "Their text and yours" } div.scroll { (markup) } }
            form method="post" action=(address(book, path)) data-unsaved=(if request.method == Method::Post { "1" } else { "" }) {
                (frame::proof(host))
                // The text is now based on what the person has seen.
                input type="hidden" name="hash" value=(theirs.map_or(draft.hash, |theirs| theirs.text("hash")));
                label.hidden for="text" { "Text" }
                textarea.text id="text" name="text" spellcheck="true" { "\n" (draft.text) }
                p { button.primary name="do" value="save" { "Save" } " " button name="do" value="preview" { "Preview" } " " a href=(address(book, path)) { "Cancel" } }
            }
            @if draft.preview { h2 { "Preview" } div.prose { (markdown::page(draft.text, &markdown::Home { base_url: &request.base_url, book: Some((book, path)), ..markdown::Home::nowhere() }, None).body) } }
        },
    )
}

/// Writes a text, if it is still the one that the person has read.
pub(super) fn write(host: &dyn Host, request: &Request, book: &str, path: &str) -> Answer {
    // Browsers send line ends as two characters; texts have one.
    let text = request.field("text").unwrap_or_default().replace("\r\n", "\n");
    let hash = request.field("hash").unwrap_or_default();
    if request.field("do") == Some("preview") {
        return Ok(editor(host, request, (book, path), &Draft { text: &text, hash, preview: true }, None));
    }
    let mine = Draft { text: &text, hash, preview: false };
    if hash.is_empty() {
        // A new text must not take the place of one that somebody else wrote meanwhile.
        match read(host, book, path) {
            Ok(theirs) => return Ok(editor(host, request, (book, path), &mine, Some(&theirs))),
            Err(error) if error.kind == Kind::NotFound => {}
            Err(error) => return Err(error),
        }
        let asked = json!({ "book_id": book, "path": path, "content": text });
        return ask(host, "write_content", asked).map(|_| Reply::to(address(book, path)));
    }
    // Summaries are written by this tool too, because the one for summaries does not compare.
    let asked = json!({ "book_id": book, "path": path, "content": text, "file_hash": hash });
    match ask(host, "write_content", asked) {
        Ok(_) => Ok(Reply::to(address(book, path))),
        Err(error) if error.kind == Kind::Conflict => {
            let theirs = read(host, book, path)?;
            Ok(editor(host, request, (book, path), &mine, Some(&theirs)))
        }
        Err(error) => Err(error),
    }
}
