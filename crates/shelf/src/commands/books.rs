//! `books`: creating, importing, exporting and looking back.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::{Value, json};
use shelf_base::{CallContext, Kind, Moment};
use shelf_engine::{Book, BookChange, BookError, BookStatus, Caller, FolderTally, Library};
use shelf_tools::Family;
use similar::TextDiff;

use super::import::read_text;
use crate::{
    cli::books as cli,
    outcome::{CliError, Outcome, reason},
    output::{Output, Tone, counted, human, seconds},
    progress,
};

impl From<BookError> for CliError {
    fn from(error: BookError) -> Self {
        let is_missing = matches!(error, BookError::NotFound { .. });
        let error = Self::from(Family::Books.error(error));
        let error = Self { message: error.message.replacen("book_id", "the book identifier", 1), ..error };
        match error.hints.is_empty() && is_missing {
            true => {
                error.hint("`shelf books list` shows the books, `shelf books history BOOK` what is in one")
            }
            false => error,
        }
    }
}

pub(super) fn run(command: &cli::Books, library: &Library, output: &Output) -> Outcome {
    match command {
        cli::Books::Create(command) => create(command, library, output),
        cli::Books::List => list(library, output),
        cli::Books::Set(command) => set(command, library, output),
        cli::Books::Import(command) => import(command, library, output),
        cli::Books::Export(command) => export(command, library, output),
        cli::Books::History(command) => history(command, library, output),
        cli::Books::Diff(command) => diff(command, library, output),
        cli::Books::Restore(command) => restore(command, library, output),
        cli::Books::Archive(command) => archive(command, library, output),
        cli::Books::RotateUrls { now } => rotate(*now, library, output),
    }
}

fn create(command: &cli::Create, library: &Library, output: &Output) -> Outcome {
    let (caller, call) = (Caller::owner(), CallContext::new());
    if library.books(&caller, &call)?.iter().any(|book| book.id == command.book) {
        let error = CliError::new(Kind::Conflict, format!("the book '{}' exists already", command.book));
        return Err(error.hint("use `shelf books set` to change it"));
    }
    let change = BookChange { title: command.title.clone(), ..BookChange::default() };
    let book = library.set_book(&caller, &command.book, &change, &call)?;
    show(&book, output, "created")
}

fn set(command: &cli::Set, library: &Library, output: &Output) -> Outcome {
    let (caller, call) = (Caller::owner(), CallContext::new());
    if !library.books(&caller, &call)?.iter().any(|book| book.id == command.book) {
        let error = CliError::new(Kind::NotFound, format!("no book '{}'", command.book));
        return Err(error.hint("`shelf books list` shows the books, `shelf books create` makes one"));
    }
    if command.title.is_none() && command.status.is_none() && command.public.is_none() {
        return Err(CliError::new(Kind::Invalid, "nothing to change: give --title, --status or --public"));
    }
    let change = BookChange {
        title: command.title.clone(),
        status: command.status.as_deref().and_then(BookStatus::from_word),
        is_public: command.public,
        created_at: None,
    };
    let book = library.set_book(&caller, &command.book, &change, &call)?;
    show(&book, output, "changed")
}

fn view(book: &Book) -> Value {
    json!({
        "book_id": book.id,
        "title": book.title,
        "storage_backend": "fs",
        "created_at": book.created_at.to_string(),
        "status": book.status.word(),
        "public": book.is_public,
    })
}

fn show(book: &Book, output: &Output, what: &str) -> Outcome {
    if output.json {
        return output.print_json(&view(book));
    }
    let visibility = if book.is_public { ", public" } else { "" };
    output
        .say(Tone::Good, &format!("{what} {}: {} ({}{visibility})", book.id, book.title, book.status.word()));
    Ok(())
}

