//! `grep`: the same lines as ripgrep, whatever the flags.

use std::process::Command;

use serde_json::{Value, json};
use shelf_testkit::{TestLibrary, error_of};

fn library() -> TestLibrary {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "one two\nTwo three\n\ntwo_four\nfive", "name": "a.txt" }));
    library.ok("add", json!({ "content": "fn two() {}\r\n// Zwölf\r\n", "name": "src/b.rs" }));
    library
        .ok("add", json!({ "content": "nothing here\n", "name": "src/deep/c.txt", "collection": "other" }));
    library.ok("add", json!({ "content": "AHR3bwo=", "encoding": "base64", "name": "d.bin" }));
    library
}

fn lines(reply: &Value) -> Vec<(String, u64)> {
    let matches = reply["matches"].as_array().unwrap();
    matches
        .iter()
        .map(|found| (found["path"].as_str().unwrap().to_owned(), found["line_number"].as_u64().unwrap()))
        .collect()
}

#[test]
fn flags_do_what_they_say() {
    let library = library();
    let check = |arguments: Value, expected: &[(&str, u64)]| {
        let reply = library.ok("grep", arguments.clone());
        let expected: Vec<(String, u64)> =
            expected.iter().map(|(path, line)| ((*path).to_owned(), *line)).collect();
        assert_eq!(lines(&reply), expected, "{arguments}");
        assert_eq!(reply["total_matches"], expected.len(), "{arguments}");
    };
    check(json!({ "pattern": "two" }), &[("a.txt", 1), ("a.txt", 4), ("src/b.rs", 1)]);
    check(
        json!({ "pattern": "two", "ignore_case": true, "paths": ["a.txt"] }),
        &[("a.txt", 1), ("a.txt", 2), ("a.txt", 4)],
    );
    check(json!({ "pattern": "two", "word": true }), &[("a.txt", 1), ("src/b.rs", 1)]);
    check(
        json!({ "pattern": "two", "invert": true, "paths": ["a.txt"] }),
        &[("a.txt", 2), ("a.txt", 3), ("a.txt", 5)],
    );
    check(json!({ "pattern": "two", "max_count": 1 }), &[("a.txt", 1), ("src/b.rs", 1)]);
    check(json!({ "pattern": "e$", "paths": ["src/"] }), &[("src/deep/c.txt", 1)]);
    check(json!({ "pattern": "Zwölf" }), &[("src/b.rs", 2)]);
    check(json!({ "pattern": "here", "collection": "default" }), &[]);
    check(json!({ "pattern": "t", "paths": ["*.rs"] }), &[("src/b.rs", 1)]);
}

#[test]
fn a_line_is_shown_where_it_matches_and_without_its_end() {
    let library = library();
    let reply = library.ok("grep", json!({ "pattern": "two", "paths": ["src/b.rs"], "context": 1 }));
    let found = &reply["matches"][0];
    assert_eq!((&found["line"], &found["after"][0]), (&json!("fn two() {}"), &json!("// Zwölf")));
    let long = format!("{}needle{}\nshort needle", "ä".repeat(100_000), "y".repeat(100_000));
    library.ok("add", json!({ "content": long, "name": "long.txt" }));
    let reply = library.ok("grep", json!({ "pattern": "needle", "color": "always", "output": true }));
    let (first, second) = (&reply["matches"][0], &reply["matches"][1]);
    let line = first["line"].as_str().unwrap();
    assert!(line.contains("äneedley") && line.chars().count() <= 2_000, "{line}");
    assert_eq!((&first["truncated"], &second["truncated"]), (&json!(true), &Value::Null));
    assert_eq!(reply["output"].as_str().unwrap().matches("\u{1b}[1;31mneedle\u{1b}[0m").count(), 2);
}

