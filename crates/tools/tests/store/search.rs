//! `search`, as specified by the contract and the design decisions.

use serde_json::{Value, json};
use shelf_testkit::{TestLibrary, error_of};

fn library() -> TestLibrary {
    let library = TestLibrary::new();
    let documents = [
        (
            "notes/database.md",
            "# Tuning\n\nNotes on database optimization.\nIndexes first, then queries.\nMeasure again.\n",
        ),
        ("notes/garden.md", "# Garden\n\nTomatoes need sun and water.\nPlant them in May.\n"),
        ("src/pool.rs", "fn connection_pool(size: usize) -> HttpServer {\n    HttpServer::new(size)\n}\n"),
        ("src/main.py", "def main():\n    print('hello world')\n"),
        ("letters/one.txt", "The mitochondria is the powerhouse of the cell.\n"),
        ("letters/cafe.txt", "Un caf\u{e9} au lait, s'il vous pla\u{ee}t.\n中文搜索 works too.\n"),
    ];
    for (name, content) in documents {
        library.ok(
            "add",
            json!({ "name": name, "content": content, "tags": [name.split('/').next().unwrap()] }),
        );
    }
    library
}

fn paths(reply: &Value) -> Vec<&str> {
    reply["results"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap()).collect()
}

fn first(reply: &Value) -> &str {
    paths(reply).first().copied().unwrap_or_default()
}

fn keyword(library: &TestLibrary, query: &str) -> Vec<String> {
    let reply = library.ok("search", json!({ "query": query, "type": "keyword" }));
    paths(&reply).into_iter().map(str::to_owned).collect()
}

#[test]
fn replies_have_the_fields_of_the_contract() {
    let library = library();
    let reply = library.ok("search", json!({ "query": "database optimization", "limit": 5 }));
    assert_eq!(reply["type"], "hybrid");
    assert!(reply["total"].as_u64().unwrap() >= 1 && reply["execution_time_ms"].is_u64());
    let hit = &reply["results"][0];
    assert_eq!(
        (hit["path"].as_str(), hit["title"].as_str()),
        (Some("notes/database.md"), Some("database.md"))
    );
    assert!(hit["id"].is_i64() && hit["hash"].as_str().unwrap().len() == 64);
    assert!((0.0..=1.0).contains(&hit["score"].as_f64().unwrap()));
    assert!(hit["snippet"].as_str().unwrap().contains("database optimization"));
    let id = hit["document_id"].as_str().unwrap();
    assert_eq!(hit["address"], format!("text://{id}#lines=1-5"));
    assert_eq!((hit["line_start"].as_u64(), hit["line_end"].as_u64()), (Some(1), Some(5)));
    assert_eq!(hit["line_number"], 3);
    assert!(hit.get("keyword_score").is_none());
    let explained = library.ok("search", json!({ "query": "database", "explain": true }));
    assert!(
        explained["results"][0]["keyword_score"].is_f64()
            && explained["results"][0]["semantic_score"].is_f64()
    );
}

#[test]
fn each_kind_says_what_ran_and_scores_fall() {
    let library = library();
    for kind in ["keyword", "semantic", "hybrid"] {
        let reply =
            library.ok("search", json!({ "query": "growing vegetables in the garden", "type": kind }));
        assert_eq!((reply["type"].as_str(), first(&reply)), (Some(kind), "notes/garden.md"), "{kind}");
        let scores: Vec<f64> =
            reply["results"].as_array().unwrap().iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b) && scores.iter().all(|score| (0.0..=1.0).contains(score)));
    }
    // No word in common: only the meaning finds it.
    let meant = library.ok("search", json!({ "query": "farming crops", "type": "semantic" }));
    assert_eq!(first(&meant), "notes/garden.md");
    // No document contains the words, so only the meaning counts.
    assert_eq!(
        first(&library.ok("search", json!({ "query": "farming crops", "fuzzy": false }))),
        "notes/garden.md"
    );
    assert!(
        error_of(library.call("search", json!({ "query": "x", "type": "magic" })))
            .contains("keyword, semantic or hybrid")
    );
}

