//! The six document tools and the five collection tools.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use shelf_base::CallContext;
use shelf_engine::{
    Caller, SearchKind, SearchRequest,
    maintain::{CheckReport, Retention},
};
use shelf_testkit::{TestLibrary, error_of};

fn store(library: &TestLibrary, title: &str, content: &str) -> String {
    let stored = library.ok("store_document_tool", json!({ "title": title, "content": content }));
    stored["document_id"].as_str().unwrap().to_owned()
}

fn found(library: &TestLibrary, query: &str) -> Vec<Value> {
    let reply = library.ok("search_documents_tool", json!({ "query": query, "max_results": 20 }));
    reply["results"].as_array().unwrap().clone()
}

#[test]
fn a_document_is_stored_found_and_given_back_as_it_came() {
    let library = TestLibrary::new();
    let content = "# Overview\n\nThe heron waits by the river.\r\n\n\tIndented, and ümlauts.";
    let stored = library.ok(
        "store_document_tool",
        json!({ "title": "Birds", "content": content, "doc_metadata": { "year": 2024, "deep": { "x": [1] } } }),
    );
    assert_eq!(stored["message"], "Document stored successfully with 1 chunks");
    assert_eq!(stored["chunk_count"], 1);
    assert!(stored["token_count"].as_u64().unwrap() > 5);
    let id = &stored["document_id"];
    let got = library.ok("get_document_tool", json!({ "document_id": id }));
    assert_eq!((&got["id"], &got["title"], &got["content"]), (id, &json!("Birds"), &json!(content)));
    assert_eq!(got["document_type"], "markdown");
    assert_eq!(got["metadata"], json!({ "year": 2024, "deep": { "x": [1] } }));
    assert!(got["created_at"].as_str().unwrap().ends_with('Z'));
    assert!(got.get("encoding").is_none());
    let hit = &found(&library, "heron")[0];
    assert_eq!((&hit["document_id"], &hit["title"], &hit["chunk_index"]), (id, &json!("Birds"), &json!(0)));
    assert_eq!(hit["collection"], "default");
    assert!(hit["score"].as_f64().is_some_and(|score| (0.0..=1.0).contains(&score)));
    let listed = library.ok("list_documents_tool", json!({}));
    assert_eq!(listed[0]["id"], *id);
    assert_eq!(
        library.ok("delete_document_tool", json!({ "document_id": id })),
        json!({ "message": "Document deleted successfully" })
    );
    assert!(found(&library, "heron").is_empty());
    for tool in ["get_document_tool", "delete_document_tool", "update_document_tool"] {
        assert_eq!(
            error_of(library.call(tool, json!({ "document_id": id }))),
            "Document not found",
            "{tool}"
        );
        assert_eq!(
            error_of(library.call(tool, json!({ "document_id": "x" }))),
            "Document not found",
            "{tool}"
        );
    }
}

#[test]
fn the_same_title_and_content_are_the_same_document() {
    let library = TestLibrary::new();
    let first = store(&library, "Note", "same text");
    assert_eq!(store(&library, "Note", "same text"), first);
    assert_ne!(store(&library, "Other", "same text"), first);
    assert_ne!(store(&library, "Note", "other text"), first);
    let collection = library.ok("create_collection_tool", json!({ "name": "work" }))["id"].clone();
    let arguments = json!({ "title": "Note", "content": "same text", "collection_id": collection });
    let elsewhere = library.ok("store_document_tool", arguments);
    assert_ne!(elsewhere["document_id"], json!(first));
    let again = json!({ "title": "Note", "content": "same text", "doc_metadata": { "seen": true } });
    assert_eq!(library.ok("store_document_tool", again)["document_id"], json!(first));
    let got = library.ok("get_document_tool", json!({ "document_id": first }));
    assert_eq!(got["metadata"], json!({}), "it is returned unchanged");
    library.ok("delete_document_tool", json!({ "document_id": first }));
    assert_ne!(store(&library, "Note", "same text"), first, "a deleted document is not reused");
}