#[test]
fn a_match_with_its_context_fits_a_page() {
    let library = TestLibrary::new();
    let lines: Vec<String> = (1..=5_000).map(|number| format!("row {number} {}", "x".repeat(290))).collect();
    library.ok("add", json!({ "content": lines.join("\n"), "name": "rows.txt" }));
    let reply = library.ok("grep", json!({ "pattern": "row 2500 ", "context": 2_000 }));
    assert!(reply.to_string().len() < 40_000, "{}", reply.to_string().len());
    let found = &reply["matches"][0];
    let (before, after) = (found["before"].as_array().unwrap(), found["after"].as_array().unwrap());
    assert!(before.len() > 50 && after.len().abs_diff(before.len()) <= 1, "{} {}", before.len(), after.len());
    assert!(before.last().unwrap().as_str().unwrap().starts_with("row 2499 "));
    assert!(after[0].as_str().unwrap().starts_with("row 2501 "));
    assert_eq!(found["truncated"], true);
    let quotes = format!("{}\n", "\"".repeat(20)).repeat(4_000);
    let controls = format!("{quotes}needle\n{quotes}");
    library.ok("add", json!({ "content": controls, "name": "quotes.txt" }));
    let narrow = json!({
        "pattern": "needle", "context": 4_000, "output": true, "with_filename": true, "line_numbers": true,
    });
    let reply = library.ok("grep", narrow);
    assert!(reply.to_string().len() <= 40_000, "{}", reply.to_string().len());
    assert_eq!(reply["matches"][0]["line"], "needle");
    let few = library.ok("grep", json!({ "pattern": "row 4999 ", "context": 3 }));
    let found = &few["matches"][0];
    assert_eq!((found["before"].as_array().unwrap().len(), found["after"].as_array().unwrap().len()), (3, 1));
    assert_eq!((&found["truncated"], &found["after"][0]), (&Value::Null, &json!(lines[4_999])));
}

#[test]
fn files_counts_and_output() {
    let library = library();
    let with = library.ok("grep", json!({ "pattern": "two", "files_with_matches": true, "output": true }));
    assert_eq!(
        (&with["output"], &with["matches"], &with["total_files"]),
        (&json!("a.txt\nsrc/b.rs\n"), &json!([]), &json!(2))
    );
    let without = library.ok("grep", json!({ "pattern": "two", "files_without_match": true }));
    assert_eq!(without["files"], json!([{ "path": "src/deep/c.txt", "count": 0 }]));
    let counts =
        library.ok("grep", json!({ "pattern": "two", "count": true, "with_filename": true, "output": true }));
    assert_eq!((&counts["output"], &counts["total_matches"]), (&json!("a.txt:2\nsrc/b.rs:1\n"), &json!(3)));
    let context = library
        .ok("grep", json!({ "pattern": "^$|four", "context": 1, "line_numbers": true, "paths": ["a.txt"], "output": true }));
    assert_eq!(context["output"], "2-Two three\n3:\n4:two_four\n5-five\n");
    assert_eq!(
        (&context["matches"][0]["before"], &context["matches"][0]["after"]),
        (&json!(["Two three"]), &json!(["two_four"]))
    );
    let color = library.ok("grep", json!({ "pattern": "three", "color": "always", "output": true }));
    assert!(color["output"].as_str().unwrap().contains("\u{1b}[1;31mthree\u{1b}[0m"));
    let plain = library.ok("grep", json!({ "pattern": "three" }));
    assert!(plain.get("output").is_none(), "a line is said once unless asked for: {plain}");
}

#[test]
fn slips_are_explained_and_hostile_patterns_end() {
    let library = library();
    let says = |arguments| error_of(library.call("grep", arguments));
    assert!(says(json!({ "pattern": "(" })).contains("is not a regular expression"));
    assert!(says(json!({ "pattern": "" })).contains("must not be empty"));
    assert!(says(json!({ "pattern": "a".repeat(5_000) })).contains("larger than 4096 bytes"));
    assert!(says(json!({ "pattern": "((a{1000}){1000}){1000}" })).contains("is not a regular expression"));
    assert!(says(json!({ "pattern": "x", "color": "pink" })).contains("color must be"));
    library.ok("add", json!({ "content": format!("{}b", "a".repeat(200_000)), "name": "long.txt" }));
    let found = library.ok("grep", json!({ "pattern": "(a+)+$", "paths": ["long.txt"] }));
    assert_eq!(found["total_matches"], 0);
    let long = library.ok("grep", json!({ "pattern": "^a", "paths": ["long.txt"] }));
    assert_eq!(
        (long["total_matches"].as_u64(), long["matches"][0]["truncated"].as_bool()),
        (Some(1), Some(true))
    );
    assert!(long.to_string().len() < 40_000);
}

