//! Questions as people and agents ask them: long ones, names of files, versions, other scripts, and what is shown of an answer.

use serde_json::{Value, json};
use shelf_testkit::TestLibrary;

fn add(library: &TestLibrary, name: &str, content: &str) {
    library.ok("add", json!({ "name": name, "content": content }));
}

fn paths(reply: &Value) -> Vec<&str> {
    reply["results"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap()).collect()
}

fn found(library: &TestLibrary, query: &str, kind: &str) -> Vec<String> {
    let reply = library.ok("search", json!({ "query": query, "type": kind, "limit": 50 }));
    paths(&reply).into_iter().map(str::to_owned).collect()
}

#[test]
fn the_end_of_a_long_question_counts() {
    let library = TestLibrary::new();
    add(&library, "zebra.md", "The zebrafish printer is blue.");
    add(&library, "other.md", "Something about gardens and the weather of the week.");
    let small_talk: String = (0..200).map(|at| format!("word{at} ")).collect();
    let question = format!("{small_talk} zebrafish printer");
    let reply = library.ok("search", json!({ "query": question }));
    assert_eq!(paths(&reply)[0], "zebra.md");
    assert!(reply["note"].as_str().unwrap().contains("left out"), "{reply}");
    let passages = library.ok("search_documents_tool", json!({ "query": question }));
    assert!(passages["results"][0]["content"].as_str().unwrap().contains("zebrafish"));
    // A phrase in quotes is strict wherever it stands.
    let strict =
        library.ok("search", json!({ "query": format!("{small_talk} weather \"zebrafish printer\"") }));
    assert_eq!((paths(&strict), &strict["total"]), (vec!["zebra.md"], &json!(1)));
}

#[test]
fn a_document_is_found_by_its_name() {
    let library = TestLibrary::new();
    for at in 0..30 {
        let text = format!("asyncio base events are in base_events.py, see asyncio/base_events.py ({at})\n")
            .repeat(3);
        add(&library, &format!("notes/{at}.md"), &text);
    }
    add(&library, "lib/asyncio/base_events.py", "import os\n");
    add(&library, "lib/other/unrelated.py", "import os\n");
    for kind in ["hybrid", "keyword"] {
        for name in
            ["base_events.py", "asyncio/base_events.py", "lib/asyncio/base_events.py", "\"base_events.py\""]
        {
            assert_eq!(found(&library, name, kind)[0], "lib/asyncio/base_events.py", "{name} {kind}");
        }
    }
    let reply = library.ok("search", json!({ "query": "asyncio/base_events.py" }));
    assert_eq!(reply["results"][0]["score"], 1.0);
    // A phrase in quotes is looked for in names too.
    let quoted = library.ok("search", json!({ "query": "\"unrelated.py\" import" }));
    assert_eq!((paths(&quoted), &quoted["note"]), (vec!["lib/other/unrelated.py"], &Value::Null));
}

#[test]
fn versions_dates_and_paths_are_wanted_whole() {
    let library = TestLibrary::new();
    for at in 0..20 {
        let text = format!("1 2 7 3 06 11 2024 12 05 {at}\n").repeat(4);
        add(&library, &format!("tables/{at}.txt"), &text);
    }
    let long = "Changes of this release are described below, with what to do about them. ".repeat(6);
    add(
        &library,
        "changes.md",
        &format!("{long}\nSince 3.11.7 of 2024-05-06 the pool closes std::io::Error by itself.\n"),
    );
    for query in ["3.11.7", "2024-05-06", "what is new in 3.11.7", "std::io::Error"] {
        assert_eq!(found(&library, query, "keyword")[0], "changes.md", "{query}");
    }
}

