//! `bench console`: how long the pages of the web console take over a library of 50,000 documents, to the first byte and
//! to the last.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::corpus::{self, Tree};
use super::library::Library;
use super::report::{Report, Target};
use super::words::Words;
use super::{Scale, machine};
use crate::places;
use crate::server::Server;

/// Documents at full scale.
const DOCUMENTS: usize = 50_000;
/// Requests for each page that are measured, after one that is not.
const REQUESTS: usize = 40;
/// Milliseconds to the first byte: of a page, and of a search.
const PAGE: f64 = 50.0;
const SEARCH: f64 = 100.0;

/// Fills a library and asks for its pages.
pub fn run(scale: Scale) -> Result<()> {
    let shelf = places::built_shelf()?;
    let work = places::root().join("bench").join("work").join(scale.folder());
    fs::create_dir_all(&work)?;
    let documents = scale.of(DOCUMENTS);
    let tree = Tree { name: "console", files: documents, bytes: documents * 2_000, seed: 0x5eed_0080 };
    let tree = tree.ensure(&work, &Words::new())?;
    let (library, _) = Library::make(shelf.clone(), &work, &tree)?;
    let mut report = Report::new("console", scale, &work);
    report.fact("shelf", library.version());
    report.fact("documents", documents.to_string());
    let server = Server::start(&shelf, &library.data)?;
    let before = machine::own_megabytes(server.id()).unwrap_or_default();
    let address = server.address();
    // The first search reads the index.
    fetch(&address, "/search?q=the")?;
    let document = some_document(&address)?;
    let pages = [
        ("overview", "/".to_owned(), PAGE),
        ("search", "/search?q=water".to_owned(), SEARCH),
        ("search, results while typing", "/search?q=wat&part=results".to_owned(), SEARCH),
        ("search, counts", "/search?q=water&part=facets".to_owned(), SEARCH),
        ("search by pattern", "/search?q=wat.r&mode=pattern".to_owned(), SEARCH),
        ("collections", "/c".to_owned(), PAGE),
        ("folder", "/c/default".to_owned(), PAGE),
        ("document", format!("/d/{document}"), PAGE),
        ("versions", format!("/d/{document}?view=versions"), PAGE),
        ("related", format!("/d/{document}?view=links"), PAGE),
        ("graph", format!("/graph?node=doc:{document}"), PAGE),
        ("evidence", "/cite".to_owned(), PAGE),
        ("books", "/books".to_owned(), PAGE),
        ("snapshots", "/snapshots".to_owned(), PAGE),
        ("activity", "/activity".to_owned(), PAGE),
        ("tokens", "/tokens".to_owned(), PAGE),
        ("account", "/account".to_owned(), PAGE),
        ("administration", "/admin".to_owned(), PAGE),
    ];
    for (name, path, limit) in &pages {
        fetch(&address, path)?;
        let waits = (0..REQUESTS).map(|_| fetch(&address, path).map(|(wait, _)| wait));
        let waits = waits.collect::<Result<Vec<f64>>>().with_context(|| format!("asking for {path}"))?;
        report.latencies(
            &format!("{name}, first byte"),
            "shelf",
            &waits,
            Target::AtMost(*limit),
            Target::None,
        );
    }
    let grown = machine::own_megabytes(server.id()).unwrap_or_default() - before;
    report.single("memory after all pages, more than at the start", "shelf", "MB", grown, Target::None);
    drop(server);
    corpus::remove(&work.join("stores"))?;
    report.finish()
}

/// Milliseconds until the first byte of a page came, and its text.
fn fetch(address: &str, path: &str) -> Result<(f64, String)> {
    let mut stream = TcpStream::connect(address)?;
    let asked = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let began = Instant::now();
    stream.write_all(asked.as_bytes())?;
    let mut first = [0; 1];
    stream.read_exact(&mut first)?;
    let wait = began.elapsed().as_secs_f64() * 1e3;
    let mut reply = first.to_vec();
    stream.read_to_end(&mut reply)?;
    let reply = String::from_utf8_lossy(&reply).into_owned();
    ensure!(reply.starts_with("HTTP/1.1 200"), "{path}: {}", reply.lines().next().unwrap_or_default());
    Ok((wait, reply))
}

/// The id of a document that a search finds.
fn some_document(address: &str) -> Result<String> {
    let (_, page) = fetch(address, "/search?q=the&part=results")?;
    let id = page.split("href=\"/d/").nth(1).and_then(|rest| rest.get(..36));
    Ok(id.context("the search finds no document")?.to_owned())
}