fn list(library: &Library, output: &Output) -> Outcome {
    let books = library.books(&Caller::owner(), &CallContext::new())?;
    if output.json {
        return output.print_json(&json!({ "books": books.iter().map(view).collect::<Vec<_>>() }));
    }
    let row = |book: &Book| {
        let visibility = if book.is_public { "public" } else { "" };
        vec![
            book.id.clone(),
            book.title.clone(),
            book.status.word().to_owned(),
            visibility.to_owned(),
            seconds(&book.created_at.to_string()),
        ]
    };
    let rows: Vec<Vec<String>> = books.iter().map(row).collect();
    output.table(&["BOOK", "TITLE", "STATUS", "", "CREATED"], &rows)
}

fn import(command: &cli::Import, library: &Library, output: &Output) -> Outcome {
    if !command.folder.exists() {
        let shown = command.folder.display();
        return Err(CliError::new(Kind::NotFound, format!("there is no folder or ZIP file '{shown}'")));
    }
    let (caller, call) = (Caller::owner(), progress::call(output));
    let tally = library.import_book(&caller, &command.book, &command.folder, &call)?;
    if command.title.is_some() {
        let change = BookChange { title: command.title.clone(), ..BookChange::default() };
        library.set_imported_book(&caller, &command.book, &change, &call)?;
    }
    drop(call);
    if output.json {
        return output.print_json(&tally_view(&tally));
    }
    for (path, reason) in &tally.skipped {
        output.say(Tone::Warning, &format!("skipped {path}: {reason}"));
    }
    let FolderTally { added, updated, unchanged, bytes, .. } = tally;
    let line = format!(
        "imported {} ({}) into {}: {added} new, {updated} updated, {unchanged} unchanged",
        counted(added + updated + unchanged, "file", "files"),
        human(bytes),
        command.book
    );
    output.say(Tone::Good, &line);
    Ok(())
}

/// A book as `registry.yaml` of a storage folder lists it.
#[derive(Default, Deserialize)]
struct Listed {
    book_id: String,
    title: Option<String>,
    created_at: Option<String>,
    status: Option<String>,
}

#[derive(Default, Deserialize)]
struct Registry {
    #[serde(default)]
    books: Vec<Listed>,
}

/// Imports every book of a storage folder: `registry.yaml`, and a folder for each book below `books`.
pub(super) fn import_storage(folder: &Path, library: &Library, output: &Output) -> Outcome {
    let below = folder.join("books");
    let books = if below.is_dir() { below } else { folder.to_owned() };
    let registry = [Some(folder), folder.parent()]
        .into_iter()
        .flatten()
        .map(|place| place.join("registry.yaml"))
        .find(|file| file.is_file());
    let listed = match &registry {
        Some(file) => {
            serde_saphyr::from_str::<Registry>(&read_text(file)?)
                .map_err(|error| CliError::new(Kind::Invalid, format!("{}: {error}", file.display())))?
                .books
        }
        None => Vec::new(),
    };
    let found = fs::read_dir(&books).map_err(|error| {
        CliError::new(Kind::of_io(&error), format!("cannot read {}: {}", books.display(), reason(&error)))
    })?;
    let mut names: Vec<String> = found
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    if names.is_empty() {
        let message = format!("there are no books in {}", books.display());
        return Err(CliError::new(Kind::NotFound, message)
            .hint("each book is a folder with lessons, chapters and assets"));
    }
    let (caller, call) = (Caller::owner(), progress::call(output));
    let mut replies = Vec::new();
    for name in &names {
        let tally = library.import_book(&caller, name, &books.join(name), &call)?;
        let known = listed.iter().find(|listed| listed.book_id == *name);
        let change = BookChange {
            title: known.and_then(|known| known.title.clone()),
            status: known.and_then(|known| known.status.as_deref()).and_then(BookStatus::from_word),
            created_at: known
                .and_then(|known| known.created_at.as_deref())
                .and_then(|text| Moment::parse(text, library.now()).ok()),
            is_public: None,
        };
        library.set_imported_book(&caller, name, &change, &call)?;
        for (path, reason) in &tally.skipped {
            output.say(Tone::Warning, &format!("skipped {name}/{path}: {reason}"));
        }
        if !output.json {
            let FolderTally { added, updated, unchanged, bytes, .. } = &tally;
            let files = counted(added + updated + unchanged, "file", "files");
            output.print(&format!("{name}  {files} ({}), {added} new, {updated} updated", human(*bytes)))?;
        }
        replies.push(json!({ "book_id": name, "tally": tally_view(&tally) }));
    }
    drop(call);
    if output.json {
        return output.print_json(&json!({ "books": replies }));
    }
    output.say(Tone::Good, &counted(names.len() as u64, "book imported", "books imported"));
    Ok(())
}

