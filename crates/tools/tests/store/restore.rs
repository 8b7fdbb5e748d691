//! `restore`: byte for byte, and never outside its folder.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use shelf_engine::{Caller, FileAccess, Options};
use shelf_testkit::{TestLibrary, error_of, tree};

fn targets(reply: &Value, list: &str) -> Vec<String> {
    reply[list].as_array().unwrap().iter().map(|file| file["target"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_folder_comes_back_as_it_was() {
    let library = TestLibrary::new();
    library.write("tree/a.txt", "alpha");
    library.write("tree/bin/run.sh", "#!/bin/sh\n");
    library.write("tree/bin/data", [0_u8, 255, 10, 13]);
    library.write("tree/empty", "");
    fs::set_permissions(library.path("tree/bin/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_micros(1_600_000_000_123_456);
    fs::File::options().write(true).open(library.path("tree/a.txt")).unwrap().set_modified(time).unwrap();
    library.ok("add", json!({ "path": library.path("tree"), "snapshot_label": "v1" }));
    library.write("tree/a.txt", "changed");
    library.ok("add", json!({ "path": library.path("tree"), "snapshot_label": "v2" }));
    library.ok("delete_by_name", json!({ "pattern": "*" }));
    let out = library.path("out");
    let arguments = json!({ "snapshot_label": "v1", "output_directory": out });
    let mut preview_arguments = arguments.clone();
    preview_arguments["dry_run"] = json!(true);
    let preview = library.ok("restore", preview_arguments);
    assert!(!out.exists());
    let done = library.ok("restore", arguments.clone());
    assert_eq!(targets(&preview, "restored"), targets(&done, "restored"));
    let files = tree(&out);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a.txt", "bin/data", "bin/run.sh", "empty"]);
    assert_eq!(files[0].1, b"alpha");
    assert_eq!(files[1].1, [0, 255, 10, 13]);
    assert_eq!(fs::metadata(out.join("bin/run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::metadata(out.join("a.txt")).unwrap().modified().unwrap(), time);
    // A second time, when all files exist.
    fs::write(out.join("a.txt"), "mine").unwrap();
    let again = library.ok("restore", arguments);
    assert_eq!((targets(&again, "restored").len(), targets(&again, "skipped").len()), (0, 4));
    assert_eq!(again["skipped"][0]["reason"], "exists");
    assert_eq!(fs::read(out.join("a.txt")).unwrap(), b"mine");
    library.ok("restore", json!({ "snapshot_label": "v1", "output_directory": out, "overwrite": true }));
    assert_eq!(fs::read(out.join("a.txt")).unwrap(), b"alpha");
}

#[test]
fn patterns_and_templates_choose_and_place() {
    let library = TestLibrary::new();
    for name in ["src/a.rs", "src/b.md", "doc/c.md"] {
        library.ok("add", json!({ "content": name, "name": name }));
    }
    let out = library.path("out");
    let arguments = json!({
        "collection": "default",
        "output_directory": out,
        "include_patterns": ["*.md"],
        "exclude_patterns": ["doc/"],
        "layout_template": "{collection}/{ext}/{stem}-{name}",
    });
    assert_eq!(targets(&library.ok("restore", arguments), "restored"), ["default/md/b-b.md"]);
    assert_eq!(tree(&out)[0].0, "default/md/b-b.md");
    let says = |arguments| error_of(library.call("restore", arguments));
    assert!(
        says(json!({ "collection": "default", "output_directory": out, "layout_template": "{nam}" }))
            .contains("{path} {name}")
    );
    assert!(says(json!({ "output_directory": out })).contains("collection or snapshot_id or snapshot_label"));
    assert_eq!(
        says(json!({ "collection": "defalt", "output_directory": out })),
        "Error: no collection 'defalt'\ndid you mean default?"
    );
    assert_eq!(says(json!({ "snapshot_label": "v9", "output_directory": out })), "Error: no snapshot 'v9'");
    assert_eq!(says(json!({ "collection": "default" })), "Error: missing argument 'output_directory'");
    let flat = library.ok(
        "restore",
        json!({ "collection": "default", "output_directory": out, "layout_template": "same" }),
    );
    assert_eq!((targets(&flat, "restored").len(), targets(&flat, "failed").len()), (1, 2));
    let deep = library.path("deep");
    fs::create_dir(&deep).unwrap();
    let none = library
        .ok("restore", json!({ "collection": "default", "output_directory": deep, "create_dirs": false }));
    assert_eq!(targets(&none, "failed").len(), 3);
    assert!(tree(&deep).is_empty());
}

#[test]
fn no_template_or_name_leads_out() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "x", "name": "a/b.txt" }));
    library.ok("add", json!({ "content": "x", "name": "c.txt", "collection": ".." }));
    let out = library.path("out/inner");
    fs::create_dir_all(&out).unwrap();
    for template in ["/abs/{name}", "//x/{name}", "{name}/", "/"] {
        let arguments =
            json!({ "collection": "default", "output_directory": out, "layout_template": template });
        assert!(error_of(library.call("restore", arguments)).contains("relative path"), "{template}");
    }
    let templates = ["../{name}", "{path}/../../../x", "x/../../{name}", "..", "./../{name}", "a\0b"];
    for template in templates {
        let arguments =
            json!({ "collection": "default", "output_directory": out, "layout_template": template });
        let reply = library.ok("restore", arguments);
        assert_eq!(
            (targets(&reply, "restored").len(), targets(&reply, "failed").len()),
            (0, 1),
            "{template}"
        );
    }
    let reply = library.ok(
        "restore",
        json!({ "collection": "..", "output_directory": out, "layout_template": "{collection}/{name}" }),
    );
    assert_eq!(targets(&reply, "failed").len(), 1);
    assert_eq!(tree(&library.path("out")).len(), 0);
}

#[test]
fn no_link_leads_out() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "new", "name": "way/file" }));
    library.ok("add", json!({ "content": "new", "name": "direct" }));
    let victim = library.path("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("target"), "old").unwrap();
    let out = library.path("out");
    fs::create_dir(&out).unwrap();
    symlink(&victim, out.join("way")).unwrap();
    symlink(victim.join("target"), out.join("direct")).unwrap();
    let reply =
        library.ok("restore", json!({ "collection": "default", "output_directory": out, "overwrite": true }));
    assert_eq!(targets(&reply, "failed"), ["way/file"]);
    assert_eq!(targets(&reply, "restored"), ["direct"]);
    // The link itself was replaced; what it pointed at was not touched.
    assert_eq!(tree(&victim), [("target".to_owned(), b"old".to_vec())]);
    assert_eq!(fs::read(out.join("direct")).unwrap(), b"new");
    assert!(!fs::symlink_metadata(out.join("direct")).unwrap().is_symlink());
}

#[test]
fn a_folder_swapped_for_a_link_meanwhile_leads_nowhere() {
    let library = TestLibrary::new();
    for number in 0..200 {
        library.write(&format!("tree/race/file-{number}"), "x");
    }
    library.ok("add", json!({ "path": library.path("tree") }));
    let (victim, out) = (library.path("victim"), library.path("out"));
    fs::create_dir(&victim).unwrap();
    fs::create_dir(&out).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (race, aside) = (out.join("race"), out.join("aside"));
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::rename(&race, &aside);
                let _ = symlink(&victim, &race);
                let _ = fs::remove_file(&race);
                let _ = fs::rename(&aside, &race);
            }
        });
        for _ in 0..20 {
            let id = library.ok("list_snapshots", json!({}))["snapshots"][0]["snapshot_id"].clone();
            library.ok("restore", json!({ "snapshot_id": id, "output_directory": out, "overwrite": true }));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(tree(&victim).len(), 0, "nothing was written through the link");
}

