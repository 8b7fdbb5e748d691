//! A connection to a server that may be killed at any moment: over stdio, where the server is its own child, or over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::servers::HttpServer;

/// How a call ended.
pub enum Outcome {
    /// The server answered.
    Done(Value),
    /// The server said that it is busy and that nothing was done.
    Busy,
    /// The server refused.
    Refused(String),
    /// No answer came, and nobody knows whether the call was carried out.
    Lost,
}

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// One client's way to its server.
pub enum Connection {
    /// A server of its own.
    Stdio(Box<Piped>),
    /// A server that it shares with others.
    Http { server: Arc<HttpServer>, is_modern: bool, id: u64 },
}

/// A server process and its pipes.
pub struct Piped {
    shelf: PathBuf,
    data: PathBuf,
    /// The process id, by which others kill it; 0 while there is none.
    process: Arc<AtomicU32>,
    running: Option<(Child, ChildStdin, BufReader<ChildStdout>)>,
    id: u64,
}

impl Connection {
    /// A client with a server of its own; its process id is put into `process`.
    pub fn stdio(shelf: &Path, data: &Path, process: Arc<AtomicU32>) -> Self {
        let (shelf, data) = (shelf.to_owned(), data.to_owned());
        Self::Stdio(Box::new(Piped { shelf, data, process, running: None, id: 0 }))
    }

    /// A client of a shared server, which speaks the revision of 2026-07-28 or an older one.
    pub const fn http(server: Arc<HttpServer>, is_modern: bool) -> Self {
        Self::Http { server, is_modern, id: 0 }
    }

    /// Calls a tool.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Outcome {
        let reply = match self {
            Self::Stdio(piped) => piped.call(tool, arguments),
            Self::Http { server, is_modern, id } => {
                *id += 1;
                post(&server.address(), &message(*id, tool, arguments, *is_modern), *is_modern, tool)
            }
        };
        match reply {
            Ok(reply) => judge(&reply),
            Err(_) => {
                if let Self::Stdio(piped) = self {
                    piped.end();
                }
                Outcome::Lost
            }
        }
    }
}

fn judge(reply: &Value) -> Outcome {
    let result = &reply["result"];
    if result["isError"] == json!(false) {
        let content = &result["structuredContent"];
        return Outcome::Done(content.get("result").unwrap_or(content).clone());
    }
    let text = result["content"][0]["text"].as_str().or_else(|| reply["error"]["message"].as_str());
    let text = text.map_or_else(|| reply.to_string(), str::to_owned);
    if text.contains("busy") { Outcome::Busy } else { Outcome::Refused(text) }
}

fn message(id: u64, tool: &str, arguments: &Value, is_modern: bool) -> Value {
    let mut params = json!({ "name": tool, "arguments": arguments });
    if is_modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// Posts one message over a connection of its own.
fn post(address: &str, message: &Value, is_modern: bool, tool: &str) -> Result<Value> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let body = message.to_string();
    let revision = if is_modern {
        format!("Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n")
    } else {
        "Mcp-Protocol-Version: 2025-11-25\r\n".to_owned()
    };
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{revision}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    let (_, body) = reply.split_once("\r\n\r\n").context("no reply")?;
    Ok(serde_json::from_str(body)?)
}

impl Piped {
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        if self.running.is_none() {
            self.start()?;
        }
        self.id += 1;
        self.request(&message(self.id, tool, arguments, false))
    }

    fn start(&mut self) -> Result<()> {
        let mut child = Command::new(&self.shelf)
            .arg("--data-dir")
            .arg(&self.data)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", self.shelf.display()))?;
        let input = child.stdin.take().context("the server has no input")?;
        let output = BufReader::new(child.stdout.take().context("the server has no output")?);
        self.process.store(child.id(), Ordering::SeqCst);
        self.running = Some((child, input, output));
        self.id += 1;
        let client = json!({ "name": "soak", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let hello = json!({ "jsonrpc": "2.0", "id": self.id, "method": "initialize", "params": params });
        self.request(&hello)?;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let (_, input, _) = self.running.as_mut().context("no server")?;
        writeln!(input, "{message}")?;
        Ok(input.flush()?)
    }

    fn request(&mut self, message: &Value) -> Result<Value> {
        self.send(message)?;
        let (_, _, output) = self.running.as_mut().context("no server")?;
        loop {
            let mut line = String::new();
            anyhow::ensure!(output.read_line(&mut line)? > 0, "the server is gone");
            let reply: Value = serde_json::from_str(&line)?;
            if reply["id"] == message["id"] {
                return Ok(reply);
            }
        }
    }

    /// Forgets a server that did not answer.
    fn end(&mut self) {
        self.process.store(0, Ordering::SeqCst);
        if let Some((mut child, ..)) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        self.end();
    }
}
