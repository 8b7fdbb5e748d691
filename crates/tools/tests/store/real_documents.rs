//! Real documents by different programs, kept in `tests/fixtures`: each is mapped, and its parts are cut out whole.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use shelf_testkit::{TestLibrary, error_of};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn added(name: &str) -> TestLibrary {
    let library = TestLibrary::new();
    library.ok("add", json!({ "path": fixture(name), "resource_id": "r" }));
    library
}

/// Each node as `id pages-or-lines`.
fn nodes(library: &TestLibrary) -> Vec<String> {
    let structure = library.ok("getStructure", json!({ "resource_id": "r" }));
    let mut found = Vec::new();
    let mut waiting: Vec<Value> = structure["nodes"].as_array().unwrap().iter().rev().cloned().collect();
    while let Some(node) = waiting.pop() {
        let location = &node["location"];
        let place = if location["pages"].is_null() { &location["lines"] } else { &location["pages"] };
        found.push(format!("{} {place}", node["id"].as_str().unwrap()));
        waiting.extend(node["children"].as_array().unwrap().iter().rev().cloned());
    }
    found
}

fn content(library: &TestLibrary, arguments: Value) -> String {
    let mut arguments = arguments;
    arguments["include_content"] = json!(true);
    library.ok("resolve", arguments)["content"].as_str().unwrap().to_owned()
}

#[test]
fn a_pdf_by_latex_has_its_bookmarks() {
    let library = added("latex.pdf");
    assert_eq!(
        nodes(&library),
        ["first_steps [1]", "first_steps.a_detail [1]", "second_part [2]", "closing_words [3]",]
    );
    let text = content(&library, json!({ "resource_id": "r", "node_id": "second_part" }));
    assert!(text.contains("The answer is forty-two.") && !text.contains("Thank you"), "{text}");
    let whole = content(&library, json!({ "address": "doc://r" }));
    assert!(whole.contains("office, affine, flow"), "ligatures are read as letters: {whole}");
}

#[test]
fn a_pdf_by_cairo_has_its_headings() {
    let library = added("cairo.pdf");
    let found = nodes(&library);
    assert!(found.iter().any(|node| node.ends_with("second_part [2]")), "{found:?}");
}

#[test]
fn a_pdf_by_libreoffice_has_its_headings() {
    let library = added("libreoffice.pdf");
    let found = nodes(&library);
    assert!(found.iter().any(|node| node == "first_steps [1]"), "{found:?}");
    assert!(found.iter().any(|node| node.ends_with("a_detail [1]")), "{found:?}");
    assert!(found.iter().any(|node| node == "second_part [2]"), "{found:?}");
}

#[test]
fn a_pdf_by_chromium_has_its_headings() {
    let library = added("chromium.pdf");
    let found = nodes(&library);
    assert!(found.iter().any(|node| node == "first_steps [1]"), "{found:?}");
    assert!(found.iter().any(|node| node == "second_part [2]"), "{found:?}");
}

#[test]
fn a_scanned_pdf_has_its_pages() {
    let library = added("scanned.pdf");
    assert_eq!(nodes(&library), ["page_1 [1]"]);
    let resolved = library.ok("resolve", json!({ "resource_id": "r", "node_id": "page_1" }));
    let cut = fs::read(resolved["output_path"].as_str().unwrap()).unwrap();
    let whole = fs::read(fixture("scanned.pdf")).unwrap();
    assert!(cut.len() > whole.len() / 2, "the picture is in it");
}

#[test]
fn an_encrypted_pdf_says_so() {
    let library = added("encrypted.pdf");
    let error = error_of(library.call("getStructure", json!({ "resource_id": "r" })));
    assert!(error.contains("the document is encrypted"), "{error}");
}

#[test]
fn office_files_have_headings_slides_and_sheets() {
    assert_eq!(
        nodes(&added("libreoffice.docx")),
        ["first_steps [1,7]", "first_steps.a_detail [5,7]", "second_part [9,11]"]
    );
    assert_eq!(nodes(&added("libreoffice.pptx")), ["slide_1 [1,5]", "slide_2 [7,9]"]);
    let library = added("libreoffice.xlsx");
    assert_eq!(nodes(&library).len(), 1);
    assert!(content(&library, json!({ "address": "text://r" })).contains("| pears | 5 |"));
}

#[test]
fn a_book_by_libreoffice_has_its_chapters() {
    let library = added("libreoffice.epub");
    assert_eq!(nodes(&library), ["first_steps [1,7]", "second_part [9,11]"]);
    let chapter = content(&library, json!({ "resource_id": "r", "node_id": "second_part" }));
    assert_eq!(chapter, "# Second part\n\nThe answer is forty-two.\n");
    let hit = library.ok("search", json!({ "query": "forty-two", "type": "keyword" }));
    let address = hit["results"][0]["address"].as_str().unwrap();
    assert!(content(&library, json!({ "address": address })).contains("forty-two"), "{address}");
}