#[test]
fn over_http_only_export_roots_are_written() {
    let remote = Caller { file_access: FileAccess::Configured, ..Caller::owner() };
    let closed = TestLibrary::new();
    closed.ok("add", json!({ "content": "x", "name": "a" }));
    let arguments = json!({ "collection": "default", "output_directory": closed.path("out") });
    let refused = error_of(closed.call_as(&remote, "restore", arguments));
    assert!(refused.contains("off over HTTP") && refused.contains("export_roots"), "{refused}");
    let refused =
        error_of(closed.call_as(&remote, "get", json!({ "name": "a", "outputPath": closed.path("x") })));
    assert!(refused.contains("off over HTTP"), "{refused}");
    let root = tempfile::tempdir().unwrap();
    let library =
        TestLibrary::with(Options { export_roots: vec![root.path().to_owned()], ..Options::default() });
    library.ok("add", json!({ "content": "x", "name": "a" }));
    for path in ["/tmp/elsewhere-shelf-test", "../up", "in/../../up"] {
        let refused = error_of(library.call_as(
            &remote,
            "restore",
            json!({ "collection": "default", "output_directory": path }),
        ));
        assert_eq!(refused, "Error: the path is outside the configured export roots", "{path}");
    }
    for path in ["inside".to_owned(), root.path().join("absolute").display().to_string()] {
        library
            .call_as(&remote, "restore", json!({ "collection": "default", "output_directory": path }))
            .unwrap();
    }
    library.call_as(&remote, "get", json!({ "name": "a", "outputPath": "one/a" })).unwrap();
    let names: Vec<String> = tree(root.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["absolute/a", "inside/a", "one/a"]);
}

