//! What `search` makes of questions as people ask them.

use serde_json::{Value, json};
use shelf_testkit::{TestLibrary, error_of};

fn paths(reply: &Value) -> Vec<String> {
    let hits = reply["results"].as_array().unwrap();
    hits.iter().map(|hit| hit["path"].as_str().unwrap().to_owned()).collect()
}

fn with(documents: &[(&str, &str)]) -> TestLibrary {
    let library = TestLibrary::new();
    for (name, content) in documents {
        library.ok("add", json!({ "name": name, "content": content }));
    }
    library
}

fn note(reply: &Value) -> &str {
    reply["note"].as_str().unwrap_or_default()
}

#[test]
fn titles_count_in_every_kind_of_search() {
    let library = TestLibrary::new();
    let store = |title: &str, content: &str| {
        library.ok("store_document_tool", json!({ "title": title, "content": content }));
    };
    store("How do I unlock a frozen account?", "Ask the help desk. They need your badge number.");
    store("Opening hours of the canteen", "It is open from eight to three, except on Fridays.");
    store("Parking permits", "Permits are printed at the gate. Bring your papers.");
    for kind in ["keyword", "semantic", "hybrid"] {
        let reply = library.ok("search", json!({ "query": "unlock frozen account", "type": kind }));
        assert_eq!(reply["results"][0]["title"], "How do I unlock a frozen account?", "{kind}: {reply}");
    }
    let quoted = library.ok("search", json!({ "query": "\"frozen account\"", "type": "keyword" }));
    assert_eq!(quoted["total"], 1, "{quoted}");
}

#[test]
fn passages_are_found_by_the_headings_above_them() {
    let filler = "Turn the handle slowly and wait for the click before going on. ".repeat(60);
    let text = format!("# Espresso machine\n\n## Descaling\n\n{filler}\n\nThe lamp goes out at the end.\n");
    let library = with(&[("guide.md", &text), ("other.md", "# Kettle\n\nThe lamp goes out at the end.\n")]);
    let reply =
        library.ok("search", json!({ "query": "descaling lamp goes out", "type": "keyword", "limit": 1 }));
    assert_eq!(paths(&reply), ["guide.md"]);
    let line = reply["results"][0]["line_start"].as_u64().unwrap();
    assert!(line > 1, "the passage at the end has both: {reply}");
}

#[test]
fn quotes_are_strict_while_they_find_something() {
    let library = with(&[
        ("one.txt", "The quick brown fox jumps.\n"),
        ("two.txt", "A brown dog and a quick cat; the fox sleeps.\n"),
    ]);
    let strict = library.ok("search", json!({ "query": "\"quick brown fox\"" }));
    assert_eq!((paths(&strict), note(&strict)), (vec!["one.txt".to_owned()], ""));
    let relaxed = library.ok("search", json!({ "query": "\"brown quick fox\"", "type": "keyword" }));
    assert_eq!(relaxed["total"], 2, "{relaxed}");
    assert!(note(&relaxed).contains("quoted phrase"), "{relaxed}");
    let inches = library.ok("search", json!({ "query": "a 5\" fox and a 3\" dog", "type": "keyword" }));
    assert_eq!(inches["total"], 2, "{inches}");
    assert!(!note(&inches).contains("quoted"), "{inches}");
}

#[test]
fn the_phrase_still_counts_when_it_is_only_a_wish() {
    let library = with(&[
        ("near.txt", "The committee met in a blue harbour town. It rained.\n"),
        ("far.txt", "Blue paint. A town by a lake. The harbour is far. It was a blue harbour day.\n"),
    ]);
    let query = json!({ "query": "\"blue harbour town\" \"nothing like this\"", "type": "keyword" });
    let reply = library.ok("search", query);
    assert_eq!(paths(&reply)[0], "near.txt", "{reply}");
}

#[test]
fn words_that_only_make_a_question_are_not_asked_for() {
    let library = with(&[
        ("what.txt", "What does it do and how does it work? Which one is it about?\n"),
        ("mutex.txt", "A mutex protects data.\n"),
    ]);
    let reply = library.ok("search", json!({ "query": "What does a mutex do?", "type": "keyword" }));
    assert_eq!(paths(&reply), ["mutex.txt"]);
    let only = library.ok("search", json!({ "query": "what does it do", "type": "keyword" }));
    assert_eq!(paths(&only), ["what.txt"]);
}

#[test]
fn names_and_numbers_are_never_corrected() {
    let library = with(&[
        ("a.txt", "The conference of 1969 was about DNMT1 and threads.\n"),
        ("b.txt", "The thread pool has a size.\n"),
    ]);
    for query in ["1979", "DMT1", "dmt1"] {
        let reply = library.ok("search", json!({ "query": query, "type": "keyword" }));
        assert_eq!((reply["total"].as_u64(), reply.get("corrections")), (Some(0), None), "{query}: {reply}");
    }
    // A word that the language has is no typing error, however near its letters are.
    let threat = library.ok("search", json!({ "query": "threat", "type": "keyword" }));
    assert_eq!(threat["total"], 0, "{threat}");
    let typing_error = library.ok("search", json!({ "query": "confernce", "type": "keyword" }));
    assert_eq!(paths(&typing_error), ["a.txt"]);
}

#[test]
fn nothing_found_is_an_answer() {
    let library = with(&[
        ("a.txt", "Tomatoes need sun and water. Plant them in May.\n"),
        ("b.txt", "The database keeps an index of every table.\n"),
        // Letters that mean nothing are near to each other.
        (
            "c.pem",
            "MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQG\nEwJJRTESMBAGA1UEChMJQmFsdGltb3Jl\n",
        ),
        ("d.txt", "qzxv zzxq wqzk xxzz vvqq\n"),
    ]);
    for kind in ["hybrid", "semantic"] {
        for query in ["zzzqqq", "qqqqqqqq", "qwxzvbn", "中文"] {
            let reply = library.ok("search", json!({ "query": query, "type": kind }));
            assert_eq!(
                (reply["total"].as_u64(), paths(&reply).len()),
                (Some(0), 0),
                "{kind} {query}: {reply}"
            );
            assert!(note(&reply).contains("grep"), "{reply}");
        }
        // What is corrected to words of the library says as much as they do.
        let typing_error = library.ok("search", json!({ "query": "databse indxe", "type": kind }));
        assert!(paths(&typing_error).contains(&"b.txt".to_owned()), "{typing_error}");
    }
    assert!(library.ok("search", json!({ "query": "growing vegetables" }))["total"].as_u64() > Some(0));
}

#[test]
fn a_minimum_score_leaves_out_the_weak() {
    let library = with(&[
        ("a.txt", "Green tea and black tea and white tea.\n"),
        ("b.txt", "Tea is mentioned here once among many other words about ships, ropes and sails at sea.\n"),
    ]);
    let all = library.ok("search", json!({ "query": "tea", "type": "keyword" }));
    let scores: Vec<f64> =
        all["results"].as_array().unwrap().iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
    assert!(scores.len() == 2 && scores[1] < scores[0], "{all}");
    let least = (scores[0] + scores[1]) / 2.0;
    let strong = library.ok("search", json!({ "query": "tea", "type": "keyword", "min_score": least }));
    assert_eq!((strong["total"].as_u64(), paths(&strong)), (Some(1), vec!["a.txt".to_owned()]));
    let error = error_of(library.call("search", json!({ "query": "tea", "min_score": 2 })));
    assert!(error.contains("min_score"), "{error}");
}
