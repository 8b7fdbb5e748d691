//! The workspace as users and agents use it: many processes, kills, every transport, the command line.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    time::Duration,
};

use serde_json::{Value, json};
use shelf_testkit::StdioClient;

use crate::{binary, http::Server, shelf};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("space/docs")).unwrap();
        fs::write(folder.path().join("space/docs/a.md"), "one\ntwo\nthree\n").unwrap();
        fs::write(folder.path().join("shelf.toml"), "[limits]\nwrite_memory_entry_per_minute = 0\n").unwrap();
        Self { folder }
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("library")
    }

    fn text(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn memory(&self, file: &str) -> PathBuf {
        self.folder.path().join("space/.claude/memory").join(file)
    }

    /// A server without a rate limit on appends.
    fn server(&self) -> StdioClient {
        let (space, config) = (self.text("space"), self.text("shelf.toml"));
        let mut client =
            StdioClient::spawn(binary(), &self.library(), &["--workspace", &space, "--config", &config]);
        client.initialize();
        client
    }

    fn shelf(&self, arguments: &[&str]) -> (i32, String, String) {
        let space = self.text("space");
        let mut all = vec!["workspace", "--workspace", &space];
        all.extend_from_slice(arguments);
        shelf(&self.library(), &all)
    }

    fn check(&self) -> (i32, Value) {
        let space = self.text("space");
        let (code, out, _) = shelf(&self.library(), &["check", "--memory", "--workspace", &space, "--json"]);
        (code, serde_json::from_str(&out).unwrap())
    }
}

fn entry(number: &str) -> Value {
    json!({ "timestamp": "2026-01-07T14:00:00Z", "event": "counted", "number": number })
}

/// The numbers of all entries, and how many lines are broken. A broken line must hold a fragment of only one entry.
fn numbers(path: &Path) -> (Vec<String>, usize) {
    let (mut found, mut broken) = (Vec::new(), 0);
    for line in fs::read_to_string(path).unwrap().lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(entry) => found.push(entry["number"].as_str().unwrap().to_owned()),
            Err(_) => {
                assert!(line.matches("timestamp").count() <= 1, "two entries in one line: {line}");
                broken += 1;
            }
        }
    }
    (found, broken)
}

#[test]
fn sixteen_processes_append_whole_lines() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for writer in 0..16 {
            let place = &place;
            scope.spawn(move || {
                let mut client = place.server();
                for number in 0..200 {
                    let entry = entry(&format!("{writer}/{number}"));
                    let arguments = json!({ "file": "progress_log.jsonl", "entry": entry });
                    assert_eq!(client.call("write_memory_entry", arguments)["success"], true);
                }
            });
        }
    });
    let (mut found, broken) = numbers(&place.memory("progress_log.jsonl"));
    found.sort();
    found.dedup();
    assert_eq!((found.len(), broken), (3_200, 0));
    let (code, report) = place.check();
    assert_eq!((code, &report["ok"], &report["files"][0]["findings"]), (0, &json!(true), &json!([])));
    assert_eq!(report["files"][0]["known_lines"], 3_200);
}

#[test]
fn kill_nine_in_a_loop_tears_and_glues_nothing() {
    let place = Place::new();
    let acknowledged = Mutex::new(Vec::<String>::new());
    for round in 0..8_u64 {
        std::thread::scope(|scope| {
            for writer in 0..3_u64 {
                let (place, acknowledged) = (&place, &acknowledged);
                scope.spawn(move || {
                    let mut client = place.server();
                    let pid = client.id();
                    let killer = std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_millis(40 + round * 17 + writer * 29));
                        let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
                    });
                    for count in 0.. {
                        let number = format!("{round}/{writer}/{count}");
                        let mut entry = entry(&number);
                        // Some lines are longer than a page of memory.
                        entry["padding"] = json!("p".repeat(if count % 3 == 0 { 9_000 } else { 10 }));
                        let arguments =
                            json!({ "file": "decisions.jsonl", "entry": entry, "idempotency_key": number });
                        let call = json!({ "name": "write_memory_entry", "arguments": arguments });
                        let Some(reply) = client.try_request("tools/call", call) else { break };
                        assert_eq!(reply["result"]["isError"], false, "{reply}");
                        acknowledged.lock().unwrap().push(number);
                    }
                    killer.join().unwrap();
                });
            }
        });
        let (code, report) = place.check();
        assert_eq!(code, 0, "{report}");
    }
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() > 50, "only {} writes", acknowledged.len());
    let (mut found, _) = numbers(&place.memory("decisions.jsonl"));
    found.sort();
    assert!(found.windows(2).all(|pair| pair[0] != pair[1]), "duplicate entry");
    for number in &acknowledged {
        assert!(found.binary_search(number).is_ok(), "{number} was acknowledged but is missing");
    }
    // Repeating a call with the same key finds the existing line.
    let mut client = place.server();
    let mut entry = entry("0/0/0");
    entry["padding"] = json!("p".repeat(9_000));
    let arguments = json!({ "file": "decisions.jsonl", "entry": entry, "idempotency_key": "0/0/0" });
    let reply = client.call("write_memory_entry", arguments);
    assert_eq!(reply["duplicate"].as_bool(), found.contains(&"0/0/0".to_owned()).then_some(true));
}

