//! The workspace family: what may be read, refusals that reveal nothing, and lines that are never torn.

use std::{fs, os::unix::fs::symlink, time::Duration};

use serde_json::{Value, json};
use shelf_testkit::TestLibrary;

fn library() -> TestLibrary {
    let library = TestLibrary::new();
    for (name, text) in [
        ("workspace/paths/Beginner/README.md", "# Beginner Dashboard\nTwo\nThree\n"),
        ("workspace/docs/secretary.md", "fine"),
        ("workspace/docs/.env", "KEY=1"),
        ("workspace/docs/secrets/plan.txt", "hidden"),
        ("workspace/docs/server.key", "hidden"),
        ("workspace/.git/config", "hidden"),
        ("workspace/src/main.rs", "not allowed"),
        ("workspacex/docs/evil.md", "sibling"),
        ("outside.txt", "outside"),
    ] {
        library.write(name, text);
    }
    library
}

/// The code and message of a call that must fail.
fn refused(library: &TestLibrary, tool: &str, arguments: Value) -> (String, String) {
    let text = library.call(tool, arguments).expect_err("a failure").text;
    let error: Value = serde_json::from_str(&text).unwrap();
    let field = |name: &str| error["error"][name].as_str().unwrap().to_owned();
    (field("code"), field("message"))
}

fn code(library: &TestLibrary, path: &str) -> String {
    refused(library, "read_repo_file", json!({ "path": path })).0
}

