//! `bench hostile`: 200 connections that misbehave in various ways, next to 16 regular clients. Measures the latency
//! and errors of those 16 and the server's memory.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::many::Client;
use super::random::Random;
use super::report::{Report, Target};
use super::{Scale, corpus, machine};
use crate::places;
use crate::server::Server;

/// The number of misbehaving connections.
const HOSTILE: usize = 200;
/// The number of regular clients.
const CLIENTS: usize = 16;
/// The number of documents in the library.
const DOCUMENTS: usize = 2_000;
/// The size of the document that is requested by clients that do not read the reply.
const LARGE: usize = 6_000_000;

/// Creates a small library and runs the measurement.
pub fn run(scale: Scale) -> Result<()> {
    let shelf = places::built_shelf()?;
    let work = places::root().join("bench").join("work").join(scale.folder());
    let data = work.join("stores").join("hostile");
    corpus::remove(&data)?;
    fs::create_dir_all(&data)?;
    let server = Server::start(&shelf, &data)?;
    let address = server.address();
    println!("== creating a library of {DOCUMENTS} documents");
    fill(&address)?;
    let mut report = Report::new("hostile", scale, &work);
    let length = Duration::from_secs(if scale.is_quick() { 8 } else { 60 });
    println!("== {CLIENTS} clients next to {HOSTILE} misbehaving connections");
    let tally = measure(&server, length);
    finish(&mut report, &server, tally)?;
    drop(server);
    corpus::remove(&work.join("stores"))?;
    report.finish()
}

fn text(random: &mut Random, words: usize) -> String {
    let mut text = String::new();
    for _ in 0..words {
        text.push_str(&format!("word{} ", random.below(5_000)));
    }
    text
}

fn fill(address: &str) -> Result<()> {
    let mut client = Client::connect(address)?;
    let mut random = Random::new(0x5eed_0060);
    for number in 0..DOCUMENTS {
        let content = format!("heron\n{}", text(&mut random, 120));
        client.call("add", &json!({ "name": format!("n{number}"), "content": content }))?;
    }
    client.call("add", &json!({ "name": "lines", "content": "ab\n".repeat(300_000) }))?;
    client.call("add", &json!({ "name": "large", "content": text(&mut random, LARGE / 9) }))?;
    client.call("search", &json!({ "query": "heron" }))?;
    Ok(())
}

/// What the regular clients measured.
#[derive(Default)]
struct Tally {
    milliseconds: Vec<f64>,
    /// The same for each tool.
    of_tools: BTreeMap<&'static str, Vec<f64>>,
    /// The number of calls that were told to retry later.
    later: usize,
    errors: Vec<String>,
}

fn measure(server: &Server, length: Duration) -> Tally {
    let address = server.address();
    let (stop, tally) = (AtomicBool::new(false), Mutex::new(Tally::default()));
    thread::scope(|scope| {
        for number in 0..HOSTILE {
            let (address, stop) = (&address, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    misbehave(address, number, stop);
                }
            });
        }
        // Let the hostile connections get established first.
        thread::sleep(Duration::from_secs(2));
        let until = Instant::now() + length;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (address, tally) = (&address, &tally);
                scope.spawn(move || {
                    let own = work(address, number, until);
                    let mut all = tally.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    all.milliseconds.extend(own.milliseconds);
                    for (tool, milliseconds) in own.of_tools {
                        all.of_tools.entry(tool).or_default().extend(milliseconds);
                    }
                    all.later += own.later;
                    all.errors.extend(own.errors);
                })
            })
            .collect();
        for client in clients {
            let _ = client.join();
        }
        stop.store(true, Ordering::Relaxed);
    });
    tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn work(address: &str, number: usize, until: Instant) -> Tally {
    let mut tally = Tally::default();
    let mut random = Random::new(0x5eed_0070 + number as u64);
    let mut client = None;
    for turn in 0.. {
        if Instant::now() >= until {
            break;
        }
        let (tool, arguments) = match turn % 10 {
            0 => ("add", json!({ "name": format!("own/{number}/{turn}"), "content": "a note of mine" })),
            1 | 2 => ("search", json!({ "query": format!("word{} heron", random.below(5_000)), "limit": 5 })),
            _ => ("get", json!({ "name": format!("n{}", random.below(DOCUMENTS)), "include_content": true })),
        };
        let started = Instant::now();
        let connected: Result<Client> = client.take().map_or_else(|| Client::connect(address), Ok);
        let outcome = connected.and_then(|mut connected| {
            let reply = connected.call(tool, &arguments)?;
            client = Some(connected);
            Ok(reply)
        });
        match outcome {
            Ok(_) => {
                let milliseconds = started.elapsed().as_secs_f64() * 1e3;
                tally.milliseconds.push(milliseconds);
                tally.of_tools.entry(tool).or_default().push(milliseconds);
            }
            Err(error) => {
                let message = format!("{error:#}");
                if ["\"busy\"", "\"rate_limited\""].iter().any(|code| message.contains(code)) {
                    tally.later += 1;
                } else {
                    tally.errors.push(message);
                }
            }
        }
    }
    tally
}

/// A quantile of the latencies, which must be sorted.
fn quantile(milliseconds: &[f64], share: f64) -> f64 {
    let last = milliseconds.len().saturating_sub(1);
    milliseconds.get((last as f64 * share) as usize).copied().unwrap_or(0.0)
}