#[test]
fn an_update_changes_what_is_given_and_search_follows_at_once() {
    let library = TestLibrary::new();
    let arguments =
        json!({ "title": "Walrus", "content": "tusks and ice", "doc_metadata": { "a": 1, "b": 2 } });
    let id = library.ok("store_document_tool", arguments)["document_id"].clone();
    let update = |mut fields: Value| {
        fields["document_id"] = id.clone();
        library.ok("update_document_tool", fields)
    };
    assert_eq!(found(&library, "walrus").len(), 1);
    assert_eq!(update(json!({ "title": "Penguin" }))["message"], "Document updated successfully");
    let got = library.ok("get_document_tool", json!({ "document_id": id }));
    assert_eq!((&got["title"], &got["content"]), (&json!("Penguin"), &json!("tusks and ice")));
    assert_eq!(found(&library, "penguin").len(), 1);
    let by_words = |query: &str| library.ok("search", json!({ "query": query, "type": "keyword" }));
    assert_eq!(by_words("walrus")["total"], 0, "the old title is gone: {}", by_words("walrus"));
    update(json!({ "content": "feathers and fish", "doc_metadata": { "c": 3 } }));
    let got = library.ok("get_document_tool", json!({ "document_id": id }));
    assert_eq!((&got["content"], &got["metadata"]), (&json!("feathers and fish"), &json!({ "c": 3 })));
    assert_eq!(got["title"], "Penguin");
    assert_eq!(by_words("tusks")["total"], 0);
    assert_eq!(found(&library, "feathers").len(), 1);
    update(json!({ "content": "<p>snow <b>fox</b></p>", "document_type": "html" }));
    assert_eq!(found(&library, "fox")[0]["content"], "snow fox", "read as HTML");
    update(json!({ "document_type": "text" }));
    assert_eq!(found(&library, "fox")[0]["content"], "<p>snow <b>fox</b></p>", "and now as text");
    assert_eq!(update(json!({}))["message"], "Document updated successfully");
}

#[test]
fn files_come_as_base64_and_go_back_so() {
    let library = TestLibrary::new();
    let pdf = minimal_pdf("Quarterly turtle report");
    let content = STANDARD.encode(&pdf);
    let arguments = json!({ "title": "Report", "content": content, "document_type": "pdf" });
    let stored = library.ok("store_document_tool", arguments);
    let got = library.ok("get_document_tool", json!({ "document_id": stored["document_id"] }));
    assert_eq!((&got["content"], &got["encoding"]), (&json!(content), &json!("base64")));
    assert_eq!(got["document_type"], "pdf");
    assert!(found(&library, "turtle")[0]["content"].as_str().unwrap().contains("turtle report"));
    let text = json!({ "title": "Extract", "content": "plain words of a PDF", "document_type": "pdf" });
    let stored = library.ok("store_document_tool", text);
    let got = library.ok("get_document_tool", json!({ "document_id": stored["document_id"] }));
    assert_eq!((&got["content"], &got["document_type"]), (&json!("plain words of a PDF"), &json!("pdf")));
    assert!(got.get("encoding").is_none());
}

