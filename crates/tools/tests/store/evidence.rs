//! Evidence: its path depends on what is cited and on nothing else, code in ten languages has maps, and subtitles come
//! with their recordings.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use shelf_testkit::TestLibrary;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// What is cited: resource, node or place, content, and exact location.
type Cited = (String, String, String, String);

/// Paths by what is cited, and the other way round.
#[derive(Default)]
struct Paths {
    of: BTreeMap<Cited, String>,
    to: HashMap<String, Cited>,
}

impl Paths {
    /// Notes a path. What was cited before must have the path that it had, and nothing else may have it.
    fn note(&mut self, cited: Cited, path: &str) {
        let known = self.of.entry(cited.clone()).or_insert_with(|| path.to_owned());
        assert_eq!(known, path, "{cited:?}");
        let owner = self.to.entry(path.to_owned()).or_insert_with(|| cited.clone());
        assert_eq!(owner, &cited, "{path}");
    }
}

/// A text with headings, some of which give the same id once their letters are made safe.
fn content(dice: &mut Dice) -> String {
    let titles = ["A", "B C", "B_C", "b c", "D", "Résumé"];
    (0..2 + dice.roll(4))
        .map(|_| {
            format!(
                "{} {}\n\nline {}\n",
                "#".repeat(1 + dice.roll(2)),
                titles[dice.roll(titles.len())],
                dice.roll(3)
            )
        })
        .collect()
}

fn note_all(library: &TestLibrary, asked: &str, hash: &str, dice: &mut Dice, paths: &mut Paths) {
    let structure = library.ok("getStructure", json!({ "resource_id": asked }));
    let id = structure["resource_id"].as_str().unwrap().to_owned();
    assert_eq!(structure["metadata"]["source_hash"], *hash);
    let mut waiting: Vec<Value> = structure["nodes"].as_array().unwrap().clone();
    let mut last = 1;
    while let Some(node) = waiting.pop() {
        let name = node["id"].as_str().unwrap();
        let resolved = library.ok("resolve", json!({ "resource_id": asked, "node_id": name }));
        let location = node["location"].to_string();
        last = last.max(node["location"]["lines"].as_array().unwrap().last().unwrap().as_u64().unwrap());
        let cited = (id.clone(), format!("node {name}"), hash.to_owned(), location);
        paths.note(cited, resolved["output_path"].as_str().unwrap());
        waiting.extend(node["children"].as_array().unwrap().clone());
    }
    for _ in 0..6 {
        let first = 1 + dice.roll(last as usize);
        let end = first + dice.roll(last as usize + 1 - first);
        let resolved =
            library.ok("resolve", json!({ "address": format!("text://{asked}#lines={first}-{end}") }));
        let cited = (id.clone(), "place".to_owned(), hash.to_owned(), format!("{first}-{end}"));
        paths.note(cited, resolved["output_path"].as_str().unwrap());
    }
}

#[test]
fn the_same_citation_has_the_same_path_and_no_other_has_it() {
    for seed in 0..8 {
        let mut dice = Dice(seed * 31 + 7);
        let (library, mut paths) = (TestLibrary::new(), Paths::default());
        let mut known: Vec<(String, String)> = Vec::new();
        for _ in 0..12 {
            // `a_b` with node `c` and `a` with node `b_c` have files of the same name.
            let id = ["a", "a_b", "a.b", "b"][dice.roll(4)];
            let text = match dice.roll(3) {
                0 => "# C\n\nthe same in all\n".to_owned(),
                1 => "# B C\n\nthe same in all\n".to_owned(),
                _ => content(&mut dice),
            };
            let added =
                library.ok("add", json!({ "content": text, "name": format!("{id}.md"), "resource_id": id }));
            let hash = added["hash"].as_str().unwrap().to_owned();
            note_all(&library, id, &hash, &mut dice, &mut paths);
            known.push((id.to_owned(), hash));
            // Earlier contents, by their hashes.
            let (_, hash) = known[dice.roll(known.len())].clone();
            note_all(&library, &hash, &hash, &mut dice, &mut paths);
        }
        assert!(paths.of.len() > 30, "{}", paths.of.len());
    }
}

