//! `search` and `grep`, formatted for a terminal.

use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_engine::{Caller, GrepRequest, Library};

use super::{given, tool};
use crate::{
    cli,
    outcome::{CliError, Outcome},
    output::{Output, Tone, counted, number, text},
    progress,
};

/// Characters of matching parts that are fetched at once.
const PARTS_PAGE: usize = 1 << 20;
const PATH: &str = "\u{1b}[35m";
const FAINT: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// Prints one page of hits. Like grep's, the exit code tells whether there were any.
pub(super) fn search(command: &cli::find::Search, library: &Library, output: &Output) -> Outcome {
    let mut arguments = given(json!({
        // With a hash alone, the query is not looked at.
        "query": Some(command.query.join(" ")).filter(|query| !query.is_empty()).or_else(|| command.hash.clone()),
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
    library.keep_index();
    if output.json {
        output.print_json(&reply)?;
    } else {
        show(&reply, output)?;
    }
    if number(&reply, "total") > 0 {
        return Ok(());
    }
    Err(CliError::notice("nothing matched")
        .hint("try other or fewer words, drop filters, or use `shelf grep` for an exact piece of text"))
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
    let total = number(reply, "total");
    if total > 0 {
        let documents = counted(total, "document", "documents");
        output.say(Tone::Good, &format!("{shown} of {documents} ({})", text(reply, "type")));
    }
    Ok(())
}

/// Prints every page. Like grep's, the exit code tells whether anything matched; `-q` prints nothing else.
pub(super) fn grep(command: &cli::find::Grep, library: &Library, output: &Output) -> Outcome {
    if let Some((flag, why)) = command.refused() {
        return Err(CliError::new(Kind::Invalid, format!("{flag} is not supported: {why}")));
    }
    let (patterns, mut paths) = command.patterns_and_paths();
    let pattern = pattern(command, &patterns);
    if let Some(glob) = command.glob.iter().find(|glob| glob.starts_with('!')) {
        return Err(CliError::new(
            Kind::Invalid,
            format!("-g '{glob}': a glob cannot exclude documents here"),
        ));
    }
    if !command.glob.is_empty() && !paths.is_empty() {
        return Err(CliError::new(Kind::Invalid, "give either paths or -g, not both"));
    }
    paths.extend(command.glob.iter().map(String::as_str));
    let ignore_case = command.ignore_case || (command.smart_case && !has_capital(&patterns));
    let question = Question { pattern, paths, ignore_case };
    let found = if command.only_matching && !output.json {
        parts(command, &question, library, output)?
    } else {
        pages(command, &question, library, output)?
    };
    if found > 0 { Ok(()) } else { Err(CliError::notice("nothing matched")) }
}

/// What is searched for, as the flags together say it.
struct Question<'a> {
    pattern: String,
    paths: Vec<&'a str>,
    ignore_case: bool,
}

/// One regular expression that means what all patterns and the flags about them mean.
fn pattern(command: &cli::find::Grep, patterns: &[&str]) -> String {
    let one = |pattern: &&str| if command.fixed_strings { escape(pattern) } else { (*pattern).to_owned() };
    let all: Vec<String> = patterns.iter().map(one).collect();
    let whole = match all.as_slice() {
        [one] => one.clone(),
        several => several.iter().map(|one| format!("(?:{one})")).collect::<Vec<_>>().join("|"),
    };
    if command.line_regexp { format!("^(?:{whole})$") } else { whole }
}

/// A pattern that matches exactly this text.
fn escape(text: &str) -> String {
    let special = |sign: char| r"\.+*?()|[]{}^$#&-~".contains(sign);
    text.chars().flat_map(|sign| special(sign).then_some('\\').into_iter().chain([sign])).collect()
}

/// Whether a pattern has a capital letter that is not part of an escape such as `\W`.
fn has_capital(patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| {
        let mut is_escaped = false;
        pattern.chars().any(|sign| {
            let counts = !is_escaped && sign.is_uppercase();
            is_escaped = !is_escaped && sign == '\\';
            counts
        })
    })
}

/// Prints lines, counts or paths, page by page; gives the number of documents found.
fn pages(
    command: &cli::find::Grep,
    question: &Question<'_>,
    library: &Library,
    output: &Output,
) -> Outcome<u64> {
    let mut arguments = given(json!({
        "pattern": question.pattern,
        "paths": question.paths,
        "collection": command.collection,
    }));
    for (name, value) in [
        ("ignore_case", question.ignore_case),
        ("word", command.word),
        ("invert", command.invert),
        ("line_numbers", !command.no_line_numbers),
        ("with_filename", !command.no_filename),
        ("count", command.count),
        ("files_with_matches", command.files_with_matches),
        ("files_without_match", command.files_without_match),
        ("output", true),
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
        for failed in reply["failed"].as_array().into_iter().flatten() {
            let line = format!("not searched: {}: {}", text(failed, "path"), text(failed, "reason"));
            output.say(Tone::Warning, &line);
        }
        if output.json {
            pages.push(reply);
        } else if output.quiet {
            return Ok(found);
        } else {
            output.print_bytes(text(&reply, "output").as_bytes())?;
        }
        if cursor.is_null() {
            if output.json {
                output.print_json(&joined(pages))?;
            }
            return Ok(found);
        }
        arguments["cursor"] = cursor;
    }
}

/// All pages as one reply. A document whose lines stand on two pages is told on both.
fn joined(pages: Vec<Value>) -> Value {
    let mut pages = pages.into_iter();
    let mut whole = pages.next().unwrap_or_default();
    for mut page in pages {
        let last = whole["matches"].as_array().and_then(|lines| lines.last());
        let is_same = |field: &str| last.is_some_and(|last| last[field] == page["matches"][0][field]);
        let goes_on = is_same("path") && is_same("hash");
        for (list, skipped) in [("matches", 0), ("files", usize::from(goes_on)), ("failed", 0)] {
            let more = page.get_mut(list).and_then(Value::as_array_mut).map(std::mem::take);
            let more: Vec<Value> = more.into_iter().flatten().skip(skipped).collect();
            match whole.get_mut(list).and_then(Value::as_array_mut) {
                Some(items) => items.extend(more),
                None if more.is_empty() => {}
                None => whole[list] = Value::Array(more),
            }
        }
        if let (Some(text), Some(more)) = (whole["output"].as_str(), page["output"].as_str()) {
            whole["output"] = Value::String(format!("{text}{more}"));
        }
        whole["next_cursor"] = page["next_cursor"].take();
    }
    whole
}

/// Prints only the matching parts of lines; gives the number of documents found.
fn parts(
    command: &cli::find::Grep,
    question: &Question<'_>,
    library: &Library,
    output: &Output,
) -> Outcome<u64> {
    let mut request = GrepRequest {
        pattern: question.pattern.clone(),
        paths: question.paths.iter().map(|path| (*path).to_owned()).collect(),
        collection: command.collection.clone(),
        ignore_case: question.ignore_case,
        word: command.word,
        max_count: (command.max_count > 0).then_some(command.max_count),
        parts: true,
        page_chars: PARTS_PAGE,
        ..GrepRequest::default()
    };
    loop {
        let call = progress::call(output);
        let found = library.grep(&Caller::owner(), &request, &call)?;
        drop(call);
        if output.quiet {
            return Ok(found.total_files);
        }
        for line in &found.lines {
            let mut shown = String::new();
            if !command.no_filename {
                shown.push_str(&format!("{}:", line.path));
            }
            if !command.no_line_numbers {
                shown.push_str(&format!("{}:", line.number));
            }
            output.print(&(shown + &line.text))?;
        }
        match found.next_cursor {
            Some(cursor) => request.cursor = Some(cursor),
            None => return Ok(found.total_files),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_escaped_and_capitals_are_seen() {
        assert_eq!(escape("a.b(c) [x]"), r"a\.b\(c\) \[x\]");
        assert!(!has_capital(&["hello", r"\W+"]));
        assert!(has_capital(&["Hello"]));
        assert!(has_capital(&[r"\\Hello"]), "an escaped backslash ends before the capital");
    }
}
