//! Memory files: entries are written exactly as sent, and edits from outside are detected.

use std::{fs, io::Write, path::PathBuf};

use serde_json::{Value, json};
use shelf_engine::{Caller, MemoryFault};
use shelf_testkit::TestLibrary;
use shelf_tools::verbatim;

const TIME: &str = "2026-01-07T14:00:00Z";

fn decisions(library: &TestLibrary) -> PathBuf {
    library.path("workspace/.claude/memory/decisions.jsonl")
}

fn write(library: &TestLibrary, what: &str) -> Value {
    let entry = json!({ "timestamp": TIME, "decision": what });
    library.ok("write_memory_entry", json!({ "file": "decisions.jsonl", "entry": entry }))
}

/// The findings of a check for decisions.jsonl: kind of fault and line.
fn check(library: &TestLibrary) -> Vec<(MemoryFault, Option<u64>)> {
    let reports = library.library.check_memory(&Caller::owner()).unwrap();
    assert_eq!((reports[0].file, reports[1].file), ("progress_log.jsonl", "decisions.jsonl"));
    reports[1].findings.iter().map(|found| (found.fault, found.line)).collect()
}

/// Rewrites the file as an editor would.
fn edit(library: &TestLibrary, change: impl FnOnce(&mut Vec<String>)) {
    let text = fs::read_to_string(decisions(library)).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(decisions(library), lines.join("\n") + "\n").unwrap();
}

