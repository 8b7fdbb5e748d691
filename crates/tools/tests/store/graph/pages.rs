//! A tree of generated pages with exact links, pages of answers, and what others must not see.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shelf_base::CallContext;
use shelf_testkit::TestLibrary;

use super::{add, told};

const PAGES: usize = 2_000;

/// The path of a page: some have names that must be encoded in links.
fn path(number: usize) -> String {
    match number % 4 {
        0 => format!("part {}/page {number}.md", number % 10),
        1 => format!("part {}/sub/page-{number}.md", number % 10),
        2 => format!("part {}/pägé-{number}.md", number % 10),
        _ => format!("page-{number}.md"),
    }
}

/// A link as a reader understands it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    from: String,
    /// The page, or what is written where there is none.
    to: String,
    line: usize,
    text: String,
    title: String,
    anchor: String,
    is_broken: bool,
    /// The heading that the anchor means.
    heading: Option<String>,
}

/// A link from one page to another, and what it should be understood as.
fn link(from: &str, number: usize, at: usize) -> (String, Shown) {
    let to = path(number);
    let target = if number.is_multiple_of(3) {
        format!("/{to}")
    } else {
        let ups = from.matches('/').count();
        format!("{}{to}", "../".repeat(ups))
    };
    let encoded = target.replace(' ', "%20").replace('ä', "%C3%A4");
    let (written, text, title, anchor) = match (number + at) % 5 {
        0 => (
            format!("[text {number}](<{target}> \"Title {at}\")"),
            format!("text {number}"),
            format!("Title {at}"),
            "",
        ),
        1 => (format!("[text]({encoded}#section-{number})"), "text".into(), String::new(), "section-"),
        2 => (format!("[text][ref{number}]\n\n[ref{number}]: {encoded} 'T'"), "text".into(), "T".into(), ""),
        3 => (format!("![image]({encoded})"), "image".into(), String::new(), ""),
        _ => (format!("<a href=\"{encoded}\">text</a>"), "text".into(), String::new(), ""),
    };
    // Pages with an even number have the section; links to others lead to the page, but to no place in it.
    let (has_anchor, has_section) = (!anchor.is_empty(), number.is_multiple_of(2));
    let shown = Shown {
        from: from.to_owned(),
        to,
        line: 0,
        text,
        title,
        anchor: if has_anchor { format!("section-{number}") } else { String::new() },
        is_broken: has_anchor && !has_section,
        heading: (has_anchor && has_section).then(|| format!("Section {number}")),
    };
    (written, shown)
}

/// Writes a page below a folder, and gives what its links mean.
fn write_page(library: &TestLibrary, number: usize) -> Vec<Shown> {
    let own = path(number);
    let mut text = format!("# Page {number}\n\n");
    if number.is_multiple_of(2) {
        text.push_str(&format!("## Section {number}\n\n"));
    }
    let mut all = Vec::new();
    for (at, step) in [1, 7, 131].into_iter().enumerate() {
        let (written, shown) = link(&own, (number + step) % PAGES, at);
        all.push(Shown { line: text.matches('\n').count() + 1, ..shown });
        text.push_str(&format!("{written}\n\n"));
    }
    if number.is_multiple_of(10) {
        let to = format!("gone-{number}.md");
        let line = text.matches('\n').count() + 1;
        text.push_str(&format!("[gone]({to} 'Once')\n"));
        let (from, text, title) = (own.clone(), "gone".into(), "Once".into());
        all.push(Shown { from, to, line, text, title, is_broken: true, ..Shown::default() });
    }
    library.write(&format!("site/{own}"), text);
    all
}

