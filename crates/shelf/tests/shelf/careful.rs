//! Commands that keep what is there, name what failed, and take names as they are typed.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::{
    binary,
    console::{Browser, password_form, store, user},
    http::Server,
    shelf,
};

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A new token of the owner.
fn token(library: &Path) -> String {
    let (code, out, err) = shelf(library, &["--json", "token", "create"]);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str::<Value>(&out).unwrap()["key"].as_str().unwrap().to_owned()
}

/// Runs a command with a home folder of its own.
fn at_home(home: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = Command::new(binary())
        .args(["--data-dir", path(&home.join("library"))])
        .args(arguments)
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .env("PATH", home)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn books_are_not_written_over_files_that_somebody_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (library, site, out) =
        (folder.path().join("l"), folder.path().join("site"), folder.path().join("out"));
    fs::create_dir_all(site.join("lessons/part-1")).unwrap();
    fs::write(site.join("lessons/part-1/lesson-01.md"), "# One\n").unwrap();
    assert_eq!(shelf(&library, &["books", "import", "birds", path(&site)]).0, 0);
    let export = |more: &[&str]| shelf(&library, &[&["books", "export", "birds", path(&out)], more].concat());
    assert_eq!(export(&[]).0, 0);
    assert_eq!(export(&[]).0, 0, "what is as the book has it may be written again");
    let lesson = out.join("lessons/part-1/lesson-01.md");
    fs::write(&lesson, "# Mine!\n").unwrap();
    let (code, _, err) = export(&[]);
    assert!(code != 0 && err.contains("lesson-01.md") && err.contains("--overwrite"), "{err}");
    assert_eq!(fs::read_to_string(&lesson).unwrap(), "# Mine!\n");
    assert_eq!(export(&["--overwrite"]).0, 0);
    assert_eq!(fs::read_to_string(&lesson).unwrap(), "# One\n");
    let target = folder.path().join("birds.zip");
    fs::write(&target, "mine").unwrap();
    let archive = |more: &[&str]| {
        shelf(&library, &[&["books", "archive", "birds", "--output", path(&target)], more].concat())
    };
    let (code, _, err) = archive(&[]);
    assert!(code != 0 && err.contains("exists already") && err.contains("--overwrite"), "{err}");
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    assert_eq!(archive(&["--overwrite"]).0, 0);
    assert!(fs::read(&target).unwrap().starts_with(b"PK"));
    for command in
        [&["books", "history", "nosuch"][..], &["books", "archive", "nosuch", "-o", "/tmp/none.zip"]]
    {
        let (code, _, err) = shelf(&library, command);
        assert!(code != 0 && err.contains("hint:") && err.contains("shelf books list"), "{err}");
    }
    let (_, _, err) = shelf(&library, &["snapshot", "create", "brids"]);
    assert!(err.contains("did you mean birds?"), "{err}");
    let (_, _, err) = shelf(&library, &["call", "qqqqqqqq"]);
    assert!(err.contains("`shelf tools`"), "{err}");
}

#[test]
fn a_watch_names_what_it_could_not_store() {
    let folder = tempfile::tempdir().unwrap();
    let (library, odd) = (folder.path().join("l"), folder.path().join("odd"));
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join("fine.txt"), "fine\n").unwrap();
    fs::write(odd.join("two\nlines.txt"), "odd\n").unwrap();
    let (code, _, err) = shelf(&library, &["watch", path(&odd), "--once"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("1 new, 1 failed") && err.contains("two\\nlines.txt: its path"), "{err}");
    assert!(err.contains("1 file could not be added"), "{err}");
}

#[test]
fn names_that_are_not_unicode_can_be_typed() {
    let folder = tempfile::tempdir().unwrap();
    let (library, name) = (folder.path().join("l"), OsStr::from_bytes(b"caf\xe9.txt"));
    fs::write(folder.path().join(name), "coffee\n").unwrap();
    let run = |command: &str, name: &OsStr| {
        let mut shelf = Command::new(binary());
        shelf.arg("--data-dir").arg(&library).arg(command).arg(name).output().unwrap()
    };
    assert!(run("add", folder.path().join(name).as_os_str()).status.success());
    assert_eq!(run("get", name).stdout, b"coffee\n");
    assert_eq!(run("get", OsStr::new("caf\u{fffd}E9.txt")).stdout, b"coffee\n", "as it is listed");
    assert!(run("delete", name).status.success());
    assert!(!run("get", name).status.success());
}

#[test]
fn nothing_is_changed_and_nothing_is_claimed() {
    let folder = tempfile::tempdir().unwrap();
    user(folder.path(), "bob", &[]);
    let (code, _, err) = shelf(folder.path(), &["user", "update", "bob"]);
    assert!(code == 2 && err.contains("nothing to change"), "{err}");
    let (code, out, _) = shelf(folder.path(), &["--json", "config", "default"]);
    let settings: Value = serde_json::from_str(&out).unwrap();
    assert!(code == 0 && settings["http"]["listen"] == "127.0.0.1:7433", "{out}");
    let (code, _, err) = shelf(folder.path(), &["grep", "("]);
    assert!(code == 2 && !err.contains("expression: error"), "{err}");
    for flag in [&["-E"][..], &["-t", "rust"]] {
        let (code, _, err) = shelf(folder.path(), &[&["grep"], flag, &["x"]].concat());
        assert!(code == 2 && err.contains(flag[0]) && !err.contains("Usage"), "{err}");
    }
    let (_, out, _) = shelf(folder.path(), &["man"]);
    assert!(out.contains(".SH EXAMPLES") && !out.contains("EXTRA"), "{out}");
    let (_, out, _) = shelf(folder.path(), &["doctor"]);
    assert!(!out.contains(" 1 packs") && !out.contains(" 1 blocks"), "{out}");
}