fn tally_view(tally: &FolderTally) -> Value {
    let skipped: Vec<Value> =
        tally.skipped.iter().map(|(path, reason)| json!({ "path": path, "reason": reason })).collect();
    json!({
        "added": tally.added,
        "updated": tally.updated,
        "unchanged": tally.unchanged,
        "bytes": tally.bytes,
        "skipped": skipped,
    })
}

fn export(command: &cli::Export, library: &Library, output: &Output) -> Outcome {
    let call = progress::call(output);
    if !command.overwrite {
        let others = library.files_before_export(&Caller::owner(), &command.book, &command.folder, &call)?;
        nothing_is_lost(&others, &command.folder)?;
    }
    let tally = library.export_book(&Caller::owner(), &command.book, &command.folder, &call)?;
    drop(call);
    if output.json {
        return output.print_json(&json!({ "files": tally.added, "bytes": tally.bytes }));
    }
    let shown = command.folder.display();
    let files = counted(tally.added, "file", "files");
    output.say(Tone::Good, &format!("wrote {files} ({}) to {shown}", human(tally.bytes)));
    Ok(())
}

/// Refuses to replace files that somebody may have changed since they were written.
fn nothing_is_lost(others: &[PathBuf], folder: &Path) -> Outcome {
    let Some(first) = others.first() else { return Ok(()) };
    let and_more = match others.len() - 1 {
        0 => String::new(),
        more => format!(" and {}", counted(more as u64, "more file", "more files")),
    };
    let message = format!(
        "{}{and_more} would be replaced: what is there is not what the book has",
        folder.join(first).display()
    );
    Err(CliError::new(Kind::Conflict, message).hint("add --overwrite to replace it, or name another folder"))
}

fn history(command: &cli::History, library: &Library, output: &Output) -> Outcome {
    let (caller, call) = (Caller::owner(), CallContext::new());
    let path = command.path.as_deref();
    let history = library.book_history(&caller, &command.book, path, command.limit, &call)?;
    if let Some(path) = path.filter(|_| history.is_empty()) {
        let error = CliError::new(Kind::NotFound, format!("no file '{path}' in the book '{}'", command.book));
        return Err(error.hint("`shelf books history BOOK` shows the paths that have a history"));
    }
    let hash = |hash: Option<shelf_base::Digest>| hash.map(|hash| hash.to_string());
    if output.json {
        let changes: Vec<Value> = history
            .iter()
            .map(|version| {
                json!({
                    "sequence": version.sequence,
                    "timestamp": version.at.with_micros(),
                    "agent_id": version.by,
                    "operation": version.operation,
                    "path": version.path,
                    "previous_hash": hash(version.previous),
                    "new_hash": hash(version.new),
                })
            })
            .collect();
        return output.print_json(&json!({ "changes": changes }));
    }
    let short = |found: Option<shelf_base::Digest>| {
        hash(found).map_or_else(|| "-".to_owned(), |text| text[..12].to_owned())
    };
    let rows: Vec<Vec<String>> = history
        .iter()
        .map(|version| {
            vec![
                seconds(&version.at.to_string()),
                version.by.clone(),
                version.operation.to_owned(),
                short(version.previous),
                short(version.new),
                version.path.clone(),
            ]
        })
        .collect();
    output.table(&["WHEN", "WHO", "WHAT", "BEFORE", "AFTER", "PATH"], &rows)
}

