//! The workspace tools beyond the contract: querying memory, listing files, adding best practices.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};
use shelf_engine::{Options, WorkspaceSettings};
use shelf_testkit::TestLibrary;

fn code(library: &TestLibrary, tool: &str, arguments: Value) -> String {
    let text = library.call(tool, arguments).expect_err("a failure").text;
    let error: Value = serde_json::from_str(&text).unwrap();
    error["error"]["code"].as_str().unwrap().to_owned()
}

fn with_memory() -> TestLibrary {
    let library = TestLibrary::new();
    let lines = [
        r#"{"timestamp":"2026-01-05T08:00:00Z","event":"task_started","task":"EDA","n":1}"#,
        r#"{"timestamp":"2026-01-06T08:00:00+02:00","event":"task_completed","task":"EDA","n":2,"in":{"deep":true}}"#,
        "broken line",
        r#"{"timestamp":"2026-01-07T08:00:00","event":"task_completed","task":"Model ÜBER","n":3}"#,
        r#"{"event":"no time","n":4}"#,
        r#"{"timestamp":"2026-01-07T23:30:00Z","event":"note","n":5}"#,
    ];
    library.write("workspace/.claude/memory/progress_log.jsonl", lines.join("\n") + "\n");
    library
}

#[test]
fn memory_is_asked_by_field_words_and_time() {
    let library = with_memory();
    let ask = |question: Value| {
        let mut arguments = json!({ "file": "progress_log.jsonl" });
        arguments.as_object_mut().unwrap().extend(question.as_object().unwrap().clone());
        library.ok("query_memory", arguments)
    };
    let numbers = |question: Value| {
        let reply = ask(question);
        let entries = reply["entries"].as_array().unwrap().clone();
        entries.iter().map(|found| found["entry"]["n"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(json!({})), [1, 2, 3, 4, 5]);
    assert_eq!(numbers(json!({ "fields": { "event": "task_completed" } })), [2, 3]);
    assert_eq!(numbers(json!({ "fields": { "event": "task_completed", "task": "EDA" } })), [2]);
    assert_eq!(numbers(json!({ "fields": { "in.deep": true } })), [2]);
    assert_eq!(numbers(json!({ "fields": { "n": 5 } })), [5]);
    assert_eq!(numbers(json!({ "contains": "über" })), [3]);
    assert!(numbers(json!({ "contains": "nowhere" })).is_empty());
    assert_eq!(numbers(json!({ "since": "2026-01-06" })), [2, 3, 5]);
    assert_eq!(numbers(json!({ "since": "2026-01-06T06:00:01Z" })), [3, 5]);
    assert_eq!(numbers(json!({ "until": "2026-01-06" })), [1, 2], "the day itself is included");
    assert_eq!(numbers(json!({ "until": "2026-01-07T08:00:00Z" })), [1, 2]);
    assert_eq!(numbers(json!({ "since": "2026-01-06", "until": "2026-01-07", "last": 2 })), [3, 5]);
    let reply = ask(json!({ "last": 1 }));
    assert_eq!(
        reply,
        json!({
            "file": "progress_log.jsonl",
            "entries": [{ "line": 6, "entry": { "timestamp": "2026-01-07T23:30:00Z", "event": "note", "n": 5 } }],
            "total": 5, "entry_count": 5, "invalid_lines": 1, "truncated": true,
        })
    );
    let spelled = r#"{"event":"spelled","v":1.10,"n":123456789012345678901234567890}"#;
    library.write("workspace/.claude/memory/decisions.jsonl", spelled);
    let reply = library.ok("query_memory", json!({ "file": "decisions.jsonl" }));
    assert_eq!(reply["entries"][0]["text"], spelled);
    fs::remove_file(library.path("workspace/.claude/memory/decisions.jsonl")).unwrap();
    let absent = library.ok("query_memory", json!({ "file": "decisions.jsonl" }));
    assert_eq!((absent["total"].as_u64(), absent["entries"].as_array().map(Vec::len)), (Some(0), Some(0)));
    for wrong in [
        json!({ "file": "learner_profile.json" }),
        json!({ "file": "decisions.jsonl", "since": "yesterday" }),
        json!({ "file": "decisions.jsonl", "last": 0 }),
        json!({}),
    ] {
        assert_eq!(code(&library, "query_memory", wrong.clone()), "INVALID_INPUT", "{wrong}");
    }
}

#[test]
fn a_long_memory_is_answered_within_a_page() {
    let library = TestLibrary::new();
    let line = |number: usize| {
        format!(
            "{{\"timestamp\":\"2026-01-05T08:00:00Z\",\"event\":\"{}\",\"n\":{number}}}\n",
            "x".repeat(1_000)
        )
    };
    let text: String = (0..500).map(line).collect();
    library.write("workspace/.claude/memory/decisions.jsonl", text);
    let reply = library.ok("query_memory", json!({ "file": "decisions.jsonl", "last": 1_000 }));
    let entries = reply["entries"].as_array().unwrap();
    assert!(reply.to_string().len() < 40_000 && entries.len() > 10, "{}", entries.len());
    assert_eq!(entries.last().unwrap()["entry"]["n"], 499, "the newest entries are kept");
    assert_eq!((reply["total"].as_u64(), reply["truncated"].as_bool()), (Some(500), Some(true)));
}

#[test]
fn only_what_may_be_read_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("space");
    for path in [
        "docs/b.md",
        "docs/deep/er/a.txt",
        "docs/.env",
        "docs/.env.example",
        "docs/secrets/x.md",
        "docs/server.key",
        "docs/secretary.md",
        "paths/Beginner/README.md",
        "src/main.rs",
        "README.md",
        ".git/config",
        "notes/a.txt",
        "notes/b.bin",
        ".claude/memory/progress_log.jsonl",
        ".claude/settings.json",
        "templates/t.md",
        "docs/.git/HEAD",
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "12345").unwrap();
    }
    symlink("../src/main.rs", root.join("docs/link.md")).unwrap();
    symlink("../.git", root.join("docs/folder-link")).unwrap();
    let workspace = Some(WorkspaceSettings { root, also: vec!["notes/*.txt".into()], accounts: Vec::new() });
    let library = TestLibrary::with(Options { workspace, ..Options::default() });
    let list = |arguments: Value| {
        let reply = library.ok("list_repo_files", arguments);
        let paths = |file: &Value| file["path"].as_str().unwrap().to_owned();
        (reply["files"].as_array().unwrap().iter().map(paths).collect::<Vec<_>>(), reply)
    };
    let (all, reply) = list(json!({}));
    assert_eq!(
        all,
        [
            ".claude/memory/progress_log.jsonl",
            "docs/.env.example",
            "docs/README.md",
            "docs/b.md",
            "docs/deep/er/a.txt",
            "docs/secretary.md",
            "notes/a.txt",
            "paths/Beginner/README.md",
            "templates/t.md",
        ]
    );
    assert_eq!((reply["total"].as_u64(), reply.get("truncated")), (Some(9), None));
    assert_eq!(reply["files"][3]["size_bytes"], 5);
    // Every listed file can be read.
    for path in &all {
        library.ok("read_repo_file", json!({ "path": path }));
    }
    assert_eq!(list(json!({ "pattern": "docs/" })).0.len(), 5);
    assert_eq!(list(json!({ "pattern": "README.md" })).0, ["docs/README.md", "paths/Beginner/README.md"]);
    let (two, reply) = list(json!({ "pattern": "*.md", "limit": 2 }));
    assert_eq!((two.len(), reply["total"].as_u64(), reply["truncated"].as_bool()), (2, Some(5), Some(true)));
    for closed in ["src/", ".git/**", "**/.env", "../**", "/etc/*"] {
        assert_eq!(list(json!({ "pattern": closed })).0, Vec::<String>::new(), "{closed}");
    }
    assert_eq!(code(&library, "list_repo_files", json!({ "pattern": "[" })), "INVALID_INPUT");
}

