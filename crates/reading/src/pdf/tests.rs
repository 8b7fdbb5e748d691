//! Valid and damaged documents, built here.

use std::fmt::Write;

use lopdf::{Object, Stream, dictionary};
use proptest::prelude::*;

use super::*;

/// A document with a page for each piece of content, and the fonts `F` (Latin), `U` (two bytes, with a character map)
/// and `J` (Shift JIS).
fn document(contents: &[&str]) -> Document {
    let mut document = Document::with_version("1.5");
    let root = document.new_object_id();
    let table = b"1 beginbfrange <0000> <FFFF> <0000> endbfrange".to_vec();
    let table = document.add_object(Stream::new(dictionary! {}, table));
    let resources = dictionary! {
        "Font" => dictionary! {
            "F" => dictionary! {
                "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica",
                "Encoding" => dictionary! {
                    "BaseEncoding" => "WinAnsiEncoding",
                    "Differences" => vec![1.into(), "fi".into(), "nosuchglyph".into(), "Euro".into()],
                },
                "FirstChar" => 32, "Widths" => vec![500.into(); 224],
            },
            "U" => dictionary! {
                "Type" => "Font", "Subtype" => "Type0", "Encoding" => "Identity-H", "ToUnicode" => table,
                "DescendantFonts" => vec![dictionary! { "DW" => 1000, "W" => vec![1.into(), 9.into(), 500.into()] }.into()],
            },
            "J" => dictionary! { "Type" => "Font", "Subtype" => "Type0", "Encoding" => "90ms-RKSJ-H" },
        },
    };
    let form = dictionary! { "Type" => "XObject", "Subtype" => "Form", "Resources" => resources.clone() };
    let form = document.add_object(Stream::new(form, b"BT /F 10 Tf (in a form) Tj ET /X Do".to_vec()));
    let mut resources = resources;
    resources.set("XObject", dictionary! { "X" => form });
    let mut kids: Vec<Object> = Vec::new();
    for content in contents {
        let content = document.add_object(Stream::new(dictionary! {}, content.as_bytes().to_vec()));
        kids.push(
            document
                .add_object(dictionary! { "Type" => "Page", "Parent" => root, "Contents" => content })
                .into(),
        );
    }
    let pages = dictionary! {
        "Type" => "Pages", "Count" => kids.len() as i64, "Kids" => kids, "Resources" => resources,
    };
    document.objects.insert(root, pages.into());
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => root });
    document.trailer.set("Root", catalog);
    document
}

