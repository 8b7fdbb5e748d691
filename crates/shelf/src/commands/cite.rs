//! `cite`: resources, their trees, the evidence for a citation, and whether citations hold.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use shelf_base::{CallContext, Digest, Kind};
use shelf_engine::{Caller, CitationError, Library};

use super::{given, tool};
use crate::{
    cli::cite::{Add, Cite, Export, SetMap, Show},
    outcome::{CliError, Outcome, reason},
    output::{Output, Tone, text},
    progress,
};

/// Nodes of a tree that are printed after adding.
const SHOWN_NODES: usize = 60;

impl From<CitationError> for CliError {
    fn from(error: CitationError) -> Self {
        Self::of(&error)
    }
}

pub(super) fn run(command: &Cite, library: &Library, output: &Output) -> Outcome {
    match command {
        Cite::Add(command) => add(command, library, output),
        Cite::List => list(library, output),
        Cite::Show(command) => show(command, library, output),
        Cite::Check { files } => check(files, library, output),
        Cite::Import { folder } => import(folder, library, output),
        Cite::Export(command) => export(command, library, output),
        Cite::SetMap(command) => set_map(command, library, output),
    }
}

fn add(command: &Add, library: &Library, output: &Output) -> Outcome {
    let is_single = matches!(command.paths.as_slice(), [path] if !path.is_dir());
    if command.id.is_some() && !is_single {
        return Err(CliError::new(Kind::Invalid, "--id names one file; give a single one"));
    }
    let call = progress::call(output);
    let mut replies = Vec::new();
    let (mut failed, mut empty) = (0, Vec::new());
    for path in &command.paths {
        let Some(name) = path.to_str() else {
            return Err(CliError::new(Kind::Invalid, "the path is not valid Unicode"));
        };
        let arguments = given(json!({ "path": name, "collection": command.collection }));
        let added = tool(library, "add", arguments, &call)?;
        let documents = added_documents(library, &added, &call)?;
        if documents.is_empty() {
            empty.push(name);
        }
        for document in documents {
            // What cannot be cited in parts is no resource.
            if let Err(error) = library.structure(&Caller::owner(), &document.id.to_string(), &call) {
                failed += 1;
                output.error(&CliError::from(error));
                continue;
            }
            let id = match &command.id {
                Some(id) => id.clone(),
                None => library.resource_id_for(&Caller::owner(), &document)?,
            };
            library.name_resource(&Caller::owner(), document.id, &id)?;
            let structure = tool(library, "getStructure", json!({ "resource_id": id }), &call)?;
            match output.json {
                true => replies.push(structure),
                false => print_tree(&structure, SHOWN_NODES, output)?,
            }
        }
    }
    drop(call);
    if output.json {
        output.print_json(&Value::Array(replies))?;
    }
    if failed > 0 {
        return Err(CliError::new(
            Kind::Invalid,
            format!("{failed} files were stored, but cannot be cited in parts"),
        ));
    }
    if !empty.is_empty() {
        return Err(CliError::new(
            Kind::NotFound,
            format!("there are no files to cite in {}", empty.join(", ")),
        )
        .hint("hidden and ignored files are left out"));
    }
    Ok(())
}

/// The documents that an add stored: one, or all below a folder.
fn added_documents(
    library: &Library,
    added: &Value,
    call: &CallContext,
) -> Outcome<Vec<shelf_engine::Document>> {
    let caller = Caller::owner();
    if let Some(id) = added["document_id"].as_str().and_then(|id| id.parse().ok()) {
        return Ok(library.document(&caller, id)?.into_iter().collect());
    }
    let folder = format!("{}/", text(added, "path").trim_end_matches('/'));
    let mut arguments =
        given(json!({ "pattern": folder, "collection": added["collection"], "limit": 1_000 }));
    let mut documents = Vec::new();
    loop {
        let page = tool(library, "list", arguments.clone(), call)?;
        for found in page["documents"].as_array().into_iter().flatten() {
            let id = found["document_id"].as_str().and_then(|id| id.parse().ok());
            if let Some(id) = id {
                documents.extend(library.document(&caller, id)?);
            }
        }
        match page["next_cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = json!(cursor),
            None => return Ok(documents),
        }
    }
}

