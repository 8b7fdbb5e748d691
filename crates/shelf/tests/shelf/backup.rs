//! Backups: made beside a writer, damaged in every way, and taken back whole.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use serde_json::{Value, json};
use shelf_testkit::StdioClient;

use crate::{assert_sound, binary, files, shelf, storm::Dice};

fn ok(library: &Path, arguments: &[&str]) -> String {
    let (code, out, err) = shelf(library, arguments);
    assert_eq!(code, 0, "{arguments:?}: {out}{err}");
    out
}

fn leftovers(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.ends_with(".part")).collect()
}

/// Bytes that do not compress, and that nobody indexes.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut dice = Dice(seed * 2 + 1);
    (0..length).map(|_| dice.roll(256) as u8).collect()
}

#[test]
fn a_library_comes_back_from_one_file_with_its_past() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (library, tree) = (path("library"), files(folder.path(), 60));
    fs::write(tree.join("large.bin"), noise(1, 400_000)).unwrap();
    ok(&library, &["add", tree.to_str().unwrap(), "--label", "first"]);
    fs::write(tree.join("large.bin"), noise(2, 400_000)).unwrap();
    ok(&library, &["add", tree.to_str().unwrap()]);
    ok(&library, &["delete", "7.txt"]);
    ok(&library, &["call", "add", &json!({ "name": "note", "content": "the avocet wades" }).to_string()]);
    let token = ok(&library, &["token", "create", "--label", "kept", "--json"]);
    let backup = path("backup.shelf");
    let made: Value =
        serde_json::from_str(&ok(&library, &["backup", backup.to_str().unwrap(), "--json"])).unwrap();
    assert_eq!(made["bytes"].as_u64(), Some(fs::metadata(&backup).unwrap().len()));
    assert_eq!(leftovers(folder.path()), [""; 0]);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, _, err) = shelf(&library, &["backup", backup.to_str().unwrap()]);
    assert!(code == 5 && err.contains("is there already"), "{code} {err}");

    let restored = path("restored");
    let taken: Value =
        serde_json::from_str(&ok(&restored, &["restore-library", backup.to_str().unwrap(), "--json"]))
            .unwrap();
    for key in ["packs", "contents", "versions", "snapshots", "sequence"] {
        assert_eq!(taken[key], made[key], "{key}");
    }
    assert!(!restored.join("restoring").exists());
    assert_sound(&restored);
    assert_eq!(ok(&restored, &["list", "--json"]), ok(&library, &["list", "--json"]));
    assert_eq!(ok(&restored, &["snapshot", "list", "--json"]), ok(&library, &["snapshot", "list", "--json"]));
    assert!(ok(&restored, &["search", "avocet", "--json"]).contains("note"));
    let (out, first) = (path("out"), noise(1, 400_000));
    ok(&restored, &["restore", "--label", "first", out.to_str().unwrap()]);
    let inside = out.join(tree.strip_prefix("/").unwrap_or(&tree)).join("large.bin");
    let found = [inside, out.join("files/large.bin"), out.join("large.bin")];
    let found = found.iter().find(|path| path.exists()).expect("the restored file");
    assert!(fs::read(found).unwrap() == first);
    let token: Value = serde_json::from_str(&token).unwrap();
    assert!(ok(&restored, &["token", "list", "--json"]).contains(token["id"].as_str().unwrap_or("kept")));
    // It goes on as a library of its own, and nothing is restored over it.
    ok(&restored, &["call", "add", &json!({ "name": "later", "content": "after" }).to_string()]);
    let (code, _, err) = shelf(&restored, &["restore-library", backup.to_str().unwrap()]);
    assert!(code == 5 && err.contains("there is a library in") && err.contains("--data-dir"), "{code} {err}");
    assert!(ok(&restored, &["get", "later"]).contains("after"));
    ok(&restored, &["gc"]);
    assert_sound(&restored);
}

