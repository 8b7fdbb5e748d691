//! `add`, `download`, `get`, `list`, `update`, `delete`.

use std::io::Read;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_engine::{Library, path_text};

use super::{document, given, near, tool};
use crate::{
    cli,
    outcome::{CliError, Outcome, Setbacks},
    output::{Output, Tone, counted, human, number, text, time},
    progress,
};

pub(super) fn add(command: &cli::Add, library: &Library, output: &Output) -> Outcome {
    let mut replies = Vec::new();
    let mut failed = 0;
    let mut setbacks = Setbacks::new(command.paths.len());
    for path in &command.paths {
        let call = progress::call(output);
        let arguments = add_arguments(command, path)?;
        let outcome = tool(library, "add", arguments, &call);
        drop(call);
        let reply = match outcome {
            Ok(reply) => reply,
            // One bad path does not stop the others.
            Err(error) => {
                setbacks.take(&path.display().to_string(), error, output)?;
                continue;
            }
        };
        failed += number(&reply, "files_failed");
        let is_none = ["files_added", "files_unchanged", "files_removed", "files_failed"]
            .iter()
            .all(|field| number(&reply, field) == 0);
        if is_none && !(command.include.is_empty() && command.exclude.is_empty()) {
            let note = format!(
                "{}: no file matches --include and --exclude; nothing was added",
                text(&reply, "path")
            );
            output.say(Tone::Warning, &note);
        } else if !output.json {
            show_added(&reply, output)?;
        }
        replies.push(reply);
    }
    if !command.no_index {
        // The next search would do this too, but here the user sees the progress.
        let call = progress::call(output);
        library.index_now(&call)?;
        library.keep_index();
        drop(call);
    }
    if output.json {
        let whole = if replies.len() == 1 { replies.remove(0) } else { Value::Array(replies) };
        output.print_json(&whole)?;
    }
    setbacks.end("some paths could not be added")?;
    some_failed(failed)
}

fn add_arguments(command: &cli::Add, path: &std::path::Path) -> Outcome<Value> {
    let mut arguments = given(json!({
        "collection": command.collection,
        "tags": command.tags,
        "metadata": command.metadata,
        "snapshot_label": command.label,
        "include": command.include,
        "exclude": command.exclude,
        "mime_type": command.mime_type,
        "resource_id": command.resource_id,
    }));
    if path.as_os_str() == "-" {
        let Some(name) = &command.name else {
            return Err(CliError::new(Kind::Invalid, "--name is required when reading from stdin"));
        };
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes)?;
        arguments["name"] = json!(name);
        match String::from_utf8(bytes) {
            Ok(content) => arguments["content"] = json!(content),
            Err(error) => {
                arguments["content"] = json!(STANDARD.encode(error.as_bytes()));
                arguments["encoding"] = json!("base64");
            }
        }
    } else {
        arguments["path"] = json!(path_text(path));
        arguments["recursive"] = json!(!command.flat);
        arguments["prune"] = json!(command.prune);
    }
    Ok(arguments)
}

pub(super) fn download(command: &cli::Download, library: &Library, output: &Output) -> Outcome {
    if command.urls.len() > 1 && (command.checksum.is_some() || command.name.is_some()) {
        return Err(CliError::new(Kind::Invalid, "--checksum and --name require a single URL"));
    }
    let mut replies = Vec::new();
    let mut setbacks = Setbacks::new(command.urls.len());
    for url in &command.urls {
        let arguments = given(json!({
            "url": url,
            "checksum": command.checksum,
            "name": command.name,
            "collection": command.collection,
            "tags": command.tags,
            "metadata": command.metadata,
            "snapshot_label": command.label,
        }));
        let call = progress::call(output);
        let outcome = tool(library, "download", arguments, &call);
        drop(call);
        let reply = match outcome {
            Ok(reply) => reply,
            // One bad URL does not stop the others.
            Err(error) => {
                setbacks.take(url, error, output)?;
                continue;
            }
        };
        if !output.json {
            show_added(&reply, output)?;
        }
        replies.push(reply);
    }
    if output.json {
        let whole = if replies.len() == 1 { replies.remove(0) } else { Value::Array(replies) };
        output.print_json(&whole)?;
    }
    setbacks.end("some URLs could not be downloaded")
}

