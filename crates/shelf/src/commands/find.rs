//! `search` and `grep`, formatted for a terminal.

use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_engine::Library;

use super::{given, tool};
use crate::{
    cli,
    outcome::{CliError, Outcome},
    output::{Output, Tone, number, text},
    progress,
};

const PATH: &str = "\u{1b}[35m";
const FAINT: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// Prints one page of hits. Like grep's, the exit code tells whether there were any.
pub(super) fn search(command: &cli::Search, library: &Library, output: &Output) -> Outcome {
    let mut arguments = given(json!({
        "query": command.query.join(" "),
        "type": command.r#type,
        "hash": command.hash,
        "collection": command.collection,
        "include_patterns": command.paths,
        "tags": command.tags,
        "extension": command.extension,
        "mime": command.mime,
    }));
    for (name, value) in [
        ("limit", json!(command.limit)),
        ("fuzzy", json!(!command.no_fuzzy)),
        ("similarity", json!(command.similarity)),
        ("min_score", json!(command.min_score)),
        ("paths_only", json!(command.paths_only)),
        ("line_numbers", json!(true)),
        ("after_context", json!(command.after_context)),
        ("before_context", json!(command.before_context)),
        ("context", json!(command.context)),
        ("explain", json!(command.explain)),
        ("color", json!(if output.wants_color() { "always" } else { "never" })),
    ] {
        arguments[name] = value;
    }
    let call = progress::call(output);
    let reply = tool(library, "search", arguments, &call)?;
    drop(call);
    if output.json {
        output.print_json(&reply)?;
    } else {
        show(&reply, output)?;
    }
    if number(&reply, "total") > 0 {
        Ok(())
    } else {
        Err(CliError { exit: 1, ..CliError::new(Kind::NotFound, "nothing matched") })
    }
}

fn show(reply: &Value, output: &Output) -> Outcome {
    for corrected in reply["corrections"].as_array().into_iter().flatten() {
        output.say(
            Tone::Warning,
            &format!("'{}' was corrected to '{}'", text(corrected, "asked"), text(corrected, "meant")),
        );
    }
    for path in reply["paths"].as_array().into_iter().flatten() {
        output.print(path.as_str().unwrap_or_default())?;
    }
    let color = output.wants_color();
    let paint = |code: &str, text: &str| if color { format!("{code}{text}{PLAIN}") } else { text.to_owned() };
    let hits = reply["results"].as_array().map_or(&[][..], Vec::as_slice);
    for (at, hit) in hits.iter().enumerate() {
        if at > 0 {
            output.print("")?;
        }
        let mut facts = format!("{:.2}  {}", hit["score"].as_f64().unwrap_or(0.0), text(hit, "address"));
        for (field, name) in [("keyword_score", "words"), ("semantic_score", "meaning")] {
            if let Some(score) = hit[field].as_f64() {
                facts.push_str(&format!("  {name} {score:.2}"));
            }
        }
        output.print(&format!("{}  {}", paint(PATH, &text(hit, "path")), paint(FAINT, &facts)))?;
        if !text(hit, "snippet").is_empty() {
            output.print(&text(hit, "snippet"))?;
        }
    }
    let shown = hits.len().max(reply["paths"].as_array().map_or(0, Vec::len));
    output.say(
        Tone::Good,
        &format!("{shown} of {} documents ({})", number(reply, "total"), text(reply, "type")),
    );
    Ok(())
}

/// Prints every page. Like grep's, the exit code tells whether anything matched.
pub(super) fn grep(command: &cli::Grep, library: &Library, output: &Output) -> Outcome {
    let mut arguments = given(
        json!({ "pattern": command.pattern, "paths": command.paths, "collection": command.collection }),
    );
    for (name, value) in [
        ("ignore_case", command.ignore_case),
        ("word", command.word),
        ("invert", command.invert),
        ("line_numbers", !command.no_line_numbers),
        ("with_filename", !command.no_filename),
        ("count", command.count),
        ("files_with_matches", command.files_with_matches),
        ("files_without_match", command.files_without_match),
    ] {
        arguments[name] = json!(value);
    }
    for (name, value) in [
        ("after_context", command.after_context),
        ("before_context", command.before_context),
        ("context", command.context),
        ("max_count", command.max_count),
    ] {
        arguments[name] = json!(value);
    }
    arguments["color"] = json!(if output.wants_color() { "always" } else { "never" });
    let mut pages = Vec::new();
    loop {
        let call = progress::call(output);
        let reply = tool(library, "grep", arguments.clone(), &call)?;
        drop(call);
        let (cursor, found) = (reply["next_cursor"].clone(), number(&reply, "total_files"));
        let failed = reply["failed"].as_array().into_iter().flatten();
        let reply_failures: Vec<String> = failed
            .map(|failed| format!("not searched: {}: {}", text(failed, "path"), text(failed, "reason")))
            .collect();
        if output.json {
            pages.push(reply);
        } else {
            output.print_bytes(text(&reply, "output").as_bytes())?;
        }
        for failed in reply_failures {
            output.say(Tone::Warning, &failed);
        }
        if cursor.is_null() {
            if output.json {
                output.print_json(&if pages.len() == 1 { pages.remove(0) } else { Value::Array(pages) })?;
            }
            return if found > 0 {
                Ok(())
            } else {
                Err(CliError { exit: 1, ..CliError::new(Kind::NotFound, "nothing matched") })
            };
        }
        arguments["cursor"] = cursor;
    }
}
