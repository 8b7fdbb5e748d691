//! `workspace`: command-line access to the files and the memory that agents use.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use shelf_base::{Kind, Moment};
use shelf_engine::{Caller, Library, MemoryFault, MemoryFile, MemoryReport, Options};
use shelf_tools::verbatim;

use super::{eval::Scratch, existing, given, must_exist, open, options, tool};
use crate::{
    cli::workspace::{Action, Log, Query, Read},
    outcome::{CliError, Outcome},
    output::{Output, Tone, text},
    progress,
    settings::Settings,
};

pub(super) fn run(action: &Action, settings: &Settings, output: &Output) -> Outcome {
    match action {
        Action::Read(command) => for_reading(settings, |library| read(command, library, output)),
        Action::Log(command) => log(command, &open(settings)?, output),
        Action::Query(command) => for_reading(settings, |library| query(command, library, output)),
        Action::Check => check(&existing(settings)?, output),
    }
}

/// Reads with the library, or with an empty one that is gone afterwards: what is read lies in the workspace, and looking at
/// it must not make a library where none is.
fn for_reading(settings: &Settings, read: impl FnOnce(&Library) -> Outcome) -> Outcome {
    if must_exist(settings).is_ok() {
        return read(&open(settings)?);
    }
    let scratch = Scratch::new()?;
    let options = Options { catalog: None, ..options(settings, std::env::current_dir().ok())? };
    read(&Library::open(&scratch.0, options)?)
}

fn read(command: &Read, library: &Library, output: &Output) -> Outcome {
    let arguments = given(json!({
        "path": command.path,
        "start_line": command.start_line,
        "end_line": command.end_line,
        "tail": command.tail,
    }));
    let reply = tool(library, "read_repo_file", arguments, &progress::call(output))?;
    if output.json {
        return output.print_json(&reply);
    }
    let content = text(&reply, "content");
    if reply["truncated"] == json!(true) {
        output.say(
            Tone::Warning,
            "the file is too large to print at once; select lines with --start-line or --tail",
        );
    }
    match reply["encoding"].as_str() {
        Some(_) => output.print_bytes(&STANDARD.decode(content).unwrap_or_default()),
        None => output.print_bytes(content.as_bytes()),
    }
}

fn log(command: &Log, library: &Library, output: &Output) -> Outcome {
    let entry = match &command.entry {
        Some(entry) => match serde_json::from_str::<Value>(entry) {
            Ok(Value::Object(_)) => entry.clone(),
            Ok(_) => return Err(CliError::new(Kind::Invalid, "--entry must be a JSON object")),
            Err(error) => {
                return Err(CliError::new(Kind::Invalid, format!("--entry is not valid JSON: {error}")));
            }
        },
        None => entry_of(command, library.now())?,
    };
    let mut arguments = format!("{{\"file\":{},\"entry\":{entry}", json!(file(command.decision).name()));
    if let Some(key) = &command.key {
        arguments.push_str(&format!(",\"idempotency_key\":{}", json!(key)));
    }
    arguments.push('}');
    let name = "write_memory_entry";
    let arguments = verbatim::wrap(name, &arguments, &[]).unwrap_or(arguments);
    let arguments = serde_json::from_str(&arguments)
        .map_err(|error| CliError::new(Kind::Invalid, format!("the entry is not valid JSON: {error}")))?;
    let reply = tool(library, name, arguments, &progress::call(output)).map_err(|mut error| {
        if command.entry.is_none() && error.message.starts_with("entry.timestamp") {
            error.message = error.message.replacen("entry.timestamp", "--at", 1);
        }
        error
    })?;
    if output.json {
        return output.print_json(&reply);
    }
    let verb = if reply["duplicate"] == json!(true) { "already in" } else { "appended to" };
    let (file, count) = (text(&reply, "file"), text(&reply, "entry_count"));
    output.say(Tone::Good, &format!("{verb} {file}; entries: {count}"));
    if let Some(broken) = reply["invalid_lines"].as_u64() {
        let advice = "run `shelf workspace check` to list them";
        output.say(Tone::Warning, &format!("invalid lines: {broken}; {advice}"));
    }
    Ok(())
}

/// Builds an entry from the given words and fields; numbers stay as they were typed.
fn entry_of(command: &Log, now: Moment) -> Outcome<String> {
    let whole_seconds = Moment::from_micros(now.micros().div_euclid(1_000_000) * 1_000_000);
    let at = command.at.clone().unwrap_or_else(|| whole_seconds.to_string());
    let what = if command.decision { "decision" } else { "event" };
    let mut entry =
        format!("{{\"timestamp\":{},{}:{}", json!(at), json!(what), json!(command.words.join(" ")));
    for field in &command.fields {
        let (key, value) = split(field)?;
        entry.push_str(&format!(",{}:{value}", json!(key)));
    }
    Ok(entry + "}")
}