#[test]
fn files_are_read_as_the_contract_says() {
    let library = library();
    let reply = library.ok("read_repo_file", json!({ "path": "paths/Beginner/README.md" }));
    assert_eq!(
        reply,
        json!({ "content": "# Beginner Dashboard\nTwo\nThree\n", "path": "paths/Beginner/README.md", "size_bytes": 31 })
    );
    let lines = |window: Value| {
        let mut arguments = json!({ "path": "./paths/Beginner/README.md" });
        arguments.as_object_mut().unwrap().extend(window.as_object().unwrap().clone());
        library.ok("read_repo_file", arguments)["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(lines(json!({ "start_line": 2, "end_line": 2 })), "Two\n");
    assert_eq!(lines(json!({ "tail": 1 })), "Three\n");
    assert_eq!(lines(json!({ "start_line": 99 })), "");
    let backwards = json!({ "path": "docs/README.md", "start_line": 3, "end_line": 2 });
    let (kind, message) = refused(&library, "read_repo_file", backwards);
    assert_eq!((kind.as_str(), message.as_str()), ("INVALID_INPUT", "end_line 2 is before start_line 3"));
    for (window, words) in [
        (json!({ "start_line": 0 }), "start_line must be at least 1"),
        (json!({ "end_line": 0 }), "end_line must be at least 1"),
        (json!({ "tail": 1, "start_line": 2 }), "tail cannot be combined"),
    ] {
        let mut arguments = json!({ "path": "docs/README.md" });
        arguments.as_object_mut().unwrap().extend(window.as_object().unwrap().clone());
        let (kind, message) = refused(&library, "read_repo_file", arguments);
        assert!(kind == "INVALID_INPUT" && message.contains(words), "{window}: {kind} {message}");
    }
    assert_eq!(code(&library, &format!("docs/{}", "x".repeat(300))), "FILE_NOT_FOUND");
    assert_eq!(library.ok("read_repo_file", json!({ "path": "docs/secretary.md" }))["content"], "fine");
    library.write("workspace/docs/bytes.bin", [0xFF, 0xFE, 0x00]);
    let binary = library.ok("read_repo_file", json!({ "path": "docs/bytes.bin" }));
    assert_eq!((binary["encoding"].as_str(), binary["content"].as_str()), (Some("base64"), Some("//4A")));
    library.write("workspace/docs/large.txt", "é".repeat(600_000));
    let large = library.ok("read_repo_file", json!({ "path": "docs/large.txt" }));
    assert_eq!((large["truncated"].as_bool(), large["size_bytes"].as_u64()), (Some(true), Some(1_200_000)));
    assert!(large["content"].as_str().unwrap().len() <= 1 << 20);
}

#[test]
fn what_is_closed_says_nothing_about_being_there() {
    let library = library();
    symlink("../../outside.txt", library.path("workspace/docs/out")).unwrap();
    symlink("../../absent.txt", library.path("workspace/docs/out-dangling")).unwrap();
    symlink("../.git", library.path("workspace/docs/git")).unwrap();
    symlink("secrets/plan.txt", library.path("workspace/docs/alias.md")).unwrap();
    symlink("/etc", library.path("workspace/docs/etc")).unwrap();
    symlink("chain2", library.path("workspace/docs/chain1")).unwrap();
    symlink("../../outside.txt", library.path("workspace/docs/chain2")).unwrap();
    symlink("secrets/none.txt", library.path("workspace/docs/alias-dangling.md")).unwrap();
    symlink("secrets", library.path("workspace/docs/plans")).unwrap();
    symlink("loop2", library.path("workspace/docs/loop1")).unwrap();
    symlink("loop1", library.path("workspace/docs/loop2")).unwrap();
    symlink("../src", library.path("workspace/docs/source")).unwrap();
    symlink("../../workspacex/docs", library.path("workspace/docs/sibling")).unwrap();
    let attacks = [
        "../outside.txt",
        "docs/../../outside.txt",
        "docs/../docs/../.git/config",
        "/etc/passwd",
        "docs//../../outside.txt",
        "..%2foutside.txt",
        "docs/%2e%2e/%2e%2e/outside.txt",
        "docs\\..\\..\\outside.txt",
        "docs/\u{0}",
        "",
        ".",
        "..",
        ".git/config",
        ".GIT/config",
        "docs/.env",
        "docs/.ENV",
        "docs/.env.local",
        "docs/secrets/plan.txt",
        "docs/Secrets/plan.txt",
        "docs/secrets",
        "docs/server.key",
        "docs/SERVER.KEY",
        "src/main.rs",
        "README.md",
        "docs/out",
        "docs/out-dangling",
        "docs/git/config",
        "docs/alias.md",
        "docs/etc/passwd",
        "docs/etc/absent",
        "docs/git/absent",
        "docs/alias-dangling.md",
        "docs/plans/plan.txt",
        "docs/plans/none.txt",
        "docs/loop1",
        "docs/source/main.rs",
        "docs/source/absent.rs",
        "docs/sibling/evil.md",
        "docs/sibling/absent.md",
        "docs/..",
        "docs/./../outside.txt",
        "docs/../../workspace/docs/secretary.md",
        "//etc/passwd",
        "\\\\server\\share",
        "docs/..\\..\\outside.txt",
        "%2e%2e/outside.txt",
        "..%5coutside.txt",
        "%252e%252e/outside.txt",
        "docs/a%00.md",
        "docs/\u{0}.md",
        "docs/a.md\u{0}.txt",
        "\u{ff0e}\u{ff0e}/outside.txt",
        "..;/outside.txt",
        ".Git/config",
        "docs/.gIt/HEAD",
        "docs/.Env.Production",
        "docs/SECRETS.txt",
        "docs/secret",
        "docs/Secret_plan",
        "docs/deep/secrets.d/x/y.md",
        "docs/ID_RSA",
        "docs/Cert.PEM",
        "docs/store.P12",
        "docs/CREDENTIALS",
        ".claude/settings.json",
        ".claude/memory",
        ".claude/memory/../settings.json",
        "DOCS/secretary.md",
        "docs",
        "docs/",
        "docs/chain1",
        "../workspacex/docs/evil.md",
        "workspacex/docs/evil.md",
        "docs/.git/HEAD",
        "paths/../docs/secretary.md",
        "docs/id_rsa",
        "docs/cert.pem",
        "docs/credentials.json",
        "file:///etc/passwd",
        "~/x",
        "C:\\x",
    ];
    for path in attacks {
        assert_eq!(code(&library, path), "PATH_NOT_ALLOWED", "{path:?}");
    }
    // The message is identical whether the file exists or not.
    for (there, absent) in [
        ("docs/.env", "paths/.env"),
        ("docs/secrets/plan.txt", "docs/secrets/none.txt"),
        ("docs/out", "docs/out-dangling"),
        ("docs/git/config", "docs/git/absent"),
        ("docs/alias.md", "docs/alias-dangling.md"),
        ("docs/plans/plan.txt", "docs/plans/none.txt"),
        ("docs/source/main.rs", "docs/source/absent.rs"),
        ("docs/etc/passwd", "docs/etc/absent"),
        ("docs/sibling/evil.md", "docs/sibling/absent.md"),
        (".git/config", ".git/absent"),
        ("src/main.rs", "src/absent.rs"),
        ("../outside.txt", "../absent.txt"),
        ("/etc/passwd", "/etc/absent"),
        ("docs/server.key", "docs/absent.key"),
    ] {
        let message =
            |path: &str| refused(&library, "read_repo_file", json!({ "path": path })).1.replace(path, "");
        assert_eq!(message(there), message(absent));
    }
    assert_eq!(code(&library, "docs/absent.md"), "FILE_NOT_FOUND");
    assert_eq!(code(&library, "docs/secretary.md/x"), "FILE_NOT_FOUND");
    // A link to a readable folder is followed, and a file missing there is reported as missing.
    symlink("../paths", library.path("workspace/docs/ways")).unwrap();
    let read = library.ok("read_repo_file", json!({ "path": "docs/ways/Beginner/README.md" }));
    assert_eq!(read["path"], "paths/Beginner/README.md");
    assert_eq!(code(&library, "docs/ways/Beginner/absent.md"), "FILE_NOT_FOUND");
    let (_, message) = refused(&library, "read_repo_file", json!({ "path": "paths/beginner/README.md" }));
    assert!(message.contains("paths/Beginner/README.md"), "{message}");
    assert_eq!(refused(&library, "read_repo_file", json!({})).0, "INVALID_INPUT");
    assert_eq!(refused(&library, "read_repo_file", json!({ "path": 5 })).0, "INVALID_INPUT");
    let pipe = library.path("workspace/docs/pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(code(&library, "docs/pipe"), "INVALID_INPUT");
}

#[test]
fn a_link_that_is_swapped_meanwhile_leads_nowhere() {
    let library = library();
    library.write("workspace/.git/HEAD", "hidden");
    let (place, folder) = (library.path("workspace/docs/swap.md"), library.path("workspace/docs/swapped"));
    let mut read = 0;
    let end = std::time::Instant::now() + Duration::from_secs(10);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while std::time::Instant::now() < end {
                let _ = fs::remove_file(&place);
                let _ = fs::write(&place, "inside");
                let _ = fs::remove_file(&place);
                let _ = symlink("../../outside.txt", &place);
                let _ = fs::remove_file(&place);
                let _ = symlink("../.git/config", &place);
                let _ = fs::remove_file(&folder);
                let _ = fs::create_dir(&folder);
                let _ = fs::write(folder.join("config"), "inside");
                let _ = fs::remove_dir_all(&folder);
                let _ = symlink("../.git", &folder);
            }
        });
        while std::time::Instant::now() < end {
            for path in ["docs/swap.md", "docs/swapped/config"] {
                if let Ok(reply) = library.call("read_repo_file", json!({ "path": path })) {
                    assert!(["inside", ""].contains(&reply["content"].as_str().unwrap()), "{reply}");
                    read += 1;
                }
            }
            let listed = library.ok("list_repo_files", json!({ "pattern": "docs/swapped/" })).to_string();
            assert!(!listed.contains("HEAD"), "{listed}");
        }
    });
    assert!(read > 0, "the file was never readable");
}