#[test]
fn scripts_without_spaces_are_found_in_pieces() {
    let library = TestLibrary::new();
    add(&library, "zh.md", "在这里安装新的软件包,然后重启。");
    add(&library, "ja.md", "パスワードを変更するには、設定を開きます。");
    add(&library, "en.md", "Certificates, encodings and tables of characters.");
    for kind in ["hybrid", "keyword"] {
        assert_eq!(found(&library, "如何安装软件", kind), ["zh.md"], "{kind}");
        assert_eq!(found(&library, "安装软件", kind), ["zh.md"], "{kind}");
        assert_eq!(found(&library, "パスワードの変更", kind), ["ja.md"], "{kind}");
    }
}

#[test]
fn contractions_and_stars_between_words_are_not_asked_for() {
    let library = TestLibrary::new();
    add(&library, "cron.md", "The cron job runs every hour.");
    for at in 0..5 {
        add(&library, &format!("{at}.md"), "I don't know, it isn't the t of that s.");
    }
    assert_eq!(found(&library, "why doesn't my cron job run", "keyword"), ["cron.md"]);
    assert_eq!(found(&library, "what\u{2019}s a cron job", "keyword"), ["cron.md"]);
    add(&library, "sum.c", "int sum = alpha*beta;");
    add(&library, "alphabet.txt", "alphabets everywhere");
    assert_eq!(found(&library, "alpha*beta", "keyword"), ["sum.c"]);
    assert_eq!(found(&library, "alpha*", "keyword").len(), 2);
}

#[test]
fn a_passage_with_all_words_comes_before_scattered_ones() {
    let library = TestLibrary::new();
    let chapter =
        |word: &str| format!("# {word}\n\n{}\n\n", format!("The {word} is here, {word} again. ").repeat(60));
    let novel: String =
        ["backup", "restore", "schedule", "nightly"].iter().map(|word| chapter(word)).collect();
    add(&library, "novel.md", &novel);
    let talk = "Much is said about many other things that nobody has asked for at all. ".repeat(12);
    add(&library, "answer.md", &format!("{talk}A nightly schedule for backup and restore.\n"));
    assert_eq!(found(&library, "nightly backup restore schedule", "keyword")[0], "answer.md");
}

#[test]
fn a_score_that_is_shown_reaches_itself() {
    let library = TestLibrary::new();
    for at in 0..12 {
        let text = format!("The library {} maps and {}.", "keeps ".repeat(at + 1), "words ".repeat(12 - at));
        add(&library, &format!("{at}.md"), &text);
    }
    for kind in ["hybrid", "keyword", "semantic"] {
        let all = library.ok("search", json!({ "query": "library keeps maps", "type": kind }));
        for (at, hit) in all["results"].as_array().unwrap().iter().enumerate() {
            let arguments = json!({ "query": "library keeps maps", "type": kind, "min_score": hit["score"], "limit": 50 });
            let reached = library.ok("search", arguments);
            assert!(paths(&reached).len() > at, "{kind}: {hit}");
        }
    }
}

#[test]
fn a_long_line_is_shown_where_it_answers() {
    let library = TestLibrary::new();
    let line =
        format!("{}rare zebrafish printer here{}", "a printer, ".repeat(1_200), " and more".repeat(40));
    add(&library, "line.txt", &line);
    let reply = library.ok("search", json!({ "query": "rare zebrafish printer", "type": "keyword" }));
    let snippet = reply["results"][0]["snippet"].as_str().unwrap();
    assert!(snippet.contains("rare zebrafish printer"), "{snippet}");
    // A line of which only a part is read is shown from a whole character on, with a mark that it has begun before.
    let json: String = (0..2_000).map(|at| format!("{{\"größe\":\"漢字{at}\",\"ort\":\"🏔\"}},")).collect();
    add(&library, "data.json", &format!("[{json}{{\"note\":\"the albatross nests here\"}}]"));
    let reply = library.ok("search", json!({ "query": "albatross nests", "limit": 1 }));
    let snippet = reply["results"][0]["snippet"].as_str().unwrap();
    assert!(snippet.contains("albatross") && !snippet.contains('\u{fffd}'), "{snippet}");
    assert!(snippet.starts_with('…'), "{snippet}");
}