#[test]
fn counts_names_and_pages_hold_in_the_corners() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "foo\nfoo\nfoo\nfoo\nx\n", "name": "dir/sp ace [x].txt" }));
    let one = library.ok(
        "grep",
        json!({ "pattern": "foo", "max_count": 1, "after_context": 2, "paths": ["sp ace [x].txt"] }),
    );
    assert_eq!((&one["total_matches"], &one["matches"][0]["after"]), (&json!(1), &json!(["foo", "foo"])));
    let ugly: String = (0..300).map(|_| format!("{}z\n", "\"".repeat(3_000))).collect();
    library.ok("add", json!({ "content": ugly, "name": "ugly.txt" }));
    for more in [json!({}), json!({ "context": 50 }), json!({ "color": "always" })] {
        let mut arguments = json!({ "pattern": "\"", "paths": ["ugly.txt"] });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let page = library.ok("grep", arguments);
        assert!(page.to_string().len() <= 45_000, "{more}: {}", page.to_string().len());
        assert_eq!(page["total_matches"], 300);
    }
}

#[test]
fn pages_are_complete() {
    let library = TestLibrary::new();
    for file in 0..30 {
        let text: String = (0..200).map(|line| format!("needle {file} {line}\nhay\n")).collect();
        library.write(&format!("tree/{file:02}.txt"), text);
    }
    library.ok("add", json!({ "path": library.path("tree") }));
    for more in
        [json!({}), json!({ "context": 2 }), json!({ "files_with_matches": true }), json!({ "max_count": 7 })]
    {
        let mut arguments = json!({ "pattern": "needle" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let expected = if more.get("max_count").is_some() { 210 } else { 6_000 };
        let (mut seen, mut files) = (std::collections::BTreeSet::new(), 0);
        loop {
            let page = library.ok("grep", arguments.clone());
            assert!(page.to_string().len() <= 40_000, "{}", page.to_string().len());
            assert_eq!(
                (page["total_matches"].as_u64(), page["total_files"].as_u64()),
                (Some(expected), Some(30))
            );
            for found in lines(&page) {
                assert!(seen.insert(found.clone()), "{found:?} twice");
            }
            files += page["files"].as_array().unwrap().len();
            match page.get("next_cursor").filter(|cursor| !cursor.is_null()) {
                Some(cursor) => arguments["cursor"] = cursor.clone(),
                None => break,
            }
        }
        if more.get("files_with_matches").is_some() {
            assert_eq!(files, 30);
        } else {
            assert_eq!(seen.len() as u64, expected);
        }
    }
}

/// Compares ripgrep and the tool on the same tree, for many combinations of flags. Skipped where ripgrep is not
/// installed.
#[test]
fn the_output_is_that_of_ripgrep() {
    if Command::new("rg").arg("--version").output().is_err() {
        return;
    }
    let library = TestLibrary::new();
    let words = ["alpha", "beta", "Gamma_1", "delta", "foo_bar", "Ünïcode", "x1", "", "the end"];
    let mut state = 12_345_u64;
    for file in 0..12 {
        let mut text = String::new();
        for _ in 0..40 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let count = (state >> 60) % 5;
            let line: Vec<&str> =
                (0..count).map(|n| words[((state >> (8 * n + 5)) % words.len() as u64) as usize]).collect();
            text.push_str(&line.join(" "));
            text.push_str(if file % 4 == 3 { "\r\n" } else { "\n" });
        }
        if file % 3 == 0 {
            text.pop();
        }
        library.write(&format!("tree/{file:02}.txt"), text);
    }
    let folder = library.path("tree");
    library.ok("add", json!({ "path": folder }));
    let patterns =
        ["alpha", "gamma", "foo", r"\bx\d", "^$", "a$", "(beta|delta) ", "ünï", "[A-Z]", "e.*e", "zzz"];
    let flags: &[(&str, &str)] = &[
        ("ignore_case", "-i"),
        ("word", "-w"),
        ("invert", "-v"),
        ("line_numbers", "-n"),
        ("with_filename", "-H"),
    ];
    for (number, pattern) in patterns.iter().enumerate() {
        for bits in 0..1_u32 << flags.len() {
            for (extra, words) in [
                ("none", vec![]),
                ("context", vec!["-C", "2"]),
                ("max_count", vec!["-m", "2"]),
                ("count", vec!["-c"]),
            ] {
                if (bits as usize + number).is_multiple_of(2) && extra != "none" {
                    continue;
                }
                let mut arguments = json!({ "pattern": pattern, "output": true });
                let mut command = Command::new("rg");
                command.args([
                    "--no-config",
                    "--no-heading",
                    "--color=never",
                    "--sort=path",
                    "--no-ignore",
                    "--hidden",
                ]);
                for (at, (name, flag)) in flags.iter().enumerate() {
                    let on = bits & (1 << at) != 0;
                    arguments[*name] = json!(on);
                    match (on, *name) {
                        (true, _) => drop(command.arg(flag)),
                        (false, "with_filename") => drop(command.arg("-I")),
                        (false, "line_numbers") => drop(command.arg("-N")),
                        _ => {}
                    }
                }
                command.args(&words).arg("-e").arg(pattern).arg(&folder);
                match extra {
                    "context" => arguments["context"] = json!(2),
                    "max_count" => arguments["max_count"] = json!(2),
                    "count" => arguments["count"] = json!(true),
                    _ => {}
                }
                let expected = String::from_utf8(command.output().unwrap().stdout).unwrap();
                let (mut output, mut pages) = (String::new(), 0);
                let mut question = arguments.clone();
                loop {
                    let page = library.ok("grep", question.clone());
                    output.push_str(page["output"].as_str().unwrap());
                    pages += 1;
                    match page.get("next_cursor").filter(|cursor| !cursor.is_null()) {
                        Some(cursor) => question["cursor"] = cursor.clone(),
                        None => break,
                    }
                }
                if pages == 1 || extra != "context" {
                    assert_eq!(output, expected, "{arguments}");
                } else {
                    // A page repeats the context that its first match needs; no line may be missing.
                    let plain = |text: &str| {
                        text.lines().filter(|line| *line != "--").map(str::to_owned).collect::<Vec<_>>()
                    };
                    let (ours, theirs) = (plain(&output), plain(&expected));
                    assert!(
                        ours.len() >= theirs.len() && theirs.iter().all(|line| ours.contains(line)),
                        "{arguments}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_match_that_is_context_of_another_is_shown_as_a_match() {
    let library = TestLibrary::new();
    for (name, before) in [("a.txt", "é"), ("b.txt", "e")] {
        let line = format!("{} foo {}", before.repeat(3_000), "y".repeat(300));
        library.ok("add", json!({ "content": format!("{line}\n{line}\n"), "name": name }));
        for color in ["always", "never"] {
            let question =
                json!({ "pattern": "foo", "paths": [name], "context": 1, "color": color, "output": true });
            let reply = library.ok("grep", question);
            let output = reply["output"].as_str().unwrap();
            let hit = if color == "always" { " \u{1b}[1;31mfoo\u{1b}[0m " } else { " foo " };
            assert_eq!(output.matches(hit).count(), 2, "{name} {color}: {output}");
        }
    }
}

#[test]
fn places_are_right_behind_bytes_that_are_no_text() {
    let library = TestLibrary::new();
    library.write("latin.txt", b"caf\xe9 au lait, caf\xe9 noir\n");
    library.ok("add", json!({ "path": library.path("latin.txt"), "mime_type": "text/plain" }));
    let reply = library.ok("grep", json!({ "pattern": "lait|noir", "color": "always", "output": true }));
    let output = reply["output"].as_str().unwrap();
    for word in ["lait", "noir"] {
        assert!(output.contains(&format!(" \u{1b}[1;31m{word}\u{1b}[0m")), "{output}");
    }
}

#[test]
fn every_matching_part_is_given() {
    let library = TestLibrary::new();
    let ids: Vec<String> = (0..3_000).map(|number| format!("\"id-{number:04}\"")).collect();
    library.ok("add", json!({ "content": format!("[{}]", ids.join(",")), "name": "a.json" }));
    let mut request = shelf_engine::GrepRequest {
        pattern: "id-[0-9]+".into(),
        parts: true,
        page_chars: 40_000,
        ..shelf_engine::GrepRequest::default()
    };
    let (owner, call) = (shelf_engine::Caller::owner(), shelf_base::CallContext::new());
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let page = library.library.grep(&owner, &request, &call).unwrap();
        assert_eq!(page.total_matches, 1);
        found.extend(page.lines.into_iter().map(|line| format!("\"{}\"", line.text)));
        pages += 1;
        match page.next_cursor {
            Some(cursor) => request.cursor = Some(cursor),
            None => break,
        }
    }
    assert_eq!(found, ids);
    assert!(pages > 1);
}