#[test]
fn a_lock_of_another_program_is_not_waited_for_for_ever() {
    let library = library();
    let write =
        || library.call("write_memory_entry", json!({ "file": "progress_log.jsonl", "entry": entry(1) }));
    write().unwrap();
    let held = fs::File::open(library.path("workspace/.claude/memory/progress_log.jsonl")).unwrap();
    held.lock_shared().unwrap();
    let refused = write().unwrap_err();
    assert!(refused.text.contains("locked by another program"), "{}", refused.text);
    assert_eq!(refused.kind, shelf_base::Kind::Busy);
    held.unlock().unwrap();
    assert_eq!(write().unwrap()["entry_count"], 2, "what was refused was not written");
}

fn entry(number: usize) -> Value {
    json!({ "zeta": number, "timestamp": "2026-01-07T14:00:00Z", "event": "task_completed", "alpha": [1, 2.5, "ü"] })
}

#[test]
fn entries_are_appended_and_counted() {
    let library = library();
    let file = library.path("workspace/.claude/memory/progress_log.jsonl");
    let write = |entry: Value| {
        library.ok("write_memory_entry", json!({ "file": "progress_log.jsonl", "entry": entry }))
    };
    assert_eq!(write(entry(1)), json!({ "success": true, "file": "progress_log.jsonl", "entry_count": 1 }));
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "{\"zeta\":1,\"timestamp\":\"2026-01-07T14:00:00Z\",\"event\":\"task_completed\",\"alpha\":[1,2.5,\"ü\"]}\n"
    );
    // An editor left a broken line without a line break.
    let mut text = fs::read_to_string(&file).unwrap();
    text.push_str("{\"half\": ");
    fs::write(&file, &text).unwrap();
    let reply = write(json!({ "timestamp": "2026-01-07T14:00:00", "decision": "go on" }));
    assert_eq!((reply["entry_count"].as_u64(), reply["invalid_lines"].as_u64()), (Some(2), Some(1)));
    let now = fs::read_to_string(&file).unwrap();
    assert!(now.starts_with(&text) && now.ends_with("\n") && now.lines().count() == 3);
}

