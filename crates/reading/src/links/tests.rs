//! What is read from small pages of each format, and that hostile ones are bounded.

use std::time::{Duration, Instant};

use crate::{
    facts::{Facts, facts},
    text_of,
};

fn read(path: &str, mime: &str, text: &str) -> Facts {
    let read = text_of(path, mime, true, text.as_bytes()).unwrap().unwrap();
    let facts = facts(path, mime, &read, Some(text.as_bytes()));
    assert_eq!(Facts::decode(&facts.encode()).unwrap(), facts);
    facts
}

fn told(facts: &Facts) -> Vec<String> {
    let links = facts.links.iter().map(|link| {
        let title = if link.title.is_empty() { String::new() } else { format!(" \"{}\"", link.title) };
        format!("{} {} [{}]{title} {}", link.kind.name(), link.target, link.text, link.line)
    });
    let headings =
        facts.headings.iter().map(|one| format!("h{} {} #{} {}", one.level, one.text, one.anchor, one.line));
    let anchors = facts.anchors.iter().map(|anchor| format!("#{anchor}"));
    let tags = facts.tags.iter().map(|tag| format!("tag {tag}"));
    headings.chain(anchors).chain(links).chain(tags).collect()
}

#[test]
fn markdown() {
    let text = "---\ntitle: x\ntags: [one, \"two words\"]\nkeywords:\n  - three\n---\n# The *Shelf*\n\nSee [a `b`](docs/a%20b.md#part \"Title\") and [ref][r],\n[short], ![pic](img/x.png) and [[Wiki Page|shown]].[^1]\n`[not](code.md)`\n\n```\n[nor](this.md)\n```\n\n## Part\n## Part\n### Own {#own}\n<a href=\"raw.html\">x</a> <a id=\"spot\"></a>\nAs doc://textbook#pages=12-15. Also (text://x#lines=3).\n\n[r]: ../r.md\n[short]: <s p.md> 'T'\n[^1]: A note.\n";
    let facts = read("x.md", "text/markdown", text);
    assert_eq!(
        told(&facts),
        [
            "h1 The Shelf #the-shelf 7",
            "h2 Part #part 17",
            "h2 Part #part-1 18",
            "h3 Own #own 19",
            "#spot",
            "#fn-1",
            "inline docs/a%20b.md#part [a b] \"Title\" 9",
            "reference ../r.md [ref] 9",
            "reference s p.md [short] \"T\" 10",
            "image img/x.png [pic] 10",
            "wiki Wiki Page [shown] 10",
            "footnote #fn-1 [1] 10",
            "inline raw.html [x] 20",
            "citation doc://textbook#pages=12-15 [] 21",
            "citation text://x#lines=3 [] 21",
            "tag one",
            "tag two words",
            "tag three",
        ]
    );
}

#[test]
fn html() {
    let text = "<html><head><title>Page</title><meta name=keywords content='one, two'></head><body><h2 id=top>Top &amp; all</h2>\n<p>Some <a href=\"../x.html#y\" title=T>linked <b>words</b></a> here.<p><img src=pic.png alt=Pic><a name=old></a></body>";
    let facts = read("x.html", "text/html", text);
    assert_eq!(
        told(&facts),
        [
            "h2 Top & all #top 3",
            "#old",
            "inline ../x.html#y [linked words] \"T\" 5",
            "image pic.png [Pic] 7",
            "tag one",
            "tag two",
        ]
    );
}

#[test]
fn restructured_text() {
    let text = "Title\n=====\n\n.. _label:\n\nSee `text <other.rst>`_, :doc:`guide/intro`, :doc:`Named <guide/two>`,\n:ref:`label` and python_ but ``not `this`_``.\n\nPart\n----\n\n.. image:: pic.png\n.. include:: part.rst\n\n.. toctree::\n   :maxdepth: 2\n\n   intro\n   Second <two/index>\n\n.. _python: https://python.example\n";
    let facts = read("x.rst", "text/x-rst", text);
    assert_eq!(
        told(&facts),
        [
            "h1 Title #title 1",
            "h2 Part #part 9",
            "#label",
            "inline other.rst [text] 6",
            "inline guide/intro [] 6",
            "inline guide/two [Named] 6",
            "reference #label [] 7",
            "reference https://python.example [python] 7",
            "image pic.png [] 12",
            "include part.rst [] 13",
            "inline intro [] 18",
            "inline two/index [Second] 19",
        ]
    );
}

#[test]
fn asciidoc() {
    let text = "= Title\n:keywords: one, two\n\n[[spot]]\n== Part one\n\nSee link:a.html[A page], xref:other.adoc#x[Other], <<spot,here>> and https://example.org/x[site].\n\n----\nlink:not[code]\n----\ninclude::part.adoc[]\nimage::pic.png[Pic]\n";
    let facts = read("x.adoc", "text/asciidoc", text);
    assert_eq!(
        told(&facts),
        [
            "h1 Title #_title 1",
            "h2 Part one #spot 5",
            "reference #spot [here] 7",
            "inline a.html [A page] 7",
            "inline other.adoc#x [Other] 7",
            "inline https://example.org/x [site] 7",
            "include part.adoc [] 12",
            "image pic.png [Pic] 13",
            "tag one",
            "tag two",
        ]
    );
}

#[test]
fn hostile_prose_is_bounded() {
    let size = 3 << 20;
    let repeated = |part: &str| part.repeat(size / part.len());
    for part in [
        "[",
        "[[",
        "[a](",
        "[a](b) ",
        "![",
        "`",
        "<a href=\"",
        "<a href=x>",
        "link:",
        "link:a[",
        "<<",
        "`a <",
        "# x\n",
        "\n",
        "doc://a#pages=1 ",
        "[^1]",
        "[a]: b\n[a]\n",
        "> ",
        "- ",
    ] {
        let text = repeated(part);
        for (path, mime) in [
            ("a.md", "text/markdown"),
            ("a.rst", "text/x-rst"),
            ("a.adoc", "text/asciidoc"),
            ("a.html", "text/html"),
        ] {
            let begun = Instant::now();
            let _facts = read(path, mime, &text);
            assert!(begun.elapsed() < Duration::from_secs(20), "{part:?} {path} {:?}", begun.elapsed());
        }
    }
}
