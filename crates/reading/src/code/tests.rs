//! What is read from small files of each language, and that hostile ones are bounded.

use std::time::{Duration, Instant};

use super::*;
use crate::facts::{Facts, UseKind};

/// What was read, one line a fact.
fn told(facts: &Facts) -> Vec<String> {
    let mut lines = Vec::new();
    if !facts.package.is_empty() {
        lines.push(format!("package {}", facts.package));
    }
    for one in &facts.definitions {
        lines.push(format!("{} {} {}-{}", one.kind.name(), one.qualified, one.lines.0, one.lines.1));
    }
    for one in &facts.imports {
        lines.push(format!("{:?} {}|{}|{} {}", one.kind, one.module, one.item, one.local, one.line));
    }
    for one in facts.uses.iter().filter(|one| one.kind != UseKind::Mention) {
        let from = one.from.map_or("-", |from| facts.definitions[from as usize].qualified.as_str());
        let receiver = if one.receiver.is_empty() { String::new() } else { format!("{}.", one.receiver) };
        let known =
            if one.receiver_type.is_empty() { String::new() } else { format!(" ({})", one.receiver_type) };
        lines.push(format!("{from} -> {receiver}{}{known} {}", one.name, one.line));
    }
    for one in &facts.ancestors {
        let how = if one.implements { "implements" } else { "inherits" };
        lines.push(format!("{} {how} {} {}", one.of, one.name, one.line));
    }
    lines
}

fn check(path: &str, text: &str, expected: &[&str]) {
    let language = language_of(path, "").unwrap();
    let facts = read(language, text);
    assert_eq!(told(&facts), expected, "{path}: {:#?}", told(&facts));
    assert_eq!(Facts::decode(&facts.encode()).unwrap(), facts);
    assert!(!facts.is_cut);
}

#[test]
fn rust() {
    check(
        "a.rs",
        "use crate::store::{self, Shelf as S};\npub use x::y;\nmod inner;\n\npub struct Reader { shelf: Arc<Shelf> }\n\n\
         impl Iterator for Reader {\n    fn next(&mut self) -> u8 {\n        self.shelf.take(1);\n        helper();\n        Self::make()\n    }\n}\n\
         trait Loud: Quiet {}\nfn helper() { let r = Reader::open(); r.next(); a::b::run(); }\n",
        &[
            "struct Reader 5-5",
            "method Reader::next 8-12",
            "trait Loud 14-14",
            "function helper 15-15",
            "Named crate::store||store 1",
            "Named crate::store|Shelf|S 1",
            "Reexport x|y|y 2",
            "Child self::inner||inner 3",
            "Reader::next -> self.shelf.take (Shelf) 9",
            "Reader::next -> helper 10",
            "Reader::next -> Self.make (Reader) 11",
            "helper -> Reader.open 15",
            "helper -> r.next (Reader) 15",
            "helper -> a::b.run 15",
            "Reader implements Iterator 7",
            "Loud inherits Quiet 14",
        ],
    );
}

#[test]
fn paths_within_modules_read_from_the_file() {
    check(
        "a.rs",
        "use super::up;\nmod tests {\n    use super::*;\n    use super::super::far;\n    use self::own::x;\n    use crate::y;\n    \
         mod own {\n        use super::super::z;\n        use super::w;\n    }\n}\n",
        &[
            "module tests 2-11",
            "module tests::own 7-10",
            "Named super|up|up 1",
            "All self|| 3",
            "Named super|far|far 4",
            "Named self::tests::own|x|x 5",
            "Named crate|y|y 6",
            "Named self|z|z 8",
            "Named self::tests|w|w 9",
        ],
    );
}

#[test]
fn python() {
    check(
        "pkg/a.py",
        "import os.path as p\nfrom .base import Shelf, Reader as R\nfrom x import *\n\n@deco\nclass Big(Shelf, metaclass=M):\n    def __init__(self):\n        self.r = R()\n\n    def go(self):\n        self.r.read(1)\n        helper()\n\ndef helper():\n    big = Big()\n    big.go()\n",
        &[
            "class Big 5-12",
            "method Big.__init__ 7-8",
            "method Big.go 10-12",
            "function helper 14-16",
            "Named os.path||p 1",
            "Named .base|Shelf|Shelf 2",
            "Named .base|Reader|R 2",
            "All x|| 3",
            "Big.__init__ -> R 8",
            "Big.go -> self.r.read (R) 11",
            "Big.go -> helper 12",
            "helper -> Big 15",
            "helper -> big.go (Big) 16",
            "Big inherits Shelf 6",
        ],
    );
}