#[test]
fn numbers_and_order_reach_the_file_as_they_were_spelled() {
    let library = TestLibrary::new();
    let entry = r#"{"z": 1.10, "timestamp": "2026-01-07T14:00:00Z", "decision": "x",
        "n": [1e2, 1E+2, -0.0, 123456789012345678901234567890, 0.10000000000000000000001], "a": {"b": 5.00}}"#;
    let text = format!(r#"{{"file": "decisions.jsonl", "entry": {entry}}}"#);
    let wrapped = verbatim::wrap("write_memory_entry", &text, &[]).unwrap();
    library.ok("write_memory_entry", serde_json::from_str(&wrapped).unwrap());
    let expected = concat!(
        r#"{"z":1.10,"timestamp":"2026-01-07T14:00:00Z","decision":"x","#,
        r#""n":[1e2,1E+2,-0.0,123456789012345678901234567890,0.10000000000000000000001],"a":{"b":5.00}}"#,
        "\n"
    );
    assert_eq!(fs::read_to_string(decisions(&library)).unwrap(), expected);
    // The content of a wrapper is checked like any entry.
    for (inside, sentence) in [
        ("5", "must be an object"),
        ("text", "must be an object"),
        ("{", "is not valid JSON"),
        ("{}", "timestamp"),
        (r#"{"timestamp":"2026-01-07T14:00:00Z","event":"AKIAIOSFODNN7EXAMPLE"}"#, "looks like a secret"),
        (r#"{"timestamp":"2026-01-07T14:00:00Z","event":"a","event":"b"}"#, "'event' twice"),
    ] {
        let arguments = json!({ "file": "decisions.jsonl", "entry": { "$json": inside } });
        let failure = library.call("write_memory_entry", arguments).unwrap_err();
        assert!(
            failure.text.contains("INVALID_INPUT") && failure.text.contains(sentence),
            "{}",
            failure.text
        );
        assert!(!failure.text.contains("AKIA"));
    }
    assert_eq!(fs::read_to_string(decisions(&library)).unwrap(), expected);
}

#[test]
fn a_file_that_only_we_append_to_is_as_it_was_written() {
    let library = TestLibrary::new();
    assert_eq!(check(&library), []);
    for number in 0..5 {
        write(&library, &number.to_string());
    }
    // Equal entries are two lines.
    write(&library, "0");
    assert_eq!(check(&library), []);
    let report = &library.library.check_memory(&Caller::owner()).unwrap()[1];
    assert_eq!((report.entry_count, report.known), (6, 6));
}

#[test]
fn every_sort_of_edit_is_found() {
    let written = || {
        let library = TestLibrary::new();
        (1..=5).for_each(|number| drop(write(&library, &number.to_string())));
        library
    };
    let library = written();
    edit(&library, |lines| lines[2] = lines[2].replace("\"3\"", "\"three\""));
    assert_eq!(check(&library), [(MemoryFault::Changed, Some(3))]);
    // It is still found after further appends.
    write(&library, "6");
    assert_eq!(check(&library), [(MemoryFault::Changed, Some(3))]);

    let library = written();
    edit(&library, |lines| drop(lines.remove(4)));
    assert_eq!(check(&library), [(MemoryFault::Removed, Some(5))], "the last line was removed");

    let library = written();
    edit(&library, |lines| drop(lines.drain(1..3)));
    assert_eq!(check(&library), [(MemoryFault::Removed, Some(2)), (MemoryFault::Removed, Some(2))]);

    let library = written();
    edit(&library, |lines| lines.swap(0, 4));
    let moved = check(&library);
    assert!(!moved.is_empty() && moved.iter().all(|(fault, _)| *fault == MemoryFault::Moved), "{moved:?}");

    let library = written();
    edit(&library, |lines| {
        lines.insert(1, "{\"timestamp\":\"2026-01-07T14:00:00Z\",\"event\":\"hook\"}".into())
    });
    assert_eq!(check(&library), [(MemoryFault::Added, Some(2))]);
    assert!(!MemoryFault::Added.is_edit() && MemoryFault::Changed.is_edit());

    let library = written();
    edit(&library, |lines| lines[0].push(' '));
    assert_eq!(check(&library), [(MemoryFault::Changed, Some(1))], "a single added space");

    let library = written();
    fs::remove_file(decisions(&library)).unwrap();
    assert_eq!(check(&library).len(), 5);
}

#[test]
fn lines_of_others_are_known_once_we_have_seen_them() {
    let library = TestLibrary::new();
    library.write(
        "workspace/.claude/memory/decisions.jsonl",
        "{\"event\":\"hook 1\"}\nnot JSON\n{\"event\":\"hook 2\"}",
    );
    assert_eq!(check(&library).iter().filter(|(fault, _)| *fault == MemoryFault::Added).count(), 3);
    let reply = write(&library, "ours");
    assert_eq!((reply["entry_count"].as_u64(), reply["invalid_lines"].as_u64()), (Some(3), Some(1)));
    let others = |lines: &[u64]| {
        let added = lines.iter().map(|line| (MemoryFault::Added, Some(*line)));
        let mut all: Vec<_> = added.chain([(MemoryFault::Broken, Some(2))]).collect();
        all.sort_by_key(|(_, line)| *line);
        all
    };
    assert_eq!(check(&library), others(&[1, 2, 3]));
    let mut hook = fs::OpenOptions::new().append(true).open(decisions(&library)).unwrap();
    hook.write_all(b"{\"event\":\"hook 3\"}\n").unwrap();
    write(&library, "ours too");
    assert_eq!(check(&library), others(&[1, 2, 3, 5]), "they stay lines of others");
    let told = library.ok("check_memory", json!({}));
    let told =
        told["files"].as_array().unwrap().iter().find(|file| file["file"] == "decisions.jsonl").unwrap();
    assert_eq!((&told["sound"], &told["added"]), (&json!(true), &json!(4)));
    edit(&library, |lines| lines[4] = lines[4].replace("hook 3", "HOOK 3"));
    let found = check(&library);
    assert!(found.contains(&(MemoryFault::Changed, Some(5))), "{found:?}");
}

#[test]
fn the_side_chain_itself_is_watched() {
    let library = TestLibrary::new();
    (0..3).for_each(|number| drop(write(&library, &number.to_string())));
    let chain = fs::read_dir(library.path("library/memory")).unwrap().next().unwrap().unwrap().path();
    assert!(chain.extension().is_some_and(|name| name == "chain"));
    let text = fs::read_to_string(&chain).unwrap();
    assert!(!text.contains("timestamp"), "hashes only: {text}");
    fs::write(&chain, text.replacen(" plan ", " plan  ", 1)).unwrap();
    assert!(check(&library).iter().any(|(fault, _)| *fault == MemoryFault::Chain));
    fs::write(&chain, &text).unwrap();
    assert_eq!(check(&library), []);
}

#[test]
fn a_stop_between_plan_and_line_is_no_edit() {
    let library = TestLibrary::new();
    write(&library, "first");
    let chain = fs::read_dir(library.path("library/memory")).unwrap().next().unwrap().unwrap().path();
    let (before, file) = (fs::read_to_string(&chain).unwrap(), fs::read(decisions(&library)).unwrap());
    write(&library, "second");
    let after = fs::read_to_string(&chain).unwrap();
    let planned: String =
        after.lines().take(before.lines().count() + 1).map(|row| format!("{row}\n")).collect();
    let whole = fs::read(decisions(&library)).unwrap();
    // Stopped before the line, in the middle of it, and before the last row of the chain.
    for length in [file.len(), file.len() + 20, whole.len() - 1, whole.len()] {
        fs::write(&chain, &planned).unwrap();
        fs::write(decisions(&library), &whole[..length]).unwrap();
        let edits =
            |library: &TestLibrary| check(library).into_iter().filter(|(fault, _)| fault.is_edit()).count();
        assert_eq!(edits(&library), 0, "{length}");
        let reply = write(&library, "third");
        let text = fs::read_to_string(decisions(&library)).unwrap();
        let is_torn = length == file.len() + 20;
        assert_eq!(reply["invalid_lines"].as_u64(), is_torn.then_some(1), "{text}");
        assert!(text.as_bytes().starts_with(&whole[..length]) && text.ends_with("\"third\"}\n"), "{text}");
        assert_eq!(
            text.lines().filter(|line| line.ends_with("\"third\"}") && line.starts_with("{\"time")).count(),
            1
        );
        assert_eq!(edits(&library), 0, "{length}");
    }
}

#[test]
fn a_file_that_an_editor_replaces_gets_the_line() {
    let library = TestLibrary::new();
    write(&library, "first");
    let held = fs::File::open(decisions(&library)).unwrap();
    std::thread::scope(|scope| {
        // The editor's rename, which takes no lock, happens while an append waits for the old file.
        held.lock().unwrap();
        let waiting = scope.spawn(|| write(&library, "second"));
        std::thread::sleep(std::time::Duration::from_millis(200));
        let copy = library.path("workspace/.claude/memory/copy");
        fs::copy(decisions(&library), &copy).unwrap();
        fs::rename(&copy, decisions(&library)).unwrap();
        held.unlock().unwrap();
        assert_eq!(waiting.join().unwrap()["entry_count"], 2);
    });
    assert_eq!(fs::read_to_string(decisions(&library)).unwrap().lines().count(), 2);
    assert_eq!(check(&library), []);
}

#[test]
fn a_key_is_no_place_for_a_secret() {
    let library = TestLibrary::new();
    let entry = json!({ "timestamp": TIME, "decision": "x" });
    let arguments =
        json!({ "file": "decisions.jsonl", "entry": entry, "idempotency_key": "AKIAIOSFODNN7EXAMPLE" });
    let failure = library.call("write_memory_entry", arguments).unwrap_err();
    assert!(failure.text.contains("INVALID_INPUT") && !failure.text.contains("AKIA"), "{}", failure.text);
    assert!(!decisions(&library).exists());
}
