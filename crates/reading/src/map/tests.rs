//! Maps of documents of every form.

use proptest::prelude::*;

use super::*;
use crate::{Bookmark, Cue, Layout, LineBox, MediaFacts, Recording, media::Chapter, text_of};

fn map_of(path: &str, mime: &str, text: &str) -> Map {
    let text = text_of(path, mime, true, text.as_bytes()).unwrap().unwrap();
    text_map(path, mime, &text)
}

/// Each node as `id lines`, or `id pages`, or `id seconds`.
fn shown(map: &Map) -> Vec<String> {
    let place = |node: &MapNode| match node.location.place().unwrap() {
        Place::Text(Some(lines)) => lines.to_string(),
        Place::Document(Some(pages)) => pages.to_string(),
        Place::Video(Some(clip)) | Place::Audio(Some(clip)) => clip.to_string(),
        other => format!("{other:?}"),
    };
    map.nodes.iter().map(|node| format!("{} {}", node.id, place(node))).collect()
}

fn is_sound(map: &Map) {
    let mut ids = std::collections::HashSet::new();
    for (at, node) in map.nodes.iter().enumerate() {
        assert!(ids.insert(&node.id), "{} twice", node.id);
        assert_eq!(node.parent.is_none(), map.roots.contains(&(at as u32)));
        if let Some(parent) = node.parent {
            let parent = &map.nodes[parent as usize];
            assert!(parent.children.contains(&(at as u32)));
            let part = node.id.strip_prefix(&parent.id).and_then(|rest| rest.strip_prefix('.')).unwrap();
            assert!(!part.is_empty() && !part.contains('.'), "{}", node.id);
            assert!(
                contains(parent.location.place().unwrap(), node.location.place().unwrap()),
                "{}",
                node.id
            );
        }
    }
}

#[test]
fn markdown_by_headings() {
    let text = "---\ntitle: x\n---\n# One *bold* [link](u)\n\nFirst sentence. Second one.\n\n## Two\ntext\n\n```\n# no\n```\n\
                \n## Two\n\nThree\n=====\nend\n\n#### Deep\n";
    let map = map_of("a.md", "text/markdown", text);
    is_sound(&map);
    assert_eq!(
        shown(&map),
        [
            "one_bold_link 4-15",
            "one_bold_link.two 8-13",
            "one_bold_link.two_2 15",
            "three 17-21",
            "three.deep 21",
        ]
    );
    assert_eq!(map.nodes[0].title, "One bold link");
    assert_eq!(map.nodes[0].summary.as_deref(), Some("First sentence. Second one."));
    assert_eq!(map.nodes[1].summary.as_deref(), Some("text"));
    assert!(map.nodes.iter().all(|node| node.kind == SECTION));
}

#[test]
fn headings_of_markdown_that_are_none() {
    let text = "+++\n# no\ntitle = 1\n+++\n# R&amp;D\n\n<!--\n# no\n-->\n## Two\n";
    let map = map_of("a.md", "text/markdown", text);
    assert_eq!(shown(&map), ["r_d 5-10", "r_d.two 10"]);
    assert_eq!(map.nodes[0].title, "R&D");
}

#[test]
fn other_markup_languages() {
    let rst = "=====\nTitle\n=====\n\nPart\n----\ntext\n\nSub\n~~~\n\nOther\n-----\nlist::\n\n   x\n";
    assert_eq!(
        shown(&map_of("a.rst", "text/x-rst", rst)),
        ["title 1-16", "title.part 5-10", "title.part.sub 9-10", "title.other 12-16"]
    );
    let adoc = "= Book\n\n== One\ntext\n----\n== no\n----\n== Two\n";
    assert_eq!(shown(&map_of("a.adoc", "text/asciidoc", adoc)), ["book 1-8", "book.one 3-7", "book.two 8"]);
    let tex = "\\section{One {\\it x}}\ntext\n\\subsection*{Sub}\n\\section[s]{Two}\n";
    assert_eq!(shown(&map_of("a.tex", "text/x-tex", tex)), ["one_it_x 1-3", "one_it_x.sub 3", "two 4"]);
    let page = "<html><title>T</title><body><h1>A</h1><p>x<h2>B</h2><p>y";
    assert_eq!(shown(&map_of("a.html", "text/html", page)).len(), 3);
}