#[test]
fn practices_are_sections_of_a_page() {
    let library = TestLibrary::new();
    let page = library.path("workspace/.claude/memory/best_practices.md");
    let add = |title: &str, practice: &str| {
        library.call("add_best_practice", json!({ "title": title, "practice": practice, "category": "data" }))
    };
    let reply = add("Look first", "Plot *every* column.\n\n### Why\n\nBecause.").unwrap();
    assert_eq!(reply, json!({ "success": true, "file": "best_practices.md", "practice_count": 1 }));
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("# Best practices\n\n## Look first\n\n*2"), "{text}");
    assert!(text.ends_with(" · data*\n\nPlot *every* column.\n\n### Why\n\nBecause.\n"), "{text}");
    // Existing text is kept unchanged, even without a final line break.
    fs::write(&page, format!("{text}\n## By hand")).unwrap();
    assert_eq!(add("Third", "x").unwrap()["practice_count"], 3);
    let now = fs::read_to_string(&page).unwrap();
    assert!(now.starts_with(&text) && now.contains("\n## By hand\n\n## Third\n\n"), "{now}");
    assert_eq!(
        library.ok("read_repo_file", json!({ "path": ".claude/memory/best_practices.md" }))["content"],
        now
    );
    for (title, practice) in [
        ("", "x"),
        ("a\nb", "x"),
        ("a", " "),
        ("a", "## another"),
        ("a", "AKIAIOSFODNN7EXAMPLE"),
        ("AKIAIOSFODNN7EXAMPLE", "x"),
    ] {
        let failure = add(title, practice).unwrap_err();
        assert!(failure.text.contains("INVALID_INPUT") && !failure.text.contains("AKIA"), "{}", failure.text);
    }
    assert!(add("a", &"x".repeat(11_000)).unwrap_err().text.contains("ENTRY_TOO_LARGE"));
    assert_eq!(fs::read_to_string(&page).unwrap(), now);
    fs::remove_file(&page).unwrap();
    symlink("../../../outside.txt", &page).unwrap();
    assert!(add("a", "b").unwrap_err().text.contains("WRITE_NOT_ALLOWED"));
    assert!(!library.path("outside.txt").exists());
}
