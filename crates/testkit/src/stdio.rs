//! A small MCP client that talks to a child process, line by line, as any client does.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

/// A running `shelf serve` and its pipes.
pub struct StdioClient {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl StdioClient {
    /// Starts `binary serve` on `library` without sending anything yet.
    pub fn spawn(binary: &Path, library: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(binary)
            .arg("--data-dir")
            .arg(library)
            .arg("serve")
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, input, output, next: 1 }
    }

    /// Starts the server and performs the handshake.
    pub fn start(binary: &Path, library: &Path) -> Self {
        let mut client = Self::spawn(binary, library, &[]);
        client.initialize();
        client
    }

    /// The handshake of revision 2025-11-25.
    pub fn initialize(&mut self) -> Value {
        let parameters = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "testkit", "version": "1" },
        });
        let reply = self.request("initialize", parameters);
        self.send_line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        reply
    }

    /// Sends a line unchanged.
    pub fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("an open pipe");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("the server reads");
    }

    /// Reads the next line; `None` at the end.
    pub fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).ok().filter(|count| *count > 0).map(|_| line)
    }

    /// Sends a request and waits for its reply; everything else that arrives must be JSON.
    pub fn request(&mut self, method: &str, parameters: Value) -> Value {
        self.try_request(method, parameters).expect("a reply")
    }

    /// Like `request`, but `None` when the server has exited.
    pub fn try_request(&mut self, method: &str, parameters: Value) -> Option<Value> {
        let id = self.next;
        self.next += 1;
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }).to_string();
        let input = self.input.as_mut()?;
        writeln!(input, "{line}").and_then(|()| input.flush()).ok()?;
        loop {
            let line = self.read_line()?;
            let message: Value =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON on stdout: {line}"));
            if message["id"] == json!(id) {
                return Some(message);
            }
        }
    }

    /// Calls a tool and returns the structured content of its result.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let reply = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_eq!(reply["result"]["isError"], json!(false), "{reply}");
        reply["result"]["structuredContent"].clone()
    }

    /// The server's input, for a client that sends without reading.
    pub fn take_input(&mut self) -> ChildStdin {
        self.input.take().expect("an open pipe")
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes the input, waits for the server to exit, and returns its exit code.
    pub fn finish(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().ok().and_then(|status| status.code())
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        self.kill();
    }
}