#[test]
fn base64_comes_back_as_it_was_spelt() {
    let library = TestLibrary::new();
    let plain = STANDARD.encode(minimal_pdf("The spelling of storks"));
    let lines = |width: usize, line_end: &str| {
        let lines: Vec<&[u8]> = plain.as_bytes().chunks(width).collect();
        String::from_utf8(lines.join(line_end.as_bytes())).unwrap()
    };
    let spelt = [
        format!("{plain}\n"),
        lines(64, "\n"),
        format!("{}\r\n", lines(76, "\r\n")),
        plain.trim_end_matches('=').to_owned(),
        format!("data:application/pdf;base64,{plain}"),
    ];
    for (number, content) in spelt.iter().enumerate() {
        let stored = library.ok(
            "store_document_tool",
            json!({ "title": format!("Storks {number}"), "content": content, "document_type": "pdf" }),
        );
        let id = &stored["document_id"];
        assert!(stored.get("note").is_none() && stored["chunk_count"] == 1, "{stored}");
        let got = library.ok("get_document_tool", json!({ "document_id": id }));
        assert_eq!((&got["content"], &got["encoding"]), (&json!(content), &json!("base64")));
        assert_eq!(got["document_type"], "pdf");
        let described = library.ok("describe_document", json!({ "document_id": id }));
        assert_eq!(described["document_type"], "pdf");
        // The bytes are those of the file, however they came.
        assert_eq!(got["hash"], library.ok("get_document_tool", json!({ "document_id": id }))["hash"]);
        library
            .ok("update_document_tool", json!({ "document_id": id, "document_type": "pdf", "title": "New" }));
        assert_eq!(library.ok("get_document_tool", json!({ "document_id": id }))["content"], json!(content));
        library.ok("update_document_tool", json!({ "document_id": id, "content": plain }));
        assert_eq!(library.ok("get_document_tool", json!({ "document_id": id }))["content"], json!(plain));
    }
    assert_eq!(found(&library, "storks").len(), spelt.len());
    let uneven = format!("{}\n{}\n {}", &plain[..10], &plain[10..15], &plain[15..]);
    let arguments = json!({ "title": "Uneven", "content": uneven, "document_type": "pdf" });
    let refused = error_of(library.call("store_document_tool", arguments));
    assert!(refused.contains("lines of the same length"), "{refused}");
}

#[test]
fn a_note_says_what_became_of_content_and_metadata() {
    let library = TestLibrary::new();
    let note = |arguments: Value| {
        let stored = library.ok("store_document_tool", arguments);
        stored["note"].as_str().unwrap_or_default().to_owned()
    };
    let text = json!({ "title": "A", "content": "plain words", "document_type": "docx" });
    assert!(note(text).contains("not a DOCX file in base64 and is kept as text"));
    let picture = [&b"\x89PNG\r\n\x1a\n"[..], &[200; 100]].concat();
    let content = STANDARD.encode(&picture);
    let other = note(json!({ "title": "B", "content": content, "document_type": "pdf" }));
    assert!(other.contains("not a PDF file but one of type image/png"), "{other}");
    assert!(other.contains("search_documents_tool does not find it"), "{other}");
    let listed = library.ok("list_documents_tool", json!({ "limit": 1 }));
    let got = library.ok("get_document_tool", json!({ "document_id": listed[0]["id"] }));
    assert_eq!((&got["content"], &got["encoding"]), (&json!(content), &json!("base64")));
    assert!(found(&library, &content[..40]).is_empty(), "base64 is not indexed as words");
    let first = json!({ "title": "C", "content": "words", "doc_metadata": { "a": 1 } });
    assert_eq!(note(first), "");
    let again = note(json!({ "title": "C", "content": "words", "doc_metadata": { "a": 2 } }));
    assert!(again.contains("exists already") && again.contains("update_document_tool"), "{again}");
    let id = library.ok("list_documents_tool", json!({ "limit": 1 }))[0]["id"].clone();
    let changed = library.ok("update_document_tool", json!({ "document_id": id, "document_type": "pdf" }));
    assert!(changed.get("note").is_none(), "nothing was sent: {changed}");
    let changed = library.ok("update_document_tool", json!({ "document_id": id, "content": "other words" }));
    assert!(changed["note"].as_str().unwrap().contains("not a PDF file"), "{changed}");
}

#[test]
fn large_fractions_are_metadata_like_any_other() {
    let library = TestLibrary::new();
    let metadata = json!({ "avogadro": 6.02214076e23, "big": 1e30, "huge": 1.5e300, "negative": -2.5e19, "exact": 2.7715077941825975e-163, "n": u64::MAX });
    let arguments = json!({ "title": "Constants", "content": "text", "doc_metadata": metadata });
    let id = library.ok("store_document_tool", arguments)["document_id"].clone();
    assert_eq!(library.ok("get_document_tool", json!({ "document_id": id }))["metadata"], metadata);
    let added = library.ok("add", json!({ "name": "n.txt", "content": "n", "metadata": { "x": 1e30 } }));
    let described = library.ok("describe_document", json!({ "document_id": added["document_id"] }));
    assert_eq!(described["document"]["metadata"], json!({ "x": 1e30 }));
}