fn print_tree(structure: &Value, most: usize, output: &Output) -> Outcome {
    output.print(&format!("{}  {}", text(structure, "resource_id"), text(structure, "title")))?;
    let mut waiting: Vec<(&Value, usize)> =
        structure["nodes"].as_array().into_iter().flatten().rev().map(|node| (node, 1)).collect();
    let mut shown = 0;
    while let Some((node, depth)) = waiting.pop() {
        if shown == most {
            let rest: usize =
                std::iter::once(node).chain(waiting.iter().map(|(node, _)| *node)).map(count).sum();
            return output.print(&format!("  … {rest} more"));
        }
        shown += 1;
        let place = place_of(&node["location"]);
        output.print(&format!(
            "{}{}  {place}  {}",
            "  ".repeat(depth),
            text(node, "id"),
            text(node, "title")
        ))?;
        waiting
            .extend(node["children"].as_array().into_iter().flatten().rev().map(|child| (child, depth + 1)));
    }
    Ok(())
}

fn count(node: &Value) -> usize {
    let mut total = 0;
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        total += 1;
        waiting.extend(node["children"].as_array().into_iter().flatten());
    }
    total
}

/// A location in a few characters.
fn place_of(location: &Value) -> String {
    let numbers = |name: &str| -> Option<Vec<String>> {
        Some(location[name].as_array()?.iter().map(Value::to_string).collect())
    };
    // Two numbers are a range, which may be one of a single line or page; more pages are a list.
    let range = |name: &str| {
        let mut numbers = numbers(name)?;
        let separator = if numbers.len() > 2 { "," } else { "-" };
        numbers.dedup();
        Some(numbers.join(separator))
    };
    range("lines")
        .map(|lines| format!("lines {lines}"))
        .or_else(|| range("pages").map(|pages| format!("pages {pages}")))
        .or_else(|| numbers("bbox").map(|bbox| format!("bbox {}", bbox.join(","))))
        .or_else(|| location["start"].as_f64().map(|start| format!("{start}-{} s", location["end"])))
        .unwrap_or_else(|| text(location, "virtual_address"))
}

fn list(library: &Library, output: &Output) -> Outcome {
    let reply = tool(library, "listResources", json!({}), &progress::call(output))?;
    if output.json {
        return output.print_json(&reply);
    }
    for id in reply["resources"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        output.print(id)?;
    }
    Ok(())
}

fn show(command: &Show, library: &Library, output: &Output) -> Outcome {
    if let Some(target) = command.output.as_ref().filter(|target| target.exists() && !command.overwrite) {
        return Err(CliError::new(Kind::Conflict, format!("{} exists already", target.display()))
            .hint("add --overwrite to replace it, or name another file"));
    }
    let call = progress::call(output);
    let is_address = command.target.contains("://");
    if !is_address && command.node.is_none() {
        let structure = tool(library, "getStructure", json!({ "resource_id": command.target }), &call)?;
        drop(call);
        return if output.json {
            output.print_json(&structure)
        } else {
            print_tree(&structure, usize::MAX, output)
        };
    }
    let arguments = match &command.node {
        Some(node) => json!({ "resource_id": command.target, "node_id": node }),
        None => json!({ "address": command.target }),
    };
    let reply = tool(library, "resolve", arguments, &call)?;
    drop(call);
    warn_of_changes(&reply, library, output);
    let evidence = PathBuf::from(text(&reply, "output_path"));
    if let Some(target) = &command.output {
        let bytes = fs::read(&evidence)?;
        fs::write(target, bytes)?;
        output.say(Tone::Good, &format!("{} written to {}", text(&reply, "address"), target.display()));
    }
    if output.json {
        return output.print_json(&reply);
    }
    match (&command.output, reply["modality"].as_str()) {
        (Some(_), _) => Ok(()),
        (None, Some("text")) => output.print_bytes(&fs::read(&evidence)?),
        (None, _) => output.print(&evidence.display().to_string()),
    }
}

