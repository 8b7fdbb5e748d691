//! The registry: `registry.yaml` in the data directory mirrors the local account's books, for people and for tools that
//! know the contract's file.
//!
//! The catalog is the truth. The file is written anew when a book changes, and read at the start when it is not what was
//! written last: somebody has edited or brought it. A book that it leaves out stays. Who does either has the lock `registry`
//! from the moment it reads the catalog or the file, so that nothing older is written or taken over.

use std::{collections::BTreeMap, fmt::Write as _, fs, io, path::PathBuf, time::Duration};

use serde::Deserialize;
use shelf_base::{CallContext, Digest, Held, Moment, book_names::is_book_id, ids::LOCAL_ACCOUNT};
use shelf_catalog::{Actor, BookChange, BookStatus, Scope};

use crate::{Caller, Error, Library, Result};

/// The file of a book that names its title.
pub(super) const BOOK_FILE: &str = "book.yaml";
/// Characters of a title at most.
pub(super) const TITLE_CHARS: usize = 500;
/// Bytes of `registry.yaml` that are read.
const MOST_BYTES: u64 = 8 << 20;
/// Bytes of `book.yaml` that are looked at.
pub(super) const BOOK_FILE_BYTES: u64 = 64 << 10;
/// How long a change of a book waits for others that write the file, and how long a start does.
const PATIENCE: Duration = Duration::from_secs(20);
const PATIENCE_AT_START: Duration = Duration::from_secs(2);
/// The file.
const FILE: &str = "registry.yaml";
/// A copy of a registry that was not taken over, or not whole.
const REJECTED: &str = "registry.yaml.rejected";
/// The file beside it with the hashes of what was written last and of what that replaced.
const WRITTEN: &str = "registry.written";
/// Where the catalog has the hash of what an earlier version wrote last.
const WRITTEN_BEFORE: &str = "registry_written";

#[derive(Deserialize)]
struct Registry {
    #[serde(default)]
    books: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    book_id: String,
    title: Option<String>,
    created_at: Option<String>,
    status: Option<String>,
}

#[derive(Deserialize)]
struct BookFile {
    title: Option<String>,
}

/// The title that a `book.yaml` gives.
pub(super) fn title_of(text: &str) -> Option<String> {
    let file: BookFile = serde_saphyr::from_str(text).ok()?;
    let title: String = file.title?.trim().chars().take(TITLE_CHARS).collect();
    Some(title).filter(|title| !title.is_empty())
}

/// A `book.yaml` with another title; `None` when it is not written in a way that one line of it can be changed.
pub(super) fn with_title(text: &str, title: &str) -> Option<String> {
    let line = format!("title: {}", quoted(title));
    let is_title =
        |line: &str| line.strip_prefix("title").is_some_and(|rest| rest.trim_start().starts_with(':'));
    let mut is_replaced = false;
    let mut lines: Vec<&str> = Vec::new();
    for old in text.split('\n') {
        if is_title(old) && !is_replaced {
            is_replaced = true;
            lines.push(&line);
        } else {
            lines.push(old);
        }
    }
    if !is_replaced {
        lines.insert(0, &line);
    }
    let changed = lines.join("\n");
    // What was more than a line, or no mapping at all, does not read as what was meant.
    let is_kept = others_of(text).is_some_and(|others| others_of(&changed) == Some(others));
    (is_kept && title_of(&changed).as_deref() == Some(title.trim())).then_some(changed)
}

/// Everything but the title that a `book.yaml` gives.
fn others_of(text: &str) -> Option<BTreeMap<String, serde_json::Value>> {
    let mut fields: BTreeMap<String, serde_json::Value> = serde_saphyr::from_str(text).ok()?;
    fields.remove("title");
    Some(fields)
}

/// A string as YAML and JSON both read it.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

impl Library {
    fn registry_file(&self) -> PathBuf {
        self.folder().join(FILE)
    }

    /// The title in the book's own `book.yaml`.
    pub(super) fn title_in_file(
        &self,
        scope: &Scope,
        book: &str,
        call: &CallContext,
    ) -> Result<Option<String>> {
        let Some(document) = self.document_in_book(scope, book, BOOK_FILE)? else { return Ok(None) };
        let range = 0..document.version.size.min(BOOK_FILE_BYTES);
        let bytes = self.blobs.read_range(call, &document.version.hash, range)?;
        Ok(title_of(&String::from_utf8_lossy(&bytes)))
    }

