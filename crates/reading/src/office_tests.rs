//! Presentations, workbooks and books, built part by part; whole, odd and damaged.

use std::io::{Cursor, Write};

use proptest::prelude::*;
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::{Text, Unreadable, book, map, sheets, slides};

fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn relationships(targets: &[&str]) -> String {
    let each = targets.iter().enumerate();
    let each: String =
        each.map(|(at, target)| format!("<Relationship Id='rId{at}' Target='{target}'/>")).collect();
    format!("<Relationships>{each}</Relationships>")
}

fn shape(kind: &str, text: &str) -> String {
    format!(
        "<p:sp><p:nvPr><p:ph type='{kind}'/></p:nvPr><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )
}

fn presentation() -> Vec<u8> {
    archive(&[
        (
            "ppt/presentation.xml",
            "<p:presentation><p:sldIdLst><p:sldId id='256' r:id='rId1'/><p:sldId id='257' r:id='rId0'/></p:sldIdLst></p:presentation>",
        ),
        ("ppt/_rels/presentation.xml.rels", &relationships(&["slides/slide1.xml", "slides/slide2.xml"])),
        ("ppt/slides/slide1.xml", &format!("<p:sld>{}</p:sld>", shape("body", "# Only text"))),
        (
            "ppt/slides/slide2.xml",
            &format!("<p:sld>{}{}</p:sld>", shape("ctrTitle", "First &amp; last"), shape("body", "Point")),
        ),
    ])
}

fn workbook() -> Vec<u8> {
    archive(&[
        ("xl/workbook.xml", "<workbook><sheets><sheet name='Year  2026' r:id='rId0'/></sheets></workbook>"),
        ("xl/_rels/workbook.xml.rels", &relationships(&["/xl/worksheets/sheet1.xml"])),
        ("xl/sharedStrings.xml", "<sst><si><t>Name</t></si><si><r><t>To</t></r><r><t>tal</t></r></si></sst>"),
        (
            "xl/worksheets/sheet1.xml",
            "<worksheet><sheetData><row><c t='s'><v>0</v></c><c t='s'><v>1</v></c><c/></row>\
             <row><c t='inlineStr'><is><t>x</t></is></c><c><v>4.5</v></c></row><row/></sheetData></worksheet>",
        ),
    ])
}

fn novel() -> Vec<u8> {
    archive(&[
        (
            "META-INF/container.xml",
            "<container><rootfiles><rootfile full-path='OPS/book.opf'/></rootfiles></container>",
        ),
        (
            "OPS/book.opf",
            "<package><manifest><item id='a' href='one%20.xhtml' media-type='application/xhtml+xml'/>\
             <item id='b' href='../two.xhtml#x' media-type='application/xhtml+xml'/>\
             <item id='c' href='x.png' media-type='image/png'/></manifest>\
             <spine><itemref idref='b'/><itemref idref='a'/><itemref idref='c'/></spine></package>",
        ),
        (
            "OPS/one .xhtml",
            "<html><head><title>Book</title></head><body><h1>One</h1><p>It began.</p></body></html>",
        ),
        ("two.xhtml", "<html><head><title>Foreword</title></head><body><p>Before.</p></body></html>"),
    ])
}

fn nodes(text: &Text<'_>) -> Vec<String> {
    map::text_map("a", "", text).nodes.into_iter().map(|node| node.id).collect()
}

#[test]
fn slides_sheets_and_chapters_are_sections() {
    let text = slides::text(&presentation()).unwrap();
    assert_eq!(text.text, "# First & last\n\nPoint\n\n# Slide 2\n\n\\# Only text\n");
    assert_eq!(nodes(&text), ["first_last", "slide_2"]);
    let text = sheets::text(&workbook()).unwrap();
    assert_eq!(text.text, "# Year 2026\n\n| Name | Total |\n| x | 4.5 |\n");
    assert_eq!(nodes(&text), ["year_2026"]);
    let text = book::text(&novel()).unwrap();
    assert_eq!(text.text, "# Foreword\n\nBefore.\n\n# One\n\nIt began.\n");
    assert_eq!(nodes(&text), ["foreword", "one"]);
}

#[test]
fn what_is_missing_or_encrypted_is_said() {
    let empty = archive(&[("x", "")]);
    for read in [slides::text, sheets::text, book::text] {
        assert!(matches!(read(&empty), Err(Unreadable::Damaged { .. })));
        assert!(matches!(read(b"PK\x03\x04"), Err(Unreadable::Damaged { .. })));
        let locked = [&[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1][..], &[0; 600]].concat();
        assert_eq!(read(&locked), Err(Unreadable::Encrypted));
    }
}

#[test]
fn a_shared_string_that_is_used_everywhere_is_bounded() {
    let long = "x".repeat(1 << 20);
    let rows = "<row><c t='s'><v>0</v></c></row>".repeat(100);
    let bytes = archive(&[
        ("xl/workbook.xml", "<workbook><sheets><sheet name='a' r:id='rId0'/></sheets></workbook>"),
        ("xl/_rels/workbook.xml.rels", &relationships(&["worksheets/sheet1.xml"])),
        ("xl/sharedStrings.xml", &format!("<sst><si><t>{long}</t></si></sst>")),
        ("xl/worksheets/sheet1.xml", &format!("<worksheet>{rows}</worksheet>")),
    ]);
    assert!(sheets::text(&bytes).unwrap().text.len() < 40 << 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damage_never_panics(which in 0_usize..3, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = [presentation(), workbook(), novel()][which].clone();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let read = [slides::text, sheets::text, book::text][which];
        read(&bytes).ok();
    }
}
