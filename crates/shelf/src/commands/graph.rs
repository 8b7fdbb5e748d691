//! `graph`: connections as a tree, a diagram, or figures.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write,
    fs,
    path::Path,
};

use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_engine::{Caller, GraphStats, Library};

use super::given;
use crate::{
    cli,
    outcome::{CliError, Outcome, reason},
    output::{Output, Tone, counted},
    progress,
};

/// Documents and broken links that figures show.
const SHOWN: usize = 50;

/// Prints what is connected to a document, or figures of the whole graph.
pub(super) fn graph(command: &cli::graph::Graph, library: &Library, output: &Output) -> Outcome {
    let call = progress::call(output);
    if command.stats {
        let stats = library.graph_stats(&Caller::owner(), &call)?;
        drop(call);
        return if output.json {
            output.print_json(&figures(&stats))
        } else {
            output.print(described(&stats).trim_end())
        };
    }
    let name = command.file.as_deref().unwrap_or_default();
    let is_key = ["doc:", "sym:", "heading:", "version:", "tag:", "collection:", "snapshot:", "ref:"]
        .iter()
        .any(|sort| name.starts_with(sort));
    let mut arguments = given(json!({
        "name": (!is_key).then_some(name),
        "node_key": is_key.then_some(name),
        "scope_snapshot": command.snapshot,
        "relation_filters": command.relation,
    }));
    arguments["depth"] = json!(command.depth);
    arguments["limit"] = json!(command.limit);
    arguments["reverse"] = json!(command.reverse);
    arguments["include_edge_properties"] = json!(true);
    let reply = super::tool(library, "graph", arguments, &call).map_err(|mut error| {
        if error.message.starts_with("relation ") {
            error.message = format!("--{}", error.message);
        }
        error
    })?;
    drop(call);
    if output.json {
        return output.print_json(&reply);
    }
    let shown = if command.dot {
        dot(&reply)
    } else if command.mermaid {
        mermaid(&reply)
    } else {
        tree(&reply, command.reverse)
    };
    output.print(shown.trim_end())?;
    if reply["truncated"] == json!(true) {
        output.say(Tone::Warning, "there is more; raise --limit, or narrow it with --relation or --depth");
    }
    Ok(())
}

/// Reads the facts of every file of a folder, as indexing would, and prints their bytes: what benchmarks time.
pub(super) fn read_only(folder: &Path, output: &Output) -> Outcome {
    let (mut waiting, mut bytes) = (vec![folder.to_owned()], 0);
    while let Some(next) = waiting.pop() {
        let failed = |error: std::io::Error| {
            CliError::new(Kind::of_io(&error), format!("{}: {}", next.display(), reason(&error)))
        };
        if next.is_dir() {
            let entries = fs::read_dir(&next).map_err(failed)?;
            waiting.extend(entries.flatten().map(|entry| entry.path()));
        } else {
            let content = fs::read(&next).map_err(failed)?;
            bytes += shelf_engine::facts_size(&next.to_string_lossy(), &content);
        }
    }
    output.print(&bytes.to_string())
}

fn word<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn nodes(reply: &Value) -> impl Iterator<Item = &Value> {
    [&reply["origin"]].into_iter().chain(reply["connected_nodes"].as_array().into_iter().flatten())
}

fn edges(reply: &Value) -> impl Iterator<Item = &Value> {
    reply["edges"].as_array().into_iter().flatten()
}

fn label(node: &Value) -> String {
    match word(node, "type") {
        "document" => word(node, "path").to_owned(),
        kind @ ("tag" | "collection" | "snapshot" | "reference") => format!("{kind} {}", word(node, "name")),
        kind => format!("{} ({kind}, {})", word(node, "name"), word(node, "path")),
    }
}

/// Each node below the one that led to it. A node that was shown before is not unfolded again.
fn tree(reply: &Value, reverse: bool) -> String {
    let labels: HashMap<&str, String> =
        nodes(reply).map(|node| (word(node, "node_key"), label(node))).collect();
    let origin = word(&reply["origin"], "node_key");
    let mut below: HashMap<&str, Vec<(&Value, &str)>> = HashMap::new();
    for edge in edges(reply) {
        let (near, far) = if reverse { ("target", "source") } else { ("source", "target") };
        // What belongs to the origin stands for it.
        let near = word(edge, near);
        let parent = if labels.contains_key(near) { near } else { origin };
        below.entry(parent).or_default().push((edge, word(edge, far)));
    }
    let mut shown = HashSet::from([origin]);
    let mut printed = format!("{}\n", labels[origin]);
    let mut waiting: Vec<(&Value, &str, usize)> = Vec::new();
    let push = |waiting: &mut Vec<_>, key: &str, depth: usize| {
        let inner = below.get(key).into_iter().flatten().rev();
        waiting.extend(inner.map(|(edge, far)| (*edge, *far, depth)));
    };
    push(&mut waiting, origin, 1);
    while let Some((edge, key, depth)) = waiting.pop() {
        let name = labels.get(key).map_or(key, String::as_str);
        let properties = &edge["properties"];
        let line = properties["line"].as_u64().map(|line| format!(" (line {line})")).unwrap_or_default();
        let broken = if properties["broken"] == json!(true) { " broken" } else { "" };
        let unsure = properties["confidence"].as_f64().filter(|sure| *sure < 0.9);
        let unsure = unsure.map(|sure| format!(" {:.0} %", sure * 100.0)).unwrap_or_default();
        let _ = writeln!(
            printed,
            "{}{} {name}{line}{broken}{unsure}",
            "  ".repeat(depth),
            word(edge, "relation")
        );
        if shown.insert(key) {
            push(&mut waiting, key, depth + 1);
        }
    }
    printed
}

