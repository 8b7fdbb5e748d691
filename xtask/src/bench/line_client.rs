//! A simple MCP client over stdio (JSON-RPC, one message per line) with as little overhead as possible.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::machine;

/// The maximum duration of a session: a server that hangs is killed, and the benchmark fails.
const LONGEST: Duration = Duration::from_secs(900);

/// A tool's name and its arguments.
pub type Call = (&'static str, Value);

/// One session with one server process.
pub struct LineClient {
    child: Arc<Mutex<Child>>,
    process: u32,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    line: String,
    last: u64,
    /// Dropping this tells the watchdog that the session is over.
    _watched: Sender<()>,
}

impl LineClient {
    /// Starts the server and waits for its first reply; its stderr goes to `log`.
    pub fn start(shelf: &Path, data: &Path, log: &Path) -> Result<Self> {
        Self::start_with(shelf, data, log, &[])
    }

    /// The same with environment variables.
    pub fn start_with(shelf: &Path, data: &Path, log: &Path, variables: &[(&str, &str)]) -> Result<Self> {
        let mut child = Command::new(shelf)
            .envs(variables.iter().copied())
            // The mixed calls use `hello` more often than the default rate limit allows.
            .env("SHELF_HELLO_PER_MINUTE", "0")
            .arg("--data-dir")
            .arg(data)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log)?)
            .spawn()
            .with_context(|| format!("cannot start {}", shelf.display()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the server has no pipes to talk through")
        };
        let process = child.id();
        let child = Arc::new(Mutex::new(child));
        let watched = watch(Arc::clone(&child));
        let output = BufReader::with_capacity(1 << 16, output);
        let input = Some(input);
        let mut client =
            Self { child, process, input, output, line: String::new(), last: 0, _watched: watched };
        client.initialize()?;
        Ok(client)
    }

    fn initialize(&mut self) -> Result<()> {
        let client = json!({ "name": "bench", "version": "1" });
        let parameters = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        self.request("initialize", &parameters)?;
        self.receive()
    }

    /// Completes the handshake, after which calls can be made.
    pub fn initialized(&mut self) -> Result<()> {
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
    }

    /// The server's resident memory in MB.
    pub fn resident(&self) -> Result<f64> {
        machine::resident_megabytes(self.process).context("cannot read the server's memory from /proc")
    }

    /// The server's anonymous memory (not backed by files) in MB.
    pub fn own_memory(&self) -> Result<f64> {
        machine::own_megabytes(self.process).context("cannot read the server's memory from /proc")
    }

    /// The processor time that the server has used so far, in seconds.
    pub fn processor(&self) -> Result<f64> {
        machine::processor_seconds(self.process).context("cannot read the server's time from /proc")
    }

    /// Calls a tool and returns its structured result.
    pub fn call(&mut self, call: &Call) -> Result<Value> {
        self.request_call(call)?;
        self.receive()?;
        let mut reply: Value = serde_json::from_str(&self.line)?;
        Ok(reply["result"]["structuredContent"].take())
    }

    /// Calls a tool and returns the latency in milliseconds.
    pub fn timed(&mut self, call: &Call) -> Result<f64> {
        let start = Instant::now();
        self.request_call(call)?;
        self.receive()?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }

    /// Makes all calls with at most `most` of them in flight; returns calls per second.
    pub fn in_flight(&mut self, calls: &[Call], most: usize) -> Result<f64> {
        let start = Instant::now();
        let mut waiting = calls.iter();
        for call in waiting.by_ref().take(most) {
            self.request_call(call)?;
        }
        for _ in calls {
            self.receive()?;
            if let Some(call) = waiting.next() {
                self.request_call(call)?;
            }
        }
        Ok(calls.len() as f64 / start.elapsed().as_secs_f64())
    }

    /// Closes the server's input and waits for it to exit.
    pub fn close(mut self) -> Result<()> {
        self.input = None;
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            let ended = self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait()?;
            if ended.is_some() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(2));
        }
        bail!("the server did not exit within 10 s after its input was closed")
    }

    fn request_call(&mut self, call: &Call) -> Result<()> {
        self.request("tools/call", &json!({ "name": call.0, "arguments": call.1 }))
    }

    fn request(&mut self, method: &str, parameters: &Value) -> Result<()> {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }))
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let Some(input) = &mut self.input else { bail!("the session is closed") };
        input.write_all(&line).context("the server no longer reads its input; see serve.log")
    }

    /// Reads the next reply and fails if it is an error. Notifications, which have no id, are skipped.
    fn receive(&mut self) -> Result<()> {
        loop {
            self.line.clear();
            if self.output.read_line(&mut self.line)? == 0 {
                bail!("the server exited or took over {} s; see serve.log", LONGEST.as_secs());
            }
            if self.line.contains("\"id\":") {
                break;
            }
        }
        // Quotes inside strings are escaped, so these can only be fields of the reply.
        if self.line.contains("\"isError\":true") || self.line.contains("\"error\":{\"code\"") {
            bail!("the server returned an error: {}", self.line.chars().take(400).collect::<String>());
        }
        Ok(())
    }
}

impl Drop for LineClient {
    fn drop(&mut self) {
        end(&self.child);
    }
}

/// Kills the server unless the session ends in time.
fn watch(child: Arc<Mutex<Child>>) -> Sender<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        if receiver.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
            end(&child);
        }
    });
    sender
}

fn end(child: &Mutex<Child>) {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    // It may have exited already; then there is nothing to kill.
    let _ = child.kill();
    let _ = child.wait();
}