#[test]
fn targets_that_meet_are_told_and_a_preview_agrees() {
    let library = TestLibrary::new();
    for name in ["/q/z", "q/z", "dup", "dup/child", "plain", "none"] {
        library.ok("add", json!({ "content": name, "name": name }));
    }
    assert!(
        error_of(library.call("add", json!({ "content": "x", "name": "q//z" }))).contains("empty segments")
    );
    assert!(
        error_of(library.call("add", json!({ "content": "x", "name": "trail/" }))).contains("empty segments")
    );
    for template in ["{path}", "./{path}", "{ext}/{path}"] {
        let out = library.path(&format!("out-{}", template.len()));
        let arguments =
            json!({ "collection": "default", "output_directory": out, "layout_template": template });
        let mut preview = arguments.clone();
        preview["dry_run"] = json!(true);
        let preview = library.ok("restore", preview);
        let done = library.ok("restore", arguments);
        for list in ["restored", "skipped", "failed"] {
            assert_eq!(preview[list], done[list], "{template} {list}");
        }
        assert_eq!((targets(&done, "restored").len(), targets(&done, "failed").len()), (4, 2), "{done}");
        assert_eq!(tree(&out).len(), 4);
    }
}

#[test]
fn a_folder_that_is_reached_through_a_link_is_restored_whole() {
    let library = TestLibrary::new();
    library.write("real/a.txt", "a");
    symlink(library.path("real"), library.path("link")).unwrap();
    let added = library.ok("add", json!({ "path": library.path("link") }));
    assert_eq!((&added["files_added"], &added["links"]), (&json!(1), &json!(0)), "{added}");
    let restored = library.ok(
        "restore",
        json!({ "snapshot_id": added["snapshot_id"], "output_directory": library.path("out") }),
    );
    assert_eq!(restored["failed"], json!([]), "{restored}");
    assert_eq!(restored["restored"].as_array().unwrap().len(), 1, "{restored}");
}

#[test]
fn a_preview_promises_nothing_that_cannot_be_written() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "x", "name": "a/b.txt" }));
    library.write("file", "x");
    symlink("nowhere", library.path("dangling")).unwrap();
    for place in ["file/below", "file", "dangling", "dangling/below"] {
        for dry_run in [true, false] {
            let arguments = json!({
                "collection": "default", "output_directory": library.path(place), "dry_run": dry_run,
            });
            assert!(library.call("restore", arguments).is_err(), "{place} {dry_run}");
        }
    }
    library.write("out/c.txt", "x");
    symlink("nowhere", library.path("out/a")).unwrap();
    for dry_run in [true, false] {
        let arguments =
            json!({ "collection": "default", "output_directory": library.path("out"), "dry_run": dry_run });
        let reply = library.ok("restore", arguments);
        assert_eq!((&reply["restored_count"], &reply["failed_count"]), (&json!(0), &json!(1)), "{dry_run}");
    }
}

#[test]
fn places_over_http_are_refused_for_what_is_wrong_with_them() {
    use shelf_base::Kind;
    let outside = tempfile::tempdir().unwrap();
    let roots = tempfile::tempdir().unwrap();
    let root = roots.path().canonicalize().unwrap();
    let library = TestLibrary::with(Options {
        import_roots: vec![root.clone()],
        export_roots: vec![root.clone()],
        ..Options::default()
    });
    library.ok("add", json!({ "content": "x", "name": "a.txt" }));
    symlink(outside.path(), root.join("lnk")).unwrap();
    fs::write(root.join("file"), "x").unwrap();
    fs::create_dir(root.join("folder")).unwrap();
    let caller = Caller { file_access: FileAccess::Configured, ..Caller::owner() };
    let kind = |tool: &str, arguments: Value| library.call_as(&caller, tool, arguments).unwrap_err().kind;
    for (place, expected) in [("lnk", Kind::Denied), ("file", Kind::Invalid), ("file/below", Kind::Invalid)] {
        for dry_run in [true, false] {
            let arguments =
                json!({ "collection": "default", "output_directory": root.join(place), "dry_run": dry_run });
            assert_eq!(kind("restore", arguments), expected, "{place} {dry_run}");
        }
    }
    for (place, expected) in [("lnk/a", Kind::Denied), ("file/a", Kind::Invalid), ("folder", Kind::Invalid)] {
        let arguments = json!({ "name": "a.txt", "outputPath": root.join(place) });
        assert_eq!(kind("get", arguments), expected, "{place}");
    }
    for (place, expected) in
        [("nope", Kind::NotFound), ("file/nope", Kind::NotFound), ("lnk/nope", Kind::Denied)]
    {
        assert_eq!(kind("add", json!({ "path": root.join(place) })), expected, "{place}");
    }
}
