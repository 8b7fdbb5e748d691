//! Pages that were cut out of a PDF look like the pages they were cut from, read the same, and keep their links.
//!
//! Every PDF of the repository is taken, each by another producer, and one that is put together here of what producers
//! seldom use. Pages are cut by `resolve`, as callers get them, and drawn by two independent programs: hayro always, and
//! poppler's `pdftoppm` where it is installed. No difference of any pixel is allowed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use hayro::{
    PixmapSettings, RenderCache, RenderSettings, hayro_interpret::InterpreterSettings, hayro_syntax::Pdf,
    vello_cpu::color::palette::css::WHITE,
};
use lopdf::{Dictionary, Document, Object, ObjectId, Stream, dictionary};
use serde_json::json;
use shelf_testkit::{TestLibrary, can_run};

/// The PDF documents of the repository that can be opened.
fn kept() -> Vec<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![here.join("../shelf/demo/notes/damp.pdf")];
    for entry in fs::read_dir(here.join("tests/fixtures")).unwrap() {
        let path = entry.unwrap().path();
        let is_pdf = path.extension().is_some_and(|extension| extension == "pdf");
        // Without its password, neither its pages nor a cut of them can be seen.
        if is_pdf && !path.ends_with("encrypted.pdf") {
            found.push(path);
        }
    }
    found.sort();
    assert!(found.len() >= 6, "{found:?}");
    found
}

/// A page as hayro draws it: width, height, and four bytes for each pixel.
fn drawn(bytes: &[u8], page: usize) -> (u16, u16, Vec<u8>) {
    let document = Pdf::new(bytes.to_vec()).unwrap();
    let settings = PixmapSettings { x_scale: 1.0, y_scale: 1.0, bg_color: WHITE };
    let pages = document.pages();
    let page = &pages[page - 1];
    let image = hayro::render(
        page,
        &RenderCache::new(),
        &InterpreterSettings::default(),
        &RenderSettings::default(),
        &settings,
    );
    (image.width(), image.height(), image.data_as_u8_slice().to_vec())
}

/// A page as poppler draws it.
fn drawn_by_poppler(path: &Path, page: usize) -> Vec<u8> {
    let page = page.to_string();
    let mut command = Command::new("pdftoppm");
    let ran = command.args(["-r", "50", "-f", &page, "-l", &page]).arg(path).output().unwrap();
    assert!(ran.status.success() && !ran.stdout.is_empty(), "{}: page {page}", path.display());
    ran.stdout
}

/// The text of a page, as the library gives it.
fn text_of(library: &TestLibrary, resource: &str, page: usize) -> String {
    let address = format!("doc://{resource}#pages={page}");
    let resolved = library.ok("resolve", json!({ "address": address, "include_content": true }));
    resolved["content"].as_str().unwrap().trim().to_owned()
}

/// A link of a page: where it is, and what it leads to. A page it leads to is given as a number of the original, by
/// `number`; a link to a page that is not there leads nowhere.
fn links(document: &Document, page: ObjectId, number: &dyn Fn(ObjectId) -> Option<usize>) -> Vec<String> {
    let annotations = document.get_dictionary(page).unwrap().get_deref(b"Annots", document);
    let Ok(annotations) = annotations.and_then(Object::as_array) else { return Vec::new() };
    let mut found = Vec::new();
    for annotation in annotations {
        let (_, annotation) = document.dereference(annotation).unwrap();
        let annotation = annotation.as_dict().unwrap();
        let kind = annotation.get_deref(b"Subtype", document).and_then(Object::as_name).unwrap_or_default();
        let place = annotation.get_deref(b"Rect", document).and_then(Object::as_array).unwrap();
        let place: Vec<f32> = place.iter().filter_map(|edge| edge.as_float().ok()).collect();
        let action = annotation.get_deref(b"A", document).and_then(Object::as_dict).ok();
        let address = action.and_then(|action| action.get_deref(b"URI", document).ok());
        let inside = annotation
            .get_deref(b"Dest", document)
            .ok()
            .or_else(|| action.and_then(|action| action.get_deref(b"D", document).ok()));
        let page = inside.and_then(|inside| led_to(document, inside)).and_then(number);
        let kind = String::from_utf8_lossy(kind);
        found.push(format!("{kind} at {place:?}: {address:?}, page {page:?}"));
    }
    found
}

