//! `import`: documents, books and maps that other programs wrote.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::{Component, Path, PathBuf},
};

use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use shelf_base::{CallContext, Kind, Moment};
use shelf_engine::{
    BookChange, BookStatus, Caller, ImportContent, ImportItem, ImportReply, Library, text_path,
};
use shelf_tools::verbatim;

use super::{
    books, cite,
    export::{FILES, MANIFEST, VERSION},
};
use crate::{
    cli::transfer::Import,
    outcome::{CliError, Outcome, reason},
    output::{Output, Tone, counted},
    progress,
};

/// Documents of one transaction.
const ROUND: usize = 500;
/// Bytes in memory of one transaction.
const ROUND_BYTES: usize = 32 << 20;

pub(super) fn run(command: &Import, library: &Library, output: &Output) -> Outcome {
    match command {
        Import::Export { folder, collection } => export(folder, collection.as_deref(), library, output),
        Import::Jsonl { file, collection } => jsonl(file, collection, library, output),
        Import::Citekit { folder } => cite::import(folder, library, output),
        Import::Panaversityfs { folder } => books::import_storage(folder, library, output),
    }
}

/// Gathers documents and imports them round by round.
struct Importer<'a> {
    library: &'a Library,
    call: CallContext,
    collection: String,
    waiting: Vec<ImportItem>,
    waiting_bytes: usize,
    done: ImportReply,
    touched: Vec<String>,
}

impl<'a> Importer<'a> {
    fn new(library: &'a Library, output: &Output) -> Self {
        Self {
            library,
            call: progress::call(output),
            collection: String::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            done: ImportReply::default(),
            touched: Vec::new(),
        }
    }

    fn put(&mut self, collection: &str, item: ImportItem) -> Outcome {
        let is_full = self.waiting.len() >= ROUND || self.waiting_bytes >= ROUND_BYTES;
        if is_full || (collection != self.collection && !self.waiting.is_empty()) {
            self.flush()?;
        }
        collection.clone_into(&mut self.collection);
        if let ImportContent::Bytes(bytes) = &item.content {
            self.waiting_bytes += bytes.len();
        }
        self.waiting.push(item);
        Ok(())
    }

    fn flush(&mut self) -> Outcome {
        let items = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        if items.is_empty() {
            return Ok(());
        }
        self.done.add(self.library.import(&Caller::owner(), &self.collection, items, &self.call)?);
        let all = self.done.added + self.done.updated + self.done.unchanged;
        self.call.report(all, None, "importing");
        if !self.touched.contains(&self.collection) {
            self.touched.push(self.collection.clone());
        }
        Ok(())
    }

    /// Imports what is left, makes a snapshot of each collection that was changed, and says what was done.
    fn finish(mut self, from: &str, output: &Output) -> Outcome {
        self.flush()?;
        let ImportReply { added, updated, unchanged, ids_left_out } = self.done;
        if added + updated > 0 {
            for collection in &self.touched {
                self.library.snapshot_collection(&Caller::owner(), collection, None, &self.call)?;
            }
        }
        drop(self.call);
        if output.json {
            return output.print_json(&json!({
                "added": added,
                "updated": updated,
                "unchanged": unchanged,
                "resource_ids_left_out": ids_left_out,
                "collections": self.touched,
            }));
        }
        if ids_left_out > 0 {
            let ids = counted(ids_left_out, "resource ID", "resource IDs");
            output.say(Tone::Warning, &format!("{ids} left out, because other documents have them"));
        }
        let documents = counted(added + updated + unchanged, "document", "documents");
        let parts = format!("{added} new, {updated} updated, {unchanged} unchanged");
        output.say(Tone::Good, &format!("imported {documents} from {from}: {parts}"));
        Ok(())
    }
}

/// Opens a file of lines; `-` is stdin.
fn lines_of(file: &Path) -> Outcome<Box<dyn BufRead>> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let cannot = |error: &std::io::Error| {
        CliError::new(Kind::of_io(error), format!("cannot read {}: {}", file.display(), reason(error)))
    };
    let opened = File::open(file).map_err(|error| cannot(&error))?;
    if opened.metadata().is_ok_and(|facts| facts.is_dir()) {
        return Err(CliError::new(
            Kind::Invalid,
            format!("{} is a folder, not a file of lines", file.display()),
        ));
    }
    Ok(Box::new(BufReader::new(opened)))
}

/// The error of a line, with its number.
fn bad_line(file: &Path, number: usize, what: impl std::fmt::Display) -> CliError {
    let name = if file.as_os_str() == "-" { "stdin".to_owned() } else { file.display().to_string() };
    CliError::new(Kind::Invalid, format!("{name}: line {number}: {what}"))
}