/// Splits a field into its key and the JSON text of its value.
fn split(field: &str) -> Outcome<(&str, String)> {
    let (key, value) = field.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
        CliError::new(Kind::Invalid, format!("'{field}' is not KEY=VALUE"))
            .hint("for example: duration_hours=2")
    })?;
    let is_json = serde_json::from_str::<Value>(value).is_ok();
    Ok((key, if is_json { value.to_owned() } else { json!(value).to_string() }))
}

const fn file(decision: bool) -> MemoryFile {
    if decision { MemoryFile::Decisions } else { MemoryFile::Progress }
}

fn query(command: &Query, library: &Library, output: &Output) -> Outcome {
    let mut fields = Map::new();
    for field in &command.fields {
        let (key, value) = split(field)?;
        fields.insert(key.to_owned(), serde_json::from_str(&value).unwrap_or(Value::String(value)));
    }
    let words = command.words.join(" ");
    let arguments = given(json!({
        "file": file(command.decision).name(),
        "contains": Some(words).filter(|words| !words.is_empty()),
        "fields": Some(fields).filter(|fields| !fields.is_empty()),
        "since": command.since,
        "until": command.until,
        "last": command.last,
    }));
    let reply = tool(library, "query_memory", arguments, &progress::call(output))?;
    if output.json {
        return output.print_json(&reply);
    }
    let rows: Vec<_> = reply["entries"].as_array().into_iter().flatten().map(row).collect();
    if !rows.is_empty() {
        output.table(&["LINE", "TIMESTAMP", "WHAT", "MORE"], &rows)?;
    }
    output.say(Tone::Good, &format!("{} of {} matching entries", rows.len(), text(&reply, "total")));
    Ok(())
}

fn row(found: &Value) -> Vec<String> {
    let mut rest = found["entry"].as_object().cloned().unwrap_or_default();
    let mut take = |key: &str| rest.shift_remove(key).map(plain);
    let (stamp, event, decision) = (take("timestamp"), take("event"), take("decision"));
    let more: Vec<String> = rest.into_iter().map(|(key, value)| format!("{key}={}", plain(value))).collect();
    let what = [event, decision].into_iter().flatten().collect::<Vec<_>>().join("; ");
    vec![text(found, "line"), stamp.unwrap_or_default(), what, more.join("  ")]
}

fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text.replace(['\n', '\r'], " "),
        other => other.to_string(),
    }
}

/// Compares the memory files with their side chains.
pub(super) fn check(library: &Library, output: &Output) -> Outcome {
    let reports = library.check_memory(&Caller::owner()).map_err(|error| CliError::of(&error))?;
    let edits =
        reports.iter().flat_map(|report| &report.findings).filter(|found| found.fault.is_edit()).count();
    if output.json {
        let files: Vec<Value> = reports.iter().map(view).collect();
        output.print_json(&json!({ "ok": edits == 0, "files": files }))?;
    } else {
        reports.iter().try_for_each(|report| show(report, output))?;
    }
    match edits {
        0 => {
            output.say(Tone::Good, "all appended entries are unchanged");
            Ok(())
        }
        1 => Err(edited("1 edit")),
        count => Err(edited(&format!("{count} edits"))),
    }
}

fn edited(what: &str) -> CliError {
    CliError::new(Kind::Corrupt, format!("{what} made outside this library"))
        .hint("the check changed nothing; correct the lines by hand if needed")
}

fn show(report: &MemoryReport, output: &Output) -> Outcome {
    let MemoryReport { file, entry_count, known, .. } = report;
    let is_gone = |fault: MemoryFault| fault == MemoryFault::Removed;
    if *entry_count == 0 && *known > 1 && report.findings.iter().all(|found| is_gone(found.fault)) {
        return output.print(&format!("{file}: the file is gone or empty; {known} entries were in it"));
    }
    let mut added: Vec<u64> = Vec::new();
    for found in &report.findings {
        match (found.fault, found.line) {
            (MemoryFault::Added, Some(line)) => added.push(line),
            (_, Some(line)) => output.print(&format!("{file}: line {line} {}", found.what))?,
            (_, None) => output.print(&format!("{file}: {}", found.what))?,
        }
    }
    // Consecutive lines added by others are reported as one range.
    for run in added.chunk_by(|one, next| one + 1 == *next) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let lines =
            if first == last { format!("line {first} was") } else { format!("lines {first} to {last} were") };
        output.print(&format!("{file}: {lines} not appended through this library"))?;
    }
    output.say(Tone::Good, &format!("{file}: entries {entry_count}, lines compared {known}"));
    Ok(())
}

fn view(report: &MemoryReport) -> Value {
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|found| json!({ "kind": found.fault.word(), "edit": found.fault.is_edit(), "line": found.line, "what": found.what }))
        .collect();
    json!({
        "file": report.file,
        "entry_count": report.entry_count,
        "invalid_lines": report.invalid_lines,
        "known_lines": report.known,
        "findings": findings,
    })
}