#[test]
fn titles_of_restructured_text() {
    let map = |text: &str| shown(&map_of("a.rst", "text/x-rst", text));
    assert_eq!(
        map("=======\n Title\n=======\nPart\n----\n\nGo\n==\n\nA longer one\n~~~~~~\n\nLong\n~~~\n"),
        ["title 1-14", "title.part 4-14", "title.part.go 7-14", "title.part.go.a_longer_one 10-14"]
    );
    assert_eq!(
        map(" Inset\n ======\n\ntext\nmore\n====\n\n-----\n\nOne\n===\n").last().unwrap(),
        "one 10-11"
    );
}

#[test]
fn titles_of_ascii_doc() {
    let map = |text: &str| shown(&map_of("a.adoc", "text/asciidoc", text));
    let blocks = "= Book\n\n```sh\n== no\n```\n\n--\n== no\n--\n\n|===\n== no\n|===\n\n====\n----\n====\n----\n== no\n====\n\n== One ==\n";
    assert_eq!(map(blocks), ["book 1-22", "book.one 22"]);
    let titles = "Book\n====\n\nOne\n---\ntext\n\n----\n== no\n----\n\n## Two\n\n[[id]]\nThree\n~~~~~\n";
    assert_eq!(map(titles), ["book 1-16", "book.one 4-10", "book.two 12-16", "book.two.three 15-16"]);
    assert_eq!(map_of("a.adoc", "text/asciidoc", blocks).nodes[1].title, "One");
}

#[test]
fn words_of_documents_are_no_headings() {
    let page = "<h1>One</h1><p>&lt;!-- starts a comment.</p><p># para</p><h2># Two</h2>";
    let map = map_of("a.html", "text/html", page);
    assert_eq!(shown(&map), ["one 1-7", "one.two 7"]);
    assert_eq!(map.nodes[1].title, "# Two");
    let html = "# One\n<pre>\n# no\n\n# no\n</pre>\n2.3.1 (2024)\n---\n";
    assert_eq!(shown(&map_of("a.md", "text/markdown", html)), ["one 1-8", "one.2_3_1_2024 7-8"]);
}

#[test]
fn values_of_data_files_may_take_many_lines() {
    let yaml = "a: \"one,\n  limited: see below \\\"\n  end\"\nb: 'it''s\n  c: no'\nd: {x: [1,\n  2, 3], z: 1, # }\n  'y}': 2}\ne:\n- \"x\n  f: no\"\n- [1,\n]\ng: don't\nh: &name !tag\n  i: [\n  ]\n";
    assert_eq!(
        shown(&map_of("a.yaml", "application/yaml", yaml)),
        ["a 1-3", "b 4-5", "d 6-8", "e 9-13", "g 14", "h 15-17", "h.i 16-17"]
    );
    let yaml = "\"tab\\there\": 1\n'it''s': 2\n\"\\u043f\\x41\": 3\n";
    let titles = |path, mime, text| -> Vec<String> {
        map_of(path, mime, text).nodes.into_iter().map(|node| node.title).collect()
    };
    assert_eq!(titles("a.yaml", "application/yaml", yaml), ["tab here", "it's", "пA"]);
    let json = "{\n\"\\u043f\\u0440\": 1,\n\"tab\\there\": 2,\n\"a \\\"b\\\\\": 3,\n\"\\ud83d\\ude00\\ud83d\": 4\n}\n";
    assert_eq!(titles("a.json", "application/json", json), ["пр", "tab here", "a \"b\\", "😀\u{fffd}"]);
}

