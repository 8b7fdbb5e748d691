//! After any sequence of changes, the graph is that of a library that was built anew.

use std::collections::BTreeMap;

use serde_json::json;
use shelf_base::CallContext;
use shelf_testkit::TestLibrary;

use super::{add, told};

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

const NAMES: [&str; 10] = [
    "docs/a.md",
    "docs/b.md",
    "docs/sub/a.md",
    "README.md",
    "src/lib.rs",
    "src/a.rs",
    "src/b.rs",
    "src/b/c.rs",
    "py/a.py",
    "py/b.py",
];

fn content(name: &str, dice: &mut Dice) -> String {
    let pick = |dice: &mut Dice, words: &[&'static str]| words[dice.roll(words.len())];
    let mut text = String::new();
    for _ in 0..1 + dice.roll(4) {
        let line = if name.ends_with(".md") {
            let target = pick(
                dice,
                &["a.md", "b.md", "sub/a.md#a", "../README.md", "/docs/b.md", "../src/a.rs", "gone.md"],
            );
            match dice.roll(3) {
                0 => format!("[[{}]]\n", pick(dice, &["a", "README", "sub/a", "nowhere"])),
                1 => format!("# {}\n", pick(dice, &["A", "B"])),
                _ => format!("[x]({target})\n"),
            }
        } else if name.ends_with(".rs") {
            match dice.roll(4) {
                0 => format!(
                    "use crate::{}::{};\n",
                    pick(dice, &["a", "b", "b::c"]),
                    pick(dice, &["one", "two", "Three"])
                ),
                1 => format!(
                    "fn {}() {{ {}(); }}\n",
                    pick(dice, &["one", "two"]),
                    pick(dice, &["one", "two", "gone"])
                ),
                2 => format!(
                    "struct Three; impl Three {{ fn {}(&self) {{ self.one(); }} }}\n",
                    pick(dice, &["one", "four"])
                ),
                _ => format!("mod {};\n", pick(dice, &["a", "b"])),
            }
        } else {
            match dice.roll(3) {
                0 => format!("from .{} import {}\n", pick(dice, &["a", "b"]), pick(dice, &["one", "Five"])),
                1 => format!(
                    "class Five({}):\n    def one(self):\n        one()\n",
                    pick(dice, &["Six", "object"])
                ),
                _ => "def one():\n    return Five()\n".to_owned(),
            }
        };
        text.push_str(&line);
    }
    text
}

fn answers(library: &TestLibrary, names: &BTreeMap<String, String>) -> Vec<String> {
    let mut all = Vec::new();
    for name in names.keys() {
        for reverse in [false, true] {
            let reply =
                library.ok("graph", json!({ "name": name, "reverse": reverse, "depth": 2, "limit": 1000 }));
            all.push(format!("{name} {reverse} {} {:?}", reply["total"], told(&reply)));
        }
    }
    for question in [json!({ "list_types": true }), json!({ "isolated": true })] {
        let reply = library.ok("graph", question);
        let types = reply["types"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|one| !["version", "snapshot"].contains(&one["type"].as_str().unwrap()));
        let paths = reply["nodes"].as_array().into_iter().flatten().map(|node| node["path"].clone());
        all.push(format!("{:?} {:?}", types.collect::<Vec<_>>(), paths.collect::<Vec<_>>()));
    }
    all
}

#[test]
fn any_sequence_of_changes_gives_the_graph_of_a_library_built_anew() {
    for seed in 0..6 {
        let mut dice = Dice(seed * 77 + 5);
        let library = TestLibrary::new();
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for step in 0..40 {
            let name = NAMES[dice.roll(NAMES.len())];
            match dice.roll(5) {
                0 if names.len() > 1 && names.contains_key(name) => {
                    library.ok("delete_by_name", json!({ "names": [name] }));
                    names.remove(name);
                }
                1 if names.contains_key(name) => {
                    // A rename: the content goes to another path.
                    let to = NAMES[dice.roll(NAMES.len())];
                    let text = names.remove(name).unwrap();
                    library.ok("delete_by_name", json!({ "names": [name] }));
                    add(&library, to, &text);
                    names.insert(to.to_owned(), text);
                }
                _ => {
                    let text = content(name, &mut dice);
                    add(&library, name, &text);
                    names.insert(name.to_owned(), text);
                }
            }
            if step % 13 == 12 {
                let anew = TestLibrary::new();
                names.iter().for_each(|(name, text)| add(&anew, name, text));
                let (changed, fresh) = (answers(&library, &names), answers(&anew, &names));
                for (one, other) in changed.iter().zip(&fresh) {
                    assert_eq!(one, other, "seed {seed} step {step}");
                }
            }
            if step == 20 {
                library.library.reindex(&CallContext::new()).unwrap();
            }
        }
    }
}
