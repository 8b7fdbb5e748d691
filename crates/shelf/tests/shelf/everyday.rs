//! What happens in the first weeks: several libraries with servers, folders that move, imports with mistakes, settings that
//! were typed wrong, and what commands say then.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{binary, http::Server, shelf};

/// Runs a command with a home folder, variables and something to read.
fn run(home: &Path, variables: &[(&str, &str)], arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(binary())
        .args(arguments)
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("SHELF_TOKEN")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads nothing may have ended already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn store(library: &Path, name: &str, content: &str, collection: &str) {
    let arguments = json!({ "name": name, "content": content, "collection": collection }).to_string();
    let (code, _, err) = shelf(library, &["call", "add", &arguments]);
    assert_eq!(code, 0, "{err}");
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn each_library_knows_its_own_server() {
    let home = tempfile::tempdir().unwrap();
    let libraries = ["one", "two"].map(|name| home.path().join(name));
    let servers = [0, 1].map(|at: usize| Server::start(&libraries[at], &[]));
    let at = |library: &Path, arguments: &[&str]| {
        let whole = [&["--data-dir", library.to_str().unwrap()], arguments].concat();
        run(home.path(), &[], &whole, "")
    };
    for (library, server) in libraries.iter().zip(&servers) {
        let (_, out, _) = at(library, &["doctor"]);
        assert!(out.contains(&format!("running at http://{}\n", server.address)), "{out}");
        let (code, out, err) = at(library, &["open", "--print"]);
        assert!(code == 0 && out.starts_with(&format!("http://{}/open/", server.address)), "{out}{err}");
        let (code, _, err) = at(library, &["client", "add", "cursor", "--http"]);
        assert_eq!(code, 0, "{err}");
        let settings = fs::read_to_string(home.path().join(".cursor/mcp.json")).unwrap();
        assert!(settings.contains(&format!("http://{}/mcp", server.address)), "{settings}");
        let (_, out, _) = at(library, &["client", "list"]);
        assert!(
            out.lines().any(|line| line.starts_with("cursor") && line.contains("yes: shelfmark")),
            "{out}"
        );
    }
    let [mut one, two] = servers;
    // A server that is killed leaves a note behind, which nobody believes.
    one.child.kill().unwrap();
    one.child.wait().unwrap();
    let notes = || {
        let entries = fs::read_dir(libraries[0].join("serving")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "json")).count()
    };
    assert_eq!(notes(), 1);
    let (_, out, _) = at(&libraries[0], &["doctor"]);
    assert!(!out.contains("running at") && out.contains("not running"), "{out}");
    assert_eq!(notes(), 0);
    drop(two);
}

/// Starts a watch and waits until it watches.
fn watch(library: &Path, tree: &Path) -> Child {
    let mut child = Command::new(binary())
        .args(["--data-dir", library.to_str().unwrap(), "watch", tree.to_str().unwrap()])
        .env("SHELF_WATCH_SETTLE", "50")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("watching") {
        assert!(lines.read_line(&mut said).unwrap() > 0, "{said}");
    }
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    child
}

#[test]
fn a_folder_that_was_replaced_is_followed_again() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    let (library, tree) = (real.join("library"), real.join("tree"));
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("first.txt"), "first\n").unwrap();
    let mut child = watch(&library, &tree);
    let has = |name: &str| shelf(&library, &["list", "--paths"]).1.contains(name);
    until("the first file", || has("first.txt"));
    fs::rename(&tree, real.join("tree_old")).unwrap();
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("second.txt"), "second\n").unwrap();
    until("a file of the new folder", || has("second.txt"));
    fs::write(tree.join("third.txt"), "third\n").unwrap();
    until("a later file", || has("third.txt"));
    assert!(child.try_wait().unwrap().is_none(), "it goes on");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_server_starts_without_the_folder_it_should_watch() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    let (library, tree) = (real.join("library"), real.join("later"));
    let variables = [("SHELF_WATCH", tree.to_str().unwrap()), ("SHELF_WATCH_SETTLE", "50")];
    let server = Server::start_with(&library, &[], &variables);
    assert_eq!(server.request("GET", "/healthz", &[], "").0, 200);
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("note.txt"), "note\n").unwrap();
    until("the file", || shelf(&library, &["list", "--paths"]).1.contains("later/note.txt"));
}

