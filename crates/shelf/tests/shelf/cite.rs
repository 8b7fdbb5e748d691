//! `shelf cite`: adding, showing, checking, importing and exporting.

use std::fs;

use serde_json::{Value, json};

use crate::{assert_sound, shelf};

#[test]
fn resources_are_added_shown_checked_and_moved() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let notes = write("My notes.md", "# One\n\nText.\n\n## Two\nMore.\n");
    write("src/a.rs", "fn first() {}\n\nfn second() {\n}\n");
    write("src/My_notes.txt", "plain\n");
    let source = folder.path().join("src");
    let (code, out, err) = shelf(&library, &["cite", "add", &notes, source.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("My_notes  ")
            && out.contains("  one  lines 1-6  One")
            && out.contains("    one.two  lines 5-6  Two"),
        "{out}"
    );
    let (_, out, _) = shelf(&library, &["cite", "list"]);
    assert_eq!(out, "My_notes\nMy_notes_2\na\n");
    let (_, out, _) = shelf(&library, &["cite", "show", "a"]);
    assert!(out.contains("second  lines 3-4"), "{out}");
    let (code, out, err) = shelf(&library, &["cite", "show", "text://a#lines=3-4"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "fn second() {\n}\n", ""));
    let (_, out, _) = shelf(&library, &["cite", "show", "My_notes", "one.two"]);
    assert_eq!(out, "## Two\nMore.\n");
    write("src/a.rs", "changed\n");
    let (_, _, err) = shelf(&library, &["cite", "show", "a", "first"]);
    assert!(err.contains("has changed since it was added"), "{err}");
    let good = write("good.md", "See [this](text://My_notes#lines=5-6) and virtual://a#first.\n");
    let (code, out, _) = shelf(&library, &["cite", "check", &good]);
    assert_eq!((code, out.lines().count()), (0, 2), "{out}");
    let bad =
        write("bad.md", "See text://My_notes#lines=5-6,\ntext://My_notes#lines=99 and doc://none#pages=1.\n");
    let (code, out, err) = shelf(&library, &["--json", "cite", "check", &good, &bad]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["checked"], &report["wrong"]), (1, &json!(5), &json!(2)), "{err}");
    assert_eq!(report["citations"][3]["line"], 2);
    let maps = folder.path().join("maps");
    assert_eq!(shelf(&library, &["cite", "export", "-o", maps.to_str().unwrap()]).0, 0);
    let mut map: Value =
        serde_json::from_str(&fs::read_to_string(maps.join("My_notes.json")).unwrap()).unwrap();
    assert_eq!(map["nodes"][0]["children"][0]["id"], "one.two");
    // Another library imports what fits and says what does not.
    let other = folder.path().join("other");
    map["nodes"][0]["title"] = json!("Renamed");
    fs::write(maps.join("My_notes.json"), map.to_string()).unwrap();
    fs::write(maps.join("a.json"), fs::read_to_string(maps.join("a.json")).unwrap()).unwrap();
    let (code, out, err) = shelf(&other, &["cite", "import", maps.to_str().unwrap()]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("My_notes  2 nodes") && err.contains("a.json: node 'second'"), "{out}{err}");
    let (_, out, _) = shelf(&other, &["cite", "show", "My_notes"]);
    assert!(out.contains("Renamed"), "{out}");
    let model = write("model.json", &json!([map["nodes"][0]["children"][0]]).to_string());
    let (code, _, err) = shelf(&other, &["cite", "set-map", "My_notes", &model, "--model"]);
    assert_eq!(code, 0, "{err}");
    assert!(shelf(&other, &["cite", "set-map", "My_notes", "--remove"]).0 == 0);
    assert!(shelf(&other, &["cite", "show", "My_notes"]).1.contains("  one  lines 1-6  One"));
    assert_sound(&library);
    assert_sound(&other);
}
