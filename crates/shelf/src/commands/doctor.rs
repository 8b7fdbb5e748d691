//! `doctor`: looks at everything that a library needs to work, and says what to do where something is amiss.

use std::{io::ErrorKind, net::TcpListener};

use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_engine::{
    Library,
    maintain::{Advice, Diagnosis},
};

use super::{clients, options, running};
use crate::{
    outcome::{CliError, Outcome},
    output::Output,
    settings::Settings,
};

pub(super) fn run(settings: &Settings, output: &Output) -> Outcome {
    let mut lines = look_at_library(settings)?;
    lines.push(look_at_server(settings));
    lines.push(look_at_ffmpeg());
    lines.extend(clients::diagnosis(settings));
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
        let options = options(settings, std::env::current_dir().ok())?;
        return match Library::open_anyway(&folder, options.clone()) {
            Ok(library) => Ok(library.diagnose()?),
            // One of its stores may not answer; what is on this machine only needs no second look.
            Err(error) if options.is_remote(&folder) => {
                Ok(Library::diagnose_unopened(&folder, &options, &error))
            }
            Err(error) => Err(error.into()),
        };
    }
    let text = format!("{}: no library yet; `shelf add FILE` makes one", folder.display());
    Ok(vec![Diagnosis { subject: "data directory", advice: Advice::Note, text }])
}

/// Where this library is served; where it is not, tries whether a server could listen.
fn look_at_server(settings: &Settings) -> Diagnosis {
    let line = |advice, text| Diagnosis { subject: "HTTP server", advice, text };
    let running = settings.data_dir().map(|folder| running::of(&folder)).unwrap_or_default();
    if !running.is_empty() {
        let places: Vec<String> = running.iter().map(|found| format!("http://{}", found.address)).collect();
        return line(Advice::Fine, format!("running at {}", places.join(" and ")));
    }
    let address = match settings.address("http.listen") {
        Ok(address) => address,
        Err(error) => return line(Advice::Problem, error.to_string()),
    };
    match TcpListener::bind(address) {
        Ok(_) => line(Advice::Fine, format!("not running; `shelf serve --http` would listen on {address}")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let whose = match running::is_shelfmark(address) {
                Some(true) => "by a server of another library",
                _ => "by another program",
            };
            let advice = if settings.is_default("http.listen") {
                "`shelf serve --http` takes another port"
            } else {
                "choose another one for this library: `shelf serve --http ADDR`"
            };
            line(Advice::Note, format!("not running; {address} is in use {whose}; {advice}"))
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            line(Advice::Problem, format!("this user may not listen on {address}: choose a port above 1023"))
        }
        Err(error) => line(Advice::Problem, format!("no server could listen on {address}: {error}")),
    }
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