#[test]
fn a_book_comes_back_from_an_export_as_a_book() {
    let folder = tempfile::tempdir().unwrap();
    let (library, source, out) =
        (folder.path().join("library"), folder.path().join("source"), folder.path().join("out"));
    fs::create_dir_all(source.join("lessons")).unwrap();
    fs::write(source.join("lessons/one.md"), "# One\n").unwrap();
    let arguments = ["books", "import", "my-book", source.to_str().unwrap(), "--title", "My own book"];
    assert_eq!(shelf(&library, &arguments).0, 0);
    assert_eq!(
        shelf(&library, &["books", "set", "my-book", "--status", "archived", "--public", "true"]).0,
        0
    );
    let books = |library: &Path| {
        let (_, out, _) = shelf(library, &["books", "list", "--json"]);
        serde_json::from_str::<Value>(&out).unwrap()["books"].clone()
    };
    let before = books(&library);
    let (code, _, err) = shelf(&library, &["export", "my-book", out.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    let other = folder.path().join("other");
    let (code, _, err) = shelf(&other, &["import", "export", out.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(books(&other), before);
    let read = json!({ "book_id": "my-book", "path": "lessons/one.md" }).to_string();
    assert!(shelf(&other, &["call", "read_content", &read]).1.contains("# One"));
}

#[test]
fn clients_are_independent_of_each_other_and_of_their_old_tokens() {
    let home = tempfile::tempdir().unwrap();
    let library = home.path().join("library");
    let at = |arguments: &[&str]| {
        let whole = [&["--data-dir", library.to_str().unwrap()], arguments].concat();
        run(home.path(), &[], &whole, "")
    };
    let url = "http://127.0.0.1:9/mcp";
    let (code, _, err) = at(&["client", "add", "claude-desktop", "cursor", "gemini-cli", "--http", url]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("some clients were not set up: claude-desktop"), "{err}");
    assert!(
        home.path().join(".cursor/mcp.json").exists() && home.path().join(".gemini/settings.json").exists()
    );
    let active = || at(&["token", "list", "--json"]).1.matches("\"active\"").count();
    assert_eq!(active(), 2);
    assert_eq!(at(&["client", "add", "cursor", "--http", url]).0, 0);
    assert_eq!(active(), 2, "the token of before is replaced");
    let (code, _, err) = at(&["client", "add", "zed", "cursor", "gemini-cli", "--remove"]);
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("some clients were not cleared: zed"), "{err}");
    assert_eq!(active(), 0);
    // Settings with comments are read, and left alone.
    let zed = home.path().join(".config/zed/settings.json");
    fs::create_dir_all(zed.parent().unwrap()).unwrap();
    let text = json!({ "shelfmark": { "command": binary(), "args": ["--data-dir", library, "serve"] } });
    let commented =
        format!("// Zed's own\n{{ \"theme\": \"One\", /* servers */ \"context_servers\": {text}, }}\n");
    fs::write(&zed, &commented).unwrap();
    let (_, out, _) = at(&["client", "list", "--json"]);
    let listed: Value = serde_json::from_str(&out).unwrap();
    let found =
        listed["clients"].as_array().unwrap().iter().find(|client| client["client"] == "zed").unwrap();
    assert_eq!((&found["transport"], &found["works"]), (&json!("stdio"), &json!(true)), "{found}");
    let (code, _, err) = at(&["client", "add", "zed", "--http", url]);
    assert!(code == 2 && err.contains("it was left as it is"), "{err}");
    assert_eq!(fs::read_to_string(&zed).unwrap(), commented);
    assert_eq!(active(), 0, "no token is made for settings that cannot be written");
    fs::write(&zed, "{ broken").unwrap();
    let (_, out, _) = at(&["client", "list", "--no-check"]);
    let line = out.lines().find(|line| line.starts_with("zed")).unwrap();
    assert!(line.split_whitespace().nth(2) == Some("?"), "{line}");
}

#[test]
fn a_mistyped_folder_stays_as_it_was() {
    let home = tempfile::tempdir().unwrap();
    let (absent, bad) = (home.path().join("mistyped"), home.path().join("bad.shelf"));
    fs::write(&bad, "no backup at all").unwrap();
    let at = |arguments: &[&str], input: &str| {
        let whole = [&["--data-dir", absent.to_str().unwrap()], arguments].concat();
        run(home.path(), &[], &whole, input)
    };
    let space = home.path().to_str().unwrap();
    let (code, _, err) = at(&["workspace", "--workspace", space, "query"], "");
    assert!(code == 0 && err.contains("0 of 0"), "{err}");
    for arguments in [&["workspace", "check"][..], &["check", "--memory"], &["user", "list"], &["recover"]] {
        let (code, _, err) = at(arguments, "");
        assert!(code == 4 && err.contains("there is no library in"), "{arguments:?}: {err}");
    }
    let (code, _, err) = at(&["user", "create", "ada", "--email", "ada@example.org"], "short\n");
    assert!(code == 2 && err.contains("at least 10 characters"), "{err}");
    assert_ne!(at(&["restore-library", bad.to_str().unwrap()], "").0, 0);
    assert_ne!(at(&["restore-library", "/no/such/backup"], "").0, 0);
    assert!(!absent.exists());
    let (code, _, err) = at(&["token", "create"], "");
    assert!(code == 0 && err.contains("a new library was made in"), "{err}");
    let (_, _, err) = at(&["token", "create"], "");
    assert!(!err.contains("a new library"), "{err}");
    let (_, _, err) = at(&["token", "create", "--expires-in-days", "0"], "");
    assert!(err.contains("--expires-in-days"), "{err}");
}

#[test]
fn next_steps_name_the_library_that_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("my library");
    let (_, out, _) = shelf(&library, &["demo"]);
    let again = format!("shelf --data-dir '{}' ", library.display());
    assert!(out.contains(&format!("{again}demo --remove")) && !out.contains("    shelf search"), "{out}");
    let mut child = Command::new(binary())
        .args([
            "--data-dir",
            library.to_str().unwrap(),
            "serve",
            "--http",
            "127.0.0.1:0",
            "--admin-listen",
            "off",
        ])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("Stop with Ctrl-C") && lines.read_line(&mut said).unwrap() > 0 {}
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.contains(&format!("{again}open")), "{said}");
}

#[test]
fn figures_of_the_index_are_those_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (library, tree) = (folder.path().join("library"), crate::files(folder.path(), 12));
    assert_eq!(shelf(&library, &["add", tree.to_str().unwrap(), "--no-index"]).0, 0);
    let detailed = || shelf(&library, &["status", "--detailed"]).1;
    assert!(detailed().contains("to index with the next search"), "{}", detailed());
    assert_eq!(shelf(&library, &["search", "file"]).0, 0);
    assert!(detailed().contains("of 12 documents, up to date"), "{}", detailed());
    let (_, _, err) = shelf(&library, &["reindex"]);
    assert!(err.contains("12 documents indexed"), "{err}");
    assert!(detailed().contains("of 12 documents, up to date"), "{}", detailed());
    let (_, out, _) = shelf(&library, &["doctor"]);
    assert!(out.contains("12 documents") && out.contains("0 journal records to follow"), "{out}");
}