/// The links of a page, as the graph shows them.
fn links_of(library: &TestLibrary, prefix: &str, own: &str) -> Vec<Shown> {
    let asked = json!({ "name": format!("{prefix}{own}"), "depth": 1, "relation": "LINKS_TO", "include_edge_properties": true });
    let reply = library.ok("graph", asked);
    let nodes: std::collections::HashMap<&str, &Value> = reply["connected_nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["node_key"].as_str().unwrap(), node))
        .collect();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let edges = reply["edges"].as_array().unwrap();
    let headings: std::collections::HashMap<u64, String> = edges
        .iter()
        .filter_map(|edge| {
            let node = nodes[edge["target"].as_str().unwrap()];
            let line = edge["properties"]["line"].as_u64().unwrap();
            (node["type"] == "heading").then(|| (line, word(&node["name"])))
        })
        .collect();
    let mut all = Vec::new();
    for edge in edges {
        let (node, properties) = (nodes[edge["target"].as_str().unwrap()], &edge["properties"]);
        let to = match node["type"].as_str().unwrap() {
            "document" => word(&node["path"]).strip_prefix(prefix).unwrap().to_owned(),
            "reference" => word(&node["name"]),
            _ => continue,
        };
        let line = properties["line"].as_u64().unwrap();
        all.push(Shown {
            from: own.to_owned(),
            to,
            line: line as usize,
            text: word(&properties["text"]),
            title: word(&properties["title"]),
            anchor: word(&properties["anchor"]),
            is_broken: properties["broken"].as_bool().unwrap_or(false),
            heading: headings.get(&line).cloned(),
        });
    }
    all
}

#[test]
fn links_of_two_thousand_pages_are_exact() {
    let library = TestLibrary::new();
    let mut expected: Vec<Shown> = (0..PAGES).flat_map(|number| write_page(&library, number)).collect();
    let root = library.path("site");
    library.ok("add", json!({ "path": root }));
    let prefix = format!("{}/", root.display());
    let mut found: Vec<Shown> =
        (0..PAGES).flat_map(|number| links_of(&library, &prefix, &path(number))).collect();
    expected.sort();
    found.sort();
    let wrong = expected.iter().zip(&found).find(|(expected, found)| expected != found);
    assert!(wrong.is_none() && found.len() == expected.len(), "{wrong:?}");
    assert!(expected.iter().filter(|one| one.heading.is_some()).count() > 400);
    assert!(expected.iter().filter(|one| !one.anchor.is_empty() && one.is_broken).count() > 400);
    let reply = library.ok("graph", json!({ "name": format!("{prefix}{}", path(500)), "reverse": true, "depth": 1, "relation": "LINKS_TO" }));
    let from: BTreeSet<&str> = reply["connected_nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["path"].as_str().unwrap().strip_prefix(&prefix).unwrap())
        .collect();
    let expected: BTreeSet<String> = [499, 493, 369].map(path).into();
    assert_eq!(from, expected.iter().map(String::as_str).collect());
}

#[test]
fn pages_show_every_node_and_edge_once() {
    let library = TestLibrary::new();
    for number in 0..30 {
        let links: String =
            [1, 2, 3, 11].iter().map(|step| format!("[x]({}.md)\n", (number * step + step) % 30)).collect();
        add(&library, &format!("{number}.md"), &format!("# Page {number}\n{links}"));
    }
    let ask = |limit: usize, offset: usize| {
        library.ok("graph", json!({ "name": "0.md", "depth": 5, "limit": limit, "offset": offset }))
    };
    let whole = ask(1000, 0);
    assert_eq!(whole["truncated"], json!(false));
    let total = whole["total"].as_u64().unwrap() as usize;
    assert_eq!(whole["connected_nodes"].as_array().unwrap().len(), total);
    for limit in [1, 7, total - 1, total] {
        let (mut nodes, mut edges, mut offset) = (Vec::new(), Vec::new(), 0);
        loop {
            let page = ask(limit, offset);
            nodes.extend(page["connected_nodes"].as_array().unwrap().clone());
            edges.extend(page["edges"].as_array().unwrap().clone());
            assert_eq!(
                page["truncated"].as_bool().unwrap(),
                nodes.len() < total,
                "limit {limit} offset {offset}"
            );
            match page["next_offset"].as_u64() {
                Some(next) => offset = next as usize,
                None => break,
            }
        }
        assert_eq!(&Value::Array(nodes), &whole["connected_nodes"], "limit {limit}");
        let sorted = |edges: &[Value]| edges.iter().map(Value::to_string).collect::<BTreeSet<_>>();
        assert_eq!(edges.len(), whole["edges"].as_array().unwrap().len());
        assert_eq!(sorted(&edges), sorted(whole["edges"].as_array().unwrap()));
    }
    let first = library.ok("graph", json!({ "list_type": "heading", "limit": 25 }));
    assert_eq!(
        (&first["total"], &first["truncated"], &first["next_offset"]),
        (&json!(30), &json!(true), &json!(25))
    );
    let last = library.ok("graph", json!({ "list_type": "heading", "limit": 25, "offset": 25 }));
    assert_eq!((last["nodes"].as_array().unwrap().len(), &last["truncated"]), (5, &json!(false)));
    (0..60).for_each(|number| add(&library, &format!("more/{number}.txt"), "words"));
    // A page that would be too long for a reply is shorter, and says where to go on.
    let long = library.ok("graph", json!({ "list_type": "document", "limit": 1000, "hydrate_fully": true, "include_node_properties": true }));
    assert!(long.to_string().len() <= shelf_base::bounds::PAGE_CHARS);
    assert_eq!(long["next_offset"].as_u64(), Some(long["nodes"].as_array().unwrap().len() as u64));
}

#[test]
fn nothing_of_another_account_appears() {
    let library = TestLibrary::new();
    library.user("ann", false);
    library.user("ben", false);
    let (ann, ben) = (library.caller("ann"), library.caller("ben"));
    for (who, word) in [(&ann, "Ann"), (&ben, "Ben")] {
        let add = |name: &str, content: String| {
            library
                .call_as(
                    who,
                    "add",
                    json!({ "content": content, "name": name, "tags": [format!("tag-{word}")] }),
                )
                .unwrap()
        };
        add("a.md", format!("# Shared\n\n[b](b.md) [only](only-{word}.md) https://{word}.example\n"));
        add("b.md", "# B\n\nthe same words in both accounts\n".to_owned());
        add(&format!("only-{word}.md"), format!("# Only {word}\n\n[a](a.md) [[only-Ann]] [[only-Ben]]\n"));
        add("lib.rs", format!("mod x;\npub fn shared() {{ secret_{word}(); }}\n"));
        add(
            "x.rs",
            format!(
                "use crate::shared;\npub fn secret_{word}() {{ shared(); secret_Ann(); secret_Ben(); }}\n"
            ),
        );
    }
    for (who, own, other) in [(&ann, "Ann", "Ben"), (&ben, "Ben", "Ann")] {
        let mut questions = vec![
            json!({ "list_types": true }),
            json!({ "isolated": true }),
            json!({ "name": "a.md", "depth": 5, "relation_filters": ["LINKS_TO", "TAGGED", "DUPLICATE_OF", "SIMILAR_TO", "CONTAINS", "IN_SNAPSHOT", "HAS_VERSION"] }),
            json!({ "name": "b.md", "reverse": true, "depth": 5, "include_edge_properties": true, "hydrate_fully": true }),
            json!({ "name": "x.rs", "depth": 3 }),
            json!({ "name": "lib.rs", "reverse": true, "depth": 3 }),
            json!({ "node_key": format!("tag:tag-{own}"), "reverse": true, "relation": "TAGGED" }),
        ];
        for wanted in ["document", "symbol", "tag", "collection", "snapshot", "heading", "version"] {
            questions.push(json!({ "list_type": wanted, "include_node_properties": true }));
        }
        for question in questions {
            let reply = library.call_as(who, "graph", question.clone()).unwrap();
            let nodes =
                ["nodes", "connected_nodes"].iter().filter_map(|key| reply[*key].as_array()).flatten();
            for node in nodes.filter(|node| node["type"] != "reference") {
                let text = node.to_string();
                let foreign =
                    [format!("tag-{other}"), format!("secret_{other}"), format!("only-{other}.md\"")];
                assert!(foreign.iter().all(|word| !text.contains(word.as_str())), "{question}: {text}");
            }
        }
        let documents = library.call_as(who, "graph", json!({ "list_type": "document" })).unwrap();
        assert_eq!(documents["total"], json!(5));
        // Names that both accounts have mean one thing only, and are certain.
        for name in ["a.md", "x.rs", "lib.rs"] {
            let asked = json!({ "name": name, "depth": 2, "include_edge_properties": true });
            let reply = library.call_as(who, "graph", asked).unwrap();
            for edge in reply["edges"].as_array().unwrap() {
                assert!(edge["properties"].get("candidates").is_none(), "{edge}");
            }
        }
        let own_x = library
            .call_as(who, "graph", json!({ "name": "x.rs", "depth": 1, "relation": "CALLS" }))
            .unwrap();
        let calls = told(&own_x);
        assert_eq!(
            calls,
            [format!("CALLS secret_{own} -> shared"), format!("CALLS secret_{own} -> secret_{own}")]
        );
        // Keys and numbers of one account mean nothing to another.
        for node in documents["nodes"].as_array().unwrap() {
            let stranger = if own == "Ann" { &ben } else { &ann };
            assert!(library.call_as(stranger, "graph", json!({ "node_key": node["node_key"] })).is_err());
            let by_number = library.call_as(stranger, "graph", json!({ "node_id": node["node_id"] }));
            assert!(by_number.is_err() || by_number.unwrap()["origin"]["node_key"] != node["node_key"]);
        }
    }
    library.library.index_now(&CallContext::new()).unwrap();
}
