//! A second tree of code in ten languages, with what a reader finds in it: every definition with its kind and line, and
//! what imports, calls, inherits and implements what. Precision and recall are reported by language and by relation.

mod declared;
mod scripted;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use shelf_testkit::TestLibrary;

use super::{add, told};

/// Language, files, and what a reader finds: `DEFINES kind name line`, and edges with their ends.
struct Fixture {
    language: &'static str,
    files: &'static [(&'static str, &'static str)],
    found: &'static str,
}

fn fixtures() -> impl Iterator<Item = &'static Fixture> {
    scripted::FIXTURES.iter().chain(&declared::FIXTURES)
}

/// How much of a list agrees with what was found.
#[derive(Default)]
struct Score {
    both: usize,
    expected: usize,
    found: usize,
}

impl Score {
    fn count(&mut self, expected: &BTreeSet<String>, found: &BTreeSet<String>) {
        self.both += expected.intersection(found).count();
        self.expected += expected.len();
        self.found += found.len();
    }

    fn precision(&self) -> f64 {
        if self.found == 0 { 1.0 } else { self.both as f64 / self.found as f64 }
    }

    fn recall(&self) -> f64 {
        if self.expected == 0 { 1.0 } else { self.both as f64 / self.expected as f64 }
    }

    fn is_good(&self) -> bool {
        self.precision() >= 0.9 && self.recall() >= 0.9
    }
}

fn found_in(library: &TestLibrary, name: &str) -> BTreeSet<String> {
    let edges = library.ok(
        "graph",
        json!({ "name": name, "depth": 1, "relation_filters": ["CALLS", "IMPORTS", "INHERITS", "IMPLEMENTS"] }),
    );
    let mut found: BTreeSet<String> = told(&edges).into_iter().collect();
    let defined = library.ok(
        "graph",
        json!({ "name": name, "depth": 1, "relation": "DEFINES", "include_node_properties": true }),
    );
    for node in defined["connected_nodes"].as_array().unwrap() {
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let line = &node["properties"]["start_line"];
        found.insert(format!("DEFINES {} {} {line}", text(&node["type"]), text(&node["name"])));
    }
    found
}

#[test]
#[expect(clippy::print_stdout, reason = "precision and recall are reported by language and relation")]
fn definitions_and_connections_are_those_a_reader_finds() {
    let library = TestLibrary::new();
    let files = fixtures().flat_map(|fixture| fixture.files);
    files.for_each(|(name, content)| add(&library, name, content));
    let mut kinds: BTreeMap<&str, Score> = BTreeMap::new();
    let (mut report, mut is_good) = (Vec::new(), true);
    for Fixture { language, files, found } in fixtures() {
        let expected: BTreeSet<String> =
            found.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        let found: BTreeSet<String> = files.iter().flat_map(|(name, _)| found_in(&library, name)).collect();
        let mut whole = Score::default();
        whole.count(&expected, &found);
        let mut parts = Vec::new();
        for (kind, words) in [
            ("definitions", &["DEFINES"][..]),
            ("imports", &["IMPORTS"]),
            ("calls", &["CALLS"]),
            ("inheritance", &["INHERITS", "IMPLEMENTS"]),
        ] {
            let of_kind = |all: &BTreeSet<String>| -> BTreeSet<String> {
                let fits = |edge: &&String| words.iter().any(|word| edge.starts_with(word));
                all.iter().filter(fits).cloned().collect()
            };
            let (expected, found) = (of_kind(&expected), of_kind(&found));
            kinds.entry(kind).or_default().count(&expected, &found);
            parts.push(format!(
                "{kind} {}/{}",
                expected.intersection(&found).count(),
                expected.len().max(found.len())
            ));
        }
        let missing: Vec<&String> = expected.difference(&found).collect();
        let surplus: Vec<&String> = found.difference(&expected).collect();
        report.push(format!(
            "{language}: precision {:.2}, recall {:.2} ({}); missing {missing:?}, surplus {surplus:?}",
            whole.precision(),
            whole.recall(),
            parts.join(", ")
        ));
        is_good &= whole.is_good();
    }
    for (kind, score) in &kinds {
        report.push(format!(
            "{kind}: precision {:.2}, recall {:.2} of {}",
            score.precision(),
            score.recall(),
            score.expected
        ));
        is_good &= score.is_good();
    }
    println!("{}", report.join("\n"));
    assert!(kinds.values().all(|score| score.expected >= 40), "forty of each are named: {report:?}");
    assert!(is_good, "{}", report.join("\n"));
}