    /// The turn to read what is known of books and to write it down: without it, an older state could be written over a newer
    /// one, or be taken for an edit of somebody.
    fn registry_turn(&self, patience: Duration) -> Result<Held> {
        // What is written down has happened already, so that nothing but the deadline ends the wait.
        self.locks.alone("registry", patience, &CallContext::new())
    }

    /// The same for a change, which is made even when others keep the registry for long.
    pub(super) fn turn_of_change(&self) -> Option<Held> {
        let turn = self.registry_turn(PATIENCE);
        turn.inspect_err(|error| tracing::warn!(%error, "a change of a book does not wait for registry.yaml"))
            .ok()
    }

    /// Writes `registry.yaml` when a book of the local account changed. It mirrors the catalog, so a failure to write it
    /// is no failure of the change.
    pub(crate) fn export_registry(&self, actor: &Actor) {
        if actor.account == LOCAL_ACCOUNT
            && let Some(turn) = self.turn_of_change()
        {
            self.export_in_turn(actor, &turn);
        }
    }

    /// The same for who has the turn already.
    pub(super) fn export_in_turn(&self, actor: &Actor, _turn: &Held) {
        if actor.account != LOCAL_ACCOUNT {
            return;
        }
        if let Err(error) = self.write_registry() {
            tracing::warn!(%error, "registry.yaml could not be written");
        }
    }

    fn write_registry(&self) -> Result<()> {
        let text = self.registry_text()?;
        let present = self.registry_now()?;
        if text.is_empty() && present.is_none() {
            return Ok(());
        }
        let text = if text.is_empty() { "books: []\n".into() } else { format!("books:\n{text}") };
        let hash = Digest::of(text.as_bytes());
        if present == Some(hash) {
            return Ok(());
        }
        // The note comes before the file and keeps what is replaced: wherever a crash comes, the file that is there is known
        // as one of the library's own.
        let known = self.registry_written()?;
        let mut note = format!("{hash}\n");
        if let Some(former) = present.filter(|present| known.contains(present)).or(known.first().copied()) {
            let _ = writeln!(note, "{former}");
        }
        self.replace_file(WRITTEN, &note)?;
        self.replace_file(FILE, &text)
    }

    /// The entries of all books; nothing when there are none.
    fn registry_text(&self) -> Result<String> {
        let (owner, call) = (Caller::owner(), CallContext::new());
        let mut text = String::new();
        for book in self.catalog.books(&Scope::Account(LOCAL_ACCOUNT))? {
            let book = self.described(&owner, book, &call)?;
            let _ = write!(
                text,
                "  - book_id: {}\n    title: {}\n    storage_backend: fs\n    created_at: {}\n    status: {}\n",
                book.id,
                quoted(&book.title),
                quoted(&book.created_at.to_string()),
                book.status.word()
            );
        }
        Ok(text)
    }

