//! Documents that nobody wrote by hand: they cost bounded time and memory, and what was left out is told.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shelf_testkit::TestLibrary;

use super::{add, told};

/// Code that is not optimized is many times as slow, and is tested with an eighth.
const SHARE: usize = if cfg!(debug_assertions) { 8 } else { 1 };
/// Bytes of the largest of the documents.
const LARGE: usize = (10 << 20) / SHARE;
/// Links of a document.
const LINKS: usize = 1_000_000 / SHARE;
/// Time that reading a document and answering may take.
const LONGEST: Duration = Duration::from_secs(120);
/// Memory that all of it may take at once, in KiB. The documents themselves are in it several times.
const MOST_MEMORY: u64 = 2 << 20;

/// The most memory that this process has taken so far, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Adds a document and asks for what is connected with it.
fn asked(library: &TestLibrary, name: &str, content: &str) -> Value {
    let before = peak();
    add(library, name, content);
    let begun = Instant::now();
    let reply = library
        .ok("graph", json!({ "name": name, "depth": 5, "include_node_properties": true, "limit": 20 }));
    let taken = begun.elapsed();
    assert!(taken < LONGEST, "{name}: {taken:?}");
    assert!(peak() < before.max(MOST_MEMORY), "{name}: {} KiB", peak());
    reply
}

fn is_incomplete(reply: &Value) -> bool {
    reply["origin"]["properties"]["incomplete"] == json!(true)
}

#[test]
fn nested_brackets_are_bounded() {
    let library = TestLibrary::new();
    let nested = format!("{}{}", "(".repeat(LARGE / 2), ")".repeat(LARGE / 2));
    for name in ["deep.rs", "deep.ts"] {
        assert!(is_incomplete(&asked(&library, name, &nested)), "{name}");
    }
    let prose = [
        ("open.md", "[".repeat(LARGE)),
        ("pairs.md", format!("{}{}", "[".repeat(LARGE / 2), "](".repeat(LARGE / 4))),
        ("tags.html", "<a href=".repeat(LARGE / 8)),
    ];
    for (name, content) in prose {
        let reply = asked(&library, name, &content);
        assert!(reply["total"].as_u64().is_some_and(|total| total < 10), "{name}: {}", reply["total"]);
    }
}

#[test]
fn a_million_links_are_cut_and_said_to_be() {
    let library = TestLibrary::new();
    add(&library, "b.md", "# B\n");
    let reply = asked(&library, "same.md", &"[a](b.md) ".repeat(LINKS));
    assert!(is_incomplete(&reply));
    assert_eq!(told(&reply), ["LINKS_TO same.md -> b.md"]);
    let all: String = (0..LINKS).map(|at| format!("[a](p{at}.md)\n")).collect();
    let reply = asked(&library, "different.md", &all);
    assert!(is_incomplete(&reply));
    assert_eq!(reply["truncated"], json!(true));
}

#[test]
fn generated_code_is_bounded() {
    let library = TestLibrary::new();
    let symbols: String =
        (0..120_000).map(|at| format!("fn f{at}() {{ f{}(); }}\n", (at + 1) % 120_000)).collect();
    let reply = asked(&library, "many.rs", &symbols);
    assert_eq!(reply["truncated"], json!(true));
    assert!(is_incomplete(&reply), "more than a hundred thousand symbols are not read");
    let last = library.ok("graph", json!({ "list_type": "function", "offset": 60_000, "limit": 5 }));
    assert!(last["total"].as_u64().unwrap() >= 60_000, "{}", last["total"]);
    // A hundred thousand symbols in files of ordinary size, all with the same name.
    for file in 0..20 {
        let same: String = (0..5_000).map(|at| format!("fn same() {{ same(); other{at}(); }}\n")).collect();
        add(&library, &format!("same/{file}.rs"), &same);
    }
    let begun = Instant::now();
    let reply = library.ok(
        "graph",
        json!({ "name": "same/7.rs", "relation": "CALLS", "depth": 5, "reverse": true, "limit": 50 }),
    );
    assert!(reply["connected_nodes"].as_array().unwrap().len() <= 50);
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
}

#[test]
fn circles_end() {
    let library = TestLibrary::new();
    add(&library, "cycle/a.py", "from .b import *\nfrom .a import *\ndef f():\n    g()\n");
    add(&library, "cycle/b.py", "from .a import *\nfrom .b import *\ndef h():\n    f()\n    nothing()\n");
    add(
        &library,
        "loop.rs",
        "struct A; struct B; impl A { fn x(&self) { self.gone(); } } trait C: D {} trait D: C {} impl C for A {}\n",
    );
    add(&library, "ts/a.ts", "export * from './b';\nimport { x } from './b';\nx();\n");
    add(&library, "ts/b.ts", "export * from './a';\nexport { x } from './a';\n");
    for name in ["cycle/a.py", "loop.rs", "ts/a.ts"] {
        for reverse in [false, true] {
            let reply = library.ok("graph", json!({ "name": name, "depth": 5, "reverse": reverse }));
            assert_eq!(reply["truncated"], json!(false), "{name}");
        }
    }
}

#[test]
fn symbolic_links_are_not_followed() {
    let library = TestLibrary::new();
    library.write("tree/real.md", "# Real\n\n[loop](loop.md) [alias](alias.md) [self](real.md)\n");
    let folder = library.path("tree");
    let link = |from: &str, to: &str| std::os::unix::fs::symlink(to, folder.join(from)).unwrap();
    link("loop.md", "pool.md");
    link("pool.md", "loop.md");
    link("alias.md", "real.md");
    link("up", "..");
    library.ok("add", json!({ "path": folder }));
    let asked = json!({ "name": folder.join("real.md"), "depth": 5, "relation": "LINKS_TO" });
    // Links are no documents, so what leads to them is broken.
    let reply = library.ok("graph", asked);
    assert_eq!(library.ok("graph", json!({ "list_type": "document" }))["total"], json!(1));
    let names: Vec<&str> = reply["connected_nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["loop.md", "alias.md"]);
}