#[test]
fn a_deleted_document_comes_back_as_it_was() {
    let library = TestLibrary::new();
    let arguments = json!({
        "title": "Field notes", "content": "<p>first heron</p>", "document_type": "html",
        "doc_metadata": { "year": 2024, "deep": { "x": [1] } },
    });
    let id = library.ok("store_document_tool", arguments)["document_id"].clone();
    library.ok("update_document_tool", json!({ "document_id": id, "content": "<p>second heron</p>" }));
    let get = || library.ok("get_document_tool", json!({ "document_id": id }));
    let describe = || library.ok("describe_document", json!({ "document_id": id }));
    let before = (get(), describe());
    for _ in 0..2 {
        library.ok("delete_document_tool", json!({ "document_id": id }));
        assert!(found(&library, "heron").is_empty());
        let back = library.ok("undelete_document", json!({ "document_id": id }));
        assert_eq!((&back["document_id"], back.get("note")), (&id, None));
        assert_eq!((get(), describe()), before);
        assert_eq!(found(&library, "heron")[0]["content"], "second heron");
    }
    let there = error_of(library.call("undelete_document", json!({ "document_id": id })));
    assert!(there.contains("not deleted"), "{there}");
    library.ok("delete_document_tool", json!({ "document_id": id }));
    let given = json!({ "document_id": id, "tags": ["bird"], "metadata": { "year": 2025 } });
    library.ok("undelete_document", given);
    let described = describe();
    assert_eq!(described["document"]["tags"], json!(["bird"]));
    assert_eq!(get()["metadata"], json!({ "year": 2025 }));
    assert_eq!(library.library.check(&CallContext::new()).unwrap().findings.len(), 0);
}

#[test]
fn what_garbage_collection_has_forgotten_is_said() {
    let library = TestLibrary::new();
    let id = store(&library, "Field notes", "a heron by the river");
    library.ok("delete_document_tool", json!({ "document_id": id }));
    library.library.gc(&Retention::default(), Duration::ZERO, &CallContext::new()).unwrap();
    let gone = error_of(library.call("undelete_document", json!({ "document_id": id })));
    assert!(gone.contains("garbage collection has freed its content"), "{gone}");
    // The content is back by other means, but nobody knows any more what the document was called.
    store(&library, "Other notes", "a heron by the river");
    let back = library.ok("undelete_document", json!({ "document_id": id }));
    assert_ne!(back["document_id"], json!(id));
    assert!(back["note"].as_str().unwrap().contains("has forgotten the document"), "{back}");
}

/// A PDF of one page with one line.
fn minimal_pdf(text: &str) -> Vec<u8> {
    let stream = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R \
         /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut pdf = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(pdf.len());
        pdf.extend(format!("{} 0 obj\n{object}\nendobj\n", number + 1).bytes());
    }
    let table = pdf.len();
    pdf.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for place in places {
        pdf.extend(format!("{place:010} 00000 n \n").bytes());
    }
    pdf.extend(
        format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1)
            .bytes(),
    );
    pdf
}

/// What a search for the word shows, in a process of its own.
fn preview(library: &TestLibrary, word: &str, reindex: bool) -> String {
    let (fresh, call) = (library.reopen(), CallContext::new());
    if reindex {
        fresh.reindex(&call).unwrap();
    }
    let request = SearchRequest { kind: SearchKind::Keyword, ..SearchRequest::new(word) };
    let found = fresh.search(&Caller::owner(), &request, &call).unwrap();
    let lines = found.hits.iter().flat_map(|hit| hit.snippet.lines.iter().map(|line| line.text.as_str()));
    lines.collect()
}