#[test]
fn settings_of_clients_keep_what_others_wrote() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".cursor/mcp.json");
    let at = |arguments: &[&str]| at_home(home.path(), arguments);
    let (code, _, err) = at(&["client", "add", "cursor"]);
    assert!(code == 0 && err.contains("does not seem to be installed"), "{err}");
    let (_, out, _) = at(&["client", "list", "--no-check"]);
    let line = out.lines().find(|line| line.starts_with("cursor")).unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some("no"), "a folder that only holds our settings: {out}");
    let text = "{\n    \"mcpServers\": {},\n    \"exact\": [12345678901234567890123, 1.50, 1e3],\n    \"last\": {\"a\":1}\n}\n";
    fs::write(&file, text).unwrap();
    assert_eq!(at(&["client", "add", "cursor"]).0, 0);
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.ends_with(text.split_once("{}").unwrap().1), "{after}");
    let (_, _, err) = at(&["client", "add", "cursor"]);
    assert!(err.contains("were already in"), "{err}");
    assert_eq!(at(&["client", "add", "cursor", "--remove"]).0, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    let (_, out, _) = at(&["client", "list", "--no-check"]);
    assert!(out.lines().any(|line| line.starts_with("cursor") && line.contains("yes")), "{out}");
    fs::write(&file, "{ broken").unwrap();
    let (_, out, _) = at(&["client", "list", "--no-check"]);
    assert!(!out.contains("left as it is"), "nobody tried to change it: {out}");
    let (_, _, err) = at(&["client", "add", "gemini-cli", "--http"]);
    assert!(err.contains("not served now") && err.contains("shelf serve --http"), "{err}");
}

#[test]
fn pages_tell_members_only_what_is_of_use_to_them() {
    let folder = tempfile::tempdir().unwrap();
    user(folder.path(), "alice", &[]);
    let (workspace, library) = (folder.path().join("work"), folder.path());
    fs::create_dir(&workspace).unwrap();
    let server = Server::start(library, &["--workspace", path(&workspace)]);
    let alice = Browser::signed_in(&server, &password_form("alice"));
    for page in ["/", "/snapshots", "/books", "/c/default"] {
        let (_, _, body) = alice.get(page);
        assert!(!body.contains("<code>shelf "), "{page}: commands act for the owner: {body}");
    }
    let page = alice.page("/");
    assert!(!page.contains("href=\"/memory\""), "a page that is refused is not offered: {page}");
    let owner = Browser::signed_in(&server, &format!("token={}", token(library)));
    assert!(owner.page("/").contains("href=\"/memory\""));
}

#[test]
fn evidence_is_shown_in_the_document_that_is_cited() {
    let folder = tempfile::tempdir().unwrap();
    let key = token(folder.path());
    let server = Server::start(folder.path(), &[]);
    let added = |name: &str| store(&server, &key, name, "the same\nin both\n")["document_id"].clone();
    let (one, two) = (added("one.txt"), added("two.txt"));
    let visitor = Browser::signed_in(&server, &format!("token={key}"));
    for (id, name) in [(one, "one.txt"), (two, "two.txt")] {
        let id = id.as_str().unwrap();
        let page = visitor.page(&format!("/cite?address=text://{id}%23lines=2"));
        assert!(page.contains(&format!("/d/{id}?lines=2-2")) && page.contains(name), "{page}");
    }
    let (status, _, page) = visitor.get("/graph?name=the+same");
    assert!(status == 200 && page.contains("No such document or symbol"), "{page}");
    assert!(page.contains("<form class=\"filters\"") && page.contains(">two.txt<"), "{page}");
    let id = store(&server, &key, "empty.txt", "")["document_id"].clone();
    assert!(visitor.page(&format!("/d/{}", id.as_str().unwrap())).contains("This document is empty."));
    let id = store(&server, &key, "note.md", "![a](b.png)\n")["document_id"].clone();
    let id = id.as_str().unwrap();
    let (status, head, body) = visitor.get(&format!("/to?from={id}&path=b.png&raw=1"));
    assert!(
        status == 200 && head.contains("image/svg+xml") && body.contains("not in the library: b.png"),
        "{body}"
    );
    assert_eq!(visitor.get(&format!("/to?from={id}&path=b.png")).0, 404);
}

#[test]
fn a_server_that_moves_keeps_to_the_port_it_moved_to() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let taken = std::net::TcpListener::bind("127.0.0.1:7433");
    let start = |library: &Path| {
        let mut server = Command::new(binary())
            .arg("--data-dir")
            .arg(library)
            .args(["serve", "--http", "--no-auth", "--admin-listen", "off"])
            .env("HOME", home)
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(server.stderr.take().unwrap()));
        let line =
            lines.find(|line| line.as_ref().unwrap().contains("listening on http://")).unwrap().unwrap();
        let port: u16 = line.rsplit(':').next().unwrap().trim().parse().unwrap();
        (server, port)
    };
    let (mut first, own) = start(&home.join("a"));
    let (mut second, other) = start(&home.join("b"));
    assert!(own != 7433 && other != own);
    for server in [&mut first, &mut second] {
        Command::new("kill").arg(server.id().to_string()).status().unwrap();
        server.wait().unwrap();
    }
    let (mut again, port) = start(&home.join("b"));
    assert_eq!(port, other, "a library is served where its clients look for it");
    again.kill().unwrap();
    again.wait().unwrap();
    drop(taken);
}