fn bytes_of(mut document: Document) -> Vec<u8> {
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

fn pdf(contents: &[&str]) -> Vec<u8> {
    let mut document = document(contents);
    document.compress();
    bytes_of(document)
}

fn check(content: &str, expect: &str) {
    assert_eq!(text(&pdf(&[content])).unwrap().text, expect, "{content}");
}

#[test]
fn the_start_of_each_page_is_recorded() {
    let text =
        text(&pdf(&["BT /F 12 Tf 50 700 Td (First page.) Tj ET", "", "BT /F 12 Tf (Third) Tj ET"])).unwrap();
    assert_eq!(text.text, "First page.\n\nThird\n");
    assert_eq!(text.pages, [0, 12, 13]);
    assert!(!text.as_stored && text.markup == Markup::Plain);
    let passages = crate::passages(&text, &[0, 6, 13]);
    assert_eq!(
        passages.iter().map(|each| (each.lines, each.pages)).collect::<Vec<_>>(),
        [((1, 3), Some((1, 3)))]
    );
}

#[test]
fn words_and_lines_come_from_positions() {
    check("BT /F 10 Tf 0 700 Td (one) Tj 0 -12 Td (two) Tj 0 -30 Td (three) Tj ET", "one\ntwo\n\nthree\n");
    check("BT /F 10 Tf 12 TL (one) Tj T* (two) Tj (three) ' 1 2 (four) \" ET", "one\ntwo\nthree\nfour\n");
    check("BT /F 10 Tf [(wo) 20 (rd) -300 (next) -1000 ( after)] TJ ET", "word next after\n");
    check(
        "BT /F 1 Tf 10 0 0 10 0 700 Tm (H) Tj 10 0 0 10 5 700 Tm (i) Tj 10 0 0 10 14 700 Tm (you) Tj ET",
        "Hi you\n",
    );
    check("BT /F 10 Tf (a) Tj 0 3 Td (2) Tj ET", "a2\n");
    check("q 0 1 -1 0 0 0 cm BT /F 10 Tf (up) Tj 0 -12 Td (next) Tj ET Q", "up\nnext\n");
    check("q 1 0 0 1 0 100 cm BT /F 10 Tf (a) Tj ET Q q 1 0 0 1 0 88 cm BT /F 10 Tf (b) Tj ET Q", "a\nb\n");
}

#[test]
fn codes_become_characters() {
    check("BT /F 10 Tf (caf\\351 \\001nal \\002\\003) Tj ET", "café final €\n");
    check("BT /U 10 Tf <65e5672c> Tj ET", "日本\n");
    check("BT /J 10 Tf <93fa967b> Tj ET", "日本\n");
    check("BT /None 10 Tf (lost) Tj ET", "\n");
}

#[test]
fn forms_are_part_of_the_page_and_recursion_is_bounded() {
    let found = text(&pdf(&["BT /F 10 Tf 0 100 Td (page) Tj ET /X Do"])).unwrap().text;
    assert!(found.starts_with("page\n\nin a form"), "{found}");
}

#[test]
fn passwords() {
    use lopdf::{EncryptionState, EncryptionVersion, Permissions};
    for (password, expect) in [("", Ok("hidden\n")), ("secret", Err(Unreadable::Encrypted))] {
        let mut document = document(&["BT /F 10 Tf (hidden) Tj ET"]);
        document.trailer.set("ID", vec![Object::string_literal("a"), Object::string_literal("b")]);
        let state = EncryptionState::try_from(EncryptionVersion::V2 {
            document: &document,
            owner_password: "owner",
            user_password: password,
            key_length: 128,
            permissions: Permissions::all(),
        });
        let state = state.unwrap();
        document.encrypt(&state).unwrap();
        let found = text(&bytes_of(document)).map(|text| text.text.into_owned());
        assert_eq!(found, expect.map(str::to_owned));
    }
}

/// A file with these objects and a cross-reference table.
fn assembled(objects: &[String]) -> Vec<u8> {
    let mut file = String::from("%PDF-1.4\n");
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (index, object) in objects.iter().enumerate() {
        writeln!(table, "{:010} 00000 n ", file.len()).unwrap();
        writeln!(file, "{} 0 obj\n{object}\nendobj", index + 1).unwrap();
    }
    let start = file.len();
    let size = objects.len() + 1;
    write!(file, "{table}trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF").unwrap();
    file.into_bytes()
}

#[test]
fn chains_of_lengths_do_not_overflow_the_stack() {
    for length in [900, 50_000] {
        let mut objects =
            vec!["<</Type/Catalog/Pages 2 0 R>>".into(), "<</Type/Pages/Count 0/Kids[]>>".into()];
        objects.extend((4..length).map(|next| format!("<</Length {next} 0 R>>stream\nx\nendstream")));
        assert!(matches!(text(&assembled(&objects)), Err(Unreadable::Damaged { .. })));
    }
}

#[test]
fn bombs_are_not_unpacked() {
    let mut document = document(&["BT /F 10 Tf (after) Tj ET"]);
    let mut bomb = Stream::new(dictionary! {}, vec![b' '; MOST_STREAM + 1]);
    bomb.compress().unwrap();
    let bomb = document.add_object(bomb);
    let page = document.page_iter().next().unwrap();
    document.get_dictionary_mut(page).unwrap().set("Contents", bomb);
    assert_eq!(text(&bytes_of(document)).unwrap().text, "\n");
    let deep = format!("BT /F 10 Tf (a) Tj {} (b) Tj ET", "[".repeat(100_000));
    assert!(text(&pdf(&[&deep])).unwrap().text.starts_with('a'));
}

/// Two rows of the declared width would take four gigabytes.
#[test]
fn wide_predictor_rows_are_rejected() {
    let mut document = document(&["BT /F 10 Tf (text) Tj ET"]);
    let parameters = dictionary! { "Predictor" => 12, "Columns" => i64::from(i32::MAX) };
    let mut wide =
        Stream::new(dictionary! { "DecodeParms" => parameters }, b"BT /F 10 Tf (x) Tj ET".repeat(20));
    wide.compress().unwrap();
    let wide = document.add_object(wide);
    let page = document.page_iter().next().unwrap();
    document.get_dictionary_mut(page).unwrap().set("Contents", wide);
    assert!(matches!(text(&bytes_of(document)), Err(Unreadable::Damaged { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damage_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(), packed in any::<bool>()) {
        let contents = ["BT /F 12 Tf 50 700 Td (First page.) Tj ET", "BT /U 12 Tf <00410042> Tj ET /X Do"];
        let mut bytes = if packed { pdf(&contents) } else { bytes_of(document(&contents)) };
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        text(&bytes).ok();
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        text(&bytes).ok();
        text(&[b"%PDF-1.4\n".as_slice(), &bytes].concat()).ok();
    }

    #[test]
    fn any_content_can_be_read(content in "(BT|ET|/F|/U|/X|Do|Tf|Td|TD|Tm|TJ|Tj|T\\*|'|\"|\\(a\\)|<41>|\\[|\\]|q|Q|cm|-?[0-9]{1,12}|1e9| |\n){0,60}") {
        prop_assert!(text(&pdf(&[&content])).is_ok());
    }
}