#[test]
fn an_import_with_a_mistake_imports_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (library, file) = (folder.path().join("library"), folder.path().join("notes.jsonl"));
    let check = |last: &str, words: &[&str]| {
        fs::write(&file, format!("{{\"title\": \"a\", \"text\": \"a\"}}\n\n{last}\n")).unwrap();
        let (code, _, err) = shelf(&library, &["import", "jsonl", file.to_str().unwrap()]);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(&format!("{}: line 3: ", file.display())), "{err}");
        for word in words {
            assert!(err.contains(word), "{word}: {err}");
        }
    };
    check("{\"title\": \"b\"}", &["a document needs text"]);
    check(
        "{\"title\": \"b\", \"text\": \"b\", \"colour\": 1}",
        &["unknown key 'colour'", "known keys are title"],
    );
    check("{\"title\": ", &["not valid JSON at column"]);
    check("{\"title\": \"b\", \"text\": \"b\", \"tags\": [\"\"]}", &["tag"]);
    let (_, out, _) = shelf(&library, &["list", "--paths"]);
    assert_eq!(out, "");
    let home = folder.path();
    let arguments = ["--data-dir", library.to_str().unwrap(), "import", "jsonl", "-"];
    let (_, _, err) = run(home, &[], &arguments, "{\"title\": \"a\", \"text\": \"a\"}\n{}\n");
    assert!(err.contains("stdin: line 2: ") && err.contains("nothing was imported"), "{err}");
}