/// The page that a destination leads to, by whatever name it is called.
fn led_to(document: &Document, destination: &Object) -> Option<ObjectId> {
    match destination {
        Object::Array(parts) => parts.first()?.as_reference().ok(),
        Object::Dictionary(named) => led_to(document, named.get_deref(b"D", document).ok()?),
        Object::Name(name) | Object::String(name, _) => {
            let catalog = document.catalog().ok()?;
            let old = catalog.get_deref(b"Dests", document).and_then(Object::as_dict).ok();
            let old = old.and_then(|names| names.get_deref(name, document).ok());
            let names = catalog.get_deref(b"Names", document).and_then(Object::as_dict).ok();
            let tree = names.and_then(|names| names.get_deref(b"Dests", document).ok()?.as_dict().ok());
            led_to(document, old.or_else(|| in_tree(document, tree?, name))?)
        }
        _ => None,
    }
}

fn in_tree<'a>(document: &'a Document, tree: &'a Dictionary, name: &[u8]) -> Option<&'a Object> {
    if let Ok(pairs) = tree.get_deref(b"Names", document).and_then(Object::as_array) {
        for pair in pairs.chunks_exact(2) {
            let is_meant =
                matches!(document.dereference(&pair[0]), Ok((_, Object::String(found, _))) if found == name);
            if is_meant {
                return document.dereference(&pair[1]).ok().map(|(_, found)| found);
            }
        }
    }
    let kids = tree.get_deref(b"Kids", document).and_then(Object::as_array).ok()?;
    kids.iter().find_map(|kid| in_tree(document, document.dereference(kid).ok()?.1.as_dict().ok()?, name))
}

/// The links of each page of a cut, with the numbers that its pages had in the original.
fn links_of(bytes: &[u8], pages: &[usize]) -> Vec<Vec<String>> {
    let document = Document::load_mem(bytes).unwrap();
    let ids: Vec<ObjectId> = document.page_iter().collect();
    assert_eq!(ids.len(), pages.len());
    let number = |id| ids.iter().position(|page| *page == id).map(|at| pages[at]);
    ids.iter().map(|page| links(&document, *page, &number)).collect()
}

/// The links of pages in the original, of which those to other pages lead nowhere.
fn expected_links(bytes: &[u8], pages: &[usize]) -> Vec<Vec<String>> {
    let document = Document::load_mem(bytes).unwrap();
    let ids: Vec<ObjectId> = document.page_iter().collect();
    let number = |id| {
        let number = ids.iter().position(|page| *page == id)? + 1;
        pages.contains(&number).then_some(number)
    };
    pages.iter().map(|page| links(&document, ids[page - 1], &number)).collect()
}

/// Every way of cutting pages that matters: each alone, all, and the first and the last without those between them.
fn selections(count: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = (1..=count).map(|page| vec![page]).collect();
    if count > 1 {
        all.push((1..=count).collect());
    }
    if count > 2 {
        all.push((2..=count).collect());
        all.push(vec![1, count]);
    }
    all
}

fn spelled(pages: &[usize]) -> String {
    let numbers: Vec<String> = pages.iter().map(usize::to_string).collect();
    let is_range = pages.len() > 2 && pages.windows(2).all(|two| two[0] + 1 == two[1]);
    if is_range { format!("{}-{}", numbers[0], numbers[numbers.len() - 1]) } else { numbers.join(",") }
}

/// Cuts a document in every way, and compares each page with the original.
fn check(path: &Path) -> usize {
    let library = TestLibrary::new();
    let name = path.file_name().unwrap().to_string_lossy();
    let original = fs::read(path).unwrap();
    library.ok("add", json!({ "path": path, "resource_id": "whole" }));
    let count = Pdf::new(original.clone()).unwrap().pages().len();
    let has_poppler = can_run("pdftoppm", "-v");
    let mut links = 0;
    for (at, pages) in selections(count).into_iter().enumerate() {
        let what = format!("{name}, pages {}", spelled(&pages));
        let resolved =
            library.ok("resolve", json!({ "address": format!("doc://whole#pages={}", spelled(&pages)) }));
        let file = PathBuf::from(resolved["output_path"].as_str().unwrap());
        let cut = fs::read(&file).unwrap();
        let resource = format!("cut{at}");
        library.ok("add", json!({ "path": file, "resource_id": resource }));
        assert_eq!(Pdf::new(cut.clone()).unwrap().pages().len(), pages.len(), "{what}");
        for (new, old) in pages.iter().enumerate().map(|(at, page)| (at + 1, *page)) {
            let (before, after) = (drawn(&original, old), drawn(&cut, new));
            assert!(before.2.iter().any(|byte| *byte != 255), "{name}, page {old} is blank");
            assert!(before == after, "{what}: page {old} is drawn differently by hayro");
            if has_poppler {
                let same = drawn_by_poppler(path, old) == drawn_by_poppler(&file, new);
                assert!(same, "{what}: page {old} is drawn differently by poppler");
            }
            assert_eq!(text_of(&library, "whole", old), text_of(&library, &resource, new), "{what}, {old}");
        }
        let (expected, found) = (expected_links(&original, &pages), links_of(&cut, &pages));
        assert_eq!(expected, found, "{what}");
        links += found.iter().map(Vec::len).sum::<usize>();
    }
    links
}