#[test]
fn a_file_is_read_once_and_its_text_can_be_made_again() {
    let library = TestLibrary::new();
    let pdf = minimal_pdf("The dunlin winters here.");
    let content = STANDARD.encode(&pdf);
    let file = json!({ "title": "Waders", "content": content, "document_type": "pdf" });
    let stored = library.ok("store_document_tool", file);
    let log = library.path("library/index/derived.log");
    assert!(log.is_file(), "counting its passages has read it");
    library.library.fold_now().unwrap();
    let (packs, away) = (library.path("library/packs"), library.path("away"));
    // Packs in a bucket cannot be put away so easily.
    let move_packs = |from, to| if library.is_shared() { Ok(()) } else { std::fs::rename(from, to) };
    move_packs(&packs, &away).unwrap();
    assert!(preview(&library, "dunlin", true).contains("The dunlin winters here."), "without the file");
    move_packs(&away, &packs).unwrap();
    std::fs::remove_file(&log).unwrap();
    assert!(preview(&library, "dunlin", false).contains("The dunlin winters here."), "read again");
    let mut bytes = std::fs::read(&log).unwrap();
    let end = bytes.len() - 1;
    bytes[end] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    let (fresh, call) = (library.reopen(), CallContext::new());
    let places = |report: CheckReport| report.findings.into_iter().map(|f| f.place).collect::<Vec<_>>();
    assert_eq!(places(fresh.check(&call).unwrap()), ["derived data"]);
    assert!(places(fresh.repair(&call).unwrap()).is_empty());
    assert!(preview(&library, "dunlin", false).contains("dunlin"));
    let before = std::fs::metadata(&log).unwrap().len();
    library.ok("delete_document_tool", json!({ "document_id": stored["document_id"] }));
    fresh.gc(&Retention::default(), Duration::from_secs(5), &call).unwrap();
    assert!(std::fs::metadata(&log).unwrap().len() < before, "nothing needs the text any more");
}

#[test]
fn the_budget_holds_and_the_total_does_not_depend_on_it() {
    let library = TestLibrary::new();
    for number in 0..12 {
        let body = format!("The otter number {number} swims. ").repeat(60);
        store(&library, &format!("Otter {number}"), &format!("# Otters {number}\n\n{body}"));
    }
    let ask = |results: u64, tokens: u64| {
        let arguments = json!({ "query": "otter swims", "max_results": results, "max_tokens": tokens });
        library.ok("search_documents_tool", arguments)
    };
    let total = ask(5, 2_000)["total_results"].clone();
    assert!(total.as_u64().unwrap() >= 12, "{total}");
    for (results, tokens) in [(1, 10_000), (100, 50), (3, 500), (100, 100_000), (5, 1), (5, 30)] {
        let reply = ask(results, tokens);
        assert_eq!(reply["total_results"], total);
        assert!(reply["tokens_used"].as_u64().unwrap() <= tokens, "{tokens}: {}", reply["tokens_used"]);
        let list = reply["results"].as_array().unwrap();
        assert!(list.len() as u64 <= results);
        let context = reply["formatted_context"].as_str().unwrap();
        for passage in list {
            let (title, content) = (passage["title"].as_str().unwrap(), passage["content"].as_str().unwrap());
            assert!(context.contains(content));
            // If there is no room for the heading, only the text is returned. How many tokens an id takes is chance.
            if tokens >= 100 {
                assert!(context.contains(&format!("## {title}\n")), "{context}");
                assert!(context.contains(passage["address"].as_str().unwrap()));
            }
        }
        assert!(tokens < 100 || context.matches("score ").count() == list.len());
    }
    for tokens in [60, 40, 12, 3] {
        let cut = ask(5, tokens);
        assert_eq!(cut["results"][0]["truncated"], true, "{tokens}: {cut}");
        assert_eq!(cut["results"].as_array().unwrap().len(), 1, "{tokens}: {cut}");
    }
}