/// Says when the document, or the file that it came from, is no longer what is cited.
fn warn_of_changes(reply: &Value, library: &Library, output: &Output) {
    if reply["source_changed"] == json!(true) {
        output.say(Tone::Warning, "the document has changed since; this is the content that was mapped");
    }
    let resource = json!({ "resource_id": reply["resource_id"] });
    let Ok(structure) = tool(library, "getStructure", resource, &CallContext::new()) else { return };
    let path = text(&structure, "source_path");
    if !path.starts_with('/') {
        return;
    }
    match fs::File::open(&path).and_then(hash_of) {
        Ok(hash) if hash.to_string() != text(&structure["metadata"], "source_hash") => {
            output.say(Tone::Warning, &format!("{path} has changed since it was added"));
        }
        Ok(_) => {}
        Err(_) => output.say(Tone::Warning, &format!("{path} is not there any more")),
    }
}

fn hash_of(mut file: fs::File) -> std::io::Result<Digest> {
    let mut writer = shelf_base::DigestWriter::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(writer.finish()),
            count => writer.update(&buffer[..count]),
        }
    }
}

fn read_text(path: &Path) -> Outcome<String> {
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut bytes)?;
    } else {
        bytes = fs::read(path).map_err(|error| {
            CliError::new(Kind::of_io(&error), format!("cannot read {}: {}", path.display(), reason(&error)))
        })?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn check(files: &[PathBuf], library: &Library, output: &Output) -> Outcome {
    let call = progress::call(output);
    let (mut checked, mut wrong) = (Vec::new(), 0);
    for file in files {
        for report in library.check_citations(&Caller::owner(), &read_text(file)?, &call)? {
            let place = format!("{}:{}", file.display(), report.citation.line);
            let address = &report.citation.address;
            wrong += usize::from(report.problem.is_some());
            if !output.json {
                let line = match &report.problem {
                    Some(problem) => format!("{place}: {address}: {problem}"),
                    None if report.source_changed => {
                        format!("{place}: {address}: holds; the document has changed since")
                    }
                    None => format!("{place}: {address}: holds"),
                };
                output.print(&line)?;
            }
            checked.push(json!({
                "file": file.display().to_string(),
                "line": report.citation.line,
                "address": address,
                "holds": report.problem.is_none(),
                "problem": report.problem,
                "source_changed": report.source_changed,
            }));
        }
    }
    drop(call);
    if output.json {
        output.print_json(&json!({ "checked": checked.len(), "wrong": wrong, "citations": checked }))?;
    }
    match wrong {
        0 => Ok(()),
        _ => {
            let message = format!("{wrong} of {} citations do not hold", checked.len());
            Err(CliError { exit: 1, ..CliError::new(Kind::Invalid, message) })
        }
    }
}

pub(super) fn import(folder: &Path, library: &Library, output: &Output) -> Outcome {
    let call = progress::call(output);
    let Maps { files, folders } = Maps::below(folder)?;
    let texts = files.iter().map(|file| Ok((file, read_text(file)?))).collect::<Outcome<Vec<_>>>()?;
    // Nodes that lead to other resources come after those.
    let (leading, plain): (Vec<_>, Vec<_>) =
        texts.into_iter().partition(|(_, text)| text.contains("\"virtual_address\""));
    let (mut replies, mut failed) = (Vec::new(), 0);
    for (file, text) in plain.into_iter().chain(leading) {
        match library.import_map(&Caller::owner(), &text, &folders, &call) {
            Ok(imported) => {
                let kept = &imported.kept;
                if imported.hash_differs {
                    let what = format!(
                        "{}: the map was made of other content; it fits the present one",
                        kept.resource_id
                    );
                    output.say(Tone::Warning, &what);
                }
                if !output.json {
                    output.print(&format!("{}  {} nodes", kept.resource_id, kept.nodes))?;
                }
                replies.push(json!({
                    "resource_id": kept.resource_id,
                    "nodes": kept.nodes,
                    "map_version": kept.number,
                    "added": imported.added,
                }));
            }
            Err(CitationError::BadMap { problems }) => {
                failed += 1;
                for problem in &problems {
                    output.say(Tone::Bad, &format!("{}: {problem}", file.display()));
                }
                replies.push(json!({ "file": file.display().to_string(), "problems": problems }));
            }
            Err(error) => {
                failed += 1;
                output.say(Tone::Bad, &format!("{}: {error}", file.display()));
                replies.push(json!({ "file": file.display().to_string(), "problems": [error.to_string()] }));
            }
        }
    }
    drop(call);
    if output.json {
        output.print_json(&json!({ "imported": files.len() - failed, "failed": failed, "maps": replies }))?;
    }
    match failed {
        0 => Ok(()),
        _ => {
            let message = format!("{failed} of {} maps were not imported", files.len());
            Err(CliError { exit: 1, ..CliError::new(Kind::Invalid, message) })
        }
    }
}

/// The maps of a folder, and where their sources may be.
struct Maps {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Maps {
    /// The maps in a folder, or in `.resource_maps` below it.
    fn below(folder: &Path) -> Outcome<Self> {
        let inner = folder.join(".resource_maps");
        let place = if inner.is_dir() { &inner } else { folder };
        let cannot_read = |error: std::io::Error| {
            CliError::new(Kind::of_io(&error), format!("cannot read {}: {}", place.display(), reason(&error)))
        };
        let entries = fs::read_dir(place).map_err(cannot_read)?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        if files.is_empty() {
            let message = format!("there are no maps in {}", place.display());
            let hint = "name the folder .resource_maps, which holds one .json file per resource, or the one above it";
            return Err(CliError::new(Kind::NotFound, message).hint(hint));
        }
        // What leads to other resources comes after them.
        files.sort_by_cached_key(|file| {
            let leads_on = fs::read_to_string(file).is_ok_and(|map| map.contains("\"virtual_address\""));
            (leads_on, file.clone())
        });
        let place = std::path::absolute(place).map_err(cannot_read)?;
        let folders = place.parent().into_iter().chain([place.as_path()]).map(Path::to_owned).collect();
        Ok(Self { files, folders })
    }
}

fn export(command: &Export, library: &Library, output: &Output) -> Outcome {
    let call = progress::call(output);
    let resources: Vec<String> = match &command.resource {
        Some(resource) => vec![resource.clone()],
        None => library.list_resources(&Caller::owner())?.resources,
    };
    for resource in resources {
        let map = tool(library, "getStructure", json!({ "resource_id": resource }), &call)?;
        let Some(folder) = &command.output else {
            drop(call);
            return output.print_json(&map);
        };
        if map["nodes"].as_array().is_none_or(Vec::is_empty) {
            output.say(Tone::Warning, &format!("{resource} is left out: it has no nodes"));
            continue;
        }
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{}.json", text(&map, "resource_id")));
        let json = serde_json::to_string_pretty(&map).map_err(|error| anyhow::anyhow!(error))?;
        fs::write(&path, json + "\n")?;
        output.print(&path.display().to_string())?;
    }
    Ok(())
}

fn set_map(command: &SetMap, library: &Library, output: &Output) -> Outcome {
    let Some(file) = &command.file else {
        library.unset_map(&Caller::owner(), &command.resource)?;
        output.say(Tone::Good, &format!("{} has the map that is made from it again", command.resource));
        return Ok(());
    };
    let call = progress::call(output);
    let origin = if command.model { "model" } else { "person" };
    let kept = library.set_map(&Caller::owner(), &command.resource, &read_text(file)?, origin, &call)?;
    drop(call);
    if output.json {
        let reply =
            json!({ "resource_id": kept.resource_id, "map_version": kept.number, "nodes": kept.nodes });
        return output.print_json(&reply);
    }
    output.say(Tone::Good, &format!("{}: map {} with {} nodes", kept.resource_id, kept.number, kept.nodes));
    Ok(())
}
