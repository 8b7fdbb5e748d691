//! `status`, `collections`, `snapshot`, `restore`.

use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_engine::{Caller, Library};

use super::{given, near, tool};
use crate::{
    cli,
    outcome::{CliError, Outcome},
    output::{Output, Tone, counted, human, number, text, time},
    progress,
};

pub(super) fn status(command: &cli::Status, library: &Library, output: &Output) -> Outcome {
    let arguments = json!({ "detailed": command.detailed, "file_types": command.file_types });
    let reply = tool(library, "status", arguments, &progress::call(output))?;
    if output.json {
        return output.print_json(&reply);
    }
    let ratio = reply["dedup_ratio"].as_f64().unwrap_or(0.0) * 100.0;
    let mut facts = vec![
        ("documents", number(&reply, "total_objects").to_string()),
        ("bytes", human(number(&reply, "total_bytes"))),
        ("unique blocks", number(&reply, "unique_blocks").to_string()),
        ("deduplicated", format!("{} ({ratio:.1} %)", human(number(&reply, "deduplicated_bytes")))),
    ];
    if let Some(details) = reply.get("details") {
        let disk = &details["disk"];
        let (packs, catalog) = (human(number(disk, "pack_bytes")), human(number(disk, "catalog_bytes")));
        let count = counted(number(disk, "packs"), "pack", "packs");
        facts.extend([
            ("collections", number(details, "collections").to_string()),
            ("snapshots", number(details, "snapshots").to_string()),
            ("changes", number(details, "journal_sequence").to_string()),
            ("on disk", format!("{packs} in {count}, {catalog} in the catalog")),
        ]);
        if let Some(index) = details.get("index") {
            facts.extend(index_facts(index));
        }
    }
    output.facts(&facts)?;
    if let Some(types) = reply.get("file_types") {
        let row = |kind: &Value| vec![text(kind, "type"), text(kind, "count"), human(number(kind, "bytes"))];
        let rows: Vec<_> = types["by_mime"].as_array().into_iter().flatten().map(row).collect();
        output.table(&["TYPE", "COUNT", "BYTES"], &rows)?;
    }
    Ok(())
}

/// How far the search index is, and the vectors of the deep model in it.
fn index_facts(index: &Value) -> Vec<(&'static str, String)> {
    let (passages, pending) = (number(index, "passages"), number(index, "pending"));
    let behind = match pending {
        0 => "up to date".to_owned(),
        _ => format!("{} to index with the next search", counted(pending, "change", "changes")),
    };
    let documents = counted(number(index, "documents"), "document", "documents");
    let mut facts = vec![(
        "search index",
        format!("{} of {documents}, {behind}", counted(passages, "passage", "passages")),
    )];
    if let Some(deep) = index["deep_passages"].as_u64() {
        let rest = match number(index, "deepening_seconds") {
            _ if deep >= passages => String::new(),
            left => format!(", about {left} s of work left; `shelf deepen` does it now"),
        };
        facts.push(("deep vectors", format!("{deep} of {}{rest}", counted(passages, "passage", "passages"))));
    }
    facts
}

pub(super) fn collections(library: &Library, output: &Output) -> Outcome {
    let reply = tool(library, "list_collections", json!({}), &progress::call(output))?;
    if output.json {
        return output.print_json(&reply);
    }
    let row = |found: &Value| {
        vec![
            text(found, "name"),
            text(found, "kind"),
            text(found, "document_count"),
            human(number(found, "bytes")),
            text(found, "snapshot_count"),
            time(found, "updated_at"),
        ]
    };
    let rows: Vec<_> = reply["collections"].as_array().into_iter().flatten().map(row).collect();
    output.table(&["NAME", "KIND", "DOCUMENTS", "BYTES", "SNAPSHOTS", "UPDATED"], &rows)
}