#[test]
fn cut_pages_of_real_documents_look_read_and_link_as_before() {
    let links: usize = kept().iter().map(|path| check(path)).sum();
    assert!(links >= 7, "some of them have links");
}

/// Two pages of one document are told apart, or the comparison would prove nothing.
#[test]
fn different_pages_are_drawn_differently() {
    for path in kept() {
        let bytes = fs::read(&path).unwrap();
        if Pdf::new(bytes.clone()).unwrap().pages().len() > 1 {
            assert!(drawn(&bytes, 1) != drawn(&bytes, 2), "{}", path.display());
        }
    }
}

#[test]
fn what_producers_seldom_use_is_kept_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seldom.pdf");
    fs::write(&path, seldom()).unwrap();
    // Each of the four pages has a stamp, a button and five links.
    let alone = 4 * 7;
    assert_eq!(check(&path), alone + alone + 3 * 7 + 2 * 7);
}

/// Four pages in a tree of two levels. What pages inherit from it: resources, boxes, and being turned. What is on them:
/// content in two streams, of which the second depends on the first; a picture; a shading; transparency; layers, of which
/// one is hidden; a stamp and a button with appearances of their own; links that are written in five ways.
fn seldom() -> Vec<u8> {
    let mut document = Document::with_version("1.7");
    let (root, turned) = (document.new_object_id(), document.new_object_id());
    let pages: Vec<ObjectId> = (0..4).map(|_| document.new_object_id()).collect();
    let (shown, hidden) = layers(&mut document);
    let resources = resources(&mut document, shown, hidden);
    let field = document.add_object(dictionary! {
        "FT" => "Btn", "T" => Object::string_literal("agree"), "Kids" => Vec::<Object>::new(),
    });
    for (at, page) in pages.iter().enumerate() {
        let parent = if at < 2 { root } else { turned };
        let annotations = annotations(&mut document, (&pages, at), field);
        let mut own = dictionary! {
            "Type" => "Page", "Parent" => parent, "Contents" => contents(&mut document, at), "Annots" => annotations,
            "Group" => dictionary! { "S" => "Transparency", "CS" => "DeviceRGB", "I" => true },
        };
        if at == 1 {
            own.set("UserUnit", 2);
            own.set("MediaBox", vec![0.into(), 0.into(), 200.into(), 150.into()]);
        }
        document.objects.insert(*page, own.into());
    }
    let kids = |from: &[ObjectId]| from.iter().map(|page| Object::Reference(*page)).collect::<Vec<_>>();
    let inner = dictionary! {
        "Type" => "Pages", "Parent" => root, "Count" => 2, "Kids" => kids(&pages[2..]), "Rotate" => 90,
        "CropBox" => vec![20.into(), 20.into(), 280.into(), 200.into()],
    };
    document.objects.insert(turned, inner.into());
    let outer = dictionary! {
        "Type" => "Pages", "Count" => 4, "Kids" => [kids(&pages[..2]), vec![turned.into()]].concat(),
        "Resources" => resources, "MediaBox" => vec![0.into(), 0.into(), 300.into(), 220.into()],
    };
    document.objects.insert(root, outer.into());
    let last: Object = vec![pages[3].into(), "Fit".into()].into();
    let names = dictionary! { "Names" => vec![Object::string_literal("last"), dictionary! { "D" => last.clone() }.into()] };
    let catalog = dictionary! {
        "Type" => "Catalog", "Pages" => root,
        "Names" => dictionary! { "Dests" => dictionary! { "Kids" => vec![names.into()] } },
        "Dests" => dictionary! { "end" => last },
        "AcroForm" => dictionary! { "Fields" => vec![field.into()] },
        "OCProperties" => dictionary! {
            "OCGs" => vec![shown.into(), hidden.into()],
            "D" => dictionary! { "ON" => vec![shown.into()], "OFF" => vec![hidden.into()] },
        },
    };
    let catalog = document.add_object(catalog);
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

fn layers(document: &mut Document) -> (ObjectId, ObjectId) {
    let mut layer = |name: &str| {
        document.add_object(dictionary! { "Type" => "OCG", "Name" => Object::string_literal(name) })
    };
    (layer("shown"), layer("hidden"))
}

fn resources(document: &mut Document, shown: ObjectId, hidden: ObjectId) -> Dictionary {
    let picture = dictionary! {
        "Type" => "XObject", "Subtype" => "Image", "Width" => 2, "Height" => 2, "ColorSpace" => "DeviceRGB",
        "BitsPerComponent" => 8,
    };
    let picture =
        document.add_object(Stream::new(picture, vec![255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 0]));
    let form = dictionary! {
        "Type" => "XObject", "Subtype" => "Form", "BBox" => vec![0.into(), 0.into(), 40.into(), 40.into()],
        "Resources" => dictionary! { "XObject" => dictionary! { "P" => picture } },
    };
    let form = document.add_object(Stream::new(form, b"q 40 0 0 40 0 0 cm /P Do Q".to_vec()));
    let shading = dictionary! {
        "ShadingType" => 2, "ColorSpace" => "DeviceRGB",
        "Coords" => vec![0.into(), 0.into(), 100.into(), 0.into()],
        "Function" => dictionary! {
            "FunctionType" => 2, "N" => 1, "Domain" => vec![0.into(), 1.into()],
            "C0" => vec![1.into(), 0.into(), 0.into()], "C1" => vec![0.into(), 0.into(), 1.into()],
        },
    };
    dictionary! {
        "Font" => dictionary! {
            "F" => dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica" },
        },
        "XObject" => dictionary! { "X" => form },
        "Shading" => dictionary! { "S" => document.add_object(shading) },
        "ExtGState" => dictionary! { "G" => dictionary! { "ca" => Object::Real(0.5), "BM" => "Multiply" } },
        "Properties" => dictionary! { "On" => shown, "Off" => hidden },
    }
}

fn contents(document: &mut Document, at: usize) -> Vec<Object> {
    // The first opens what the second closes.
    let first = format!("q 1 0 0 1 {} 0 cm BT /F 14 Tf 30 170 Td (Page number {}) Tj ET", at * 7, at + 1);
    let second = "q 1 0 0 1 40 90 cm /X Do Q q 60 60 100 50 re W n 1 0 0 1 60 0 cm /S sh Q \
                  /G gs 0 1 0 rg 50 80 60 40 re f \
                  /OC /On BDC 1 0 0 rg 150 60 20 20 re f EMC /OC /Off BDC 0 0 1 rg 180 60 60 60 re f EMC Q";
    [first.as_str(), second]
        .map(|part| document.add_object(Stream::new(dictionary! {}, part.as_bytes().to_vec())).into())
        .to_vec()
}

fn annotations(document: &mut Document, (pages, at): (&[ObjectId], usize), field: ObjectId) -> Vec<Object> {
    let look = |content: &str| {
        let form = dictionary! {
            "Type" => "XObject", "Subtype" => "Form", "BBox" => vec![0.into(), 0.into(), 30.into(), 20.into()],
        };
        Stream::new(form, content.as_bytes().to_vec())
    };
    let (stamp, on) = (look("0.8 0.2 0.2 rg 0 0 30 20 re f"), look("0 0.5 0 rg 5 5 20 10 re f"));
    let (stamp, on) = (document.add_object(stamp), document.add_object(on));
    let rectangle = |row: i64| -> Object {
        vec![(200).into(), (30 + 25 * row).into(), 230.into(), (50 + 25 * row).into()].into()
    };
    let stamp = dictionary! {
        "Type" => "Annot", "Subtype" => "Stamp", "Rect" => rectangle(0), "P" => pages[at],
        "AP" => dictionary! { "N" => stamp },
    };
    let button = dictionary! {
        "Type" => "Annot", "Subtype" => "Widget", "Rect" => rectangle(1), "P" => pages[at], "Parent" => field,
        "AS" => "Yes", "AP" => dictionary! { "N" => dictionary! { "Yes" => on } },
    };
    let link = |row: i64, name: &str, leads: Object| -> Dictionary {
        let mut link = dictionary! { "Type" => "Annot", "Subtype" => "Link", "Rect" => rectangle(row) };
        link.set(name, leads);
        link
    };
    let go_to = dictionary! { "S" => "GoTo", "D" => Object::string_literal("last") };
    let web = dictionary! { "S" => "URI", "URI" => Object::string_literal("https://example.org/a?b=c") };
    let next = pages[(at + 1) % pages.len()];
    let indirect = [
        stamp,
        button,
        link(2, "A", web.into()),
        link(3, "A", go_to.into()),
        link(4, "Dest", Object::Name(b"end".to_vec())),
    ];
    let mut all: Vec<Object> = indirect.into_iter().map(|each| document.add_object(each).into()).collect();
    // Written into the page itself.
    all.push(link(5, "Dest", vec![next.into(), "Fit".into()].into()).into());
    all.push(link(6, "Dest", Object::string_literal("last")).into());
    all
}
