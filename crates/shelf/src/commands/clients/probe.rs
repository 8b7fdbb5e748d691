//! Tries what a client's settings name: starts the program or calls the address, and asks it who it is.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use serde_json::{Value, json};

use super::table::Connection;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the server says of itself, or why it does not answer.
pub(super) fn ask(connection: &Connection) -> Result<String, String> {
    let reply = match connection {
        Connection::Stdio { command, arguments } => ask_program(command, arguments)?,
        Connection::Http { url, token } => ask_address(url, token.as_deref())?,
    };
    let info = &reply["result"]["serverInfo"];
    match (info["name"].as_str(), info["version"].as_str()) {
        (Some(name), Some(version)) => Ok(format!("{name} {version}")),
        _ => Err(reply["error"]["message"].as_str().unwrap_or("it answers, but not in MCP").to_owned()),
    }
}

fn question() -> String {
    json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "shelf client list", "version": env!("CARGO_PKG_VERSION") },
        },
    })
    .to_string()
}

fn ask_program(command: &str, arguments: &[String]) -> Result<Value, String> {
    let mut child = Command::new(command)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{command} cannot be started: {error}"))?;
    let (sender, answered) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(output).read_line(&mut line);
            let _ = sender.send(line);
        });
    }
    let asked = child.stdin.as_mut().map(|input| writeln!(input, "{}", question()));
    let line = match asked {
        Some(Ok(())) => answered.recv_timeout(PATIENCE).unwrap_or_default(),
        _ => String::new(),
    };
    // Without input the server ends by itself; one that does not is ended.
    drop(child.stdin.take());
    if line.is_empty() {
        let _ = child.kill();
    }
    let mut complaint = String::new();
    if let Some(errors) = child.stderr.take()
        && line.is_empty()
    {
        let _ = errors.take(2_000).read_to_string(&mut complaint);
    }
    let _ = child.wait();
    serde_json::from_str(&line).map_err(|_| {
        let complaint = complaint.lines().next().unwrap_or("no answer").trim();
        complaint.trim_start_matches("error: ").to_owned()
    })
}

fn ask_address(url: &str, token: Option<&str>) -> Result<Value, String> {
    let Some(rest) = url.strip_prefix("http://") else {
        return Err("only http addresses can be tried; the client itself may well connect".into());
    };
    let (host, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
    let full = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    let address = full.to_socket_addrs().ok().and_then(|mut all| all.next());
    let address = address.ok_or_else(|| format!("{host} is not a known host"))?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)
        .map_err(|_| format!("nobody listens at {host}; start the server with `shelf serve --http`"))?;
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let body = question();
    let header = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{header}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut reply = Vec::new();
    stream
        .write_all(request.as_bytes())
        .and_then(|()| stream.take(1 << 20).read_to_end(&mut reply))
        .map_err(|error| format!("no answer from {host}: {error}"))?;
    let reply = String::from_utf8_lossy(&reply);
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((&reply, ""));
    let value: Option<Value> = serde_json::from_str(body.trim()).ok();
    let status = head.split(' ').nth(1).unwrap_or_default();
    match value {
        Some(value) if status == "200" => Ok(value),
        Some(value) => Err(value["error"]["message"].as_str().unwrap_or("it refuses").to_owned()),
        None => Err(format!("no MCP server answers at {url}")),
    }
}