#[test]
fn javascript_and_typescript() {
    check(
        "a.js",
        "import def, { a as b, c } from './x.js';\nconst { d } = require('../y');\nexport { e } from './z';\nexport class Big extends Small {\n  go() { this.run(); b(1); }\n}\nexport const helper = () => new Big().go();\nfunction main() { const big = new Big(); big.go(); }\n",
        &[
            "class Big 4-6",
            "method Big.go 5-5",
            "function helper 7-7",
            "function main 8-8",
            "Named ./x.js|default|def 1",
            "Named ./x.js|a|b 1",
            "Named ./x.js|c|c 1",
            "Named ../y|d|d 2",
            "Reexport ./z|e|e 3",
            "- -> require 2",
            "Big.go -> this.run (Big) 5",
            "Big.go -> b 5",
            "helper -> Big 7",
            "helper -> go 7",
            "main -> Big 8",
            "main -> big.go (Big) 8",
            "Big inherits Small 4",
        ],
    );
    check(
        "a.ts",
        "import * as util from './util';\nexport interface Shape extends Base { area(): number }\nabstract class Big extends Small<string> implements Shape, Other {\n  private list: List;\n  area(): number { return this.list.sum(); }\n}\nenum Color { Red }\nnamespace Deep { export function f(x: Big) { util.go(); x.area(); } }\n",
        &[
            "interface Shape 2-2",
            "method Shape.area 2-2",
            "class Big 3-6",
            "method Big.area 5-5",
            "enum Color 7-7",
            "module Deep 8-8",
            "function Deep.f 8-8",
            "Named ./util||util 1",
            "Big.area -> this.list.sum (List) 5",
            "Deep.f -> util.go 8",
            "Deep.f -> x.area (Big) 8",
            "Shape inherits Base 2",
            "Big inherits Small 3",
            "Big implements Shape 3",
            "Big implements Other 3",
        ],
    );
}

#[test]
fn go() {
    check(
        "a.go",
        "package shelf\n\nimport (\n\t\"fmt\"\n\tx \"example.org/lib/blocks\"\n)\n\ntype Big struct {\n\tSmall\n\tlist *List\n}\n\ntype Reader interface {\n\tCloser\n\tRead() int\n}\n\nfunc (b *Big) Go() {\n\tb.list.Sum()\n\tx.Open()\n}\n\nfunc main() {\n\tb := &Big{}\n\tb.Go()\n\tfmt.Println()\n}\n",
        &[
            "package shelf",
            "struct Big 8-11",
            "interface Reader 13-16",
            "method Big.Go 18-21",
            "function main 23-27",
            "Named fmt||fmt 4",
            "Named example.org/lib/blocks||x 5",
            "Big.Go -> b.list.Sum 19",
            "Big.Go -> x.Open 20",
            "main -> Big 24",
            "main -> b.Go (Big) 25",
            "main -> fmt.Println 26",
            "Big inherits Small 9",
            "Reader inherits Closer 14",
        ],
    );
}

#[test]
fn java_and_c_sharp() {
    check(
        "Big.java",
        "package org.shelf;\nimport org.shelf.base.Small;\nimport static org.x.Util.help;\nimport java.util.*;\npublic class Big extends Small implements Shape {\n  private Reader reader;\n  public Big() { help(); }\n  int area(Reader other) { reader.read(); other.close(); return new Sum(1).total(); }\n}\ninterface Shape extends Base { }\nenum Color { RED }\n",
        &[
            "package org.shelf",
            "class Big 5-9",
            "method Big.Big 7-7",
            "method Big.area 8-8",
            "interface Shape 10-10",
            "enum Color 11-11",
            "Named org.shelf.base|Small|Small 2",
            "Named org.x.Util|help|help 3",
            "All java.util|| 4",
            "Big.Big -> help 7",
            "Big.area -> reader.read (Reader) 8",
            "Big.area -> other.close (Reader) 8",
            "Big.area -> Sum 8",
            "Big.area -> total 8",
            "Big inherits Small 5",
            "Big implements Shape 5",
            "Shape inherits Base 10",
        ],
    );
    check(
        "Big.cs",
        "using System.IO;\nusing Alias = Org.Other.Thing;\nnamespace Org.Shelf;\npublic class Big : Small, IShape {\n  private Reader reader;\n  public int Area(Reader other) { reader.Read(); other.Close(); Help(); return new Sum(1).Total(); }\n}\ninterface IShape : IBase { }\nstruct Point { }\n",
        &[
            "package Org.Shelf",
            "class Big 4-7",
            "method Big.Area 6-6",
            "interface IShape 8-8",
            "struct Point 9-9",
            "All System.IO|| 1",
            "Named Org.Other|Thing|Alias 2",
            "Big.Area -> reader.Read (Reader) 6",
            "Big.Area -> other.Close (Reader) 6",
            "Big.Area -> Help 6",
            "Big.Area -> Sum 6",
            "Big.Area -> Total 6",
            "Big inherits Small 4",
            "Big implements IShape 4",
            "IShape inherits IBase 8",
        ],
    );
}

