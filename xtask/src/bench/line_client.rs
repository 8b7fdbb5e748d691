//! A plain MCP client over stdio: JSON-RPC, one message a line, with as little of its own cost as can be.

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

/// No session lasts longer: a server that hangs is ended and the benchmark fails.
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
    /// Dropping it tells the watchdog that the session is over.
    _watched: Sender<()>,
}

impl LineClient {
    /// Starts the server and waits for its first reply; what it says on stderr goes to `log`.
    pub fn start(shelf: &Path, data: &Path, log: &Path) -> Result<Self> {
        let mut child = Command::new(shelf)
            // The mixed calls greet more often than the contract allows anybody else.
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

    /// Ends the handshake; calls may follow.
    pub fn initialized(&mut self) -> Result<()> {
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
    }

    /// The server's resident memory in MB.
    pub fn resident(&self) -> Result<f64> {
        machine::resident_megabytes(self.process).context("cannot read the server's memory from /proc")
    }

    /// The part of the server's memory that is no file's, in MB.
    pub fn own_memory(&self) -> Result<f64> {
        machine::own_megabytes(self.process).context("cannot read the server's memory from /proc")
    }

    /// The seconds of processor time the server has used so far.
    pub fn processor(&self) -> Result<f64> {
        machine::processor_seconds(self.process).context("cannot read the server's time from /proc")
    }

    /// Calls a tool and gives its structured result.
    pub fn call(&mut self, call: &Call) -> Result<Value> {
        self.request_call(call)?;
        self.receive()?;
        let mut reply: Value = serde_json::from_str(&self.line)?;
        Ok(reply["result"]["structuredContent"].take())
    }

    /// Calls a tool and says how many milliseconds the reply took.
    pub fn timed(&mut self, call: &Call) -> Result<f64> {
        let start = Instant::now();
        self.request_call(call)?;
        self.receive()?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }

    /// Makes all calls with so many of them under way at once; gives calls per second.
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

    /// Closes the server's input and waits for it to end by itself.
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
        bail!("the server did not end within 10 s after its input closed")
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
        input.write_all(&line).context("the server no longer reads; its log is beside the library")
    }

    /// Reads up to the next reply and refuses errors. Notifications, which have no id, are passed over.
    fn receive(&mut self) -> Result<()> {
        loop {
            self.line.clear();
            if self.output.read_line(&mut self.line)? == 0 {
                bail!("the server ended or took over {} s; its log is beside the library", LONGEST.as_secs());
            }
            if self.line.contains("\"id\":") {
                break;
            }
        }
        // Quotes inside texts are escaped, so these can only be the reply's own fields.
        if self.line.contains("\"isError\":true") || self.line.contains("\"error\":{\"code\"") {
            bail!("the server refused a call: {}", self.line.chars().take(400).collect::<String>());
        }
        Ok(())
    }
}

impl Drop for LineClient {
    fn drop(&mut self) {
        end(&self.child);
    }
}

/// Ends the server unless the session is over in time.
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
    // It may have ended by itself; then there is nothing to kill.
    let _ = child.kill();
    let _ = child.wait();
}
