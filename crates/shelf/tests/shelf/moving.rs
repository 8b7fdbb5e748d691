//! Getting documents in and out: exports, imports, watched folders, the demo, and the settings of clients.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{assert_sound, binary, files, shelf};

fn documents(library: &Path, collection: &str) -> Vec<Value> {
    let (code, out, err) = shelf(library, &["list", "--collection", collection, "--json"]);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str::<Value>(&out).unwrap()["documents"].as_array().unwrap().clone()
}

#[test]
fn an_export_comes_back_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (library, tree) = (path("library"), files(folder.path(), 40));
    fs::write(tree.join("bytes.bin"), (0..=255).collect::<Vec<u8>>()).unwrap();
    fs::write(tree.join("00/big.txt"), "a long line of text\n".repeat(40_000)).unwrap();
    let tree = tree.to_str().unwrap();
    assert_eq!(shelf(&library, &["add", tree, "--collection", "work"]).0, 0);
    let change = ["update", "5.txt", "--tag", "kept", "--metadata", "status=done", "--collection", "work"];
    assert_eq!(shelf(&library, &change).0, 0);
    // A document whose path cannot be a file beside the others.
    let both = json!({ "name": format!("{}/05/5.txt/inside", tree.trim_start_matches('/')), "content": "odd", "collection": "work" });
    assert_eq!(shelf(&library, &["call", "add", &both.to_string()]).0, 0);
    let export = path("export");
    let (code, _, err) = shelf(&library, &["export", "work", export.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = shelf(&library, &["export", "work", export.to_str().unwrap()]);
    assert_eq!(code, 5, "an export overwrites nothing: {err}");
    let other = path("other");
    let (code, _, err) = shelf(&other, &["import", "export", export.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    let facts = |library: &Path| -> Vec<Value> {
        let keep = ["path", "hash", "size", "title", "mime_type", "modified_at", "tags", "metadata"];
        let pick = |document: &Value| keep.iter().map(|key| document[*key].clone()).collect::<Value>();
        documents(library, "work").iter().map(pick).collect()
    };
    assert_eq!(facts(&library).len(), 43);
    assert_eq!(facts(&library), facts(&other));
    assert_sound(&other);
    let (_, _, err) = shelf(&other, &["import", "export", export.to_str().unwrap()]);
    assert!(err.contains("0 new, 0 updated, 43 unchanged"), "{err}");
    // What was changed after the export is noticed.
    fs::write(export.join("files").join(tree.trim_start_matches('/')).join("bytes.bin"), "changed").unwrap();
    let (code, _, err) = shelf(&path("third"), &["import", "export", export.to_str().unwrap()]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("bytes.bin") && err.contains("changed"), "{err}");
}

#[test]
fn lines_of_json_become_documents() {
    let folder = tempfile::tempdir().unwrap();
    let (library, file) = (folder.path().join("library"), folder.path().join("notes.jsonl"));
    let lines = [
        json!({ "title": "First / note", "text": "alpha", "tags": ["a"], "metadata": { "k": 1 }, "modified_at": "2020-01-02T03:04:05Z" }),
        json!({ "path": "deep/second.txt", "text": "beta", "collection": "other", "created_at": 1_500_000_000 }),
    ];
    fs::write(&file, lines.map(|line| line.to_string()).join("\n\n")).unwrap();
    let (code, _, err) = shelf(&library, &["import", "jsonl", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    let first = &documents(&library, "default")[0];
    assert_eq!(
        (first["title"].as_str(), first["path"].as_str()),
        (Some("First / note"), Some("First - note.md"))
    );
    assert_eq!((&first["tags"], &first["metadata"]), (&json!(["a"]), &json!({ "k": 1 })));
    assert!(first["modified_at"].as_str().unwrap().starts_with("2020-01-02T03:04:05"), "{first}");
    assert_eq!(shelf(&library, &["get", "deep/second.txt"]).1, "beta");
    fs::write(&file, "{\"title\": \"no text\"}\n").unwrap();
    let (code, _, err) = shelf(&library, &["import", "jsonl", file.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(err.contains("line 1: a document needs text"), "{err}");
    fs::write(&file, "{\"title\": \"t\", \"text\": \"x\", \"metadata\": {\"n\": 18446744073709551616}}\n")
        .unwrap();
    let (code, _, err) = shelf(&library, &["import", "jsonl", file.to_str().unwrap()]);
    assert!(code == 2 && err.contains("line 1: metadata holds an integer beyond 64 bits"), "{err}");
}

#[test]
fn a_storage_folder_of_books_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let (library, storage) = (folder.path().join("library"), folder.path().join("storage"));
    let lesson = storage.join("books/small-book/lessons/part-1");
    fs::create_dir_all(&lesson).unwrap();
    fs::write(lesson.join("one.md"), "# One\n").unwrap();
    let registry = "books:\n  - book_id: small-book\n    title: \"A small book\"\n    storage_backend: fs\n    created_at: \"2024-05-06T00:00:00Z\"\n    status: active\n";
    fs::write(storage.join("registry.yaml"), registry).unwrap();
    let (code, _, err) = shelf(&library, &["import", "panaversityfs", storage.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    let (_, out, _) = shelf(&library, &["books", "list", "--json"]);
    let books: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(books["books"][0]["title"], "A small book");
    assert!(books["books"][0]["created_at"].as_str().unwrap().starts_with("2024-05-06"));
    let read = json!({ "book_id": "small-book", "path": "lessons/part-1/one.md" }).to_string();
    assert!(shelf(&library, &["call", "read_content", &read]).1.contains("# One"));
}

#[test]
fn pruning_forgets_only_what_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (library, tree) = (folder.path().join("library"), files(folder.path(), 10));
    let shown = tree.to_str().unwrap().to_owned();
    assert_eq!(shelf(&library, &["add", &shown]).0, 0);
    fs::write(tree.join(".gitignore"), "07/\n").unwrap();
    fs::remove_file(tree.join("03/3.txt")).unwrap();
    let (code, _, err) = shelf(&library, &["add", &shown, "--prune"]);
    assert_eq!(code, 0);
    assert!(err.contains("1 removed"), "{err}");
    let paths = shelf(&library, &["list", "--paths"]).1;
    assert!(!paths.contains("03/3.txt") && paths.contains("07/7.txt"), "{paths}");
    let out = folder.path().join("out");
    let (_, listed, _) = shelf(&library, &["snapshot", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let first = listed["snapshots"][1]["snapshot_id"].as_str().unwrap().to_owned();
    assert_eq!(shelf(&library, &["restore", out.to_str().unwrap(), "--snapshot", &first]).0, 0);
    assert!(out.join("03/3.txt").exists(), "the snapshot keeps it");
    // A disk that is missing looks like a folder that is empty.
    fs::remove_dir_all(&tree).unwrap();
    fs::create_dir(&tree).unwrap();
    let (code, _, err) = shelf(&library, &["add", &shown, "--prune"]);
    assert_ne!(code, 0);
    assert!(err.contains("is empty") && err.contains("nothing was deleted"), "{err}");
}

/// Waits until the library has exactly these documents below a folder.
fn wait_for(library: &Path, tree: &Path, expected: &[&str]) {
    let started = Instant::now();
    loop {
        let (_, out, _) = shelf(library, &["list", "--paths"]);
        let prefix = format!("{}/", tree.display());
        let mut found: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix(&prefix)).collect();
        found.sort_unstable();
        if found == expected {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{found:?} instead of {expected:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_watched_folder_is_kept_in_step() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    let (library, tree) = (real.join("library"), real.join("tree"));
    fs::create_dir_all(tree.join("sub")).unwrap();
    fs::write(tree.join("old.txt"), "was here before\n").unwrap();
    fs::write(tree.join(".gitignore"), "*.tmp\n").unwrap();
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
    wait_for(&library, &tree, &[".gitignore", "old.txt"]);
    fs::write(tree.join("sub/new.txt"), "new\n").unwrap();
    fs::write(tree.join("ignored.tmp"), "no\n").unwrap();
    wait_for(&library, &tree, &[".gitignore", "old.txt", "sub/new.txt"]);
    fs::rename(tree.join("old.txt"), tree.join("renamed.txt")).unwrap();
    wait_for(&library, &tree, &[".gitignore", "renamed.txt", "sub/new.txt"]);
    fs::write(tree.join("renamed.txt"), "changed\n").unwrap();
    let started = Instant::now();
    while shelf(&library, &["get", "renamed.txt"]).1 != "changed\n" {
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What happens while nobody watches is made up for at the next start, and a start without changes adds nothing.
    fs::remove_dir_all(tree.join("sub")).unwrap();
    let once = ["watch", "--once", tree.to_str().unwrap()];
    assert_eq!(shelf(&library, &once).0, 0);
    wait_for(&library, &tree, &[".gitignore", "renamed.txt"]);
    let snapshots = || shelf(&library, &["snapshot", "list", "--json"]).1.matches("snapshot_id").count();
    let before = snapshots();
    assert_eq!(shelf(&library, &once).0, 0);
    assert_eq!(snapshots(), before);
    assert_sound(&library);
}

#[test]
fn the_demo_is_there_to_be_tried_and_goes_away() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let (code, out, err) = shelf(&library, &["demo"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(out.matches("    shelf ").count(), 5, "{out}");
    assert!(shelf(&library, &["search", "keeping", "maps", "dry"]).1.contains("damp.pdf"));
    assert_eq!(shelf(&library, &["get", "text://shelfmarks#lines=1-1"]).1, "# How shelfmarks work\n");
    assert!(shelf(&library, &["graph", "shelfmarks.md"]).1.contains("reading-room.md"));
    assert_eq!(shelf(&library, &["demo"]).0, 0, "twice changes nothing");
    assert_eq!(shelf(&library, &["demo", "--remove"]).0, 0);
    assert_eq!(documents_in_all(&library), 0);
}

fn documents_in_all(library: &Path) -> usize {
    shelf(library, &["list", "--paths"]).1.lines().count()
}

#[test]
fn tools_are_listed_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let (_, out, _) = shelf(folder.path(), &["tools"]);
    assert!(out.lines().count() > 53 && out.contains("write_memory_entry"), "{out}");
    let (_, out, _) = shelf(folder.path(), &["tools", "grep"]);
    assert!(out.contains("pattern") && out.contains("required") && out.contains("shelf call grep"), "{out}");
    let (code, _, err) = shelf(folder.path(), &["tools", "grepp"]);
    assert_eq!(code, 4);
    assert!(err.contains("did you mean grep"), "{err}");
}

/// Runs a command with a home folder of its own.
fn at_home(home: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(binary())
        .arg("--data-dir")
        .arg(home.join("library"))
        .args(arguments)
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("SHELF_TOKEN")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn clients_are_set_up_tried_and_cleared() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let file: PathBuf = home.join(".cursor/mcp.json");
    let (code, _, err) = at_home(home, &["client", "add", "cursor", "codex"]);
    assert_eq!(code, 0, "{err}");
    let settings: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let server = &settings["mcpServers"]["shelfmark"];
    assert_eq!(server["args"], json!(["--data-dir", home.join("library"), "serve"]));
    assert!(fs::read_to_string(home.join(".codex/config.toml")).unwrap().contains("[mcp_servers.shelfmark]"));
    let (_, out, _) = at_home(home, &["client", "list", "--json"]);
    let listed: Value = serde_json::from_str(&out).unwrap();
    let of = |name: &str| {
        listed["clients"].as_array().unwrap().iter().find(|client| client["client"] == name).unwrap().clone()
    };
    assert_eq!((&of("cursor")["works"], &of("codex")["works"]), (&json!(true), &json!(true)), "{out}");
    assert_eq!(of("zed")["transport"], Value::Null);
    let (_, out, _) = at_home(home, &["doctor"]);
    assert!(out.contains("Cursor: set up, shelfmark"), "{out}");
    let (_, out, _) = at_home(home, &["client", "add", "vscode", "--print", "--http"]);
    assert!(out.contains("\"servers\"") && out.contains("http://127.0.0.1:7433/mcp"), "{out}");
    let (code, _, err) = at_home(home, &["client", "add", "claude-desktop", "--http"]);
    assert_eq!(code, 2, "{err}");
    assert_eq!(at_home(home, &["client", "add", "cursor", "--remove"]).0, 0);
    assert_eq!(at_home(home, &["client", "add", "cursor", "--remove"]).0, 4);
    // Settings that name a program which is not there do not work, and doctor says so.
    fs::write(&file, r#"{"mcpServers": {"shelfmark": {"command": "/no/such/shelf", "args": []}}}"#).unwrap();
    let (code, out, _) = at_home(home, &["doctor"]);
    assert_ne!(code, 0);
    assert!(out.contains("Cursor: set up, but /no/such/shelf cannot be started"), "{out}");
}

#[test]
fn a_client_over_http_gets_a_token_that_works() {
    let home = tempfile::tempdir().unwrap();
    let server = crate::http::Server::start(&home.path().join("library"), &[]);
    let url = format!("http://{}/mcp", server.address);
    assert_eq!(at_home(home.path(), &["client", "add", "gemini-cli", "--http", &url]).0, 0);
    let settings = fs::read_to_string(home.path().join(".gemini/settings.json")).unwrap();
    assert!(settings.contains("httpUrl") && settings.contains("Bearer pat_live_"), "{settings}");
    let (_, out, _) = at_home(home.path(), &["client", "list"]);
    let line = out.lines().find(|line| line.starts_with("gemini-cli")).unwrap();
    assert!(line.contains("HTTP") && line.contains("yes: shelfmark"), "{line}");
}

#[test]
fn the_service_is_described_before_it_is_installed() {
    let home = tempfile::tempdir().unwrap();
    let (code, out, _) = at_home(home.path(), &["service", "install", "--print", "--http", "8080"]);
    assert_eq!(code, 0);
    assert!(out.contains("ExecStart=") && out.contains("serve --http 8080"), "{out}");
    let (_, out, _) = at_home(home.path(), &["service", "install", "--print", "--system"]);
    assert!(out.contains("DynamicUser=true") && out.contains("/var/lib/shelfmark"), "{out}");
    assert_eq!(at_home(home.path(), &["service", "status"]).0, 1);
}

#[test]
fn what_is_shipped_is_consistent() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let json = |name: &str| serde_json::from_str::<Value>(&read(name)).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let (server, manifest) = (json("server.json"), json("packaging/mcpb/manifest.json"));
    assert_eq!((server["version"].as_str(), manifest["version"].as_str()), (Some(version), Some(version)));
    assert_eq!(server["packages"][0]["version"], version);
    assert!(server["description"].as_str().unwrap().len() <= 100);
    assert_eq!(manifest["server"]["mcp_config"]["args"], json!(["serve"]));
    let workflow: Value = serde_saphyr::from_str(&read(".github/workflows/release.yml")).unwrap();
    let builds = workflow["jobs"]["build"]["strategy"]["matrix"]["include"].as_array().unwrap();
    let targets: Vec<&str> = builds.iter().filter_map(|build| build["target"].as_str()).collect();
    let expected = [
        "x86_64-unknown-linux-musl",
        "aarch64-unknown-linux-musl",
        "x86_64-apple-darwin",
        "aarch64-apple-darwin",
    ];
    assert_eq!(targets, expected);
    let steps = workflow["jobs"]["build"]["steps"].to_string();
    for word in ["--profile dist", "--locked", "shasum -a 256", "xtask bundle"] {
        assert!(steps.contains(word), "{word}");
    }
    assert!(workflow["jobs"]["publish"]["steps"].to_string().contains("sha256sum --check"));
    assert!(read("Cargo.toml").contains("[profile.dist]") && read("Dockerfile").contains("--profile dist"));
}
