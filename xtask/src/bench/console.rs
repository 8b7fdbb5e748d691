//! `bench console`: how long the pages of the web console take over a library of 50,000 documents, to the first byte and
//! to the last.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::corpus::{self, Tree};
use super::library::Library;
use super::report::{Report, Target};
use super::words::Words;
use super::{Scale, machine};
use crate::places;
use crate::server::Server;

/// Documents at full scale.
const DOCUMENTS: usize = 50_000;
/// Nodes around the hub: as many as a picture of the graph shows.
const NODES: usize = 300;
/// The idle time after which a server has released memory.
const IDLE: Duration = Duration::from_secs(65);
/// Requests for each page that are measured, after one that is not.
const REQUESTS: usize = 40;
/// Pages with counts of all documents, which are remembered while nothing changes; and changes before each request for them.
const COUNTING: [&str; 3] = ["overview", "collections", "folder"];
const CHANGES: usize = 15;
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
    let server = Server::start_without_deep(&shelf, &library.data)?;
    let address = server.address();
    // The first search makes the index. No page of the console is asked for before the memory is measured.
    call(&address, "search", r#"{"query": "the"}"#)?;
    let idle = || {
        thread::sleep(IDLE);
        machine::own_megabytes(server.id()).unwrap_or_default()
    };
    let before = idle();
    let document = some_document(&address)?;
    let hub = hub(&address)?;
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
        ("graph, where to begin", "/graph".to_owned(), PAGE),
        ("related", format!("/d/{document}?view=links"), PAGE),
        ("graph", format!("/graph?node=doc:{document}"), PAGE),
        ("graph of 300 nodes", format!("/graph?node=doc:{hub}"), PAGE),
        ("evidence", "/cite".to_owned(), PAGE),
        ("books", "/books".to_owned(), PAGE),
        ("snapshots", "/snapshots".to_owned(), PAGE),
        ("memory", "/memory".to_owned(), PAGE),
        ("activity", "/activity".to_owned(), PAGE),
        ("activity of a family", "/activity?family=books".to_owned(), PAGE),
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
    for (name, path, limit) in pages.iter().filter(|(name, ..)| COUNTING.contains(name)) {
        let changed = |number: usize| {
            let body =
                json!({ "name": format!("change-{number}.txt"), "content": format!("{name} {number}") });
            call(&address, "add", &body.to_string())?;
            fetch(&address, path).map(|(wait, _)| wait)
        };
        let waits = (0..CHANGES).map(changed).collect::<Result<Vec<f64>>>()?;
        let what = format!("{name} right after a change, first byte");
        report.latencies(&what, "shelf", &waits, Target::AtMost(*limit), Target::None);
    }
    let grown = (idle() - before).max(0.0);
    report.single("idle memory, more than before the first page", "shelf", "MB", grown, Target::AtMost(5.0));
    drop(server);
    corpus::remove(&work.join("stores"))?;
    report.finish()
}

/// Stores a document with links to as many others as a picture shows. Gives its id.
fn hub(address: &str) -> Result<String> {
    let add = |name: String, content: String| {
        let body = json!({ "name": name, "content": content, "collection": "hub" }).to_string();
        call(address, "add", &body)
    };
    for node in 1..=NODES {
        add(
            format!("node-{node}.md"),
            format!("# Node {node}\n\nThe [next](node-{}.md) one.\n", node % NODES + 1),
        )?;
    }
    let links: String = (1..=NODES).map(|node| format!("- [node {node}](node-{node}.md)\n")).collect();
    let made = add("hub.md".to_owned(), format!("# Hub\n\n{links}"))?;
    Ok(made["document_id"].as_str().context("the reply has no id")?.to_owned())
}

/// Calls a tool over REST.
fn call(address: &str, tool: &str, body: &str) -> Result<Value> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "POST /api/v1/tools/{tool} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    let (head, body) = reply.split_once("\r\n\r\n").context("the reply has no body")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{tool}: {}", head.lines().next().unwrap_or_default());
    Ok(serde_json::from_str(body)?)
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