#[test]
fn flags_that_are_refused_are_named_and_not_proposed() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), "a.txt", "hello\n", "default");
    for arguments in [&["grep", "-r", "hello"][..], &["grep", "hello", "-r"]] {
        let (code, _, err) = shelf(folder.path(), arguments);
        assert!(code == 2 && err.contains("-r (--replace) is not supported"), "{err}");
    }
    let (code, _, err) = shelf(folder.path(), &["grep", "-f", "patterns.txt"]);
    assert!(code == 2 && err.contains("-f (--file) is not supported"), "{err}");
    let (code, _, err) = shelf(folder.path(), &["grep", "--hiden", "hello"]);
    assert!(code == 2 && err.contains("--hiden") && !err.contains("'--hidden'"), "{err}");
}

#[test]
fn json_is_what_is_printed_when_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    store(&library, "a.md", "hello\n", "default");
    let one =
        |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let (code, out, err) = shelf(&library, &["--json", "get", "nope", "a.md", "none"]);
    assert_eq!(code, 4);
    assert_eq!(one(&out).as_array().unwrap().len(), 1);
    assert_eq!(one(&err)["error"]["message"], "some documents were not found: nope, none");
    assert_eq!(one(&err)["error"]["details"].as_array().unwrap().len(), 2);
    let (code, _, err) = shelf(&library, &["--json", "list", "--no-such-flag"]);
    assert_eq!(code, 2);
    assert!(one(&err)["error"]["message"].as_str().unwrap().contains("--no-such-flag"), "{err}");
    let tree = crate::files(folder.path(), 3);
    let (_, out, _) = shelf(&library, &["--json", "watch", "--once", tree.to_str().unwrap()]);
    assert_eq!(one(&out)["folders"][0]["new"], 3, "{out}");
    assert_eq!(one(&shelf(&library, &["--json", "demo", "--remove"]).1)["removed"], false);
    let pages = folder.path().join("man");
    assert!(one(&shelf(&library, &["--json", "man", pages.to_str().unwrap()]).1)["folder"].is_string());
    let (_, out, _) = run(folder.path(), &[], &["--json", "service", "status"], "");
    assert_eq!(one(&out)["installed"], false);
    let (_, out, _) = run(folder.path(), &[], &["--json", "client", "add", "cursor"], "");
    assert_eq!(one(&out)["clients"][0]["changed"], true);
    let (_, out, _) = shelf(&library, &["--json", "tools"]);
    let tools = one(&out)["tools"].as_array().unwrap().clone();
    let offered =
        |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap()["offered_by_default"].clone();
    assert_eq!((offered("search"), offered("query_memory")), (json!(true), json!(false)));
}

#[test]
fn settings_that_make_no_sense_are_refused_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    for (name, value, words) in [
        ("SHELF_CALL_SECONDS", "-1", "limits.call_seconds must not be negative"),
        ("SHELF_TOOLSETS", "bogus", "unknown toolset 'bogus'"),
        ("SHELF_HTTP_LISTEN", "foo", "SHELF_HTTP_LISTEN must be an address"),
        ("SHELF_ADMIN_LISTEN", "foo", "SHELF_ADMIN_LISTEN must be an address"),
    ] {
        let (code, _, err) = run(folder.path(), &[(name, value)], &["tools"], "");
        assert!(code == 2 && err.contains(words), "{name}: {err}");
    }
    let (code, _, err) = shelf(folder.path(), &["serve", "--http", "foo"]);
    assert!(code == 2 && err.contains("--http must be an address"), "{err}");
    let (code, _, err) = shelf(folder.path(), &["service", "install", "--print", "--http", "foo"]);
    assert!(code == 2 && err.contains("--http must be an address"), "{err}");
}