#[test]
fn a_cut_or_changed_backup_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (library, tree) = (path("library"), files(folder.path(), 30));
    fs::write(tree.join("large.bin"), noise(3, 300_000)).unwrap();
    ok(&library, &["add", tree.to_str().unwrap()]);
    let backup = path("backup.shelf");
    ok(&library, &["backup", backup.to_str().unwrap()]);
    let bytes = fs::read(&backup).unwrap();
    let (bad, restored) = (path("bad.shelf"), path("restored"));
    let refused = |bytes: &[u8], expected: &str| {
        fs::write(&bad, bytes).unwrap();
        let (code, _, err) = shelf(&restored, &["restore-library", bad.to_str().unwrap()]);
        assert!(code == 9 && err.contains(expected) && err.contains("nothing was restored"), "{code} {err}");
        for name in ["catalog.db", "packs", "restoring"] {
            assert!(!restored.join(name).exists(), "{name} after {err}");
        }
    };
    for length in [8, 20, bytes.len() / 3, bytes.len() - 1] {
        refused(&bytes[..length], "cut off");
    }
    let mut dice = Dice(77);
    for _ in 0..12 {
        let mut changed = bytes.clone();
        let at = 8 + dice.roll(bytes.len() - 8);
        changed[at] ^= 1 << dice.roll(8);
        refused(&changed, "cannot be used");
    }
    refused(b"", "not a backup");
    refused(b"PK\x03\x04 something else entirely", "not a backup");
    refused(&[b"SHELFBK9", &bytes[8..]].concat(), "newer version");
    let (code, _, err) = shelf(&restored, &["restore-library", path("nowhere").to_str().unwrap()]);
    assert!(code == 4 && err.contains("cannot read") && err.contains("nowhere"), "{code} {err}");
    // A restore that was killed half-way is begun again.
    fs::create_dir_all(restored.join("restoring")).unwrap();
    fs::create_dir_all(restored.join("packs")).unwrap();
    fs::write(restored.join("packs/unfinished.pack"), "x").unwrap();
    ok(&restored, &["restore-library", backup.to_str().unwrap()]);
    assert_sound(&restored);
    assert_eq!(ok(&restored, &["list", "--paths"]), ok(&library, &["list", "--paths"]));
}

#[test]
fn a_damaged_library_gives_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (library, tree) = (folder.path().join("library"), files(folder.path(), 10));
    fs::write(tree.join("large.bin"), noise(5, 300_000)).unwrap();
    ok(&library, &["add", tree.to_str().unwrap()]);
    let pack = fs::read_dir(library.join("packs")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&pack).unwrap();
    bytes[2_000] ^= 4;
    fs::write(&pack, bytes).unwrap();
    let backup = folder.path().join("backup.shelf");
    let (code, _, err) = shelf(&library, &["backup", backup.to_str().unwrap()]);
    assert!(code == 9 && err.contains("damaged") && err.contains("shelf check"), "{code} {err}");
    assert!(!backup.exists());
    assert_eq!(leftovers(folder.path()), [""; 0]);
}

/// What was acknowledged before a backup began is in it, and nothing is in it by half, while a server writes, deletes and
/// folds, and garbage collection is asked for.
#[test]
fn a_backup_beside_writers_is_of_one_moment() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let (acknowledged, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = StdioClient::start(binary(), &library);
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let size = if number % 3 == 0 { 150_000 } else { 40 };
                let letters: String =
                    noise(number, size).iter().map(|byte| char::from(b'!' + byte % 90)).collect();
                let content = format!("number {number}\n{letters}");
                client.call("add", json!({ "name": format!("n{number}"), "content": content }));
                acknowledged.store(number + 1, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_millis(150));
                if acknowledged.load(Ordering::Relaxed) > 0 {
                    ok(&library, &["gc", "--keep-last", "2", "--wait", "120"]);
                }
            }
        });
        for round in 0..4 {
            while acknowledged.load(Ordering::Relaxed) < 3 * (round + 1) {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            let before = acknowledged.load(Ordering::Relaxed);
            let backup = folder.path().join(format!("{round}.shelf"));
            ok(&library, &["backup", backup.to_str().unwrap()]);
            let restored = folder.path().join(format!("restored-{round}"));
            ok(&restored, &["restore-library", backup.to_str().unwrap()]);
            assert_sound(&restored);
            let listed = ok(&restored, &["list", "--paths"]);
            for number in 0..before {
                assert!(listed.lines().any(|line| line == format!("n{number}")), "n{number} of {before}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_sound(&library);
}