/// What is said of a file that was not stored.
pub(super) fn not_added(path: &str, reason: &str) -> String {
    format!("not added: {}: {reason}", path.replace('\n', "\\n"))
}

/// The failure of a command that stored all but some files.
pub(super) fn some_failed(count: u64) -> Outcome {
    if count == 0 {
        return Ok(());
    }
    let files = counted(count, "file", "files");
    Err(CliError::new(Kind::Io, format!("{files} could not be added; the rest were stored")))
}

fn show_added(reply: &Value, output: &Output) -> Outcome {
    for failed in reply["failed"].as_array().into_iter().flatten() {
        output.say(Tone::Warning, &not_added(&text(failed, "path"), &text(failed, "reason")));
    }
    for skipped in reply["skipped"].as_array().into_iter().flatten() {
        output
            .say(Tone::Warning, &format!("skipped: {}: {}", text(skipped, "path"), text(skipped, "reason")));
    }
    let (stored, shared) = (human(number(reply, "bytes_stored")), human(number(reply, "bytes_deduped")));
    let files = match number(reply, "files_added") + number(reply, "files_unchanged") {
        0 | 1 => String::new(),
        _ => format!(
            ", {} added ({} changed), {} unchanged",
            counted(number(reply, "files_added"), "file", "files"),
            number(reply, "files_updated"),
            number(reply, "files_unchanged")
        ),
    };
    let removed = match number(reply, "files_removed") {
        0 => String::new(),
        count => format!(", {count} removed"),
    };
    let path = text(reply, "path");
    output.say(Tone::Good, &format!("{path}: {stored} stored, {shared} deduplicated{files}{removed}"));
    output.print(&text(reply, "hash"))
}

pub(super) fn get(command: &cli::Get, library: &Library, output: &Output) -> Outcome {
    if command.documents.len() > 1 && command.output.is_some() {
        return Err(CliError::new(Kind::Invalid, "--output takes a single document")
            .hint("`shelf restore` writes many documents into a folder"));
    }
    if let Some(target) = command.output.as_ref().filter(|target| target.exists() && !command.overwrite) {
        return Err(CliError::new(Kind::Conflict, format!("{} exists already", target.display()))
            .hint("add --overwrite to replace it, or name another file"));
    }
    let mut replies = Vec::new();
    let mut setbacks = Setbacks::new(command.documents.len());
    for (at, name) in command.documents.iter().enumerate() {
        if at > 0 && command.info && !output.json {
            output.print("")?;
        }
        match get_one(command, name, library, output) {
            Ok(reply) => replies.extend(reply),
            // One bad name does not stop the others.
            Err(error) if error.code == Kind::NotFound.row().code => setbacks.take(name, error, output)?,
            Err(error) => return Err(error),
        }
    }
    if output.json {
        let whole = if command.documents.len() == 1 { replies.pop() } else { None };
        output.print_json(&whole.unwrap_or(Value::Array(replies)))?;
    }
    setbacks.end("some documents were not found")
}

