//! What a new user stumbles over: ports that are taken, folders that are mistyped or read-only, flags from other tools.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{binary, files, http::Server, shelf};

/// The account that owns nothing.
const NOBODY: u32 = 65_534;

/// Starts a server and gives what it says until it is ready.
fn greeting(library: &Path, arguments: &[&str]) -> (Child, String) {
    let mut child = Command::new(binary())
        .arg("--data-dir")
        .arg(library)
        .arg("serve")
        .args(arguments)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("Stop with Ctrl-C") && lines.read_line(&mut said).unwrap() > 0 {}
    (child, said)
}

#[test]
fn a_second_server_just_works() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, one) = greeting(folder.path(), &["--http"]);
    let (mut second, two) = greeting(folder.path(), &["--http"]);
    for child in [&mut first, &mut second] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let address =
        |said: &str| said.split("is listening on ").nth(1).unwrap().split('\n').next().unwrap().to_owned();
    assert_ne!(address(&one), address(&two));
    assert!(two.contains("is in use by another program"), "{two}");
    assert!(two.contains("Metrics: off, because 127.0.0.1:7434 is in use"), "{two}");
}

#[test]
fn a_taken_port_is_named_for_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, _, err) =
        shelf(folder.path(), &["serve", "--http", "127.0.0.1:0", "--admin-listen", &address]);
    assert_ne!(code, 0);
    assert!(err.contains(&format!("cannot serve metrics on {address}")), "{err}");
    assert!(err.contains("--admin-listen off") && !err.contains("cannot listen on"), "{err}");
    let (_, _, err) = shelf(folder.path(), &["serve", "--http", &address, "--admin-listen", "off"]);
    assert!(err.contains(&format!("cannot listen on {address}: another program is using it")), "{err}");
}

/// Puts the program beside the library: the folder in which it was built may be closed to strangers.
fn within_reach(folder: &Path) -> PathBuf {
    let program = folder.join("shelf");
    if fs::hard_link(binary(), &program).is_err() {
        fs::copy(binary(), &program).unwrap();
    }
    program
}

/// Runs a command as somebody who may read the library but not write it.
fn as_stranger(program: &Path, library: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(program);
    command.arg("--data-dir").arg(library).args(arguments).env("HOME", "/nonexistent").current_dir("/");
    if rustix_is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn rustix_is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Takes the right to write away from everybody.
fn seal(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            seal(&entry.path());
        } else {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o444)).unwrap();
        }
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o555)).unwrap();
}

fn unseal(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            unseal(&entry.path());
        }
    }
}

#[test]
fn a_read_only_library_can_be_read() {
    for has_log in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (library, tree) = (folder.path().join("library"), files(folder.path(), 30));
        assert_eq!(shelf(&library, &["add", tree.to_str().unwrap()]).0, 0);
        assert_eq!(shelf(&library, &["search", "file"]).0, 0);
        if !has_log {
            for name in ["catalog.db-wal", "catalog.db-shm"] {
                fs::remove_file(library.join(name)).unwrap();
            }
        }
        seal(&library);
        let program = within_reach(folder.path());
        for arguments in [
            &["status"][..],
            &["list", "--json"],
            &["search", "file"],
            &["grep", "file 7"],
            &["get", "05/5.txt"],
            &["call", "list", r#"{"limit": 3}"#],
            &["graph", "05/5.txt"],
            &["doctor"],
        ] {
            let (code, out, err) = as_stranger(&program, &library, arguments);
            assert_eq!(code, 0, "log {has_log}, {arguments:?}: {out}{err}");
        }
        let (code, _, err) = as_stranger(&program, &library, &["update", "05/5.txt", "--tag", "x"]);
        assert_eq!(code, 6, "{err}");
        assert!(err.contains("read-only") && err.contains(library.to_str().unwrap()), "{err}");
        for command in ["reindex", "deepen"] {
            let (code, _, err) = as_stranger(&program, &library, &[command]);
            assert_eq!(code, 6, "{command}: {err}");
            assert!(!err.contains("shelf reindex"), "{command}: {err}");
        }
        unseal(&library);
    }
}

