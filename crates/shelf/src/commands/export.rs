//! `export`: a collection as files, with a manifest of everything else that is known of them.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
};

use serde_json::{Value, json};
use shelf_base::{CallContext, Kind};
use shelf_engine::{Book, Caller, Document, GetRequest, Library, text_path};

use crate::{
    cli::transfer::Export,
    outcome::{CliError, Outcome, reason},
    output::{Output, Tone, counted, human},
    progress,
};

/// The file that says what the others are.
pub(super) const MANIFEST: &str = "manifest.jsonl";
/// The folder of the files.
pub(super) const FILES: &str = "files";
/// The version of the manifest.
pub(super) const VERSION: u64 = 1;

pub(super) fn run(command: &Export, library: &Library, output: &Output) -> Outcome {
    let folder = &command.folder;
    let failed = |error: std::io::Error| {
        CliError::new(
            Kind::of_io(&error),
            format!("cannot write to {}: {}", folder.display(), reason(&error)),
        )
    };
    must_be_empty(folder)?;
    let files = folder.join(FILES);
    fs::create_dir_all(&files).map_err(failed)?;
    // The manifest gets its name when it is whole: an export that was interrupted cannot be taken for one.
    let unfinished = folder.join("manifest.unfinished");
    let mut manifest = BufWriter::new(File::create(&unfinished).map_err(failed)?);
    let mut head = json!({
        "shelfmark_export": VERSION,
        "collection": command.collection,
        "exported_at": library.now().to_string(),
        "version": env!("CARGO_PKG_VERSION"),
    });
    let is_this = |book: &Book| book.id == command.collection;
    if let Some(book) = library.books(&Caller::owner(), &CallContext::new())?.into_iter().find(is_this) {
        head["book"] = json!({
            "title": book.title,
            "status": book.status.word(),
            "public": book.is_public,
            "created_at": book.created_at.to_string(),
        });
    }
    writeln!(manifest, "{head}").map_err(failed)?;
    let (caller, call) = (Caller::owner(), progress::call(output));
    let mut names = Names::default();
    let mut bytes = 0;
    let count = library.walk_collection(&caller, &command.collection, &call, |document| {
        let name = names.for_document(&document);
        let target = files.join(text_path(&name));
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let request = GetRequest {
            name: Some(document.id.to_string()),
            output_path: Some(target),
            ..GetRequest::default()
        };
        let written = library.get(&caller, &request, &call)?;
        if written.is_none_or(|got| got.version.hash != document.version.hash) {
            let message = format!("'{}' was changed during the export", document.path);
            return Err(CliError::new(Kind::Conflict, message).hint("repeat the export into an empty folder"));
        }
        bytes += document.version.size;
        writeln!(manifest, "{}", row(&document, &name)).map_err(failed)
    })?;
    drop(call);
    let file = manifest.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    fs::rename(&unfinished, folder.join(MANIFEST)).map_err(failed)?;
    if output.json {
        return output.print_json(&json!({ "documents": count, "bytes": bytes, "folder": folder }));
    }
    let documents = counted(count, "document", "documents");
    output.say(Tone::Good, &format!("{documents} ({}) exported to {}", human(bytes), folder.display()));
    Ok(())
}

fn must_be_empty(folder: &Path) -> Outcome {
    let is_used = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_used {
        return Err(CliError::new(Kind::Conflict, format!("{} is not empty", folder.display()))
            .hint("name a new folder; an export never overwrites files"));
    }
    Ok(())
}

fn row(document: &Document, file: &str) -> Value {
    json!({
        "path": document.path,
        "file": file,
        "hash": document.version.hash.to_string(),
        "size": document.version.size,
        "title": document.title,
        "mime_type": document.mime,
        "is_text": document.is_text,
        "document_type": document.document_type,
        "resource_id": document.resource_id,
        "tags": document.tags,
        "metadata": document.metadata,
        "mode": document.version.mode,
        "created_at": document.created_at.to_string(),
        "modified_at": document.version.modified_at.nanos().to_string(),
    })
}

/// Names for the files: the documents' own paths where a file system takes them, otherwise their hashes.
#[derive(Default)]
struct Names {
    files: HashSet<String>,
    folders: HashSet<String>,
}

impl Names {
    fn for_document(&mut self, document: &Document) -> String {
        let own = document.path.trim_start_matches('/').to_owned();
        let name = if self.fits(&own) { own } else { format!("by-id/{}", document.id) };
        let parents = name.match_indices('/').map(|(at, _)| name[..at].to_owned());
        self.folders.extend(parents);
        self.files.insert(name.clone());
        name
    }

    fn fits(&self, name: &str) -> bool {
        let is_plain = |part: &str| {
            !part.is_empty() && part != "." && part != ".." && part.len() <= 250 && !part.contains('\0')
        };
        let mut parents = name.match_indices('/').map(|(at, _)| &name[..at]);
        name.len() <= 3_000
            && name.split('/').all(is_plain)
            && !name.starts_with("by-id/")
            && !self.files.contains(name)
            && !self.folders.contains(name)
            && !parents.any(|parent| self.files.contains(parent))
    }
}