/// What is wrong with the JSON of a line: the parser counts lines within it, of which there is one.
fn bad_json(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let what = whole.split(" at line ").next().unwrap_or(&whole);
    let (known, unknown) = what.split_once(", expected one of ").unwrap_or((what, ""));
    let known = known.replace("unknown field `", "unknown key '").replace('`', "'");
    match (error.is_data(), unknown) {
        (false, _) => format!("not valid JSON at column {}: {known}", error.column()),
        (true, "") => known,
        (true, fields) => format!("{known}; known keys are {}", fields.replace('`', "")),
    }
}

/// Refuses metadata with an integer that would become a fraction close to it.
fn check_numbers(line: &str) -> Result<(), &'static str> {
    #[derive(Deserialize)]
    struct Described<'a> {
        #[serde(borrow)]
        metadata: Option<&'a RawValue>,
    }
    let described = serde_json::from_str::<Described<'_>>(line).ok();
    let metadata = described.and_then(|line| line.metadata);
    if metadata.is_some_and(|metadata| verbatim::has_wide_integer(metadata.get())) {
        return Err(
            "metadata holds an integer beyond 64 bits, which cannot be kept exactly: write it as text",
        );
    }
    Ok(())
}

/// One line of a file of documents.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    title: Option<String>,
    #[serde(alias = "content", alias = "body")]
    text: Option<String>,
    #[serde(alias = "name")]
    path: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(alias = "mime")]
    mime_type: Option<String>,
    resource_id: Option<String>,
    collection: Option<String>,
    created_at: Option<Value>,
    modified_at: Option<Value>,
}

fn jsonl(file: &Path, collection: &str, library: &Library, output: &Output) -> Outcome {
    let now = library.now();
    // What can be read twice is checked to its end first, so that a mistake in it imports nothing.
    if file.is_file() {
        each_document(file, now, |_, _| Ok(())).map_err(|error| CliError {
            message: format!("{}; nothing was imported", error.message),
            ..error
        })?;
    }
    let mut importer = Importer::new(library, output);
    let imported =
        each_document(file, now, |target, item| importer.put(target.as_deref().unwrap_or(collection), item));
    if let Err(mut error) = imported {
        let done = importer.done.added + importer.done.updated + importer.done.unchanged;
        let before = counted(done, "document", "documents");
        error.message = match done {
            0 => format!("{}; nothing was imported", error.message),
            _ => format!("{}; the first {before} were imported", error.message),
        };
        return Err(error);
    }
    importer.finish(&file.display().to_string(), output)
}

/// Gives the document of each line to `take`, with the collection that the line names.
fn each_document(
    file: &Path,
    now: Moment,
    mut take: impl FnMut(Option<String>, ImportItem) -> Outcome,
) -> Outcome {
    for (at, line) in lines_of(file)?.lines().enumerate() {
        let number = at + 1;
        let line = line.map_err(|error| bad_line(file, number, reason(&error)))?;
        if line.trim().is_empty() {
            continue;
        }
        check_numbers(&line).map_err(|what| bad_line(file, number, what))?;
        let line: Line =
            serde_json::from_str(&line).map_err(|error| bad_line(file, number, bad_json(&error)))?;
        let target = line.collection.clone();
        let item = document(line, now).map_err(|what| bad_line(file, number, what))?;
        item.check(target.as_deref()).map_err(|error| bad_line(file, number, error))?;
        take(target, item)?;
    }
    Ok(())
}

fn document(line: Line, now: Moment) -> Result<ImportItem, String> {
    let text = line.text.ok_or("a document needs text")?;
    let path = match (line.path, &line.title) {
        (Some(path), _) => path,
        (None, Some(title)) => path_of_title(title),
        (None, None) => return Err("a document needs a title or a path".into()),
    };
    let mut metadata = line.metadata;
    // The library keeps its own time of creation; the original one stays as metadata.
    if let Some(created) = line.created_at {
        metadata.entry("created_at").or_insert(created);
    }
    let modified_at = line.modified_at.map(|value| time(&value, now)).transpose()?;
    Ok(ImportItem {
        title: line.title,
        mime: line.mime_type,
        tags: line.tags,
        metadata,
        resource_id: line.resource_id,
        modified_at,
        ..ImportItem::new(path, ImportContent::Bytes(text.into_bytes()))
    })
}

/// A time as text, or as seconds since 1970.
fn time(value: &Value, now: Moment) -> Result<Moment, String> {
    match value {
        Value::Number(number) => {
            let seconds = number.as_f64().unwrap_or(0.0);
            Ok(Moment::from_micros((seconds * 1e6) as i64))
        }
        Value::String(text) => Moment::parse(text, now).map_err(|error| error.to_string()),
        other => Err(format!("'{other}' is not a time")),
    }
}