#[test]
fn data_files_by_keys() {
    let json = "{\n  \"a\": {\n    \"b\": [1,\n      {\"c\": 2}]\n  },\n  \"d\": \"x: {\\\"\"\n}\n";
    assert_eq!(shown(&map_of("a.json", "application/json", json)), ["a 2-5", "a.b 3-4", "d 6"]);
    let toml = "x = 1\n[a]\ny = \"\"\"\n[no]\n\"\"\"\nz = 2\n[a.b]\nw = 3\n";
    assert_eq!(
        shown(&map_of("a.toml", "application/toml", toml)),
        ["x 1", "a 2-8", "a.y 3-5", "a.z 6", "a.a_b 7-8", "a.a_b.w 8"]
    );
    let yaml = "a:\n  b: |\n    c: no\n  d: 1\n# x\ne:\n  - f: 2\n    g: 3\nh: 4\n";
    assert_eq!(
        shown(&map_of("a.yaml", "application/yaml", yaml)),
        ["a 1-4", "a.b 2-3", "a.d 4", "e 6-8", "h 9"]
    );
}

#[test]
fn tables_lie_in_those_that_their_names_go_on_from() {
    let map = |text: &str| {
        let map = map_of("a.toml", "application/toml", text);
        is_sound(&map);
        shown(&map)
    };
    assert_eq!(
        map(
            "title = \"t\"\n[build-system]\nrequires = [\n  \"a\", # [no]\n]\n\n# x\n[tool.poetry]\nname = \"n\"\n[tool.poetry.deps]\na = 1\n"
        ),
        [
            "title 1",
            "build_system 2-5",
            "build_system.requires 3-5",
            "tool_poetry 8-11",
            "tool_poetry.name 9",
            "tool_poetry.tool_poetry_deps 10-11",
            "tool_poetry.tool_poetry_deps.a 11",
        ]
    );
    assert_eq!(map("title=\"t\"\n[x.y]\n"), ["title 1", "x_y 2"]);
    assert_eq!(map("a.b.d = 2\n[x.\"y.z\"]\n\"k = 1\" = 2\n"), ["a_b_d 1", "x_y_z 2-3", "x_y_z.k_1 3"]);
    assert_eq!(
        map("[a]\n[b]\n[a.c]\n[[d]]\nx = 1\n[[d]]\n[d.e]\n[ab]\n"),
        ["a 1", "b 2", "a_c 3", "d 4-5", "d.x 5", "d_2 6-7", "d_2.d_e 7", "ab 8"]
    );
    assert_eq!(map("m = [\n  [1, 2],\n  [3],\n]\nn = 1\n"), ["m 1-4", "n 5"]);
}

#[test]
fn keys_of_yaml_end_with_their_values() {
    let map = |text: &str| {
        let map = map_of("a.yaml", "application/yaml", text);
        is_sound(&map);
        shown(&map)
    };
    let text = "%YAML 1.2\n---\na: 1\n# x\n---\nb:\n- 1\n- 2\n\n# end\n";
    assert_eq!(map(text), ["a 3", "b 6-8"]);
    let text = "\"k: x\": 1\n'it''s': 2\n? long key\n: value\nsay \"hi\": 3\ntext: |\n  # kept\n\n  more\n";
    assert_eq!(map(text), ["k_x 1", "it_s 2", "long_key 3-4", "say_hi 5", "text 6-9"]);
}

#[test]
fn lists_and_comments_of_json() {
    let map = |text: &str| {
        let map = map_of("a.json", "application/json", text);
        is_sound(&map);
        shown(&map)
    };
    assert_eq!(map("[\n  {\n    \"a\": 1\n  },\n  2,\n  [3]\n]\n"), ["item_1 2-4", "item_2 5", "item_3 6"]);
    assert_eq!(map("[1, 2]\n"), ["1_2 1"]);
    let text = "// \"no\": 1\n{\n  /* \"no\": {\n  */ \"a\": \"//\", // \"no\": 2\n  \"b\": 1\n}\n";
    assert_eq!(map(text), ["a 4", "b 5"]);
}

#[test]
fn a_byte_order_mark_hides_nothing() {
    for (path, mime, text) in [
        ("a.md", "text/markdown", "# One\n"),
        ("a.rst", "text/x-rst", "One\n===\n\ntext\n"),
        ("a.adoc", "text/asciidoc", "= One\n\n== Two\n"),
        ("a.py", "text/x-python", "def one():\n    pass\n"),
        ("a.toml", "application/toml", "[one]\nx = 1\n"),
        ("a.yaml", "application/yaml", "one:\n  x: 1\n"),
        ("a.json", "application/json", "{\n\"one\": 1\n}\n"),
        ("a.txt", "text/plain", "One.\n\nTwo.\n"),
    ] {
        let marked = map_of(path, mime, &format!("\u{feff}{text}"));
        assert_eq!(marked, map_of(path, mime, text), "{path}");
        assert_eq!(marked.nodes[0].id, "one", "{path}");
    }
}

