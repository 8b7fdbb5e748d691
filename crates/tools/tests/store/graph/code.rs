//! A tree of code in ten languages, and what is connected in it by somebody who read it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use shelf_testkit::TestLibrary;

use super::{add, told};

/// Language, files, and the edges that a reader finds.
type Fixture = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const FIXTURES: [Fixture; 10] = [
    (
        "rust",
        &[
            ("rs/Cargo.toml", "[package]\nname = \"shelf-demo\"\n"),
            ("rs/src/lib.rs", "mod store;\npub mod read;\npub use store::Shelf;\n"),
            (
                "rs/src/store.rs",
                "use std::fs;\npub struct Shelf { count: u32 }\npub trait Keep { fn keep(&self) -> u32; }\nimpl Shelf {\n    pub fn open() -> Self { let shelf = Shelf { count: check(1) }; shelf }\n    pub fn size(&self) -> u32 { self.grow(); fs::read(\"x\"); self.count }\n    fn grow(&self) {}\n}\nimpl Keep for Shelf { fn keep(&self) -> u32 { self.size() } }\nfn check(x: u32) -> u32 { x }\n",
            ),
            (
                "rs/src/read/mod.rs",
                "use crate::Shelf;\nuse super::store;\nmod inner;\npub fn all() -> u32 {\n    let shelf = Shelf::open();\n    inner::deep();\n    shelf.size()\n}\n",
            ),
            (
                "rs/src/read/inner.rs",
                "use crate::store::Keep;\npub fn deep() {}\npub fn each(keep: &dyn Keep) -> u32 { keep.keep() }\n",
            ),
            ("rs/tests/all.rs", "use shelf_demo::read;\nfn test() { read::all(); }\n"),
        ],
        &[
            "IMPORTS rs/src/lib.rs -> rs/src/store.rs",
            "IMPORTS rs/src/lib.rs -> rs/src/read/mod.rs",
            "IMPORTS rs/src/store.rs -> rust:std",
            "CALLS Shelf::open -> Shelf",
            "CALLS Shelf::open -> check",
            "CALLS Shelf::size -> Shelf::grow",
            "CALLS Shelf::keep -> Shelf::size",
            "IMPLEMENTS Shelf -> Keep",
            "IMPORTS rs/src/read/mod.rs -> rs/src/lib.rs",
            "IMPORTS rs/src/read/mod.rs -> rs/src/store.rs",
            "IMPORTS rs/src/read/mod.rs -> rs/src/read/inner.rs",
            "CALLS all -> Shelf::open",
            "CALLS all -> Shelf::size",
            "CALLS all -> deep",
            "IMPORTS rs/src/read/inner.rs -> rs/src/store.rs",
            "CALLS each -> Keep::keep",
            "IMPORTS rs/tests/all.rs -> rs/src/read/mod.rs",
            "CALLS test -> all",
        ],
    ),
    (
        "python",
        &[
            ("py/pkg/__init__.py", "from .base import Shelf\n"),
            (
                "py/pkg/base.py",
                "import os\n\nclass Base:\n    def size(self):\n        return helper()\n\nclass Shelf(Base):\n    def grow(self):\n        self.size()\n\ndef helper():\n    return os.getcwd()\n",
            ),
            (
                "py/pkg/use.py",
                "from pkg import Shelf\nfrom . import base\nfrom pkg.base import helper as h\n\ndef main():\n    shelf = Shelf()\n    shelf.grow()\n    base.helper()\n    h()\n",
            ),
        ],
        &[
            "IMPORTS py/pkg/__init__.py -> py/pkg/base.py",
            "IMPORTS py/pkg/base.py -> python:os",
            "CALLS Base.size -> helper",
            "INHERITS Shelf -> Base",
            "CALLS Shelf.grow -> Base.size",
            "IMPORTS py/pkg/use.py -> py/pkg/__init__.py",
            "IMPORTS py/pkg/use.py -> py/pkg/base.py",
            "CALLS main -> Shelf",
            "CALLS main -> Shelf.grow",
            "CALLS main -> helper",
        ],
    ),
    (
        "javascript",
        &[
            ("js/package.json", "{\"name\": \"shelf-js\"}"),
            ("js/index.js", "export { Shelf } from './shelf.js';\n"),
            (
                "js/shelf.js",
                "import { check } from './util';\nimport fs from 'fs';\nexport class Base { size() { return check(); } }\nexport class Shelf extends Base { grow() { this.size(); } }\n",
            ),
            (
                "js/util.js",
                "export function check() { return 1; }\nexport const twice = () => check() + check();\n",
            ),
            (
                "js/app/main.js",
                "import { Shelf } from 'shelf-js';\nconst { twice } = require('../util');\nfunction run() { const shelf = new Shelf(); shelf.grow(); twice(); }\n",
            ),
        ],
        &[
            "IMPORTS js/index.js -> js/shelf.js",
            "IMPORTS js/shelf.js -> js/util.js",
            "IMPORTS js/shelf.js -> javascript:fs",
            "CALLS Base.size -> check",
            "INHERITS Shelf -> Base",
            "CALLS Shelf.grow -> Base.size",
            "CALLS twice -> check",
            "IMPORTS js/app/main.js -> js/index.js",
            "IMPORTS js/app/main.js -> js/shelf.js",
            "IMPORTS js/app/main.js -> js/util.js",
            "CALLS run -> Shelf",
            "CALLS run -> Shelf.grow",
            "CALLS run -> twice",
        ],
    ),
    (
        "typescript",
        &[
            (
                "ts/shape.ts",
                "export interface Shape { area(): number }\nexport abstract class Solid implements Shape { abstract area(): number; twice() { return 2 * this.area(); } }\n",
            ),
            (
                "ts/cube.ts",
                "import { Solid } from './shape';\nimport * as math from './math';\nexport class Cube extends Solid { area(): number { return math.square(2); } }\nexport function make(): Cube { return new Cube(); }\n",
            ),
            ("ts/math.ts", "export function square(x: number): number { return x * x; }\n"),
            (
                "ts/app.tsx",
                "import { make } from './cube';\nimport type { Shape } from './shape';\nfunction show(shape: Shape) { shape.area(); const cube = make(); return cube; }\n",
            ),
        ],
        &[
            "IMPLEMENTS Solid -> Shape",
            "CALLS Solid.twice -> Solid.area",
            "IMPORTS ts/cube.ts -> ts/shape.ts",
            "IMPORTS ts/cube.ts -> ts/math.ts",
            "INHERITS Cube -> Solid",
            "CALLS Cube.area -> square",
            "CALLS make -> Cube",
            "IMPORTS ts/app.tsx -> ts/cube.ts",
            "IMPORTS ts/app.tsx -> ts/shape.ts",
            "CALLS show -> Shape.area",
            "CALLS show -> make",
        ],
    ),
    (
        "go",
        &[
            ("go/go.mod", "module example.org/demo\n"),
            (
                "go/store/store.go",
                "package store\n\nimport \"fmt\"\n\ntype Base struct{}\n\nfunc (b *Base) Size() int { return check() }\n\ntype Shelf struct {\n\tBase\n}\n\nfunc NewShelf() *Shelf { return &Shelf{} }\n\nfunc (s *Shelf) Grow() { s.Size(); fmt.Println() }\n",
            ),
            ("go/store/check.go", "package store\n\nfunc check() int { return 1 }\n"),
            (
                "go/main.go",
                "package main\n\nimport \"example.org/demo/store\"\n\nfunc main() {\n\tshelf := store.NewShelf()\n\tshelf.Grow()\n}\n",
            ),
        ],
        &[
            "IMPORTS go/store/store.go -> go:fmt",
            "CALLS Base.Size -> check",
            "INHERITS Shelf -> Base",
            "CALLS NewShelf -> Shelf",
            "CALLS Shelf.Grow -> Base.Size",
            "IMPORTS go/main.go -> go/store/store.go",
            "IMPORTS go/main.go -> go/store/check.go",
            "CALLS main -> NewShelf",
            "CALLS main -> Shelf.Grow",
        ],
    ),
    (
        "java",
        &[
            (
                "java/org/shelf/Base.java",
                "package org.shelf;\npublic class Base {\n  int size() { return Util.check(); }\n}\n",
            ),
            ("java/org/shelf/Keep.java", "package org.shelf;\npublic interface Keep { int keep(); }\n"),
            (
                "java/org/shelf/Shelf.java",
                "package org.shelf;\npublic class Shelf extends Base implements Keep {\n  public int keep() { return size(); }\n}\n",
            ),
            (
                "java/org/shelf/Util.java",
                "package org.shelf;\npublic class Util {\n  static int check() { return 1; }\n}\n",
            ),
            (
                "java/org/app/Main.java",
                "package org.app;\nimport org.shelf.Shelf;\nimport static org.shelf.Util.check;\nimport java.util.List;\nclass Main {\n  void run() { Shelf shelf = new Shelf(); shelf.keep(); check(); }\n}\n",
            ),
        ],
        &[
            "CALLS Base.size -> Util.check",
            "INHERITS Shelf -> Base",
            "IMPLEMENTS Shelf -> Keep",
            "CALLS Shelf.keep -> Base.size",
            "IMPORTS java/org/app/Main.java -> java/org/shelf/Shelf.java",
            "IMPORTS java/org/app/Main.java -> java/org/shelf/Util.java",
            "IMPORTS java/org/app/Main.java -> java:java.util",
            "CALLS Main.run -> Shelf",
            "CALLS Main.run -> Shelf.keep",
            "CALLS Main.run -> Util.check",
        ],
    ),
    (
        "c",
        &[
            (
                "c/shelf.h",
                "#ifndef SHELF_H\n#define SHELF_H\nstruct shelf { int count; };\nint shelf_size(struct shelf *s);\n#endif\n",
            ),
            (
                "c/shelf.c",
                "#include \"shelf.h\"\n#include <stdio.h>\nstatic int check(int x) { return x; }\nint shelf_size(struct shelf *s) { return check(s->count); }\n",
            ),
            ("c/main.c", "#include \"shelf.h\"\nint main(void) { struct shelf s; return shelf_size(&s); }\n"),
        ],
        &[
            "IMPORTS c/shelf.c -> c/shelf.h",
            "IMPORTS c/shelf.c -> c:stdio.h",
            "CALLS shelf_size -> check",
            "IMPORTS c/main.c -> c/shelf.h",
            "CALLS main -> shelf_size",
        ],
    ),
    (
        "cpp",
        &[
            (
                "cpp/base.hpp",
                "#pragma once\nnamespace shelf {\nclass Base { public: int size() { return 1; } };\n}\n",
            ),
            (
                "cpp/shelf.hpp",
                "#pragma once\n#include \"base.hpp\"\nnamespace shelf {\nclass Shelf : public Base { public: int grow(); };\nint check(int x) { return x; }\n}\n",
            ),
            (
                "cpp/shelf.cpp",
                "#include \"shelf.hpp\"\n#include <vector>\nint shelf::Shelf::grow() { return check(this->size()); }\n",
            ),
            ("cpp/main.cpp", "#include \"shelf.hpp\"\nint run() { shelf::Shelf s; return s.grow(); }\n"),
        ],
        &[
            "IMPORTS cpp/shelf.hpp -> cpp/base.hpp",
            "INHERITS shelf::Shelf -> shelf::Base",
            "IMPORTS cpp/shelf.cpp -> cpp/shelf.hpp",
            "IMPORTS cpp/shelf.cpp -> cpp:vector",
            "CALLS shelf::Shelf::grow -> shelf::check",
            "CALLS shelf::Shelf::grow -> shelf::Base::size",
            "IMPORTS cpp/main.cpp -> cpp/shelf.hpp",
            "CALLS run -> shelf::Shelf::grow",
        ],
    ),
    (
        "ruby",
        &[
            (
                "rb/lib/base.rb",
                "module Loud\n  def shout(x)\n    x\n  end\nend\nclass Base\n  def size(x)\n    x\n  end\nend\n",
            ),
            (
                "rb/lib/shelf.rb",
                "require_relative 'base'\nrequire 'json'\nclass Shelf < Base\n  include Loud\n  def grow(x)\n    size(x)\n    shout(x)\n  end\nend\n",
            ),
            (
                "rb/main.rb",
                "require_relative 'lib/shelf'\ndef run(x)\n  shelf = Shelf.new\n  shelf.grow(x)\nend\n",
            ),
        ],
        &[
            "IMPORTS rb/lib/shelf.rb -> rb/lib/base.rb",
            "IMPORTS rb/lib/shelf.rb -> ruby:json",
            "INHERITS Shelf -> Base",
            "IMPLEMENTS Shelf -> Loud",
            "CALLS Shelf::grow -> Base::size",
            "CALLS Shelf::grow -> Loud::shout",
            "IMPORTS rb/main.rb -> rb/lib/shelf.rb",
            "CALLS run -> Shelf",
            "CALLS run -> Shelf::grow",
        ],
    ),
    (
        "csharp",
        &[
            (
                "cs/Base.cs",
                "namespace Org.Shelf;\npublic class Base {\n  public int Size() { return Util.Check(); }\n}\npublic interface IKeep { int Keep(); }\n",
            ),
            (
                "cs/Shelf.cs",
                "using System;\nnamespace Org.Shelf;\npublic class Shelf : Base, IKeep {\n  public int Keep() { return Size(); }\n}\npublic class Util {\n  public static int Check() { return 1; }\n}\n",
            ),
            (
                "cs/Main.cs",
                "using Org.Shelf;\nnamespace Org.App;\nclass Main {\n  void Run() { var shelf = new Shelf(); shelf.Keep(); Util.Check(); }\n}\n",
            ),
        ],
        &[
            "CALLS Base.Size -> Util.Check",
            "INHERITS Shelf -> Base",
            "IMPLEMENTS Shelf -> IKeep",
            "IMPORTS cs/Shelf.cs -> csharp:System",
            "CALLS Shelf.Keep -> Base.Size",
            "IMPORTS cs/Main.cs -> cs/Base.cs",
            "IMPORTS cs/Main.cs -> cs/Shelf.cs",
            "CALLS Main.Run -> Shelf",
            "CALLS Main.Run -> Shelf.Keep",
            "CALLS Main.Run -> Util.Check",
        ],
    ),
];