fn diff(command: &cli::Diff, library: &Library, output: &Output) -> Outcome {
    let (caller, call) = (Caller::owner(), CallContext::new());
    let place = (command.book.as_str(), command.path.as_str());
    let history = library.book_history(&caller, place.0, Some(place.1), 10_000, &call)?;
    let changed = history.iter().find(|version| version.previous != version.new);
    let Some(newest) = changed else {
        let error = CliError::new(Kind::NotFound, format!("{} has no history", command.path));
        return Err(error.hint("`shelf books history BOOK` shows the paths that have one"));
    };
    let text_of = |hash: Option<String>| -> Outcome<(String, String)> {
        match hash {
            None => Ok(("nothing".into(), String::new())),
            Some(hash) => {
                let (found, bytes) = library.book_content_at(&caller, place, &hash, &call)?;
                let text = String::from_utf8(bytes)
                    .map_err(|_| CliError::new(Kind::Invalid, "only text files can be compared"))?;
                Ok((found.to_string()[..12].to_owned(), text))
            }
        }
    };
    let old = text_of(command.old.clone().or(newest.previous.map(|hash| hash.to_string())))?;
    let new = text_of(command.new.clone().or(newest.new.map(|hash| hash.to_string())))?;
    let difference = TextDiff::from_lines(&old.1, &new.1);
    let (from, to) = (format!("{} {}", command.path, old.0), format!("{} {}", command.path, new.0));
    let text = difference.unified_diff().header(&from, &to).to_string();
    if output.json {
        return output.print_json(&json!({ "old": old.0, "new": new.0, "diff": text }));
    }
    output.print_bytes(text.as_bytes())
}

fn restore(command: &cli::Restore, library: &Library, output: &Output) -> Outcome {
    let (caller, call) = (Caller::owner(), CallContext::new());
    let place = (command.book.as_str(), command.path.as_str());
    let (hash, size) = library.restore_book_file(&caller, place, &command.hash, &call)?;
    if output.json {
        return output
            .print_json(&json!({ "path": command.path, "file_hash": hash.to_string(), "file_size": size }));
    }
    let line = format!("{} is again as it was: {} ({})", command.path, &hash.to_string()[..12], human(size));
    output.say(Tone::Good, &line);
    Ok(())
}

fn archive(command: &cli::Archive, library: &Library, output: &Output) -> Outcome {
    let target = command.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.zip", command.book)));
    let shown = target.display().to_string();
    if target.exists() && !command.overwrite {
        return Err(CliError::new(Kind::Conflict, format!("{shown} exists already"))
            .hint("add --overwrite to replace it, or name another file with --output"));
    }
    let call = progress::call(output);
    let archive = library.book_archive(&Caller::owner(), &command.book, &call)?;
    drop(call);
    fs::copy(&archive.file, &target).map_err(|error| {
        CliError::new(Kind::of_io(&error), format!("cannot write '{shown}': {}", reason(&error)))
    })?;
    if output.json {
        return output.print_json(&json!({
            "file": shown,
            "file_count": archive.files,
            "total_size_bytes": archive.bytes,
            "manifest_hash": archive.manifest.to_string(),
        }));
    }
    let files = counted(archive.files, "file", "files");
    let line = format!("wrote {files} ({}) to {shown}", human(archive.bytes));
    output.say(Tone::Good, &line);
    Ok(())
}

fn rotate(now: bool, library: &Library, output: &Output) -> Outcome {
    library.rotate_url_keys(now)?;
    let line = if now {
        "URLs that were given out before no longer work"
    } else {
        "new URLs are signed with a new key; earlier ones work until the next rotation"
    };
    output.say(Tone::Good, line);
    Ok(())
}
