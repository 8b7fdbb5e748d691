//! `shelf cite`: adding, showing, checking, importing and exporting.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{assert_sound, http::Server, shelf};

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
    let part = folder.path().join("part.md");
    let show = ["cite", "show", "My_notes", "one.two", "-o", part.to_str().unwrap()];
    assert_eq!(shelf(&library, &show).0, 0);
    let (code, _, err) = shelf(&library, &show);
    assert!(code != 0 && err.contains("part.md exists already") && err.contains("--overwrite"), "{err}");
    fs::write(&part, "older").unwrap();
    assert_eq!(shelf(&library, &[&show[..], &["--overwrite"]].concat()).0, 0);
    assert_eq!(fs::read_to_string(&part).unwrap(), "## Two\nMore.\n");
    // What cannot be cited is no resource.
    let binary = write("bin.dat", "\0\u{1}\0");
    let (code, _, err) = shelf(&library, &["cite", "add", &binary]);
    assert!(code != 0 && err.contains("1 files were stored"), "{err}");
    let nothing = folder.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    let (code, _, err) = shelf(&library, &["cite", "add", nothing.to_str().unwrap()]);
    assert!(code != 0 && err.contains("there are no files to cite in"), "{err}");
    assert_eq!(shelf(&library, &["cite", "list"]).1, "My_notes\nMy_notes_2\na\n");
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

#[test]
fn maps_of_a_project_are_imported_and_ids_stay() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let guide = write("project/docs/guide.md", "# Guide\n\nText.\n");
    let node =
        |id: &str, location: Value| json!({ "id": id, "title": id, "type": "section", "location": location });
    let lines = json!({ "modality": "text", "lines": [1, 3] });
    let map = |id: &str| json!({ "resource_id": id, "type": "text", "source_path": "docs/guide.md", "nodes": [node("all", lines.clone())] });
    let elsewhere = json!({ "modality": "virtual", "virtual_address": "virtual://guide#all" });
    let tour = json!({ "resource_id": "a_tour", "type": "virtual", "source_path": "", "nodes": [node("stop", elsewhere)] });
    write("project/.resource_maps/a_tour.json", &tour.to_string());
    write("project/.resource_maps/guide.json", &map("guide").to_string());
    write("project/.resource_maps/guide_2.json", &map("guide_2").to_string());
    let project = folder.path().join("project");
    let (code, out, err) = shelf(&library, &["cite", "import", project.to_str().unwrap()]);
    assert_eq!((code, out.as_str()), (1, "guide  1 nodes\na_tour  1 nodes\n"), "{err}");
    assert!(
        err.contains("guide_2.json: its document") && err.contains("1 of 3 maps were not imported"),
        "{err}"
    );
    assert_eq!(shelf(&library, &["cite", "list"]).1, "a_tour\nguide\n");
    assert_eq!(shelf(&library, &["cite", "show", "virtual://a_tour#stop"]).0, 0);
    fs::create_dir(folder.path().join("empty")).unwrap();
    let empty = folder.path().join("empty");
    for command in [["cite", "import"], ["import", "citekit"]] {
        let (code, _, err) = shelf(&library, &[command[0], command[1], empty.to_str().unwrap()]);
        assert!(code != 0 && err.contains(&format!("there are no maps in {}", empty.display())), "{err}");
    }
    // A file keeps the id by which it is cited.
    let (code, _, err) = shelf(&library, &["cite", "add", &guide, "--id", "two"]);
    assert!(code != 0 && err.contains("resource_id must be 'guide'"), "{err}");
    // What has no nodes is not exported; a picture is shown with all four corners.
    let nothing = write("nothing.md", "");
    let picture = write("pic.png", "\u{89}");
    fs::write(&picture, b"\x89PNG\r\n\x1a\n and nothing else").unwrap();
    let (_, out, err) = shelf(&library, &["cite", "add", &nothing, &picture]);
    assert!(out.contains("  image  bbox 0.0,0.0,1.0,1.0  Image"), "{out}{err}");
    let maps = folder.path().join("maps");
    let (code, out, err) = shelf(&library, &["cite", "export", "-o", maps.to_str().unwrap()]);
    assert_eq!((code, out.lines().count()), (0, 3), "{out}{err}");
    assert!(err.contains("nothing is left out"), "{err}");
    let other = folder.path().join("other");
    let (code, out, err) = shelf(&other, &["cite", "import", maps.to_str().unwrap()]);
    assert_eq!((code, out.lines().count()), (0, 3), "{out}{err}");
    assert_sound(&library);
    assert_sound(&other);
}

/// Calls that wait for another program give their slot to others, and are refused when too many wait.
#[test]
fn other_calls_go_on_while_recordings_wait_for_ffmpeg() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).unwrap();
    // A program that takes its time, and then finds nothing.
    for name in ["ffprobe", "ffmpeg"] {
        fs::write(programs.join(name), "#!/bin/sh\nsleep 2\nexit 1\n").unwrap();
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    for number in 0..50 {
        let path = folder.path().join(format!("films/{number}.mp4"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("\0\0\0\x18ftypmp42\0\0\0\0mp42isom film {number}")).unwrap();
    }
    let films = folder.path().join("films");
    assert_eq!(shelf(&library, &["add", films.to_str().unwrap()]).0, 0);
    let variable = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let server = Server::start_with(&library, &["--no-auth"], &[("PATH", &variable)]);
    let list = || server.try_tool("", "list", &json!({ "limit": 100 })).unwrap();
    let ids: Vec<Value> = list()["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|document| document["document_id"].clone())
        .collect();
    assert_eq!(ids.len(), 50);
    thread::scope(|scope| {
        let (begun, server) = (Instant::now(), &server);
        let calls: Vec<_> = ids
            .iter()
            .map(|id| scope.spawn(move || server.try_tool("", "getStructure", &json!({ "resource_id": id }))))
            .collect();
        thread::sleep(Duration::from_millis(1_500));
        for _ in 0..5 {
            let asked = Instant::now();
            assert!(list()["documents"].is_array());
            assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
        }
        assert!(begun.elapsed() < Duration::from_secs(4), "nothing of this waited for the program");
        let replies: Vec<String> =
            calls.into_iter().map(|call| call.join().unwrap().unwrap().to_string()).collect();
        let refused = replies.iter().filter(|reply| reply.contains("too many recordings")).count();
        let looked_at = replies.iter().filter(|reply| reply.contains("the recording cannot be read")).count();
        assert_eq!((refused, looked_at), (34, 16), "{replies:?}");
    });
}
