//! The command line: data on stdout, messages on stderr, exit codes that scripts can use.

use serde_json::Value;

use crate::{files, shelf};

#[test]
fn the_daily_verbs_work_together() {
    let folder = tempfile::tempdir().unwrap();
    let (library, tree) = (folder.path().join("library"), files(folder.path(), 20));
    let tree = tree.to_str().unwrap();
    let (code, out, _) = shelf(&library, &["add", tree, "--label", "first", "--tag", "t"]);
    assert_eq!((code, out.trim().len()), (0, 64));
    let (_, out, _) = shelf(&library, &["list", "--paths", "*/5.txt"]);
    assert_eq!(out.trim(), format!("{tree}/05/5.txt"));
    let (_, out, _) = shelf(&library, &["get", "05/5.txt"]);
    assert_eq!(out, "file 5\n".repeat(6));
    let (_, out, _) = shelf(&library, &["get", "05/5.txt", "--start-line", "2", "--end-line", "2"]);
    assert_eq!(out, "file 5\n");
    assert_eq!(shelf(&library, &["update", "5.txt", "-m", "status=done", "--untag", "t"]).0, 0);
    let (_, out, _) = shelf(&library, &["get", "5.txt", "--json", "--info"]);
    let facts: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&facts["metadata"]["status"], &facts["tags"]),
        (&Value::from("done"), &serde_json::json!([]))
    );
    assert_eq!(shelf(&library, &["delete", "-g", "*.txt", "--dry-run"]).1.lines().count(), 20);
    assert_eq!(shelf(&library, &["delete", "-g", "*.txt"]).0, 0);
    assert_eq!(shelf(&library, &["list"]).1.lines().count(), 1, "only the header of the table");
    let out_folder = folder.path().join("out");
    assert_eq!(shelf(&library, &["restore", out_folder.to_str().unwrap(), "--label", "first"]).0, 0);
    assert_eq!(std::fs::read_to_string(out_folder.join("05/5.txt")).unwrap(), "file 5\n".repeat(6));
    let (_, out, _) = shelf(&library, &["call", "status", "{}"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["total_objects"], 0);
}

#[test]
fn collections_are_planned_before_they_are_done() {
    let folder = tempfile::tempdir().unwrap();
    let (library, tree) = (folder.path().join("library"), files(folder.path(), 50));
    let tree = tree.to_str().unwrap();
    shelf(&library, &["add", tree]);
    shelf(&library, &["delete", "-g", "*"]);
    let plan = |arguments: &[&str]| serde_json::from_str::<Value>(&shelf(&library, arguments).1).unwrap();
    assert_eq!(plan(&["gc", "--plan", "--json"])["contents"], 0, "the snapshot keeps everything");
    shelf(&library, &["snapshot", "create"]);
    let planned = plan(&["gc", "--plan", "--json", "--keep-last", "1"]);
    assert_eq!((planned["snapshots"].as_array().unwrap().len(), planned["done"].as_bool()), (1, Some(false)));
    assert!(planned["contents"].as_u64().unwrap() >= 50);
    assert_eq!(plan(&["gc", "--plan", "--json", "--keep-last", "1"]), planned, "a plan changes nothing");
    let done = plan(&["gc", "--json", "--keep-last", "1"]);
    assert_eq!(done["contents"], planned["contents"]);
    assert_eq!(plan(&["gc", "--plan", "--json", "--keep-last", "1"])["contents"], 0);
    crate::assert_sound(&library);
}

