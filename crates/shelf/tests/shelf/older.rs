//! Libraries that older programs wrote: one small library for each format, opened by this program.

use std::path::Path;
use std::process::Command;

use crate::shelf;

/// Unpacks a library. Each holds a folder of three files in a labelled snapshot, a document with two versions, and a
/// deleted one.
fn unpacked(name: &str, folder: &Path) -> std::path::PathBuf {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let done = Command::new("tar").arg("-xzf").arg(&fixture).arg("-C").arg(folder).status();
    assert!(done.expect("tar").success(), "{name}");
    folder.join("library")
}

#[test]
fn libraries_of_every_schema_open_and_keep_everything() {
    for schema in 1..=8 {
        let name = &format!("library-schema-{schema}.tar.gz");
        let folder = tempfile::tempdir().unwrap();
        let library = unpacked(name, folder.path());
        // SQLite keeps the version in its header.
        let catalog = std::fs::read(library.join("catalog.db")).unwrap();
        assert_eq!(catalog[60..64], [0, 0, 0, schema], "{name}");
        let run = |arguments: &[&str]| {
            let (code, out, error) = shelf(&library, arguments);
            assert_eq!(code, 0, "{name} {arguments:?}: {error}");
            out
        };
        run(&["check"]);
        let listed = run(&["list", "--json"]);
        for path in ["plain.txt", "page.html", "long.txt", "changed.txt"] {
            assert!(listed.contains(path), "{name}: {listed}");
        }
        assert!(!listed.contains("gone.txt"), "{name}: {listed}");
        for (query, path) in [
            ("heron", "plain.txt"),
            ("egret", "page.html"),
            ("dunlin", "changed.txt"),
            ("plover", "long.txt"),
        ] {
            assert!(run(&["search", query, "--json"]).contains(path), "{name} {query}");
        }
        assert!(run(&["get", "docs/plain.txt"]).contains("The heron waits by the river."), "{name}");
        let out = folder.path().join("out");
        run(&["restore", "--label", "first", out.to_str().unwrap()]);
        let long = std::fs::read_to_string(out.join("docs/long.txt")).unwrap();
        assert!(long.ends_with("line 5999 of a long text about waders\n"), "{name}");
        // What is written now is numbered after what is there.
        run(&["add", out.join("docs/plain.txt").to_str().unwrap()]);
        run(&["gc"]);
        run(&["check"]);
    }
}