#[test]
fn typing_errors_are_corrected_when_asked() {
    let library = library();
    for arguments in [
        json!({ "query": "databse optimizaton" }),
        json!({ "query": "databse optimizaton", "similarity": 0.6 }),
        json!({ "query": "databse optimizaton", "type": "keyword" }),
        json!({ "query": "databse optimizaton", "type": "semantic" }),
    ] {
        let reply = library.ok("search", arguments.clone());
        assert_eq!(first(&reply), "notes/database.md", "{arguments}");
        assert_eq!(reply["corrections"][0], json!({ "asked": "databse", "meant": "database" }));
    }
    let exact =
        library.ok("search", json!({ "query": "databse optimizaton", "fuzzy": false, "type": "keyword" }));
    assert_eq!((exact["total"].as_u64(), exact.get("corrections")), (Some(0), None));
    let strict = library.ok("search", json!({ "query": "databse", "similarity": 0.95, "type": "keyword" }));
    assert_eq!(strict["total"], 0);
    assert!(
        error_of(library.call("search", json!({ "query": "x", "similarity": 1.5 }))).contains("similarity")
    );
}

#[test]
fn exact_words_come_before_corrected_ones() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "name": "one.txt", "content": "colour of the sky" }));
    library.ok("add", json!({ "name": "two.txt", "content": "color of the sky" }));
    for (query, path) in [("colour", "one.txt"), ("color", "two.txt")] {
        assert_eq!(first(&library.ok("search", json!({ "query": query }))), path);
    }
    assert_eq!(keyword(&library, "colours"), ["one.txt"]);
}

/// Words spread evenly over the built-in vocabulary.
fn words() -> Vec<&'static str> {
    let all = include_str!("../../../embed/model/vocab.txt").lines();
    let fit: Vec<&str> = all
        .filter(|word| (6..=11).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase()))
        .collect();
    fit.iter().step_by(fit.len() / 600).copied().take(600).collect()
}

/// Drops, doubles, swaps or replaces one letter, in turn; never the first.
fn mistyped(word: &str, turn: usize) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let at = 1 + turn * 7 % (letters.len() - 2);
    match turn % 4 {
        0 => drop(letters.remove(at)),
        1 => letters.insert(at, letters[at]),
        2 => letters.swap(at, at + 1),
        _ => letters[at] = if letters[at] == 'q' { 'z' } else { 'q' },
    }
    letters.into_iter().collect()
}

#[test]
fn two_hundred_typing_errors_find_their_words() {
    let library = TestLibrary::new();
    let words = words();
    for (number, three) in words.chunks(3).enumerate() {
        let content =
            format!("This page is about {}, then {} and some {} as well.", three[0], three[1], three[2]);
        library.ok("add", json!({ "name": format!("{number}.txt"), "content": content }));
    }
    for kind in ["keyword", "hybrid"] {
        let mut found = 0;
        for turn in 0..200 {
            let at = turn * 3 + turn % 3;
            let query = mistyped(words[at], turn);
            let reply = library.ok("search", json!({ "query": query, "type": kind, "limit": 3 }));
            let wanted = format!("{}.txt", at / 3);
            found += usize::from(paths(&reply).contains(&wanted.as_str()));
        }
        assert!(found >= 190, "{kind}: {found} of 200");
    }
}