/// Language, source, and each node as `id first-last`.
const CODE: [(&str, &str, &[&str]); 10] = [
    (
        "a.rs",
        "struct Shelf;\n\nimpl Shelf {\n    fn open() {}\n}\n\nmod inner {\n    fn deep() {}\n}\n",
        &["shelf 1-1", "shelf_open 4-4", "inner 7-9", "inner.deep 8-8"],
    ),
    (
        "a.py",
        "class Shelf:\n    def open(self):\n        pass\n\n\ndef last():\n    pass\n",
        &["shelf 1-3", "shelf.open 2-3", "last 6-7"],
    ),
    (
        "a.js",
        "class Shelf {\n  open() {}\n}\nexport function last() {\n  return 1;\n}\n",
        &["shelf 1-3", "shelf.open 2-2", "last 4-6"],
    ),
    (
        "a.ts",
        "interface Keep {\n  keep(): void;\n}\nenum Level { Low }\nclass Shelf {\n  open() {}\n}\n",
        &["keep 1-3", "keep.keep 2-2", "level 4-4", "shelf 5-7", "shelf.open 6-6"],
    ),
    (
        "a.go",
        "package a\n\ntype Shelf struct {\n\tsize int\n}\n\nfunc (s *Shelf) Open() {}\n\nfunc last() {}\n",
        &["shelf 3-5", "shelf_open 7-7", "last 9-9"],
    ),
    (
        "A.java",
        "package a;\n\nclass Shelf {\n  void open() {}\n  class Inner {}\n}\n",
        &["shelf 3-6", "shelf.open 4-4", "shelf.inner 5-5"],
    ),
    ("a.c", "struct shelf { int size; };\n\nint open(void) {\n  return 1;\n}\n", &["shelf 1-1", "open 3-5"]),
    (
        "a.cpp",
        "namespace a {\nclass Shelf {\n  int open() { return 1; }\n};\n}\nint last() { return 2; }\n",
        &["a 1-5", "a.shelf 2-4", "a.shelf.open 3-3", "last 6-6"],
    ),
    (
        "a.rb",
        "module A\n  class Shelf\n    def open\n    end\n  end\nend\n",
        &["a 1-6", "a.shelf 2-5", "a.shelf.open 3-4"],
    ),
    (
        "a.cs",
        "namespace A {\n  class Shelf {\n    void Open() {}\n  }\n  struct Pair {}\n}\n",
        &["a 1-6", "a.shelf 2-4", "a.shelf.open 3-3", "a.pair 5-5"],
    ),
];

#[test]
fn code_in_ten_languages_has_a_map_of_its_symbols() {
    let library = TestLibrary::new();
    for (name, source, expected) in CODE {
        library.ok("add", json!({ "content": source, "name": name, "resource_id": name }));
        let structure = library.ok("getStructure", json!({ "resource_id": name }));
        let mut found = Vec::new();
        let mut waiting: Vec<Value> = structure["nodes"].as_array().unwrap().iter().rev().cloned().collect();
        while let Some(node) = waiting.pop() {
            let lines = &node["location"]["lines"];
            found.push(format!("{} {}-{}", node["id"].as_str().unwrap(), lines[0], lines[1]));
            waiting.extend(node["children"].as_array().unwrap().iter().rev().cloned());
        }
        assert_eq!(found, expected, "{name}");
        for node in &found {
            let id = node.split(' ').next().unwrap();
            let asked = json!({ "resource_id": name, "node_id": id, "include_content": true });
            let content = library.ok("resolve", asked)["content"].as_str().unwrap().to_owned();
            assert!(source.contains(&content) && !content.trim().is_empty(), "{name} {id}: {content}");
        }
    }
}

#[test]
fn subtitles_are_stored_with_their_recording() {
    let library = TestLibrary::new();
    // What is in the recording does not matter here: it is stored, and not looked at.
    let path = library.write("talks/Talk.MP3", b"ID3\x04\0\0\0\0\0\0 no sound");
    let subtitles = library.write("talks/Talk.srt", "1\n00:00:01,000 --> 00:00:03,000\nHello there.\n");
    library.write("talks/Other.srt", "not of this one");
    let added = library.ok("add", json!({ "path": path, "resource_id": "talk", "tags": ["spoken"] }));
    assert_eq!((&added["files_added"], &added["files_failed"]), (&json!(2), &json!(0)));
    let found = library.ok("get", json!({ "name": subtitles }));
    assert_eq!((&found["tags"], &found["path"]), (&json!(["spoken"]), &json!(subtitles)));
    assert_eq!(library.ok("listResources", json!({})), json!({ "resources": ["talk"] }));
    let restored = library.path("restored");
    let asked = json!({ "snapshot_id": added["snapshot_id"], "output_directory": restored });
    assert_eq!(library.ok("restore", asked)["restored_count"], json!(2), "one snapshot has both");
    // The recording is the document of the reply, and stays it.
    let again = library.ok("add", json!({ "path": path }));
    assert_eq!(again["document_id"], added["document_id"]);
    assert_eq!((&again["files_unchanged"], &again["hash"]), (&json!(2), &added["hash"]));
    // Content that came without a file has nothing beside it.
    let alone = library.ok("add", json!({ "content": "x", "name": "talks/Talk.mp3" }));
    assert_eq!(alone["files_added"], json!(1));
}