const RELATIONS: [&str; 4] = ["CALLS", "IMPORTS", "INHERITS", "IMPLEMENTS"];

fn library() -> TestLibrary {
    let library = TestLibrary::new();
    for (_, files, _) in FIXTURES {
        files.iter().for_each(|(name, content)| add(&library, name, content));
    }
    library
}

#[test]
#[expect(clippy::print_stdout, reason = "precision and recall are reported by language")]
fn connections_in_ten_languages_are_those_a_reader_finds() {
    let library = library();
    let mut report = Vec::new();
    let mut symbols = BTreeSet::new();
    let mut failed = false;
    for (language, files, expected) in FIXTURES {
        let mut found = BTreeSet::new();
        for (name, _) in files {
            let reply =
                library.ok("graph", json!({ "name": name, "depth": 1, "relation_filters": RELATIONS }));
            found.extend(told(&reply));
        }
        let expected: BTreeSet<String> = expected.iter().map(|edge| (*edge).to_owned()).collect();
        let names = expected.iter().flat_map(|edge| edge.split(' ').skip(1).step_by(2).map(str::to_owned));
        symbols.extend(names.filter(|name| !name.contains('/')).map(|name| format!("{language} {name}")));
        let both = expected.intersection(&found).count() as f64;
        let (precision, recall) = (both / found.len() as f64, both / expected.len() as f64);
        let missing: Vec<&String> = expected.difference(&found).collect();
        let surplus: Vec<&String> = found.difference(&expected).collect();
        report.push(format!("{language}: precision {precision:.2}, recall {recall:.2}, missing {missing:?}, surplus {surplus:?}"));
        failed |= precision < 0.9 || recall < 0.9;
    }
    println!("{}", report.join("\n"));
    assert!(symbols.len() >= 40, "{}", symbols.len());
    assert!(!failed, "{}", report.join("\n"));
}