#[test]
fn code_by_symbols() {
    let rust = "use std::io;\n\nstruct Shelf {\n    a: u8,\n}\n\nimpl Shelf {\n    fn open() {\n    }\n}\n\nmod inner {\n    fn f() {}\n}\n";
    let map = map_of("a.rs", "text/x-rust", rust);
    is_sound(&map);
    assert_eq!(shown(&map), ["shelf 3-5", "shelf_open 8-9", "inner 12-14", "inner.f 13"]);
    assert_eq!((map.nodes[1].title.as_str(), map.nodes[1].kind.as_ref()), ("Shelf::open", DEFINITION));
    assert_eq!(map.nodes[1].summary.as_deref(), Some("fn open() {"));
    let python = "class A:\n    def b(self):\n        pass\n\ndef c():\n    return 1\n";
    let map = map_of("a.py", "text/x-python", python);
    is_sound(&map);
    assert_eq!(shown(&map), ["a 1-3", "a.b 2-3", "c 5-6"]);
    let text = "class A:\n    @route(\n        1,\n    )\n    def f(\n        self,\n        a,\n    ) -> int:\n        x = 1\n\n    def g(self): pass\n";
    let map = map_of("a.py", "text/x-python", text);
    is_sound(&map);
    assert_eq!(shown(&map), ["a 1-11", "a.f 2-9", "a.g 11"]);
    assert_eq!(map.nodes[1].summary.as_deref(), Some("def f("));
    let text =
        "mod x {\n    impl A {\n        fn new() {}\n    }\n    impl B {\n        fn new() {}\n    }\n}\n";
    assert_eq!(shown(&map_of("a.rs", "text/x-rust", text)), ["x 1-8", "x.a_new 3", "x.b_new 6"]);
    assert_eq!(shown(&map_of("a.sh", "text/x-shellscript", "a\n\nb\n")), ["a 1", "b 3"]);
}

#[test]
fn plain_text_by_paragraphs() {
    let map = map_of("a.txt", "text/plain", "One two.\nThree.\n\n\nFour\r\n\r\n");
    assert_eq!(shown(&map), ["one_two 1-2", "four 5"]);
    assert_eq!(map.nodes[0].summary.as_deref(), Some("One two. Three."));
    assert!(map_of("a.txt", "text/plain", "").nodes.is_empty());
    assert!(map_of("a.txt", "text/plain", "\n\n").nodes.is_empty());
}

fn paged(outline: Vec<Bookmark>, sizes: &[u16]) -> Text<'static> {
    let mut text = String::new();
    let (mut pages, mut lines) = (Vec::new(), Vec::new());
    for page in 0..4 {
        pages.push(text.len() as u32);
        for line in 0..3_u16 {
            let bbox = [6_000, 6_000 + line * 20_000, 30_000, 7_000 + line * 20_000];
            let size = sizes.get(page * 3 + usize::from(line)).copied().unwrap_or(100);
            lines.push(LineBox { start: text.len() as u32, bbox, size });
            text.push_str(&format!("Line {line} of page {page}.\n"));
        }
    }
    Text {
        text: text.into(),
        as_stored: false,
        pages,
        markup: crate::Markup::Plain,
        layout: Layout { lines, outline },
    }
}