/// A path for a document that has only a title: the title, without what a path cannot hold.
fn path_of_title(title: &str) -> String {
    let safe = |sign: char| if sign == '/' || sign.is_control() { '-' } else { sign };
    let name: String = title.trim().chars().map(safe).take(200).collect();
    let has_extension = Path::new(&name).extension().is_some_and(|extension| extension.len() <= 4);
    match name.as_str() {
        "" => "untitled.md".into(),
        _ if has_extension => name,
        _ => format!("{name}.md"),
    }
}

/// One line of a manifest.
#[derive(Deserialize)]
struct Row {
    path: String,
    file: String,
    hash: String,
    title: String,
    mime_type: String,
    is_text: bool,
    document_type: Option<String>,
    resource_id: Option<String>,
    tags: Vec<String>,
    metadata: Map<String, Value>,
    mode: u32,
    modified_at: String,
}

#[derive(Deserialize)]
struct Head {
    shelfmark_export: u64,
    collection: String,
    book: Option<BookHead>,
}

/// What a manifest says of a book beside its files.
#[derive(Deserialize)]
struct BookHead {
    title: String,
    status: String,
    public: bool,
    created_at: String,
}

impl BookHead {
    /// Makes the book, or brings back what is known of it. Its status comes last, since one that is archived takes no files.
    fn restore(&self, book: &str, with_status: bool, library: &Library) -> Outcome {
        let status = BookStatus::from_word(&self.status);
        let change = BookChange {
            title: Some(self.title.clone()),
            status: status.filter(|_| with_status),
            is_public: Some(self.public),
            created_at: Moment::parse(&self.created_at, library.now()).ok(),
        };
        library.set_book(&Caller::owner(), book, &change, &CallContext::new())?;
        Ok(())
    }
}

fn export(folder: &Path, collection: Option<&str>, library: &Library, output: &Output) -> Outcome {
    let manifest = folder.join(MANIFEST);
    if !manifest.exists() {
        let message = format!("{} holds no {MANIFEST}, so it is not a whole export", folder.display());
        return Err(CliError::new(Kind::NotFound, message).hint("`shelf export COLLECTION DIR` writes one"));
    }
    let mut lines = lines_of(&manifest)?.lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let head: Head =
        serde_json::from_str(&first).map_err(|error| bad_line(&manifest, 1, bad_json(&error)))?;
    if head.shelfmark_export != VERSION {
        let what = format!("version {} of the manifest is not known to this program", head.shelfmark_export);
        return Err(bad_line(&manifest, 1, what).hint("use a newer shelf"));
    }
    let collection = collection.unwrap_or(&head.collection);
    if let Some(book) = &head.book {
        book.restore(collection, false, library)?;
    }
    let mut importer = Importer::new(library, output);
    for (at, line) in lines.enumerate() {
        let number = at + 2;
        let line = line.map_err(|error| bad_line(&manifest, number, error))?;
        check_numbers(&line).map_err(|what| bad_line(&manifest, number, what))?;
        let row: Row =
            serde_json::from_str(&line).map_err(|error| bad_line(&manifest, number, bad_json(&error)))?;
        let item = exported(row, folder).map_err(|what| bad_line(&manifest, number, what))?;
        importer.put(collection, item)?;
    }
    importer.finish(&folder.display().to_string(), output)?;
    match &head.book {
        Some(book) => book.restore(collection, true, library),
        None => Ok(()),
    }
}

fn exported(row: Row, folder: &Path) -> Result<ImportItem, String> {
    let file = text_path(&row.file);
    let stays_inside = file.components().all(|part| matches!(part, Component::Normal(_)));
    if !stays_inside {
        return Err(format!("'{}' lies outside the export", row.file));
    }
    let full: PathBuf = folder.join(FILES).join(file);
    let facts = fs::symlink_metadata(&full).map_err(|error| format!("'{}': {}", row.file, reason(&error)))?;
    if !facts.is_file() {
        return Err(format!("'{}' is not a regular file", row.file));
    }
    let nanos = row.modified_at.parse().map_err(|_| format!("'{}' is not a time", row.modified_at))?;
    Ok(ImportItem {
        hash: Some(row.hash.parse().map_err(|_| format!("'{}' is not a hash", row.hash))?),
        title: Some(row.title),
        mime: Some(row.mime_type),
        is_text: Some(row.is_text),
        tags: row.tags,
        metadata: row.metadata,
        resource_id: row.resource_id,
        document_type: row.document_type,
        modified_at: Some(Moment::from_nanos(nanos)),
        mode: row.mode,
        ..ImportItem::new(row.path, ImportContent::File(full))
    })
}

/// Reads a whole file of text, for settings of other programs.
pub(super) fn read_text(path: &Path) -> Outcome<String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(8 << 20).read_to_string(&mut text));
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(CliError::new(
            Kind::of_io(&error),
            format!("cannot read {}: {}", path.display(), reason(&error)),
        )),
    }
}