#[test]
fn what_may_not_be_written_is_refused_with_its_code() {
    let library = library();
    let refuse = |file: &str, entry: Value| {
        refused(&library, "write_memory_entry", json!({ "file": file, "entry": entry }))
    };
    for file in
        ["learner_profile.json", "best_practices.md", "../decisions.jsonl", "other.jsonl", "/etc/passwd"]
    {
        assert_eq!(refuse(file, entry(1)).0, "WRITE_NOT_ALLOWED", "{file}");
    }
    for wrong in [
        json!({}),
        json!({ "event": "x" }),
        json!({ "timestamp": "2026-01-07T14:00:00Z" }),
        json!({ "timestamp": "yesterday", "event": "x" }),
        json!({ "timestamp": "2026-01-07", "event": "x" }),
        json!({ "timestamp": 5, "event": "x" }),
        json!({ "timestamp": "2026-01-07T14:00:00Z", "event": " " }),
        json!({ "timestamp": "2026-01-07T14:00:00Z", "event": {}, "decision": [] }),
    ] {
        assert_eq!(refuse("decisions.jsonl", wrong.clone()).0, "INVALID_INPUT", "{wrong}");
    }
    let arguments = json!({ "file": "decisions.jsonl", "entry": "text" });
    assert_eq!(refused(&library, "write_memory_entry", arguments).0, "INVALID_INPUT");
    let sized = |length: usize| json!({ "timestamp": "2026-01-07T14:00:00Z", "event": "x".repeat(length) });
    let frame = sized(0).to_string().len();
    library.ok("write_memory_entry", json!({ "file": "decisions.jsonl", "entry": sized(10_240 - frame) }));
    assert_eq!(refuse("decisions.jsonl", sized(10_241 - frame)).0, "ENTRY_TOO_LARGE");
    let secret = json!({ "timestamp": "2026-01-07T14:00:00Z", "event": "x", "note": "AKIAIOSFODNN7EXAMPLE" });
    let (code, message) = refuse("decisions.jsonl", secret);
    assert!(code == "INVALID_INPUT" && message.contains("entry.note") && !message.contains("AKIA"));
    fs::remove_file(library.path("workspace/.claude/memory/decisions.jsonl")).unwrap();
    symlink("../../../outside.txt", library.path("workspace/.claude/memory/decisions.jsonl")).unwrap();
    assert_eq!(refuse("decisions.jsonl", entry(1)).0, "WRITE_NOT_ALLOWED");
    assert_eq!(fs::read_to_string(library.path("outside.txt")).unwrap(), "outside");
}

#[test]
fn many_writers_leave_whole_lines() {
    let library = library();
    // These are threads of one process; the tests of the program cover several processes.
    let (writers, each) = (16, 50);
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let library = &library;
            scope.spawn(move || {
                for number in 0..each {
                    let entry = entry(writer * each + number);
                    library.ok("write_memory_entry", json!({ "file": "decisions.jsonl", "entry": entry }));
                }
            });
        }
    });
    let text = fs::read_to_string(library.path("workspace/.claude/memory/decisions.jsonl")).unwrap();
    let mut numbers: Vec<u64> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["zeta"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..(writers * each) as u64).collect::<Vec<_>>());
}

#[test]
fn the_same_key_adds_nothing_twice() {
    let library = library();
    let write = |key: &str, number: usize| {
        library.call(
            "write_memory_entry",
            json!({ "file": "decisions.jsonl", "entry": entry(number), "idempotency_key": key }),
        )
    };
    assert_eq!(write("a b\n", 1).unwrap()["entry_count"], 1);
    let again = write("a b\n", 1).unwrap();
    assert_eq!((again["entry_count"].as_u64(), again["duplicate"].as_bool()), (Some(1), Some(true)));
    assert_eq!(write("other", 1).unwrap()["entry_count"], 2);
    assert!(write("other", 2).is_err() && write("", 3).is_err());
    // A key whose line is not in the file can be used again.
    fs::write(library.path("workspace/.claude/memory/decisions.jsonl"), "").unwrap();
    assert_eq!(write("other", 1).unwrap()["entry_count"], 1);
}
