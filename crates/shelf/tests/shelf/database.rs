//! A library whose catalog is in PostgreSQL: commands, servers, and several processes at once.

use std::{path::Path, process::Command};

use serde_json::{Value, json};
use shelf_testkit::{Postgres, StdioClient};

use crate::{binary, files, http::Server, shelf};

/// Runs a command on a library with its catalog at an address.
fn at(address: &str, library: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut all = vec!["--catalog", address];
    all.extend_from_slice(arguments);
    shelf(library, &all)
}

fn value(address: &str, library: &Path, arguments: &[&str]) -> Value {
    let (code, out, err) = at(address, library, arguments);
    assert_eq!(code, 0, "{arguments:?}: {out}{err}");
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{arguments:?}: {out}"))
}

#[test]
fn a_catalog_in_postgres_serves_commands_and_servers_at_once() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (library, tree) = (folder.path().join("library"), files(folder.path(), 60));
    let address = postgres.address("served");
    let added = value(&address, &library, &["add", "--json", tree.to_str().unwrap()]);
    assert_eq!(added["files_added"], 60);
    assert!(!library.join("catalog.db").exists(), "nothing of the catalog is in the folder");
    let again = value(&address, &library, &["add", "--json", tree.to_str().unwrap()]);
    assert_eq!(again["files_unchanged"], 60);

    let server = Server::start_with(&library, &["--no-auth"], &[("SHELF_CATALOG", &address)]);
    let (status, _, body) = server.request("GET", "/readyz", &[], "");
    assert_eq!(status, 200, "{body}");
    let content = "a narwhal is a whale with a tusk";
    let (status, reply) = server.tool("", "add", &json!({ "content": content, "name": "narwhal.txt" }));
    assert_eq!(status, 200, "{reply}");
    // Another process finds at once what the server has just taken, and the other way round.
    let found = value(&address, &library, &["search", "--json", "narwhal"]);
    assert!(found.to_string().contains("narwhal.txt"), "{found}");
    let path = folder.path().join("walrus.txt");
    std::fs::write(&path, "a walrus has two tusks").unwrap();
    value(&address, &library, &["add", "--json", path.to_str().unwrap()]);
    let (status, found) = server.tool("", "search", &json!({ "query": "walrus" }));
    assert_eq!(status, 200);
    assert!(found.to_string().contains("walrus.txt"), "{found}");
    let (_, got) = server.tool("", "get", &json!({ "name": "walrus.txt", "include_content": true }));
    assert!(got.to_string().contains("two tusks"), "{got}");

    let (code, out, err) = at(&address, &library, &["check"]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = at(&address, &library, &["gc"]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = at(&address, &library, &["doctor"]);
    assert!(out.contains("catalog") && code == 0, "{out}{err}");
}

#[test]
fn writers_of_several_processes_share_a_catalog_in_postgres() {
    let Some(mut postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let address = postgres.address("many");
    let settings = folder.path().join("shelf.toml");
    std::fs::write(&settings, format!("[library]\ncatalog = \"{address}\"\n")).unwrap();
    let flags = ["--config", settings.to_str().unwrap()];
    let written: Vec<(String, String)> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let (library, flags) = (&library, &flags);
                scope.spawn(move || {
                    let mut client = StdioClient::spawn(binary(), library, flags);
                    client.initialize();
                    let mut written = Vec::new();
                    for number in 0..12 {
                        let name = format!("{writer}/{number}");
                        let size = if number % 5 == 3 { 30_000 } else { 10 };
                        let content = format!("{name} ").repeat(size);
                        let reply = client.call("add", json!({ "content": content, "name": name }));
                        written.push((name, reply["hash"].as_str().expect("a hash").to_owned()));
                    }
                    written
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    // A server that is up while the database is restarted goes on by itself.
    let mut client = StdioClient::spawn(binary(), &library, &flags);
    client.initialize();
    for (name, hash) in &written {
        let got = client.call("get", json!({ "name": name }));
        assert_eq!(got["hash"], json!(hash), "{name}");
    }
    postgres.kill();
    let reply = client.request("tools/call", json!({ "name": "list", "arguments": {} }));
    assert!(reply.to_string().contains("not available"), "{reply}");
    postgres.go();
    let got = client.call("get", json!({ "name": written[0].0, "include_content": true }));
    assert_eq!(got["hash"], json!(written[0].1));
    let (code, out, err) = at(&address, &library, &["check"]);
    assert_eq!(code, 0, "{out}{err}");
}

/// Whoever asks hears which store is away, and nothing of where it is; whoever starts meanwhile waits a little.
#[test]
fn a_database_that_is_away_is_named_and_waited_for() {
    let Some(mut postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let address = postgres.address("away");
    let server = Server::start_with(&library, &[], &[("SHELF_CATALOG", &address)]);
    assert_eq!(server.request("GET", "/readyz", &[], "").0, 200);
    postgres.stop();
    let started = std::time::Instant::now();
    let (status, _, body) = server.request("GET", "/readyz", &[], "");
    assert!(status == 503 && body.starts_with("catalog: the catalog's database is not available"), "{body}");
    assert!(started.elapsed() < std::time::Duration::from_secs(2), "{:?}", started.elapsed());
    let token = [("Authorization", "Bearer pat_live_0000000000000000000000000000000000")];
    let (status, _, said) = server.request("GET", "/api/v1/tools", &token, "");
    assert!(status != 200, "{said}");
    assert!(!(body + &said).contains("postgres://"), "{said}");
    let (code, out, err) = at(&address, &library, &["doctor"]);
    assert!(code == 9 && out.contains("BAD  library") && out.contains("not available"), "{code} {out}{err}");
    assert!(out.contains("data directory") && out.contains("disk"), "{out}");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| at(&address, &library, &["list"]));
        std::thread::sleep(std::time::Duration::from_millis(500));
        postgres.go();
        let (code, out, err) = waiting.join().unwrap();
        assert_eq!(code, 0, "{out}{err}");
    });
    let (_, out, _) = at(&address, &library, &["doctor"]);
    assert!(out.contains("clock") && out.contains("agrees with that of the database"), "{out}");
}

/// A database that came back from an older backup is noticed by those who saw more, and the advice they get works.
#[test]
fn a_restored_database_is_accepted_on_request() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let address = postgres.address("restored");
    let note = folder.path().join("note.txt");
    std::fs::write(&note, "a note").unwrap();
    assert_eq!(at(&address, &library, &["add", note.to_str().unwrap()]).0, 0);
    assert_eq!(at(&address, &library, &["recover", "--keep-catalog"]).0, 0);
    // As if this machine had seen a record that the backup does not have.
    let copy = library.join("recovery/catalog.copy");
    let seen = std::fs::read(&copy).unwrap();
    let fresh = postgres.address("older");
    let other = folder.path().join("other");
    assert_eq!(at(&fresh, &other, &["add", note.to_str().unwrap()]).0, 0);
    std::fs::create_dir_all(other.join("recovery")).unwrap();
    std::fs::write(other.join("recovery/catalog.copy"), seen).unwrap();
    let (code, _, err) = at(&fresh, &other, &["list"]);
    assert!(code != 0 && err.contains("not whole") && err.contains("shelf recover --keep-catalog"), "{err}");
    assert_eq!(at(&fresh, &other, &["recover", "--keep-catalog"]).0, 0);
    assert_eq!(at(&fresh, &other, &["list"]).0, 0);
}

#[test]
fn a_folder_belongs_to_one_catalog() {
    let Some(mut postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [library, other] = ["library", "other"].map(|name| folder.path().join(name));
    let note = folder.path().join("note.txt");
    std::fs::write(&note, "a note").unwrap();
    let add = ["add", note.to_str().unwrap()];
    let (one, two) = (postgres.address("one"), postgres.address("two"));
    assert_eq!(at(&one, &library, &add).0, 0);

    let refused = |outcome: (i32, String, String), what: &str| {
        assert_ne!(outcome.0, 0, "{outcome:?}");
        assert!(outcome.2.contains(what), "{outcome:?}");
    };
    refused(shelf(&library, &["search", "note"]), "is in a database");
    refused(shelf(&library, &["recover"]), "restore the database");
    refused(at(&two, &library, &add), "another library");
    refused(at(&one, &other, &add), "not in this folder");
    assert_eq!(shelf(&other, &add).0, 0, "a library of its own");
    refused(at(&two, &other, &add), "catalog.db");
    refused(at("mysql://db", &library, &add), "postgres://");
    let shown = Command::new(binary())
        .args(["config", "show"])
        .env("SHELF_CATALOG", "postgres://me:secret@db/shelf")
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&shown.stdout).contains("secret"));
    // A database that came back from an old backup is noticed.
    postgres.stop();
    refused(at(&one, &library, &["search", "note"]), "not available");
    postgres.go();
    assert_eq!(at(&one, &library, &["search", "note"]).0, 0);
}

