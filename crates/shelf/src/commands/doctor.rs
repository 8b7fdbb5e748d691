//! `doctor`: looks at everything that a library needs to work, and says what to do where something is amiss.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_engine::{
    Library,
    maintain::{Advice, Diagnosis},
};

use super::{clients, existing_anyway};
use crate::{
    outcome::{CliError, Outcome},
    output::Output,
    settings::Settings,
};

/// How long a server on this machine may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn run(settings: &Settings, output: &Output) -> Outcome {
    let mut lines = look_at_library(settings)?;
    lines.push(look_at_server(settings));
    lines.push(look_at_ffmpeg());
    lines.extend(clients::diagnosis());
    if output.json {
        let lines: Vec<Value> = lines.iter().map(view).collect();
        output.print_json(&json!({ "version": env!("CARGO_PKG_VERSION"), "diagnosis": lines }))?;
    } else {
        output.print(&format!("shelf {}", env!("CARGO_PKG_VERSION")))?;
        for line in &lines {
            let sign = match line.advice {
                Advice::Fine => "ok  ",
                Advice::Note => "note",
                Advice::Problem => "BAD ",
            };
            output.print(&format!("{sign} {:14} {}", line.subject, line.text))?;
        }
    }
    match lines.iter().filter(|line| line.advice == Advice::Problem).count() {
        0 => Ok(()),
        1 => Err(CliError::new(Kind::Corrupt, "1 problem found")),
        count => Err(CliError::new(Kind::Corrupt, format!("{count} problems found"))),
    }
}

fn view(line: &Diagnosis) -> Value {
    let advice = match line.advice {
        Advice::Fine => "fine",
        Advice::Note => "note",
        Advice::Problem => "problem",
    };
    json!({ "subject": line.subject, "advice": advice, "text": line.text })
}

fn look_at_library(settings: &Settings) -> Outcome<Vec<Diagnosis>> {
    let folder = settings.data_dir()?;
    if Library::is_in(&folder) || !settings.text("library.catalog").is_empty() {
        return Ok(existing_anyway(settings)?.diagnose()?);
    }
    let text = format!("{}: no library yet; `shelf add FILE` makes one", folder.display());
    Ok(vec![Diagnosis { subject: "data directory", advice: Advice::Note, text }])
}

/// Asks whoever listens at the configured address; where nobody does, tries whether a server could.
fn look_at_server(settings: &Settings) -> Diagnosis {
    let line = |advice, text| Diagnosis { subject: "HTTP server", advice, text };
    let address = match settings.address("http.listen") {
        Ok(address) => address,
        Err(error) => return line(Advice::Problem, error.to_string()),
    };
    match ask(address) {
        Some(true) => line(Advice::Fine, format!("running at http://{address}")),
        Some(false) => line(
            Advice::Note,
            format!("{address} is in use by another program; `shelf serve --http` takes another port"),
        ),
        None => match TcpListener::bind(address) {
            Ok(_) => {
                line(Advice::Fine, format!("not running; `shelf serve --http` would listen on {address}"))
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => line(
                Advice::Problem,
                format!("this user may not listen on {address}: choose a port above 1023"),
            ),
            Err(error) => line(Advice::Problem, format!("no server could listen on {address}: {error}")),
        },
    }
}

/// Whether a Shelfmark answers there; `None` when nobody listens.
fn ask(address: SocketAddr) -> Option<bool> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut reply = Vec::new();
    let asked = stream.write_all(request.as_bytes());
    // Another program may never end its answer; its beginning is enough.
    let _ = asked.and_then(|()| stream.take(4_096).read_to_end(&mut reply));
    let reply = String::from_utf8_lossy(&reply);
    Some(reply.starts_with("HTTP/1.1 200") && reply.trim_end().ends_with("ok"))
}

/// Clips of recordings are cut by another program.
fn look_at_ffmpeg() -> Diagnosis {
    let found = std::process::Command::new("ffmpeg")
        .arg("-version")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status();
    match found {
        Ok(status) if status.success() => {
            Diagnosis { subject: "ffmpeg", advice: Advice::Fine, text: "found; recordings can be cut".into() }
        }
        _ => Diagnosis {
            subject: "ffmpeg",
            advice: Advice::Note,
            text: "not found; citing clips of recordings needs it, everything else works".into(),
        },
    }
}
