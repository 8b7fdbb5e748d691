//! Starts and stops `shelf serve` on a free port, for tasks that need a running HTTP server.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The maximum time for startup.
const PATIENCE: Duration = Duration::from_secs(30);

/// The text before the port in the line that the server prints.
const ANNOUNCEMENT: &str = "listening on http://127.0.0.1:";

/// The text before the port of its metrics.
const METRICS: &str = "Metrics: http://127.0.0.1:";

/// A running server; dropping it kills the process.
pub struct Server {
    child: Child,
    port: u16,
    metrics_port: Option<u16>,
}

impl Server {
    /// Starts a server without authorization on a library in `data`.
    pub fn start(shelf: &Path, data: &Path) -> Result<Self> {
        Self::start_with(Command::new(shelf), shelf, data)
    }

    /// Like [`start`](Self::start), but with a workspace, so that every tool has something to work on.
    pub fn start_with_workspace(shelf: &Path, data: &Path, workspace: &Path) -> Result<Self> {
        let mut command = Command::new(shelf);
        command.env("SHELF_WORKSPACE", workspace);
        Self::start_with(command, shelf, data)
    }

    /// Like [`start`](Self::start), but does not use its idle time to improve the index.
    pub fn start_without_deep(shelf: &Path, data: &Path) -> Result<Self> {
        let mut command = Command::new(shelf);
        command.env("SHELF_EMBEDDING_DEEPEN", "off");
        Self::start_with(command, shelf, data)
    }

    /// Starts the server of the conformance suite on a library in `data`.
    pub fn start_fixture(fixture: &Path, data: &Path) -> Result<Self> {
        let mut command = Command::new(fixture);
        command.arg(data).arg("127.0.0.1:0");
        Ok(Self::launch(command, fixture)?.0)
    }

    /// Starts a server with metrics and these variables, as one of several nodes of a library.
    pub fn start_node(shelf: &Path, data: &Path, variables: &[(&str, String)]) -> Result<Self> {
        let mut command = Command::new(shelf);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        serve(&mut command, data, "127.0.0.1:0");
        let (mut server, lines) = Self::launch(command, shelf)?;
        server.metrics_port = Some(wait_for_port(&lines, METRICS)?);
        Ok(server)
    }

    fn start_with(mut command: Command, shelf: &Path, data: &Path) -> Result<Self> {
        serve(&mut command, data, "off");
        Ok(Self::launch(command, shelf)?.0)
    }

    /// The server, and the lines that it prints after the one with its port.
    fn launch(mut command: Command, program: &Path) -> Result<(Self, Receiver<String>)> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let Some(stderr) = child.stderr.take() else { bail!("the server has no stderr to read") };
        let lines = follow(stderr);
        let mut server = Self { child, port: 0, metrics_port: None };
        server.port = wait_for_port(&lines, ANNOUNCEMENT)?;
        Ok((server, lines))
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Host and port of its metrics, if it serves any.
    pub fn metrics_address(&self) -> Option<String> {
        self.metrics_port.map(|port| format!("127.0.0.1:{port}"))
    }

    /// The address of the MCP endpoint.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

/// The arguments of a server on a free port without authorization, with metrics at `metrics`.
fn serve(command: &mut Command, data: &Path, metrics: &str) {
    command.arg("--data-dir").arg(data).args(["serve", "--http", "127.0.0.1:0", "--no-auth"]);
    command.args(["--admin-listen", metrics]);
}

impl Drop for Server {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        if let Err(error) = ended {
            eprintln!("xtask: the server could not be stopped: {error}");
        }
    }
}

/// Reads stderr to its end in a thread, so that the server never blocks on a full pipe.
fn follow(stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver): (Sender<String>, _) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines() {
            let Ok(line) = line else { break };
            // The receiver is dropped once the port is known, but stderr must still be drained.
            let _ = sender.send(line);
        }
    });
    receiver
}

fn wait_for_port(lines: &Receiver<String>, announcement: &str) -> Result<u16> {
    let deadline = Instant::now() + PATIENCE;
    let mut seen = Vec::new();
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => match port_in(&line, announcement) {
                Some(port) => return Ok(port),
                None => seen.push(line),
            },
            Err(RecvTimeoutError::Timeout) => {
                bail!(
                    "the server did not report a port within {} s; its output was:\n{}",
                    PATIENCE.as_secs(),
                    seen.join("\n")
                )
            }
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the server exited before it listened; its output was:\n{}", seen.join("\n"))
            }
        }
    }
}

fn port_in(line: &str, announcement: &str) -> Option<u16> {
    let (_, rest) = line.split_once(announcement)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{ANNOUNCEMENT, METRICS, port_in};

    #[test]
    fn the_port_is_read_from_the_announcement() {
        assert_eq!(port_in("INFO listening on http://127.0.0.1:40123/mcp", ANNOUNCEMENT), Some(40123));
        assert_eq!(port_in("Metrics: http://127.0.0.1:40124/metrics", METRICS), Some(40124));
        assert_eq!(port_in("opening the library", ANNOUNCEMENT), None);
    }
}