#[test]
fn identifiers_stems_prefixes_and_quotes() {
    let library = library();
    for query in
        ["connection_pool", "connection pool", "HttpServer", "httpserver", "server", "Connection_Pool size"]
    {
        assert_eq!(keyword(&library, query).first().map(String::as_str), Some("src/pool.rs"), "{query}");
    }
    assert_eq!(keyword(&library, "optimizing databases"), ["notes/database.md"]);
    assert_eq!(keyword(&library, "optim*"), ["notes/database.md"]);
    assert_eq!(keyword(&library, "cafe"), ["letters/cafe.txt"]);
    assert_eq!(keyword(&library, "搜索"), ["letters/cafe.txt"]);
    assert_eq!(keyword(&library, "\"database optimization\""), ["notes/database.md"]);
    let relaxed = library.ok("search", json!({ "query": "\"optimization database\"", "type": "keyword" }));
    assert!(relaxed["note"].as_str().unwrap().contains("quoted phrase"), "{relaxed}");
    // Names are searched too.
    assert_eq!(keyword(&library, "one.txt").first().map(String::as_str), Some("letters/one.txt"));
    for odd in
        ["\"", "((", "AND OR NOT", "a:b:c", "*", "\\", "\u{0}", "+-&&||!", "\"unclosed phrase", "field:"]
    {
        library.ok("search", json!({ "query": odd }));
    }
    assert!(error_of(library.call("search", json!({ "query": "  " }))).contains("query"));
}

#[test]
fn all_words_come_before_some_words() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "name": "some.txt", "content": "apple ".repeat(30) }));
    library.ok("add", json!({ "name": "both.txt", "content": format!("apple and pear {}", "filler words here ".repeat(40)) }));
    assert_eq!(keyword(&library, "apple pear"), ["both.txt", "some.txt"]);
}

#[test]
fn hashes_are_found_and_fall_back_to_text() {
    let library = library();
    let added =
        library.ok("add", json!({ "name": "token.txt", "content": "the code is deadbeef1234 today" }));
    let hash = added["hash"].as_str().unwrap();
    for arguments in [
        json!({ "query": "placeholder", "hash": hash }),
        json!({ "query": "placeholder", "hash": &hash[..16] }),
        json!({ "query": hash }),
        json!({ "query": &hash[..12] }),
    ] {
        // A short prefix without both letters and digits is treated as a word.
        if arguments.get("hash").is_none() && !looks_like_hash(arguments["query"].as_str().unwrap()) {
            continue;
        }
        let reply = library.ok("search", arguments.clone());
        assert_eq!(
            (reply["type"].as_str(), reply["total"].as_u64(), first(&reply)),
            (Some("hash"), Some(1), "token.txt"),
            "{arguments}"
        );
        assert_eq!(reply["results"][0]["hash"], hash);
    }
    let text = library.ok("search", json!({ "query": "deadbeef1234" }));
    assert_eq!((text["type"].as_str(), first(&text)), (Some("hybrid"), "token.txt"));
    assert!(error_of(library.call("search", json!({ "query": "x", "hash": "abc" }))).contains("hash"));
}