/// Numbers for the nodes of a diagram, in the order in which they appear.
fn numbered(reply: &Value) -> (Vec<(usize, String)>, HashMap<&str, usize>) {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut labels = Vec::new();
    for node in nodes(reply) {
        numbers.insert(word(node, "node_key"), labels.len());
        labels.push((labels.len(), label(node)));
    }
    for key in edges(reply).flat_map(|edge| [word(edge, "source"), word(edge, "target")]) {
        if !numbers.contains_key(key) {
            numbers.insert(key, labels.len());
            let name = key.split_once('#').map_or(key, |(_, name)| name);
            labels.push((labels.len(), name.to_owned()));
        }
    }
    (labels, numbers)
}

fn dot(reply: &Value) -> String {
    let (labels, numbers) = numbered(reply);
    let mut shown = String::from("digraph shelf {\n  rankdir=LR;\n  node [shape=box];\n");
    for (number, label) in labels {
        let label = label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
        let _ = writeln!(shown, "  n{number} [label=\"{label}\"];");
    }
    for edge in edges(reply) {
        let (from, to) = (numbers[word(edge, "source")], numbers[word(edge, "target")]);
        let _ = writeln!(shown, "  n{from} -> n{to} [label=\"{}\"];", word(edge, "relation"));
    }
    shown.push_str("}\n");
    shown
}

fn mermaid(reply: &Value) -> String {
    let (labels, numbers) = numbered(reply);
    let mut shown = String::from("flowchart LR\n");
    for (number, label) in labels {
        let label = label.replace('"', "#quot;").replace('\n', " ");
        let _ = writeln!(shown, "  n{number}[\"{label}\"]");
    }
    for edge in edges(reply) {
        let (from, to) = (numbers[word(edge, "source")], numbers[word(edge, "target")]);
        let _ = writeln!(shown, "  n{from} -->|{}| n{to}", word(edge, "relation"));
    }
    shown
}

fn figures(stats: &GraphStats) -> Value {
    let most = stats.most_connected.iter();
    let broken = stats.broken.iter();
    json!({
        "documents": stats.documents,
        "relations": stats.relations,
        "most_connected": most.map(|(path, out, into)| json!({ "path": path, "outgoing": out, "incoming": into })).collect::<Vec<_>>(),
        "orphans": stats.orphans,
        "broken_links": broken.map(|(path, line, target)| json!({ "path": path, "line": line, "target": target })).collect::<Vec<_>>(),
    })
}

fn described(stats: &GraphStats) -> String {
    let mut shown = format!("{}\n", counted(stats.documents, "document", "documents"));
    for (relation, count) in &stats.relations {
        let _ = writeln!(shown, "  {relation} {count}");
    }
    shown.push_str("most connected (outgoing, incoming)\n");
    for (path, out, into) in &stats.most_connected {
        let _ = writeln!(shown, "  {path} ({out}, {into})");
    }
    let orphans = counted(stats.orphans.len() as u64, "document", "documents");
    let _ = writeln!(shown, "{orphans} without connections");
    stats.orphans.iter().take(SHOWN).for_each(|path| {
        let _ = writeln!(shown, "  {path}");
    });
    shown.push_str(&rest(stats.orphans.len()));
    let _ = writeln!(shown, "{}", counted(stats.broken.len() as u64, "broken link", "broken links"));
    stats.broken.iter().take(SHOWN).for_each(|(path, line, target)| {
        let _ = writeln!(shown, "  {path}:{line}: {target}");
    });
    shown.push_str(&rest(stats.broken.len()));
    shown
}

/// Says how many are not shown.
fn rest(all: usize) -> String {
    if all > SHOWN { format!("  … {} more; --json lists all\n", all - SHOWN) } else { String::new() }
}