#[test]
fn lists_are_newest_first_and_page_without_gaps() {
    let library = TestLibrary::new();
    let ids: Vec<String> = (0..7).map(|n| store(&library, &format!("T{n}"), &format!("text {n}"))).collect();
    let mut seen = Vec::new();
    for offset in [0, 3, 6] {
        let page = library.ok("list_documents_tool", json!({ "limit": 3, "offset": offset }));
        seen.extend(page.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(seen, ids.into_iter().rev().collect::<Vec<_>>());
    let page = library.ok("list_documents_tool", json!({ "limit": 1 }));
    let fields: Vec<&String> = page[0].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id", "title", "collection_id", "document_type", "created_at"]);
    assert_eq!(library.ok("list_documents_tool", json!({ "offset": 100 })), json!([]));
    assert!(error_of(library.call("list_documents_tool", json!({ "limit": 0 }))).contains("at least 1"));
}

#[test]
fn wrong_arguments_are_refused_in_bare_sentences() {
    let library = TestLibrary::new();
    let says = |tool: &str, arguments: Value| error_of(library.call(tool, arguments));
    assert_eq!(says("store_document_tool", json!({ "content": "x" })), "missing argument 'title'");
    assert_eq!(
        says("store_document_tool", json!({ "title": "t", "content": "" })),
        "content must not be empty"
    );
    assert_eq!(
        says("store_document_tool", json!({ "title": "t", "content": " \n" })),
        "content must not be blank"
    );
    let long = says("store_document_tool", json!({ "title": "t".repeat(501), "content": "x" }));
    assert_eq!(long, "title must be 1 to 500 characters without control characters");
    let kind = says("store_document_tool", json!({ "title": "t", "content": "x", "document_type": "doc" }));
    assert_eq!(kind, "document_type must be one of markdown, pdf, docx, html, text, json, not 'doc'");
    assert_eq!(says("search_documents_tool", json!({ "query": " " })), "query must not be empty");
    let nowhere = json!({ "title": "t", "content": "x", "collection_id": "nowhere" });
    assert_eq!(says("store_document_tool", nowhere), "Collection not found");
    for tool in ["list_documents_tool", "list_users_tool", "list"] {
        let refused = says(tool, json!({ "cursor": "x", "offset": 1 }));
        assert!(refused.contains("give cursor or offset, not both"), "{tool}: {refused}");
    }
}

#[test]
fn collections_are_made_renamed_and_deleted() {
    let library = TestLibrary::new();
    let made = library.ok("create_collection_tool", json!({ "name": "work" }));
    let fields: Vec<&String> = made.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id", "name", "user_id", "created_at"]);
    let id = made["id"].as_str().unwrap();
    let taken = error_of(library.call("create_collection_tool", json!({ "name": "work" })));
    assert_eq!(taken, "You already have a collection named 'work'");
    for name in ["", " ", &"x".repeat(101)] {
        assert!(
            error_of(library.call("create_collection_tool", json!({ "name": name })))
                .starts_with("name must")
        );
    }
    let stored = json!({ "title": "In work", "content": "walrus", "collection_id": id });
    library.ok("store_document_tool", stored);
    let (key, _) = library.collection_token(&Caller::owner(), id, "read_write");
    let got = library.ok("get_collection_tool", json!({ "collection_id": id }));
    assert_eq!(
        (&got["document_count"], &got["cat_count"], &got["name"]),
        (&json!(1), &json!(1), &json!("work"))
    );
    let renamed = library.ok("rename_collection_tool", json!({ "collection_id": id, "name": "personal" }));
    assert_eq!((&renamed["id"], &renamed["name"]), (&json!(id), &json!("personal")));
    assert_eq!(found(&library, "walrus")[0]["collection"], "personal");
    let active = error_of(library.call("delete_collection_tool", json!({ "collection_id": id })));
    assert_eq!(active, "Cannot delete collection with active CATs");
    library.ok("revoke_cat_tool", json!({ "key_id": key }));
    let done = library.ok("delete_collection_tool", json!({ "collection_id": id }));
    assert_eq!(done, json!({ "message": "Collection deleted successfully" }));
    assert!(found(&library, "walrus").is_empty(), "its documents were deleted with it");
    let gone = error_of(library.call("get_collection_tool", json!({ "collection_id": id })));
    assert_eq!(gone, "Collection not found");
    assert_eq!(library.ok("list_cats_tool", json!({})), json!([]), "and its tokens");
    let again = library.ok("create_collection_tool", json!({ "name": "personal" }));
    assert_ne!(again["id"], json!(id), "its name is free again");
}