#[test]
fn a_folder_without_a_library_is_not_made_into_one_by_looking() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("mistyped");
    for arguments in [
        &["status"][..],
        &["list"],
        &["search", "x"],
        &["grep", "x"],
        &["get", "x"],
        &["check"],
        &["collections"],
        &["call", "list", "{}"],
        &["snapshot", "list"],
    ] {
        let (code, _, err) = shelf(&absent, arguments);
        assert_eq!(code, 4, "{arguments:?}: {err}");
        assert!(err.contains("there is no library in") && err.contains("mistyped"), "{err}");
    }
    let (code, out, _) = shelf(&absent, &["doctor"]);
    assert_eq!(code, 0);
    assert!(out.contains("no library yet"), "{out}");
    assert!(!absent.exists());
}

#[test]
fn doctor_looks_at_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let doctor = |address: &str| {
        let output = Command::new(binary())
            .args(["--data-dir", folder.path().to_str().unwrap(), "doctor"])
            .env("SHELF_HTTP_LISTEN", address)
            .env("HOME", folder.path())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let server = Server::start(folder.path(), &[]);
    assert!(doctor(&server.address).contains(&format!("running at http://{}", server.address)));
    let address = server.address.clone();
    drop(server);
    assert!(doctor(&address).contains("not running; `shelf serve --http` would listen on"));
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in other.incoming().flatten() {
            let _ = (&stream).write_all(b"HTTP/1.1 200 OK\r\n\r\nhello");
        }
    });
    assert!(doctor(&taken).contains("in use by another program"));
}