#[test]
fn what_leads_out_of_one_node_leads_into_the_other() {
    let library = library();
    let mut out: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    let mut origins = BTreeSet::new();
    for wanted in ["document", "symbol"] {
        let listed = library.ok("graph", json!({ "list_type": wanted, "limit": 1000 }));
        origins.extend(
            listed["nodes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|node| node["node_key"].as_str().unwrap().to_owned()),
        );
    }
    let ask = |key: &str, reverse: bool| {
        let reply =
            library.ok("graph", json!({ "node_key": key, "depth": 1, "reverse": reverse, "limit": 1000 }));
        let edges = reply["edges"].as_array().unwrap().clone();
        edges
            .into_iter()
            .map(|edge| {
                let text = |name: &str| edge[name].as_str().unwrap().to_owned();
                (text("source"), text("relation"), text("target"))
            })
            .collect::<Vec<_>>()
    };
    for key in &origins {
        for (source, relation, target) in ask(key, false) {
            out.entry(target).or_default().insert((source, relation));
        }
    }
    for (target, expected) in out.iter().filter(|(target, _)| !target.starts_with("ref:")) {
        let back: BTreeSet<(String, String)> = ask(target, true)
            .into_iter()
            .filter(|(_, _, to)| to == target)
            .map(|(from, relation, _)| (from, relation))
            .collect();
        assert_eq!(&back, expected, "{target}");
    }
}

#[test]
fn who_calls_a_function_is_told_with_its_line() {
    let library = library();
    let listed = library.ok("graph", json!({ "list_type": "method", "limit": 1000 }));
    let grow = listed["nodes"].as_array().unwrap().iter().find(|node| node["name"] == "Shelf::size").unwrap();
    let reply = library.ok("graph", json!({ "node_key": grow["node_key"], "reverse": true, "relation": "CALLS", "depth": 2, "include_edge_properties": true, "include_node_properties": true }));
    assert_eq!(
        told(&reply),
        ["CALLS all -> Shelf::size", "CALLS Shelf::keep -> Shelf::size", "CALLS test -> all"]
    );
    assert_eq!(reply["edges"][0]["properties"]["line"], json!(7));
    assert_eq!(reply["origin"]["properties"]["start_line"], json!(6));
    assert!(reply["edges"][0]["properties"]["confidence"].as_f64().unwrap() > 0.9);
}