/// Prints one document; gives back the reply when JSON is wanted.
fn get_one(command: &cli::Get, name: &str, library: &Library, output: &Output) -> Outcome<Option<Value>> {
    let (key, value) = document(name);
    let target = command.output.as_deref().map(path_text);
    let facts_only = command.info || output.json || target.is_some();
    let mut arguments = given(json!({
        "collection": command.collection,
        "outputPath": target,
        "start_line": command.start_line,
        "end_line": command.end_line,
    }));
    arguments[key] = json!(value);
    arguments["include_content"] = json!(!facts_only || (output.json && target.is_none() && !command.info));
    let call = progress::call(output);
    let mut reply = tool(library, "get", arguments.clone(), &call)?;
    if reply["found"] != json!(true) && key == "hash" {
        // What looks like a hash may be a name.
        arguments["name"] = json!(value);
        if let Value::Object(fields) = &mut arguments {
            fields.remove("hash");
        }
        reply = tool(library, "get", arguments.clone(), &call)?;
    }
    if reply["found"] != json!(true) {
        let error = CliError::new(Kind::NotFound, format!("no document '{name}'"));
        return Err(error.hint(near::document(name, command.collection.as_deref(), library)));
    }
    if output.json {
        return Ok(Some(reply));
    }
    if command.info {
        return show_facts(&reply, output).map(|()| None);
    }
    if let Some(path) = target {
        output.say(Tone::Good, &format!("{} written to {path}", human(number(&reply, "size"))));
        return Ok(None);
    }
    if reply["encoding"] == json!("base64") && output.is_terminal() {
        let size = human(number(&reply, "size"));
        let message = format!("{} is not text ({}, {size})", text(&reply, "path"), text(&reply, "mime_type"));
        return Err(CliError::new(Kind::Invalid, message)
            .hint("write it to a file with --output FILE, or send it to another program"));
    }
    let is_part = command.start_line.or(command.end_line).is_some() || reply.get("address").is_some();
    loop {
        output.print_bytes(&content(&reply)?)?;
        let (Some(next), false) = (reply["next_offset"].as_u64(), is_part) else { return Ok(None) };
        arguments["offset"] = json!(next);
        reply = tool(library, "get", arguments.clone(), &call)?;
    }
}

fn content(reply: &Value) -> Outcome<Vec<u8>> {
    let content = text(reply, "content");
    match reply["encoding"].as_str() {
        Some("base64") => STANDARD
            .decode(&content)
            .map_err(|_| CliError::new(Kind::Internal, "the reply is not valid base64")),
        _ => Ok(content.into_bytes()),
    }
}

fn show_facts(reply: &Value, output: &Output) -> Outcome {
    let fields = [
        "path",
        "title",
        "collection",
        "hash",
        "size",
        "mime_type",
        "version",
        "tags",
        "metadata",
        "document_id",
        "created_at",
        "modified_at",
        "indexed_at",
    ];
    output.facts(&fields.map(|field| (field, text(reply, field))))
}

pub(super) fn list(command: &cli::List, library: &Library, output: &Output) -> Outcome {
    let mut arguments = given(json!({
        "pattern": command.pattern,
        "collection": command.collection,
        "tags": command.tags,
        "type": command.r#type,
        "extension": command.extension,
        "mime": command.mime,
        "modified_after": command.modified_after,
        "indexed_after": command.indexed_after,
        "recent": command.recent,
        "sort_by": command.sort,
        "limit": command.limit,
    }));
    if command.descending {
        arguments["sort_order"] = json!("desc");
    }
    arguments["match_all_tags"] = json!(command.all_tags);
    let (documents, total) = all_pages(library, arguments, command.limit, output)?;
    if output.json {
        return output.print_json(&json!({ "documents": documents, "total": total }));
    }
    if command.paths {
        return documents.iter().try_for_each(|document| output.print(&text(document, "path")));
    }
    let mut heads = vec!["PATH", "SIZE", "TYPE", "MODIFIED", "HASH", "TAGS"];
    let mut rows: Vec<Vec<String>> = documents.iter().map(row).collect();
    let collection = |document: &Value| text(document, "collection");
    let first = documents.first().map(collection).unwrap_or_default();
    if documents.iter().any(|document| collection(document) != first) {
        heads.insert(1, "COLLECTION");
        rows.iter_mut().zip(&documents).for_each(|(row, document)| row.insert(1, collection(document)));
    }
    output.table(&heads, &rows)?;
    output.say(Tone::Good, &format!("{} of {}", rows.len(), counted(total, "document", "documents")));
    Ok(())
}