#[test]
fn failures_have_words_and_codes() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    assert_eq!(shelf(&library, &["call", "add", r#"{"name": "a.txt", "content": "a"}"#]).0, 0);
    let check = |arguments: &[&str], code: i32, words: &str| {
        let (found, out, err) = shelf(&library, arguments);
        assert_eq!(found, code, "{arguments:?}: {err}");
        assert!(err.contains(words), "{arguments:?}: {err}");
        assert!(out.is_empty(), "{arguments:?}: {out}");
    };
    check(&["get", "nothing"], 4, "no document 'nothing'");
    check(&["add", "/no/such/thing"], 4, "cannot read");
    check(&["call", "ad", "{}"], 4, "did you mean add");
    check(&["call", "add", "{"], 2, "not valid JSON");
    check(&["restore", "/tmp/x", "--label", "none"], 4, "no snapshot 'none'");
    check(&["token", "revoke", "x"], 2, "not the id of a token");
    check(&["--config", "/no/such/file", "status"], 2, "cannot read");
    check(&["--json", "get", "nothing"], 4, r#"{"error":{"code":"not_found""#);
    let unreadable = folder.path().join("catalog.db");
    std::fs::write(&unreadable, "not a database at all, just some words").unwrap();
    let (code, _, err) = shelf(folder.path(), &["status"]);
    assert_eq!(code, 9, "{err}");
}

#[test]
fn completions_manuals_and_settings_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    assert!(shelf(&library, &["completions", "bash"]).1.contains("_shelf"));
    assert!(shelf(&library, &["man"]).1.contains(".TH shelf"));
    let pages = folder.path().join("man");
    assert_eq!(shelf(&library, &["man", pages.to_str().unwrap()]).0, 0);
    assert!(pages.join("shelf-add.1").exists());
    let (_, out, _) = shelf(&library, &["config", "show", "--json"]);
    let settings: Value = serde_json::from_str(&out).unwrap();
    let data_dir =
        settings["settings"].as_array().unwrap().iter().find(|setting| setting["key"] == "data_dir").unwrap();
    assert_eq!((data_dir["origin"].as_str(), data_dir["value"].as_str()), (Some("flag"), library.to_str()));
    assert_eq!(shelf(&library, &["call", "add", r#"{"name": "a.txt", "content": "a"}"#]).0, 0);
    assert!(shelf(&library, &["doctor"]).1.contains("schema 10"));
}

#[test]
fn the_graph_is_shown_as_a_tree_a_diagram_and_figures() {
    let folder = tempfile::tempdir().unwrap();
    let (library, tree) = (folder.path().join("library"), folder.path().join("tree"));
    std::fs::create_dir_all(&tree).unwrap();
    std::fs::write(tree.join("a.md"), "# A\n\n[b](b.md) and [gone](gone.md)\n").unwrap();
    std::fs::write(tree.join("b.md"), "# B\n\n[c](c.md)\n").unwrap();
    std::fs::write(tree.join("c.md"), "# C\n").unwrap();
    std::fs::write(tree.join("lonely.txt"), "alone\n").unwrap();
    assert_eq!(shelf(&library, &["add", tree.to_str().unwrap()]).0, 0);
    let tree = tree.to_str().unwrap();
    let (code, out, _) = shelf(&library, &["graph", "a.md", "--depth", "2"]);
    let expected = format!(
        "{tree}/a.md\n  LINKS_TO {tree}/b.md (line 3)\n    LINKS_TO {tree}/c.md (line 3)\n  LINKS_TO reference gone.md (line 3) broken\n"
    );
    assert_eq!((code, out), (0, expected));
    let (_, out, _) = shelf(&library, &["graph", "c.md", "--reverse", "--relation", "links_to"]);
    assert_eq!(out.lines().count(), 3);
    let (_, out, _) = shelf(&library, &["graph", "a.md", "--dot"]);
    assert!(out.starts_with("digraph") && out.contains("n0 -> n1 [label=\"LINKS_TO\"]"), "{out}");
    let (_, out, _) = shelf(&library, &["graph", "a.md", "--mermaid"]);
    assert!(out.starts_with("flowchart") && out.contains("n0 -->|LINKS_TO| n1"), "{out}");
    let (_, out, _) = shelf(&library, &["graph", "a.md", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["total"], 3);
    let (_, out, _) = shelf(&library, &["graph", "--stats"]);
    assert!(out.contains("1 broken link\n") && out.contains("a.md:3: gone.md"), "{out}");
    assert!(out.contains("1 document without connections"), "{out}");
    let (_, out, _) = shelf(&library, &["graph", "--stats", "--json"]);
    let figures: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(figures["broken_links"][0]["line"], 3);
    assert_ne!(shelf(&library, &["graph", "absent.md"]).0, 0);
    assert_ne!(shelf(&library, &["graph"]).0, 0);
}