#[test]
fn slips_are_refused_in_the_words_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let (library, tree) = (folder.path().join("library"), files(folder.path(), 12));
    assert_eq!(shelf(&library, &["add", tree.to_str().unwrap()]).0, 0);
    let check = |arguments: &[&str], code: i32, words: &[&str]| {
        let (found, _, err) = shelf(&library, arguments);
        assert_eq!(found, code, "{arguments:?}: {err}");
        for word in words {
            assert!(err.contains(word), "{arguments:?}: {err}");
        }
    };
    check(&["--log-level", "nonsense", "status"], 2, &["unknown log level 'nonsense'", "warn"]);
    check(&["delete", "nope"], 4, &["no document 'nope'; nothing was deleted"]);
    check(&["delete", "05/5.tx"], 4, &["did you mean", "05/5.txt"]);
    check(&["get", "5.md"], 4, &["did you mean", "05/5.txt"]);
    check(&["delete", "--pattern", "*.none"], 1, &["no document matches"]);
    check(&["list", "--sort", "colour"], 2, &["--sort must be name"]);
    check(&["list", "--type", "colour"], 2, &["--type must be text"]);
    check(&["get", "5.txt", "--start-line", "9", "--end-line", "3"], 2, &["--end-line must not be before"]);
    check(&["update", "5.txt"], 2, &["--metadata", "--tag"]);
    check(&["call", "create_cat_tool", r#"{"label": "x"}"#], 2, &["missing argument"]);
    check(&["restore", "out"], 2, &["--collection", "--snapshot", "--label"]);
    check(&["man", "/proc/none/pages"], 4, &["cannot write to /proc/none/pages"]);
    check(&["gc", "--keep-last", "0"], 2, &["keeps none of them", "--yes"]);
    assert_eq!(shelf(&library, &["snapshot", "list", "--json"]).1.matches("snapshot_id").count(), 1);
    check(&["gc", "--keep-last", "0", "--yes"], 0, &[]);
    let (code, out, err) = shelf(&library, &["grep", "nothing like this"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("nothing matched") && !err.contains("error:"), "{err}");
    let (code, out, err) = shelf(&library, &["search", "zzqqxx"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("nothing matched") && err.contains("hint: try other"), "it says what to try: {err}");
    let (code, out, _) = shelf(&library, &["status", "--detailed"]);
    assert!(code == 0 && out.contains("search index") && out.contains("deep vectors"), "{out}");
}

#[test]
fn addresses_may_be_written_short() {
    let folder = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for address in [free.to_string(), format!("localhost:{free}"), format!(":{free}")] {
        let (mut child, said) = greeting(folder.path(), &["--http", &address, "--admin-listen", "off"]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(said.contains(&format!("http://127.0.0.1:{free}")), "{address}: {said}");
    }
}

#[test]
fn grep_takes_the_flags_that_people_type() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    for (name, text) in [("a.txt", "Hello world\nhello (you)\n"), ("b.md", "hello again\n")] {
        let mut child = Command::new(binary())
            .args(["--data-dir", library.to_str().unwrap(), "add", "-", "--name", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }
    let check = |arguments: &[&str], expected: &str| {
        let whole: Vec<&str> = std::iter::once("grep").chain(arguments.iter().copied()).collect();
        let (_, out, err) = shelf(&library, &whole);
        assert_eq!(out, expected, "{arguments:?}: {err}");
    };
    check(&["-n", "world"], "a.txt:1:Hello world\n");
    check(&["-H", "-N", "world"], "a.txt:Hello world\n");
    check(&["-F", "(you)"], "a.txt:2:hello (you)\n");
    check(&["-e", "world", "-e", "again"], "a.txt:1:Hello world\nb.md:1:hello again\n");
    check(&["-e", "hello", "b.md"], "b.md:1:hello again\n");
    check(&["-o", "w[a-z]+"], "a.txt:1:world\n");
    check(&["-S", "hello"], "a.txt:1:Hello world\na.txt:2:hello (you)\nb.md:1:hello again\n");
    check(&["-S", "Hello"], "a.txt:1:Hello world\n");
    check(&["-g", "*.md", "hello"], "b.md:1:hello again\n");
    check(&["-x", "hello again"], "b.md:1:hello again\n");
    check(&["-x", "hello"], "");
    check(&["-q", "hello"], "");
    check(&["-c", "-I", "hello"], "1\n1\n");
    assert_eq!(shelf(&library, &["grep", "-q", "hello"]).0, 0);
    assert_eq!(shelf(&library, &["grep", "-q", "absent"]).0, 1);
    for (flag, name) in
        [("-P", "--pcre2"), ("-U", "--multiline"), ("-r", "--replace"), ("-z", "--search-zip")]
    {
        let (code, _, err) = shelf(&library, &["grep", "hello", flag]);
        assert_eq!(code, 2, "{flag}");
        assert!(err.contains(name) && err.contains("is not supported"), "{flag}: {err}");
    }
}

#[test]
fn names_that_are_not_unicode_come_back_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (library, tree, out) =
        (folder.path().join("library"), folder.path().join("tree"), folder.path().join("out"));
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9\xff.txt");
    let below = tree.join(std::ffi::OsStr::from_bytes(b"d\xfcr"));
    fs::create_dir_all(&below).unwrap();
    fs::write(tree.join(odd), "latin\n").unwrap();
    fs::write(below.join("plain.txt"), "below\n").unwrap();
    std::os::unix::fs::symlink(odd, tree.join("link")).unwrap();
    let (code, _, err) = shelf(&library, &["add", tree.to_str().unwrap(), "--label", "odd"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(shelf(&library, &["get", "caf\u{fffd}E9\u{fffd}FF.txt"]).1, "latin\n");
    assert_eq!(shelf(&library, &["restore", out.to_str().unwrap(), "--label", "odd"]).0, 0);
    assert_eq!(fs::read(out.join(odd)).unwrap(), b"latin\n");
    assert_eq!(fs::read_link(out.join("link")).unwrap().as_os_str(), odd);
    assert_eq!(fs::read(out.join(below.file_name().unwrap()).join("plain.txt")).unwrap(), b"below\n");
    // A single file, named by its own bytes.
    let status =
        Command::new(binary()).arg("--data-dir").arg(&library).arg("add").arg(tree.join(odd)).output();
    assert!(status.unwrap().status.success());
}

#[test]
fn refusals_over_http_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    for headers in [&[][..], &[("Authorization", "Bearer pat_live_wrong")], &[("Authorization", "Bearer x")]]
    {
        let (status, _, body) = server.request("POST", "/api/v1/tools/status", headers, "{}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status, 401);
        assert!(!body["error"]["hints"][0].as_str().unwrap().is_empty(), "{body}");
    }
}

#[test]
fn help_has_examples_and_a_group_for_global_options() {
    let folder = tempfile::tempdir().unwrap();
    for command in [&["add", "--help"][..], &["search", "--help"], &["client", "add", "--help"]] {
        let (_, out, _) = shelf(folder.path(), command);
        assert!(out.contains("Examples:\n  shelf ") && out.contains("Global options:"), "{out}");
        assert!(out.find("Global options:") > out.find("Options:"), "{out}");
    }
}