    /// Writes a file of the data directory whole or not at all.
    fn replace_file(&self, name: &str, text: &str) -> Result<()> {
        let temporary = self.folder().join(format!("{name}.{}", std::process::id()));
        let written =
            fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, self.folder().join(name)));
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            Error::writing(name, error)
        })
    }

    /// The hash of the file as it is now.
    fn registry_now(&self) -> Result<Option<Digest>> {
        match fs::read(self.registry_file()) {
            Ok(bytes) => Ok(Some(Digest::of(&bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::reading(FILE, error)),
        }
    }

    /// The hashes of what was written last, newest first.
    fn registry_written(&self) -> Result<Vec<Digest>> {
        const NONE: [u8; 32] = [0; 32];
        if let Ok(note) = fs::read_to_string(self.folder().join(WRITTEN)) {
            return Ok(note.lines().filter_map(|line| line.parse().ok()).collect());
        }
        // Where earlier versions kept it.
        let written = self.catalog.secret(WRITTEN_BEFORE, NONE)?;
        Ok((written != NONE).then(|| Digest::new(written)).into_iter().collect())
    }

    /// Takes over what somebody wrote into `registry.yaml`. What cannot be read is left alone and said in the log.
    pub(crate) fn import_registry(&self) {
        match self.is_registry_edited() {
            Ok(false) => return,
            Err(error) => return tracing::warn!(%error, "registry.yaml was not imported"),
            Ok(true) => {}
        }
        let turn = match self.registry_turn(PATIENCE_AT_START) {
            Ok(turn) => turn,
            Err(error) => return tracing::warn!(%error, "registry.yaml was not imported"),
        };
        if let Err(error) = self.read_registry() {
            match self.keep_rejected() {
                Some(kept) => {
                    tracing::warn!(%error, "registry.yaml was not imported; {kept} is a copy of it")
                }
                None => tracing::warn!(%error, "registry.yaml was not imported"),
            }
        }
        drop(turn);
    }

    /// Whether there is a file that this library has not written.
    fn is_registry_edited(&self) -> Result<bool> {
        match fs::metadata(self.registry_file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::reading(FILE, error)),
            Ok(facts) if facts.len() > MOST_BYTES => return Ok(true),
            Ok(_) => {}
        }
        let Some(present) = self.registry_now()? else { return Ok(false) };
        Ok(!self.registry_written()?.contains(&present))
    }

    /// Keeps what somebody wrote and could not be taken over, since the next change of a book writes the file anew. The name
    /// of the copy, if there is one.
    fn keep_rejected(&self) -> Option<&'static str> {
        let copied = fs::copy(self.registry_file(), self.folder().join(REJECTED));
        copied.ok().map(|_| REJECTED)
    }

    fn read_registry(&self) -> Result<()> {
        // Whoever had the turn before may have written or taken over the file.
        if !self.is_registry_edited()? {
            return Ok(());
        }
        let size = fs::metadata(self.registry_file()).map_err(|error| Error::reading(FILE, error))?.len();
        if size > MOST_BYTES {
            let limit = format!("{} MiB", MOST_BYTES >> 20);
            return Err(Error::TooLarge { what: FILE.into(), limit });
        }
        let text = fs::read_to_string(self.registry_file());
        let text = text.map_err(|error| Error::reading(FILE, error))?;
        let registry: Registry = serde_saphyr::from_str(&text).map_err(|error| {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default().to_owned();
            Error::invalid(FILE, format!("cannot be read: {first}"))
        })?;
        let actor = Actor::local();
        let mut is_whole = true;
        for entry in &registry.books {
            if let Err(error) = self.import_entry(&actor, entry) {
                tracing::warn!(book = entry.book_id, %error, "an entry of registry.yaml was not imported");
                is_whole = false;
            }
        }
        if let (false, Some(kept)) = (is_whole, self.keep_rejected()) {
            tracing::warn!("{kept} is a copy of registry.yaml with the entries that were not imported");
        }
        self.write_registry()
    }

    fn import_entry(&self, actor: &Actor, entry: &Entry) -> Result<()> {
        if !is_book_id(&entry.book_id) {
            return Err(shelf_catalog::Error::BookName.into());
        }
        let status = match entry.status.as_deref() {
            None => None,
            Some(word) => Some(
                BookStatus::from_word(word)
                    .ok_or_else(|| Error::invalid("status", "must be active, archived or migrating"))?,
            ),
        };
        let created_at = entry.created_at.as_deref().map(|text| Moment::parse(text, self.now()));
        let created_at = created_at
            .transpose()
            .map_err(|_| Error::invalid("created_at", "must be a time such as 2025-01-01T00:00:00Z"))?;
        let title = entry.title.as_ref().map(|title| title.chars().take(TITLE_CHARS).collect());
        let change = BookChange { title, status, is_public: None, created_at };
        self.catalog.set_book(actor, &entry.book_id, &change, self.now())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_changed_and_everything_else_stays() {
        for (text, changed) in [
            ("title: Old\nlevel: 1\n", Some("title: \"A: new\"\nlevel: 1\n")),
            ("level: 1\n# mine\ntitle : 'Old' # first\n", Some("level: 1\n# mine\ntitle: \"A: new\"\n")),
            ("level: 1\n", Some("title: \"A: new\"\nlevel: 1\n")),
            ("book:\n  title: Inner\n", Some("title: \"A: new\"\nbook:\n  title: Inner\n")),
            ("title: |\n  two\n  lines\n", None),
            ("{title: Old}\n", None),
            ("- a list\n", None),
        ] {
            assert_eq!(with_title(text, "A: new").as_deref(), changed, "{text}");
        }
    }
}