#[test]
fn pages_by_bookmarks_fonts_or_themselves() {
    let bookmark = |level, page, top| Bookmark { level, title: format!("B{level}{page}"), page, top };
    let outline = vec![bookmark(1, 1, 0), bookmark(2, 2, 26_000), bookmark(1, 3, 5_000), bookmark(2, 2, 0)];
    let map = text_map("a.pdf", "application/pdf", &paged(outline, &[]));
    is_sound(&map);
    // The second begins in the middle of page 2; the third at the top of page 3; the last leads back.
    assert_eq!(shown(&map), ["b11 1-2", "b11.b22 2", "b13 2-4", "b13.b22 2-4"]);
    let map = text_map("a.pdf", "application/pdf", &paged(Vec::new(), &[240, 100, 140, 100, 100, 140, 240]));
    is_sound(&map);
    assert_eq!(
        shown(&map),
        [
            "line_0_of_page_0 1-2",
            "line_0_of_page_0.line_2_of_page_0 1-2",
            "line_0_of_page_0.line_2_of_page_1 2",
            "line_0_of_page_2 3-4",
        ]
    );
    let map = text_map("a.pdf", "application/pdf", &paged(Vec::new(), &[]));
    assert_eq!(shown(&map), ["page_1 1", "page_2 2", "page_3 3", "page_4 4"]);
    assert!(map.nodes[1].summary.as_deref().unwrap().starts_with("Line 0 of page 1."));
}

#[test]
fn recordings_by_chapters_cues_or_cuts() {
    let mut facts = MediaFacts {
        recording: Recording::Video,
        duration: 100_005,
        chapters: Vec::new(),
        has_subtitles: false,
        has_sound: true,
        codec: "h264".into(),
        reorder: 0,
        clock: 0,
        key_frames: Vec::new(),
    };
    let cue = |start, text: &str| Cue { start, end: start + 4_000, text: text.into() };
    let cues = [cue(1_000, "Hello."), cue(20_000, "More"), cue(31_005, "words."), cue(60_000, "Then this.")];
    assert_eq!(shown(&media_map(&facts, &cues, &[])), ["hello 1-35", "then_this 60-64"]);
    assert_eq!(
        shown(&media_map(&facts, &[], &[40_000, 41_000, 99_000])),
        ["from_0_00 0-40", "from_0_40 40-100"]
    );
    facts.chapters = vec![
        Chapter { start: 0, end: 50_000, title: "Intro".into() },
        Chapter { start: 50_000, end: 200_000, title: "Rest".into() },
    ];
    let map = media_map(&facts, &cues, &[]);
    is_sound(&map);
    assert_eq!(shown(&map), ["intro 0-50", "intro.hello 1-35", "rest 50-100", "rest.then_this 60-64"]);
    facts.recording = Recording::Audio;
    assert_eq!(media_map(&facts, &[], &[]).nodes[0].location.modality(), Modality::Audio);
    assert_eq!(image_map().nodes.len(), 1);
}

#[test]
fn equal_titles_do_not_make_it_slow() {
    let text = "# Same\n\n".repeat(60_000);
    let start = std::time::Instant::now();
    let map = map_of("a.md", "text/markdown", &text);
    assert_eq!((map.nodes.len(), map.nodes[59_999].id.as_str()), (60_000, "same_60000"));
    assert!(start.elapsed().as_secs() < 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_map_is_sound(
        text in "(#{1,7} [a-c.]{0,3}\n|[a-z:\\[\\]{}\"= .-]{0,12}\n|\n|---\n|===\n|```\n|  - x\n|\\\\section\\{a\\}\n){0,40}",
        kind in 0_usize..7,
    ) {
        let (path, mime) = [
            ("a.md", "text/markdown"), ("a.rst", "text/x-rst"), ("a.adoc", "text/asciidoc"), ("a.tex", "text/x-tex"),
            ("a.json", "application/json"), ("a.yaml", "application/yaml"), ("a.toml", "application/toml"),
        ][kind];
        let map = map_of(path, mime, &text);
        is_sound(&map);
        let count = line_count(&text);
        for node in &map.nodes {
            let Some(Place::Text(Some(lines))) = node.location.place() else { panic!("{node:?}") };
            prop_assert!(lines.last() <= count, "{} of {count}", lines);
        }
    }

    #[test]
    fn bookmarks_that_lead_anywhere_make_a_sound_map(
        marks in prop::collection::vec((1_u8..5, 0_u32..7, any::<u16>()), 0..20),
    ) {
        let outline = marks.into_iter().map(|(level, page, top)| Bookmark { level, title: "x".into(), page, top });
        is_sound(&text_map("a.pdf", "application/pdf", &paged(outline.collect(), &[])));
    }
}