/// Follows the cursors, because the command prints the whole list rather than one page.
fn all_pages(
    library: &Library,
    mut arguments: Value,
    limit: Option<u64>,
    output: &Output,
) -> Outcome<(Vec<Value>, u64)> {
    let call = progress::call(output);
    let mut documents = Vec::new();
    let wanted = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    loop {
        let mut reply = tool(library, "list", arguments.clone(), &call)?;
        let total = number(&reply, "total");
        if let Some(page) = reply["documents"].as_array_mut() {
            documents.append(page);
        }
        match reply["next_cursor"].as_str() {
            Some(cursor) if documents.len() < wanted => arguments["cursor"] = json!(cursor),
            _ => {
                documents.truncate(wanted);
                return Ok((documents, total));
            }
        }
    }
}

fn row(document: &Value) -> Vec<String> {
    vec![
        text(document, "path"),
        human(number(document, "size")),
        text(document, "mime_type"),
        time(document, "modified_at"),
        text(document, "hash").chars().take(12).collect(),
        text(document, "tags"),
    ]
}

pub(super) fn update(command: &cli::Update, library: &Library, output: &Output) -> Outcome {
    if command.metadata.is_empty() && command.tags.is_empty() && command.untags.is_empty() {
        return Err(CliError::new(Kind::Invalid, "nothing to change: give --metadata, --tag or --untag"));
    }
    let (key, value) = document(&command.document);
    let tags: Vec<String> = command
        .tags
        .iter()
        .map(|tag| format!("+{tag}"))
        .chain(command.untags.iter().map(|tag| format!("-{tag}")))
        .collect();
    let mut arguments =
        given(json!({ "metadata": command.metadata, "tags": tags, "collection": command.collection }));
    arguments[key] = json!(value);
    arguments["verbose"] = json!(true);
    let reply = tool(library, "update", arguments, &progress::call(output))?;
    if output.json {
        return output.print_json(&reply);
    }
    let changes = reply["changes"].as_array().map_or(&[][..], Vec::as_slice);
    for change in changes {
        output.print(&described(change))?;
    }
    let count = counted(changes.len() as u64, "change", "changes");
    output.say(Tone::Good, &format!("{}: {count}", text(&reply, "path")));
    Ok(())
}

/// A change of a field, as people read it: what it is now, and what it was.
fn described(change: &Value) -> String {
    let (field, old, new) = (text(change, "field"), text(change, "old"), text(change, "new"));
    match (old.as_str(), new.as_str()) {
        ("", "") => format!("{field}: {}", text(change, "action")),
        ("", new) => format!("{field}: {new} (new)"),
        (old, "") => format!("{field}: removed (was {old})"),
        (old, new) => format!("{field}: {new} (was {old})"),
    }
}

pub(super) fn delete(command: &cli::Delete, library: &Library, output: &Output) -> Outcome {
    let mut arguments = given(
        json!({ "names": command.names, "pattern": command.pattern, "collection": command.collection }),
    );
    arguments["dry_run"] = json!(command.dry_run);
    let reply = tool(library, "delete_by_name", arguments, &progress::call(output))?;
    if output.json {
        output.print_json(&reply)?;
    } else {
        for gone in reply["deleted"].as_array().into_iter().flatten() {
            output.print(&text(gone, "path"))?;
        }
    }
    let count = number(&reply, "count");
    let unknown: Vec<&str> =
        reply["not_found"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if let Some(first) = unknown.first() {
        let names = unknown.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        let done = match (count, command.dry_run) {
            (0, _) => "nothing was deleted".to_owned(),
            (_, true) => format!("{} would be deleted", counted(count, "document", "documents")),
            (_, false) => format!("{} deleted", counted(count, "document", "documents")),
        };
        let error = CliError::new(Kind::NotFound, format!("no document {names}; {done}"));
        return Err(error.hint(near::document(first, command.collection.as_deref(), library)));
    }
    if count == 0 {
        let pattern = command.pattern.as_deref().unwrap_or_default();
        return Err(CliError::notice(format!("no document matches '{pattern}'; nothing was deleted")));
    }
    if !output.json {
        output.say(Tone::Good, &text(&reply, "note"));
    }
    Ok(())
}