fn finish(report: &mut Report, server: &Server, mut tally: Tally) -> Result<()> {
    let peak = machine::peak_megabytes(server.id()).context("the server has exited")?;
    tally.milliseconds.sort_by(f64::total_cmp);
    let at = |share: f64| quantile(&tally.milliseconds, share);
    let name = |what: &str| format!("{CLIENTS} clients beside {HOSTILE} hostile connections: {what}");
    report.single(
        &name("calls answered"),
        "shelf",
        "calls",
        tally.milliseconds.len() as f64,
        Target::AtLeast(100.0),
    );
    report.single(&name("p50"), "shelf", "ms", at(0.5), Target::None);
    report.single(&name("p99"), "shelf", "ms", at(0.99), Target::AtMost(100.0));
    for (tool, milliseconds) in &mut tally.of_tools {
        milliseconds.sort_by(f64::total_cmp);
        let p99 = quantile(milliseconds, 0.99);
        report.single(&name(&format!("p99 of {tool}")), "shelf", "ms", p99, Target::None);
    }
    report.single(&name("asked to come again"), "shelf", "calls", tally.later as f64, Target::None);
    report.single(&name("errors"), "shelf", "calls", tally.errors.len() as f64, Target::AtMost(0.0));
    report.single(&name("memory at most"), "shelf", "MB", peak, Target::AtMost(500.0));
    if let Some(error) = tally.errors.first() {
        println!("   the first error: {error}");
    }
    Ok(())
}

/// Misbehaves in one of eight ways, chosen by the connection's number.
fn misbehave(address: &str, number: usize, stop: &AtomicBool) {
    let outcome = TcpStream::connect(address).map_err(anyhow::Error::from).and_then(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        stream.set_write_timeout(Some(Duration::from_secs(2)))?;
        match number % 8 {
            0 => hold(&mut stream, stop),
            1 => trickle(&mut stream, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", stop),
            2 => half_a_body(&mut stream, "/auth/login", 31_000_000, stop),
            3 => half_a_body(&mut stream, "/api/v1/tools/add", 31_000_000, stop),
            4 => unread(&mut stream, "get", &json!({ "name": "large", "include_content": true }), stop),
            5 => unread(
                &mut stream,
                "grep",
                &json!({ "pattern": "a", "paths": ["lines"], "context": 200_000 }),
                stop,
            ),
            6 => unread_stream(&mut stream, address, stop),
            _ => {
                // Sends a request and disconnects without reading the reply.
                ask(&mut stream, "search", &json!({ "query": "heron" }))?;
                thread::sleep(Duration::from_millis(500));
                Ok(())
            }
        }
    });
    // Errors are expected here.
    if outcome.is_err() {
        thread::sleep(Duration::from_millis(200));
    }
}

fn wait(stop: &AtomicBool, most: Duration) {
    let until = Instant::now() + most;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(50));
    }
}

/// Sends nothing until the server closes the connection.
fn hold(stream: &mut TcpStream, stop: &AtomicBool) -> Result<()> {
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut nothing = [0; 16];
    while !stop.load(Ordering::Relaxed) {
        match stream.read(&mut nothing) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Sends the start of a request header, then a single byte from time to time.
fn trickle(stream: &mut TcpStream, beginning: &[u8], stop: &AtomicBool) -> Result<()> {
    stream.write_all(beginning)?;
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(b"x")?;
        thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// Announces a large body but sends only part of it.
fn half_a_body(stream: &mut TcpStream, path: &str, length: usize, stop: &AtomicBool) -> Result<()> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    let _ = stream.write_all(&vec![b' '; length / 4]);
    hold(stream, stop)
}

fn ask(stream: &mut TcpStream, tool: &str, arguments: &Value) -> Result<()> {
    let body = arguments.to_string();
    let request = format!(
        "POST /api/v1/tools/{tool} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    Ok(stream.write_all(request.as_bytes())?)
}

/// Requests something large and does not read the reply.
fn unread(stream: &mut TcpStream, tool: &str, arguments: &Value, stop: &AtomicBool) -> Result<()> {
    ask(stream, tool, arguments)?;
    wait(stop, Duration::from_secs(25));
    Ok(())
}

/// Opens an SSE stream, sends many requests, and does not read the replies.
fn unread_stream(stream: &mut TcpStream, address: &str, stop: &AtomicBool) -> Result<()> {
    stream.write_all(b"GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let (mut text, mut bytes) = (String::new(), [0; 512]);
    while !text.split_once("session_id=").is_some_and(|(_, rest)| rest.contains('\n')) {
        let count = stream.read(&mut bytes)?;
        anyhow::ensure!(count > 0, "the stream ended");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    let session =
        text.split("session_id=").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap_or("");
    let path = format!("/messages?session_id={session}");
    let about = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "h", "version": "1" } });
    post(address, &path, &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about }))?;
    post(address, &path, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    let call = json!({ "name": "get", "arguments": { "name": "large", "include_content": true, "length": 500_000 } });
    for id in 1..200 {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        post(address, &path, &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call }))?;
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn post(address: &str, path: &str, message: &Value) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let body = message.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    Ok(())
}