#[test]
fn a_library_moves_into_a_database_and_back() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (library, tree) = (folder.path().join("library"), files(folder.path(), 60));
    let (address, tree) = (postgres.address("moved"), tree.to_str().unwrap());
    let ok = |outcome: (i32, String, String)| {
        assert_eq!(outcome.0, 0, "{outcome:?}");
        outcome.1
    };
    ok(shelf(&library, &["add", tree, "--label", "first"]));
    ok(shelf(&library, &["search", "file"]));
    let token = ok(shelf(&library, &["token", "create"]));
    let listed = ok(shelf(&library, &["list", "--json"]));
    let running = Server::start(&library, &["--no-auth"]);

    let moved: Value =
        serde_json::from_str(&ok(shelf(&library, &["migrate", "--to", &address, "--json"]))).unwrap();
    assert!(moved["journal"].as_u64() > Some(60) && moved["rows"].as_u64() > Some(200), "{moved}");
    assert!(library.join("catalog.db.moved").exists() && !library.join("catalog.db").exists());
    // A server that had the file open does not write to it any more.
    let (status, reply) = running.tool("", "add", &json!({ "content": "too late", "name": "late.txt" }));
    assert_ne!(status, 200, "{reply}");
    drop(running);
    let refused = shelf(&library, &["list"]);
    assert!(refused.0 != 0 && refused.2.contains("is in a database"), "{refused:?}");
    assert_eq!(ok(at(&address, &library, &["list", "--json"])), listed);
    ok(at(&address, &library, &["check"]));
    assert!(!ok(at(&address, &library, &["list", "--paths"])).contains("late.txt"));
    let server = Server::start_with(&library, &[], &[("SHELF_CATALOG", &address)]);
    let start = token.find("pat_live_").expect("a token");
    let (status, reply) = server.tool(
        &token[start..start + 41],
        "add",
        &json!({ "content": "a narwhal", "name": "narwhal.txt" }),
    );
    assert_eq!(status, 200, "tokens go with the catalog: {reply}");
    drop(server);
    let again = at(&address, &library, &["migrate", "--to", &address]);
    assert!(again.0 != 0 && again.2.contains("is in a database"), "{again:?}");

    // A backup holds the whole catalog, wherever it was.
    let backup = folder.path().join("library.shelf");
    ok(at(&address, &library, &["backup", backup.to_str().unwrap()]));
    let restored = folder.path().join("restored");
    ok(shelf(&restored, &["restore-library", backup.to_str().unwrap()]));
    assert!(ok(shelf(&restored, &["list", "--paths"])).contains("narwhal.txt"));
    ok(shelf(&restored, &["check"]));
    // A place that has what this library does not is left alone.
    let own = folder.path().join("own.txt");
    std::fs::write(&own, "of its own").unwrap();
    ok(shelf(&restored, &["add", own.to_str().unwrap()]));
    let other = shelf(&restored, &["migrate", "--to", &address]);
    assert!(other.0 == 5 && other.2.contains("another library"), "{other:?}");

    ok(at(&address, &library, &["migrate", "--to", "sqlite"]));
    let now = ok(shelf(&library, &["list", "--paths"]));
    assert!(now.contains("narwhal.txt") && now.lines().count() == 61, "{now}");
    ok(shelf(&library, &["check"]));
    let (code, out, err) = shelf(&library, &["search", "narwhal", "--json"]);
    assert!(code == 0 && out.contains("narwhal.txt"), "{out}{err}");
    // The database takes no writes any more, and may be moved into again.
    let elsewhere = folder.path().join("elsewhere");
    let late = at(&address, &elsewhere, &["add", tree]);
    assert!(late.0 != 0 && late.2.contains("moved"), "{late:?}");
    ok(shelf(&library, &["migrate", "--to", &address, "--delete-old"]));
    assert!(!library.join("catalog.db.moved").exists());
    ok(at(&address, &library, &["check"]));
}
