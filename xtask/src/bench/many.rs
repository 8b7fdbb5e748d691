//! Many concurrent clients over HTTP, with nine reads to one durable write: calls per second, tail latency, errors, and
//! whether every acknowledged write is there afterwards.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Scale;
use super::random::Random;
use super::report::{Report, Target};
use crate::server::Server;

/// The number of reads between two writes of a client.
const READS_PER_WRITE: usize = 9;

/// A persistent connection.
pub struct Client {
    reader: BufReader<TcpStream>,
    host: String,
}

impl Client {
    /// Connects to the server.
    pub fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).context("cannot connect to the server")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { reader: BufReader::new(stream), host: address.to_owned() })
    }

    /// Calls a tool and returns its reply; fails unless the status is 200.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let body = arguments.to_string();
        let request = format!(
            "POST /api/v1/tools/{tool} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.reader.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let is_ok = line.split(' ').nth(1) == Some("200");
        let mut length = 0;
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? <= 2 {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        if !is_ok {
            bail!("{tool} failed: {}", String::from_utf8_lossy(&body));
        }
        Ok(serde_json::from_slice(&body)?)
    }
}

/// The results of all clients.
#[derive(Default)]
struct Tally {
    milliseconds: Vec<f64>,
    writes: Vec<String>,
    errors: Vec<String>,
}

/// Measures this many clients.
pub fn measure(
    server: &Server,
    hashes: &[String],
    clients: usize,
    scale: Scale,
    report: &mut Report,
) -> Result<()> {
    let address = server.address();
    let length = Duration::from_secs(if scale.is_quick() { 5 } else { 60 });
    let tally = Mutex::new(Tally::default());
    let started = Instant::now();
    thread::scope(|scope| {
        for number in 0..clients {
            let (address, tally) = (&address, &tally);
            scope.spawn(move || {
                let own = work(address, hashes, number, started + length);
                let mut all = tally.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                all.milliseconds.extend(own.milliseconds);
                all.writes.extend(own.writes);
                all.errors.extend(own.errors);
            });
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    let mut tally = tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let lost = missing(&address, &tally.writes)?;
    let name = |what: &str| format!("{clients} clients over HTTP, 90 % reads: {what}");
    tally.milliseconds.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let last = tally.milliseconds.len().saturating_sub(1);
        tally.milliseconds.get((last as f64 * share) as usize).copied().unwrap_or(0.0)
    };
    let goal = |target| if clients == 16 { target } else { Target::None };
    let rate = tally.milliseconds.len() as f64 / seconds;
    report.single(&name("calls"), "shelf", "/s", rate, goal(Target::AtLeast(3_000.0)));
    report.single(&name("p50"), "shelf", "ms", at(0.5), Target::None);
    report.single(&name("p99"), "shelf", "ms", at(0.99), goal(Target::AtMost(50.0)));
    report.single(&name("errors"), "shelf", "calls", tally.errors.len() as f64, Target::AtMost(0.0));
    report.single(&name("lost writes"), "shelf", "documents", lost as f64, Target::AtMost(0.0));
    if let Some(error) = tally.errors.first() {
        println!("   the first error: {error}");
    }
    Ok(())
}

fn work(address: &str, hashes: &[String], number: usize, until: Instant) -> Tally {
    let mut tally = Tally::default();
    let mut random = Random::new(0x5eed_0040 + number as u64);
    let mut client = match Client::connect(address) {
        Ok(client) => client,
        Err(error) => {
            tally.errors.push(format!("{error:#}"));
            return tally;
        }
    };
    for turn in number.. {
        if Instant::now() >= until {
            break;
        }
        let is_write = turn % (READS_PER_WRITE + 1) == 0;
        let started = Instant::now();
        let outcome = if is_write {
            let title = format!("client {number}, note {turn}");
            let content = format!("A note of client {number}, the {turn}th thing it did.");
            client.call("store_document_tool", &json!({ "title": title, "content": content }))
        } else {
            let hash = random.pick(hashes);
            client.call("get", &json!({ "hash": hash, "include_content": true }))
        };
        match outcome {
            Ok(reply) => {
                tally.milliseconds.push(started.elapsed().as_secs_f64() * 1e3);
                if is_write {
                    tally.writes.push(reply["document_id"].as_str().unwrap_or_default().to_owned());
                }
            }
            Err(error) => tally.errors.push(format!("{error:#}")),
        }
    }
    tally
}

/// The number of acknowledged documents that are missing.
fn missing(address: &str, ids: &[String]) -> Result<usize> {
    let mut client = Client::connect(address)?;
    Ok(ids
        .iter()
        .filter(|id| client.call("get_document_tool", &json!({ "document_id": id })).is_err())
        .count())
}