#[test]
fn c_and_c_plus_plus() {
    check(
        "a.c",
        "#include \"shelf.h\"\n#include <stdio.h>\n#define TWICE(x) ((x) * 2)\ntypedef struct { int a; } Point;\nstruct Big { int a; };\nstatic int *helper(struct Big *big) { return run(big->a); }\nint main(void) { helper(0); printf(\"x\"); return 0; }\n",
        &[
            "function TWICE 3-3",
            "struct Point 4-4",
            "struct Big 5-5",
            "function helper 6-6",
            "function main 7-7",
            "File shelf.h|| 1",
            "SystemFile stdio.h|| 2",
            "helper -> run 6",
            "main -> helper 7",
            "main -> printf 7",
        ],
    );
    check(
        "a.cpp",
        "#include \"big.hpp\"\nnamespace deep {\nclass Big : public Small, private Other<int> {\n public:\n  int area() { return helper(); }\n  List list;\n};\ntemplate <typename T> int twice(T x) { return x * 2; }\n}\nint deep::Big::sum(Reader &reader) { reader.read(); list.go(); this->area(); std::move(1); return Big::make(); }\n",
        &[
            "module deep 2-9",
            "class deep::Big 3-7",
            "method deep::Big::area 5-5",
            "function deep::twice 8-8",
            "method deep::Big::sum 10-10",
            "File big.hpp|| 1",
            "deep::Big::area -> helper 5",
            "deep::Big::sum -> reader.read (Reader) 10",
            "deep::Big::sum -> list.go (List) 10",
            "deep::Big::sum -> this.area (deep::Big) 10",
            "deep::Big::sum -> std.move 10",
            "deep::Big::sum -> Big.make 10",
            "deep::Big inherits Small 3",
            "deep::Big inherits Other 3",
        ],
    );
}

#[test]
fn ruby() {
    check(
        "a.rb",
        "require 'json'\nrequire_relative '../lib/base'\nmodule Deep\n  class Big < Small\n    include Loud\n    def go\n      @list = List.new\n      @list.sum(1)\n      helper(2)\n    end\n    def self.make\n      new.go\n    end\n  end\nend\n",
        &[
            "module Deep 3-15",
            "class Deep::Big 4-14",
            "method Deep::Big::go 6-10",
            "method Deep::Big::make 11-13",
            "Named json|| 1",
            "File ../lib/base|| 2",
            "Deep::Big::go -> List 7",
            "Deep::Big::go -> @list.sum (List) 8",
            "Deep::Big::go -> helper 9",
            "Deep::Big::make -> new.go 12",
            "Deep::Big inherits Small 4",
            "Deep::Big implements Loud 5",
        ],
    );
}

#[test]
fn types_that_name_other_types() {
    check(
        "a.ts",
        "export type User<T> = {\n  name: string;\n};\ntype Id =\n  | string\n  | number\ntype F = (a: Id) => void; const type = 1;\ntype\n",
        &["type User 1-3", "type Id 4-6", "type F 7-7"],
    );
    check(
        "a.go",
        "package p\ntype HandlerFunc func(\n\tw Writer,\n)\ntype ID int\ntype (\n\tA = B\n\tC[T any] map[string]T\n)\n\nfunc (h HandlerFunc) Go() {}\n",
        &[
            "package p",
            "type HandlerFunc 2-4",
            "type ID 5-5",
            "type A 7-7",
            "type C 8-8",
            "method HandlerFunc.Go 11-11",
        ],
    );
    check(
        "a.rs",
        "pub type Result<T> = std::result::Result<T, Error>;\nimpl A for B { type Item = u8; }\ntrait C { type D; }\n",
        &["type Result 1-1", "trait C 3-3", "B implements A 2"],
    );
}

#[test]
fn python_signatures_of_many_lines() {
    check(
        "a.py",
        "class A:\n    def f(\n        self,\n        a=g(1),\n    ) -> int:\n        x = h()\n\n    @deco(\n        1,\n    )\n    def k(self): pass\n\ndef l(\n    a,\n):\n    return [\n    ]\n",
        &[
            "class A 1-11",
            "method A.f 2-6",
            "method A.k 8-11",
            "function l 13-17",
            "A.f -> g 4",
            "A.f -> h 6",
            "A -> deco 8",
        ],
    );
}

#[test]
fn hostile_code_is_bounded() {
    let deep = "[(".repeat(1 << 18);
    let many: String = (0..120_000).map(|at| format!("fn f{at}() {{ g{at}(); }}\n")).collect();
    let names = format!("mod a {{ {}", "mod b { ".repeat(60_000));
    let noise: String = (0..100_000u32)
        .map(|at| char::from(33 + (at.wrapping_mul(2_654_435_761) >> 25) as u8 % 90))
        .collect();
    for language in Language::ALL {
        let code = if language == Language::Rust { &many } else { &noise };
        for (what, text) in [("deep", &deep), ("code", code), ("names", &names), ("noise", &noise)] {
            let begun = Instant::now();
            let facts = read(language, text);
            assert!(facts.definitions.len() <= MOST_FACTS);
            assert!(facts.encode().len() < 16 << 20);
            assert!(begun.elapsed() < Duration::from_secs(30), "{language:?} {what} {:?}", begun.elapsed());
        }
    }
    let facts = read(Language::Rust, &many);
    assert!(facts.is_cut && facts.definitions.len() > 50_000);
}