#[test]
fn commands_say_what_they_did_and_what_they_did_not() {
    let folder = tempfile::tempdir().unwrap();
    let (library, copy) = (folder.path().join("library"), folder.path().join("copy.txt"));
    store(&library, "a.txt", "alpha\n", "default");
    let check = |arguments: &[&str], code: i32, words: &[&str]| {
        let (found, out, err) = shelf(&library, arguments);
        assert_eq!(found, code, "{arguments:?}: {out}{err}");
        for word in words {
            assert!(out.contains(word) || err.contains(word), "{arguments:?}: {word}: {out}{err}");
        }
    };
    check(&["list"], 0, &["1 of 1 document"]);
    assert!(!shelf(&library, &["list"]).1.contains("COLLECTION"));
    store(&library, "b.txt", "beta\n", "other");
    check(&["list"], 0, &["COLLECTION", "other"]);
    let target = copy.to_str().unwrap();
    check(&["get", "a.txt", "-o", target], 0, &[]);
    check(&["get", "b.txt", "-o", target], 5, &["exists already", "--overwrite"]);
    assert_eq!(fs::read_to_string(&copy).unwrap(), "alpha\n");
    check(&["get", "b.txt", "-o", target, "--overwrite"], 0, &[]);
    assert_eq!(fs::read_to_string(&copy).unwrap(), "beta\n");
    let tree = crate::files(folder.path(), 3);
    check(&["add", tree.to_str().unwrap(), "--include", "*.nope"], 0, &["no file matches"]);
    check(&["update", "a.txt", "--metadata", "n=5"], 0, &["metadata.n: 5 (new)", "1 change"]);
    check(&["delete"], 2, &["<NAMES>"]);
    check(&["books", "create", "my-book"], 0, &[]);
    check(&["books", "set", "my-book"], 2, &["nothing to change"]);
    check(&["books", "history", "my-book", "nope.md"], 4, &["no file 'nope.md'"]);
    check(&["books", "create", "No"], 2, &["the book identifier must be"]);
    let out = folder.path().join("out");
    let restore = ["restore", out.to_str().unwrap(), "--collection", "default"];
    check(&restore, 0, &["1 file ("]);
    check(&restore, 0, &["--overwrite"]);
    check(&["gc", "--plan"], 0, &["0 packs would be deleted"]);
    check(&["graph", "a.tx"], 4, &["did you mean"]);
    check(&["graph", "a.txt", "--relation", "NOPE"], 2, &["--relation 'NOPE' must be one of"]);
    check(&["update", "a.txt", "-c", "oter", "--tag", "x"], 4, &["hint"]);
    check(&["delete", "a.txt", "-c", "oter"], 4, &["did you mean other?"]);
    check(&["cite", "show", "nothing"], 4, &["shelf cite list"]);
    check(&["restore", "x", "--snapshot", "nope"], 4, &["shelf snapshot list"]);
    check(&["embed", "oter"], 4, &["did you mean other?"]);
    check(&["workspace", "log", "--entry", "{"], 2, &["--entry is not valid JSON", "column 1"]);
    check(&["workspace", "log", "x", "--at", "yesterday"], 2, &["--at must be"]);
    let hash = shelf(&library, &["get", "a.txt", "--info", "--json"]).1;
    let hash = serde_json::from_str::<Value>(&hash).unwrap()["hash"].as_str().unwrap()[..12].to_owned();
    check(&["search", "--hash", &hash], 0, &["a.txt"]);
    let (code, _, err) = shelf(&library, &["cite", "check", "/no/such/file"]);
    assert!(code == 4 && !err.contains("os error"), "{err}");
}

#[test]
fn every_matching_part_is_printed_and_json_is_one_reply() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let ids: Vec<String> = (0..3_000).map(|number| format!("id-{number:04}")).collect();
    store(&library, "one-line.json", &format!("[{}]", ids.join(",")), "default");
    store(&library, "lines.txt", &ids.join("\n"), "default");
    let latin = folder.path().join("latin.txt");
    fs::write(&latin, b"caf\xe9 id-9999\n").unwrap();
    shelf(&library, &["add", latin.to_str().unwrap()]);
    let (code, out, _) = shelf(&library, &["grep", "-o", "-I", "-N", "id-[0-9]{4}"]);
    assert_eq!((code, out.lines().count()), (0, 6_001));
    assert!(out.lines().all(|line| line.len() == 7));
    let (_, out, _) = shelf(&library, &["--json", "grep", "id-[0-9]{4}"]);
    let reply: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(reply["matches"].as_array().unwrap().len(), 3_002);
    assert_eq!((reply["files"].as_array().unwrap().len(), &reply["next_cursor"]), (3, &Value::Null));
}
