//! Valid and damaged documents, built part by part.

use std::io::{Cursor, Write};

use proptest::prelude::*;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;
use crate::archive::{COMPOUND_FILE, MOST_BYTES};

fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn document(body: &str) -> Vec<u8> {
    archive(&[("word/document.xml", &format!("<w:document><w:body>{body}</w:body></w:document>"))])
}

fn check(body: &str, expect: &str) {
    assert_eq!(text(&document(body)).unwrap().text, expect, "{body}");
}

fn paragraph(properties: &str, text: &str) -> String {
    format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t xml:space='preserve'>{text}</w:t></w:r></w:p>")
}

#[test]
fn paragraphs_headings_and_lists() {
    let item = |depth, text| {
        paragraph(&format!("<w:numPr><w:ilvl w:val='{depth}'/><w:numId w:val='1'/></w:numPr>"), text)
    };
    let body = [
        paragraph("<w:pStyle w:val='Title'/>", "The title"),
        paragraph("<w:tabs><w:tab w:val='left'/></w:tabs>", "One &amp; two &#8364;"),
        paragraph("<w:pStyle w:val='Heading2'/>", "Part"),
        item(0, "a"),
        item(1, "b"),
        paragraph("", " "),
        "<w:p><w:r><w:t>x</w:t><w:tab/><w:t>y</w:t><w:br/><w:delText>gone</w:delText><w:t>z</w:t></w:r></w:p>".into(),
    ];
    check(&body.concat(), "# The title\n\nOne & two €\n\n## Part\n\n- a\n  - b\n\nx\ty\nz\n");
}

#[test]
fn words_are_no_headings() {
    let body = [
        paragraph("", "# install deps"),
        paragraph("<w:numPr><w:ilvl w:val='0'/></w:numPr>", "```"),
        paragraph("", "&lt;!-- note"),
        paragraph("<w:pStyle w:val='Heading1'/>", "Usage"),
        "<w:p><w:r><w:t>a</w:t><w:br/><w:t>---</w:t></w:r></w:p>".into(),
    ];
    check(&body.concat(), "\\# install deps\n\n- \\```\n\n\\<!-- note\n\n# Usage\n\na\n\\---\n");
}

#[test]
fn tables_boxes_and_fallbacks() {
    let cell = |text: &str| format!("<w:tc>{}</w:tc>", paragraph("", text));
    let inner = format!("<w:tc><w:tbl><w:tr>{}{}</w:tr></w:tbl><w:p/></w:tc>", cell("c"), cell("d"));
    let table =
        format!("<w:tbl><w:tr>{}{}</w:tr><w:tr>{}{inner}</w:tr></w:tbl>", cell("a"), cell("b"), cell("e"));
    check(&format!("{table}{}", paragraph("", "after")), "| a | b |\n| e | c d |\n\nafter\n");
    let boxed = format!(
        "<w:p><w:r><w:t>out</w:t></w:r><mc:AlternateContent><mc:Choice>{0}</mc:Choice><mc:Fallback>{0}</mc:Fallback>\
         </mc:AlternateContent><w:r><w:t>side</w:t></w:r></w:p>",
        paragraph("", "in")
    );
    check(&boxed, "in\n\noutside\n");
}

#[test]
fn styles_notes_and_other_names() {
    let bytes = archive(&[
        (
            "word/styles.xml",
            "<w:styles><w:style w:styleId='T1'><w:name w:val='heading 1'/></w:style></w:styles>",
        ),
        ("word/document2.xml", &paragraph("<w:pStyle w:val='T1'/>", "Titre")),
        ("word/footnotes.xml", &paragraph("", "A note")),
    ]);
    let text = text(&bytes).unwrap();
    assert_eq!(text.text, "# Titre\n\nA note\n");
    assert!(!text.as_stored && text.markup == Markup::Markdown);
}

#[test]
fn unreadable_documents() {
    assert_eq!(text(&[COMPOUND_FILE, &[0; 600]].concat()), Err(Unreadable::Encrypted));
    assert!(matches!(text(&archive(&[("other.xml", "")])), Err(Unreadable::Damaged { .. })));
    let bomb = archive(&[("word/document.xml", &" ".repeat(MOST_BYTES as usize + 1))]);
    assert!(bomb.len() < 1 << 20);
    assert!(matches!(text(&bomb), Err(Unreadable::TooLarge { .. })));
    let torn = archive(&[("word/document.xml", &format!("{}<w:p><w:r><w:t>rest", paragraph("", "whole")))]);
    assert_eq!(text(&torn).unwrap().text, "whole\n\nrest\n");
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let deep =
        |open: &str, close: &str| format!("{}<w:t>x</w:t>{}", open.repeat(100_000), close.repeat(100_000));
    for (open, close) in [("<w:p>", "</w:p>"), ("<w:tbl><w:tr><w:tc><w:p>", "</w:p></w:tc></w:tr></w:tbl>")] {
        assert!(text(&document(&deep(open, close))).unwrap().text.contains('x'));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damage_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = document(&paragraph("<w:pStyle w:val='Heading1'/>", "Some text").repeat(20));
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        text(&bytes).ok();
    }

    #[test]
    fn arbitrary_markup_never_panics(body in "(<w:p>|</w:p>|<w:t>|</w:t>|<w:tbl>|</w:tbl>|<w:tc>|</w:tc>|<w:tr/>|<w:pPr>|<w:br/>|&amp;|&#0;|&x|<|>|é| ){0,40}") {
        text(&document(&body)).ok();
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        text(&bytes).ok();
    }
}