pub(super) fn snapshot(command: &cli::Snapshot, library: &Library, output: &Output) -> Outcome {
    match command {
        cli::Snapshot::List { collection } => list(collection.as_deref(), library, output),
        cli::Snapshot::Create { collection, label } => {
            let call = progress::call(output);
            let made = library
                .snapshot_collection(&Caller::owner(), collection, label.as_deref(), &call)
                .map_err(|error| near::advised(error.into(), library))?;
            drop(call);
            if output.json {
                return output.print_json(&json!({
                    "snapshot_id": made.at.with_micros(),
                    "label": made.draft.label,
                    "collection": made.collection_name,
                    "file_count": made.draft.files,
                    "bytes": made.draft.bytes,
                }));
            }
            output.say(
                Tone::Good,
                &format!("snapshot of {collection} created: {}", counted(made.draft.files, "file", "files")),
            );
            output.print(&made.at.with_micros())
        }
    }
}

fn list(collection: Option<&str>, library: &Library, output: &Output) -> Outcome {
    let call = progress::call(output);
    let mut arguments = given(json!({ "collection": collection }));
    let mut snapshots = Vec::new();
    loop {
        let mut reply = tool(library, "list_snapshots", arguments.clone(), &call)?;
        if let Some(page) = reply["snapshots"].as_array_mut() {
            snapshots.append(page);
        }
        match reply["next_cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = json!(cursor),
            None => break,
        }
    }
    drop(call);
    if output.json {
        return output.print_json(&json!({ "total": snapshots.len(), "snapshots": snapshots }));
    }
    let row = |found: &Value| {
        vec![
            text(found, "snapshot_id"),
            text(found, "collection"),
            text(found, "label"),
            text(found, "file_count"),
            human(number(found, "bytes")),
            text(found, "root"),
        ]
    };
    let rows: Vec<_> = snapshots.iter().map(row).collect();
    output.table(&["SNAPSHOT", "COLLECTION", "LABEL", "FILES", "BYTES", "ROOT"], &rows)
}

pub(super) fn restore(command: &cli::Restore, library: &Library, output: &Output) -> Outcome {
    let Some(folder) = command.output.to_str() else {
        return Err(CliError::new(Kind::Invalid, "the folder is not valid Unicode"));
    };
    let mut arguments = given(json!({
        "collection": command.collection,
        "snapshot_id": command.snapshot,
        "snapshot_label": command.label,
        "include_patterns": command.include,
        "exclude_patterns": command.exclude,
    }));
    arguments["output_directory"] = json!(folder);
    arguments["layout_template"] = json!(command.layout);
    arguments["overwrite"] = json!(command.overwrite);
    arguments["dry_run"] = json!(command.dry_run);
    let call = progress::call(output);
    let reply = tool(library, "restore", arguments, &call)?;
    drop(call);
    if output.json {
        output.print_json(&reply)?;
    } else {
        show_restored(&reply, command.dry_run, output)?;
    }
    match number(&reply, "failed_count") {
        0 => Ok(()),
        failed => {
            let files = counted(failed, "file", "files");
            Err(CliError::new(Kind::Io, format!("{files} could not be restored")))
        }
    }
}

fn show_restored(reply: &Value, dry_run: bool, output: &Output) -> Outcome {
    for (list, tone) in [("skipped", Tone::Warning), ("failed", Tone::Bad)] {
        for file in reply[list].as_array().into_iter().flatten() {
            output.say(tone, &format!("{list}: {}: {}", text(file, "target"), text(file, "reason")));
        }
    }
    for file in reply["restored"].as_array().into_iter().flatten() {
        output.print(&text(file, "target"))?;
    }
    let verb = if dry_run { "would be restored" } else { "restored" };
    let bytes = human(number(reply, "restored_bytes"));
    let (count, skipped) = (number(reply, "restored_count"), number(reply, "skipped_count"));
    output.say(Tone::Good, &format!("{} ({bytes}) {verb}", counted(count, "file", "files")));
    if count == 0 && skipped > 0 {
        output.say(Tone::Warning, "everything is there already; add --overwrite to write it again");
    }
    Ok(())
}
