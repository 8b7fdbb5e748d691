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
fn forms_that_draw_each_other_take_little_time() {
    let stream =
        |head: &str, body: &str| format!("<<{head}/Length {}>>stream\n{body}\nendstream", body.len());
    let form = "/Type/XObject/Subtype/Form/BBox[0 0 600 700]";
    let many = "/X Do ".repeat(10);
    let page =
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</XObject<</X 5 0 R>>>>>>";
    let mut objects = vec!["<</Type/Catalog/Pages 2 0 R>>".to_owned()];
    objects.push("<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned());
    objects.extend([page.to_owned(), stream("", &many)]);
    objects
        .extend((6..18).map(|next| stream(&format!("{form}/Resources<</XObject<</X {next} 0 R>>>>"), &many)));
    objects.push(stream(form, "0 0 500 500 re f"));
    let begun = std::time::Instant::now();
    let _text = text(&assembled(&objects));
    assert!(begun.elapsed() < std::time::Duration::from_secs(4), "{:?}", begun.elapsed());
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

/// A document of four pages: the first links to the last by name and to the web, and all share a font.
fn linked() -> Document {
    let contents =
        ["one", "two", "three", "four"].map(|word| format!("BT /F 12 Tf 50 700 Td ({word}) Tj ET"));
    let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
    let mut document = document(&contents);
    let pages: Vec<_> = document.page_iter().collect();
    let rect: Vec<Object> = [0, 0, 10, 10].map(Object::from).to_vec();
    let named = document.add_object(dictionary! {
        "Type" => "Annot", "Subtype" => "Link", "Rect" => rect.clone(), "P" => pages[0],
        "A" => dictionary! { "S" => "GoTo", "D" => Object::string_literal("end") },
    });
    let web = document.add_object(dictionary! {
        "Type" => "Annot", "Subtype" => "Link", "Rect" => rect.clone(), "P" => pages[0],
        "A" => dictionary! { "S" => "URI", "URI" => Object::string_literal("https://example.org/") },
    });
    let gone = document.add_object(dictionary! {
        "Type" => "Annot", "Subtype" => "Link", "Rect" => rect,
        "Dest" => vec![pages[1].into(), "Fit".into()],
    });
    let links: Vec<Object> = vec![named.into(), web.into(), gone.into()];
    document.get_dictionary_mut(pages[0]).unwrap().set("Annots", links);
    let names = dictionary! {
        "Dests" => dictionary! {
            "Names" => vec![Object::string_literal("end"), vec![Object::from(pages[3]), "Fit".into()].into()],
        },
    };
    let item = document.add_object(dictionary! {
        "Title" => Object::string_literal("The end"), "Dest" => Object::string_literal("end"),
    });
    let outlines = document.add_object(dictionary! { "Type" => "Outlines", "First" => item });
    let catalog = document.catalog_mut().unwrap();
    catalog.set("Names", names);
    catalog.set("Outlines", outlines);
    document
}

#[test]
fn pages_are_cut_with_their_text_and_links() {
    let bytes = bytes_of(linked());
    let cut = |pages: &str| cut_pages(&bytes, &pages.parse().unwrap());
    let both = cut("1,4").unwrap();
    assert_eq!(text(&both).unwrap().text, "one\nfour\n");
    let document = load(&both).unwrap();
    let pages: Vec<_> = document.page_iter().collect();
    let links = document.get_page_annotations(pages[0]).unwrap();
    assert_eq!(links.len(), 3);
    let target = links[0].get(b"Dest").unwrap().as_array().unwrap();
    assert_eq!(target[0].as_reference().unwrap(), pages[1], "a named place on a page that is kept");
    assert!(links[1].get(b"A").is_ok() && links[2].get(b"Dest").is_err(), "a page that is left out");
    let one = cut("2").unwrap();
    assert_eq!(text(&one).unwrap().text, "two\n");
    assert!(one.len() < bytes.len(), "the other pages are not brought along");
    assert_eq!(
        load(&one)
            .unwrap()
            .objects
            .values()
            .filter(|object| object.type_name().is_ok_and(|name| name == b"Page"))
            .count(),
        1
    );
    assert_eq!(cut("3-5"), Err(CutError::NoPage { page: 5, count: 4 }));
    assert_eq!(page_count(&bytes), Ok(4));
    // What was cut can be cut again.
    assert_eq!(text(&cut_pages(&both, &"2".parse().unwrap()).unwrap()).unwrap().text, "four\n");
}

#[test]
fn bookmarks_and_lines_have_places() {
    let text = text(&bytes_of(linked())).unwrap();
    assert_eq!(text.layout.outline.len(), 1);
    assert_eq!((text.layout.outline[0].title.as_str(), text.layout.outline[0].page), ("The end", 4));
    assert_eq!(text.layout.lines.len(), 4);
    let (page, bbox) = text.layout.bbox(&text.pages, 4..7).unwrap();
    // 50 points from the left and 700 from the bottom of a sheet of 595 × 842, in letters of 12 points.
    assert_eq!(page, 2);
    assert!(
        (bbox[0] - 50.0 / 595.0).abs() < 0.001 && (bbox[3] - (842.0 - 697.6) / 842.0).abs() < 0.001,
        "{bbox:?}"
    );
    assert!(bbox[1] < bbox[3] && bbox[0] < bbox[2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cutting_damaged_documents_never_panics(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(), page in 1_u32..6,
    ) {
        let mut bytes = bytes_of(linked());
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        if let Ok(part) = cut_pages(&bytes, &Pages::single(page).unwrap()) {
            prop_assert!(!part.is_empty());
        }
    }
}