fn looks_like_hash(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit()) && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[test]
fn lines_context_and_colour() {
    let library = library();
    let ask = |arguments: Value| {
        library.ok("search", arguments)["results"][0]["snippet"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        ask(json!({ "query": "indexes first", "line_numbers": true })),
        "4:Indexes first, then queries."
    );
    assert_eq!(
        ask(json!({ "query": "indexes first", "line_numbers": true, "context": 1 })),
        "3-Notes on database optimization.\n4:Indexes first, then queries.\n5-Measure again."
    );
    assert_eq!(
        ask(json!({ "query": "indexes first", "before_context": 1 })),
        "Notes on database optimization.\nIndexes first, then queries."
    );
    assert_eq!(
        ask(json!({ "query": "indexes first", "after_context": 9 })),
        "Indexes first, then queries.\nMeasure again."
    );
    let colored = ask(json!({ "query": "indexes", "line_numbers": true, "color": "always" }));
    assert_eq!(colored, "\u{1b}[32m4\u{1b}[0m:\u{1b}[1;31mIndexes\u{1b}[0m first, then queries.");
    assert!(error_of(library.call("search", json!({ "query": "x", "color": "pink" }))).contains("color"));
}

#[test]
fn a_phrase_is_shown_where_it_stands() {
    let library = TestLibrary::new();
    let text = "alpha beta\n\n\ngamma\nbeta alpha gamma\nalpha gamma delta\nand then alpha\ngamma epsilon\n";
    library.ok("add", json!({ "name": "phrases.md", "content": text }));
    let line = |query: &str| {
        let arguments = json!({ "query": query, "type": "keyword", "line_numbers": true, "color": "always" });
        let reply = library.ok("search", arguments);
        let hit = &reply["results"][0];
        (hit["line_number"].as_u64().unwrap(), hit["snippet"].as_str().unwrap().to_owned())
    };
    assert_eq!(line("\"alpha gamma\"").0, 5);
    assert_eq!(line("\"gamma delta\"").0, 6);
    let (number, snippet) = line("\"gamma epsilon\"");
    assert_eq!(number, 8);
    assert!(snippet.contains("\u{1b}[1;31mgamma\u{1b}[0m \u{1b}[1;31mepsilon\u{1b}[0m"), "{snippet}");
    // Words that are not adjacent are not highlighted.
    assert!(!line("\"gamma delta\"").1.contains("\u{1b}[1;31mgamma\u{1b}[0m\n"));
    assert_eq!(line("\"then alpha gamma\"").0, 7, "across a line break");
}

#[test]
fn numbered_lines_show_every_match_and_fit_a_page() {
    let library = TestLibrary::new();
    let text = "one\ntwo\nthe walrus sat\nfour\nfive\nsix\nseven\nthe penguin stood\n";
    library.ok("add", json!({ "name": "animals.md", "content": text }));
    let reply = library.ok("search", json!({ "query": "walrus penguin", "line_numbers": true }));
    assert_eq!(reply["results"][0]["snippet"], "3:the walrus sat\n8:the penguin stood");
    let around = json!({ "query": "walrus penguin", "line_numbers": true, "context": 1 });
    assert_eq!(
        library.ok("search", around)["results"][0]["snippet"],
        "2-two\n3:the walrus sat\n4-four\n7-seven\n8:the penguin stood"
    );
    let rows: Vec<String> = (1..=5_000).map(|number| format!("row {number} {}", "x".repeat(290))).collect();
    library.ok("add", json!({ "name": "rows.txt", "content": rows.join("\n") }));
    let reply = library.ok("search", json!({ "query": "\"row 2500\"", "context": 2_000, "limit": 1 }));
    assert!(reply.to_string().len() < 40_000, "{}", reply.to_string().len());
    assert_eq!(
        (&reply["results"][0]["line_number"], &reply["results"][0]["truncated"]),
        (&json!(2_500), &json!(true))
    );
}

#[test]
fn filters_never_starve_a_page() {
    let library = TestLibrary::new();
    for number in 0..60 {
        let (folder, tag) = if number % 6 == 0 { ("rare", "wanted") } else { ("many", "other") };
        let content = format!("apple pie recipe {}", "apple ".repeat(if folder == "many" { 9 } else { 1 }));
        library.ok(
            "add",
            json!({
                "name": format!("{folder}/{number}.txt"), "content": content, "tags": [tag],
                "collection": if number % 12 == 0 { "side" } else { "default" },
            }),
        );
    }
    for filter in [
        json!({ "tags": ["wanted"] }),
        json!({ "path_pattern": "rare/" }),
        json!({ "include_patterns": ["rare/*.txt", "nothing/*"] }),
    ] {
        for kind in ["keyword", "hybrid"] {
            let mut arguments = json!({ "query": "apple pie", "limit": 10, "type": kind });
            arguments.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
            let reply = library.ok("search", arguments);
            assert_eq!((reply["total"].as_u64(), paths(&reply).len()), (Some(10), 10), "{filter} {kind}");
            assert!(paths(&reply).iter().all(|path| path.starts_with("rare/")), "{filter}");
        }
    }
    let side = library.ok("search", json!({ "query": "apple", "collection": "side" }));
    assert_eq!(side["total"], 5);
    assert!(
        error_of(library.call("search", json!({ "query": "x", "collection": "nowhere" })))
            .contains("nowhere")
    );
    assert_eq!(library.ok("search", json!({ "query": "apple", "extension": ".md" }))["total"], 0);
    assert_eq!(library.ok("search", json!({ "query": "apple", "mime": "text/*" }))["total"], 60);
}

#[test]
fn cursors_lead_through_everything_once() {
    let library = TestLibrary::new();
    for number in 0..37 {
        library.ok(
            "add",
            json!({ "name": format!("{number}.txt"), "content": format!("apple {}", "pie ".repeat(number)) }),
        );
    }
    for kind in ["keyword", "semantic", "hybrid"] {
        let whole = library.ok("search", json!({ "query": "apple pie", "limit": 1000, "type": kind }));
        let total = whole["total"].as_u64().unwrap() as usize;
        assert_eq!((paths(&whole).len(), whole["next_cursor"].is_null()), (total, true), "{kind}");
        let mut all = Vec::new();
        let mut arguments = json!({ "query": "apple pie", "limit": 10, "type": kind });
        loop {
            let page = library.ok("search", arguments.clone());
            all.extend(paths(&page).into_iter().map(str::to_owned));
            match page["next_cursor"].as_str() {
                Some(cursor) => arguments["cursor"] = json!(cursor),
                None => break,
            }
        }
        assert_eq!(all, paths(&whole), "{kind}");
    }
    let cursor = library.ok("search", json!({ "query": "apple", "limit": 2 }))["next_cursor"].clone();
    assert!(error_of(library.call("search", json!({ "query": "pie", "cursor": cursor }))).contains("cursor"));
    assert!(error_of(library.call("search", json!({ "query": "pie", "limit": 0 }))).contains("limit"));
}

#[test]
fn a_page_that_is_full_goes_on_where_it_ended() {
    let library = TestLibrary::new();
    for number in 0..120 {
        let content = format!("zebra {}", format!("word{number} ").repeat(60));
        library.ok("add", json!({ "name": format!("{number}.txt"), "content": content }));
    }
    for (kind, limit) in [("keyword", 100), ("keyword", 1_000), ("hybrid", 120), ("semantic", 1_000)] {
        let mut arguments = json!({ "query": "zebra", "type": kind, "limit": limit });
        let (mut all, mut total) = (Vec::new(), 0);
        loop {
            let page = library.ok("search", arguments.clone());
            assert!(page.to_string().len() < 45_000);
            all.extend(paths(&page).into_iter().map(str::to_owned));
            total = total.max(page["total"].as_u64().unwrap() as usize);
            match page["next_cursor"].as_str() {
                Some(cursor) => arguments["cursor"] = json!(cursor),
                None => break,
            }
        }
        let distinct: std::collections::HashSet<&String> = all.iter().collect();
        assert_eq!((all.len(), distinct.len()), (total, total), "{kind} {limit}");
    }
}

#[test]
fn a_document_is_one_hit_whatever_forms_its_passages_have() {
    let library = TestLibrary::new();
    let filler = "alpha beta gamma delta omega ".repeat(40);
    library.ok(
        "add",
        json!({ "name": "a.txt", "content": format!("{filler}. zebras end. {filler}. zebras end.") }),
    );
    library.ok(
        "add",
        json!({ "name": "b.txt", "content": format!("{filler}. zebra end. {filler}. zebras end.") }),
    );
    for kind in ["keyword", "hybrid"] {
        let reply = library.ok("search", json!({ "query": "zebra", "type": kind }));
        assert_eq!((reply["total"].as_u64(), paths(&reply).len()), (Some(2), 2), "{kind}");
    }
}

#[test]
fn both_sorts_of_path_pattern_must_fit() {
    let library = library();
    let ask = |path: &str, include: &[&str]| {
        let arguments = json!({ "query": "tomatoes database", "type": "keyword", "path_pattern": path, "include_patterns": include });
        library.ok("search", arguments)["total"].clone()
    };
    assert_eq!(
        (ask("notes/", &[]), ask("notes/", &["garden.md"]), ask("notes/", &["src/"])),
        (json!(2), json!(1), json!(0))
    );
}

#[test]
fn only_paths_when_only_paths_are_wanted() {
    let library = library();
    let reply = library.ok("search", json!({ "query": "database", "type": "keyword", "paths_only": true }));
    assert_eq!(reply["paths"], json!(["notes/database.md"]));
    assert_eq!((reply["total"].as_u64(), reply["results"].as_array().unwrap().len()), (Some(1), 0));
}

#[test]
fn changes_are_seen_at_once() {
    let library = library();
    library.ok("add", json!({ "name": "notes/garden.md", "content": "Now about submarines." }));
    assert_eq!(keyword(&library, "submarine"), ["notes/garden.md"]);
    assert!(keyword(&library, "tomatoes").is_empty());
    library.ok("update", json!({ "name": "notes/garden.md", "tags": ["+deep"] }));
    assert_eq!(library.ok("search", json!({ "query": "submarines", "tags": ["deep"] }))["total"], 1);
    library.ok("delete_by_name", json!({ "name": "notes/garden.md" }));
    assert!(keyword(&library, "submarine").is_empty());
    assert_eq!(library.ok("grep", json!({ "pattern": "submarines" }))["total_matches"], 0);
    library.ok("add", json!({ "name": "notes/garden.md", "content": "Back to tomatoes." }));
    assert_eq!(keyword(&library, "tomatoes"), ["notes/garden.md"]);
    assert_eq!(library.ok("grep", json!({ "pattern": "tomatoes" }))["total_matches"], 1);
}

#[test]
fn binary_documents_are_found_by_name_and_texts_by_any_line() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "name": "photos/lighthouse.png", "content": "iVBORw0KGgoAAAANSUhEUg==", "encoding": "base64" }));
    let reply = library.ok("search", json!({ "query": "lighthouse" }));
    assert_eq!((first(&reply), reply["results"][0]["snippet"].as_str()), ("photos/lighthouse.png", Some("")));
    assert!(reply["results"][0]["address"].as_str().unwrap().starts_with("image://"));
    // One very long line: the passage is cut inside it, and the snippet stays short.
    let long = format!("{} needle {}", "hay ".repeat(20_000), "straw ".repeat(20_000));
    library.ok("add", json!({ "name": "long.txt", "content": long }));
    let reply = library.ok("search", json!({ "query": "needle", "type": "keyword" }));
    let snippet = reply["results"][0]["snippet"].as_str().unwrap();
    assert!(snippet.contains("needle") && snippet.chars().count() < 500, "{snippet}");
    assert_eq!(reply["results"][0]["line_number"], 1);
}

#[test]
fn patterns_find_what_is_not_in_the_text_of_a_page() {
    let library = TestLibrary::new();
    let page = "<html><body class=\"zebrafish_tank_red\"><p>Nothing else</p></body></html>";
    let wide: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain(page.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let narrow = library.write("narrow.html", page);
    let wide = library.write("wide.html", wide);
    library.ok("add", json!({ "path": narrow }));
    library.ok("add", json!({ "path": wide }));
    for pattern in ["zebrafish", "zebrafish_tank_red", "z.?e.?b", "class="] {
        assert_eq!(library.ok("grep", json!({ "pattern": pattern }))["total_files"], 2, "{pattern}");
    }
    assert!(keyword(&library, "zebrafish").is_empty(), "an attribute is not text");
    assert_eq!(keyword(&library, "nothing").len(), 2);
}

#[test]
fn suggestions_stand_beside_complete_matches() {
    let library = library();
    let reply =
        library.ok("grep", json!({ "pattern": "tomato.*sun", "ignore_case": true, "fast_first": true }));
    assert_eq!(reply["total_matches"], 1);
    assert_eq!(reply["suggestions"][0]["path"], "notes/garden.md");
}