/// An entry whose numbers a JSON library would spell differently, and the line it must become.
const SPELLED: &str = r#"{"timestamp": "2026-01-07T14:00:00Z", "event": "spelled", "b": 1.10, "a": [1e2, 123456789012345678901234567890]}"#;
const LINE: &str = r#"{"timestamp":"2026-01-07T14:00:00Z","event":"spelled","b":1.10,"a":[1e2,123456789012345678901234567890]}"#;

#[test]
fn every_door_keeps_the_spelling_of_numbers() {
    let place = Place::new();
    let (space, config) = (place.text("space"), place.text("shelf.toml"));
    let file = place.memory("progress_log.jsonl");
    let arguments = format!(r#"{{"file": "progress_log.jsonl", "entry": {SPELLED}}}"#);
    let message = |id: &str| {
        format!(
            r#"{{"jsonrpc": "2.0", "id": {id}, "method": "tools/call", "params": {{"name": "write_memory_entry", "arguments": {arguments}}}}}"#
        )
    };
    let mut doors = 0;
    let mut last_line = |door: &str| {
        let text = fs::read_to_string(&file).unwrap();
        doors += 1;
        assert_eq!((text.lines().count(), text.lines().last()), (doors, Some(LINE)), "{door}");
    };
    let mut client = place.server();
    client.send_line(&message("\"x\""));
    let reply: Value = serde_json::from_str(&client.read_line().unwrap()).unwrap();
    assert_eq!((&reply["id"], &reply["result"]["isError"]), (&json!("x"), &json!(false)), "{reply}");
    last_line("stdio");
    let server = Server::start(&place.library(), &["--no-auth", "--workspace", &space, "--config", &config]);
    let post = |path: &str, body: &str| {
        let headers =
            [("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")];
        let (status, _, reply) = server.request("POST", path, &headers, body);
        assert_eq!(status, 200, "{path}: {reply}");
    };
    post("/mcp", &message("7"));
    last_line("/mcp");
    post("/api/v1/tools/write_memory_entry", &arguments);
    last_line("REST");
    post("/tools/write_memory_entry", &format!(r#"{{"input": {arguments}}}"#));
    last_line("/tools/{name}");
    post("/tools", &format!(r#"{{"tool": "write_memory_entry", "input": {arguments}}}"#));
    last_line("/tools");
    let quoted = format!(r#"{{"file": "progress_log.jsonl", "entry": {}}}"#, json!(SPELLED));
    post("/tools/write_memory_entry", &format!(r#"{{"input": {quoted}}}"#));
    last_line("an entry in quotes");
    assert_eq!(place.shelf(&["log", "--entry", SPELLED]).0, 0);
    last_line("shelf workspace log");
    let output = Command::new(binary())
        .args(["--data-dir", place.library().to_str().unwrap(), "call", "write_memory_entry", &arguments])
        .env("SHELF_WORKSPACE", &space)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    last_line("shelf call");
    assert_eq!(place.check().0, 0);
}

#[test]
fn people_read_log_query_and_check() {
    let place = Place::new();
    assert_eq!(place.shelf(&["read", "docs/a.md"]).1, "one\ntwo\nthree\n");
    assert_eq!(place.shelf(&["read", "docs/a.md", "-n", "1"]).1, "three\n");
    let (code, out, err) = place.shelf(&["read", "docs/b.md"]);
    assert_eq!((code, out.as_str()), (4, ""));
    assert!(err.contains("File not found: docs/b.md") && err.contains("docs/a.md"), "{err}");
    let (code, _, err) = place.shelf(&["read", "../library/catalog.db"]);
    assert!(
        code == 6 && err.contains("Path is not allowed") && !err.contains(&place.text("")),
        "{code} {err}"
    );
    let (code, _, err) =
        place.shelf(&["log", "finished", "the", "notebook", "-f", "duration_hours=1.50", "-f", "task=EDA"]);
    assert!(code == 0 && err.contains("appended to progress_log.jsonl; entries: 1"), "{err}");
    let line = fs::read_to_string(place.memory("progress_log.jsonl")).unwrap();
    assert!(
        line.ends_with("Z\",\"event\":\"finished the notebook\",\"duration_hours\":1.50,\"task\":\"EDA\"}\n"),
        "{line}"
    );
    assert_eq!(place.shelf(&["log", "--decision", "use SQLite", "--at", "2026-01-07T14:00:00"]).0, 0);
    let (code, _, err) = place.shelf(&["log", "x", "--at", "yesterday"]);
    assert!(code == 2 && err.contains("ISO 8601"), "{code} {err}");
    assert_eq!(place.shelf(&["log", "x", "-f", "novalue"]).0, 2);
    let (_, out, err) = place.shelf(&["query", "notebook", "-f", "duration_hours=1.5"]);
    assert!(out.contains("finished the notebook") && out.contains("task=EDA"), "{out}");
    assert!(err.contains("1 of 1 matching entries"), "{err}");
    let (_, out, _) = place.shelf(&["query", "--decision", "--until", "2026-01-07", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["entries"][0]["entry"]["decision"], "use SQLite");
    let (code, out, err) = place.shelf(&["check"]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    let edited = line.replace("1.50", "15.0");
    fs::write(place.memory("progress_log.jsonl"), edited).unwrap();
    let (code, out, err) = place.shelf(&["check"]);
    assert_eq!(code, 9, "{out}{err}");
    assert!(
        out.contains("progress_log.jsonl: line 1 (appended 2") && out.ends_with(") was changed since\n"),
        "{out}"
    );
    let (code, report) = place.check();
    assert_eq!((code, &report["ok"]), (9, &json!(false)));
    assert_eq!(report["files"][0]["findings"][0]["kind"], "changed");
}

#[test]
fn extras_are_there_for_who_names_them() {
    let place = Place::new();
    let space = place.text("space");
    let names = |more: &[&str]| {
        let mut arguments = vec!["--workspace", &space];
        arguments.extend_from_slice(more);
        let mut client = StdioClient::spawn(binary(), &place.library(), &arguments);
        client.initialize();
        let tools = client.request("tools/list", json!({}));
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        tools["result"]["tools"].as_array().unwrap().iter().map(name).collect::<Vec<_>>()
    };
    let extras = [
        "query_memory",
        "list_repo_files",
        "add_best_practice",
        "check_memory",
        "plan_build",
        "batch_hashes",
        "book_history",
        "edit",
        "describe_document",
        "read_text",
        "browse",
        "facets",
        "activity",
        "compare_snapshots",
        "audit_journal",
        "plan_gc",
        "check_library",
        "call_statistics",
        "page_image",
        "archive",
        "undelete_document",
        "create_user",
    ]
    .map(str::to_owned);
    assert!(extras.iter().all(|name| !names(&[]).contains(name)));
    assert!(names(&["--toolsets", "all,extras"]).ends_with(&extras));
    assert_eq!(names(&["--toolsets", "extras"]), extras);
    assert_eq!(names(&["--toolsets", "workspace"]), ["hello", "read_repo_file", "write_memory_entry"]);
    let mut client = StdioClient::spawn(binary(), &place.library(), &["--workspace", &space]);
    client.initialize();
    let call = json!({ "name": "list_repo_files", "arguments": {} });
    let refused = client.request("tools/call", call);
    assert!(
        refused["result"]["content"][0]["text"].as_str().unwrap().contains("not offered here"),
        "{refused}"
    );
    let (code, _, err) = shelf(&place.library(), &["serve", "--tools", "query_memory"]);
    assert!(code == 2 && err.contains("--toolsets all,extras"), "{err}");
    let server =
        Server::start(&place.library(), &["--no-auth", "--workspace", &space, "--toolsets", "all,extras"]);
    let (status, _, body) =
        server.request("POST", "/tools/list_repo_files", &[], r#"{"input": {"pattern": "docs/"}}"#);
    assert_eq!((status, body.contains("docs/a.md")), (200, true), "{body}");
}
