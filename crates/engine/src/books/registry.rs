//! The registry: `registry.yaml` in the data directory mirrors the local account's books, for people and for tools that
//! know the contract's file.
//!
//! The catalog is the truth. The file is written anew when a book changes, and read at the start when it is not what was
//! written last: somebody has edited or brought it. A book that it leaves out stays.

use std::{collections::BTreeMap, fmt::Write as _, fs, io, path::PathBuf};

use parking_lot::Mutex;
use serde::Deserialize;
use shelf_base::{CallContext, Digest, Moment, book_names::is_book_id, ids::LOCAL_ACCOUNT};
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
/// Writers of this process take turns, since they share a temporary file.
static WRITING: Mutex<()> = Mutex::new(());
/// A copy of a registry that was not taken over, or not whole.
const REJECTED: &str = "registry.yaml.rejected";
/// Keeps the hash of what was written last.
const WRITTEN: &str = "registry_written";

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
        self.folder().join("registry.yaml")
    }

    /// The title in the book's own `book.yaml`.
    pub(super) fn title_in_file(
        &self,
        caller: &Caller,
        book: &str,
        call: &CallContext,
    ) -> Result<Option<String>> {
        let Some(document) = self.book_document(caller, book, BOOK_FILE)? else { return Ok(None) };
        let range = 0..document.version.size.min(BOOK_FILE_BYTES);
        let bytes = self.blobs.read_range(call, &document.version.hash, range)?;
        Ok(title_of(&String::from_utf8_lossy(&bytes)))
    }

    /// Writes `registry.yaml` when a book of the local account changed. It mirrors the catalog, so a failure to write it
    /// is no failure of the change.
    pub(crate) fn export_registry(&self, actor: &Actor) {
        if actor.account != LOCAL_ACCOUNT {
            return;
        }
        if let Err(error) = self.write_registry() {
            tracing::warn!(%error, "registry.yaml could not be written");
        }
    }

    fn write_registry(&self) -> Result<()> {
        let _one_at_a_time = WRITING.lock();
        let owner = Caller::owner();
        let call = CallContext::new();
        let mut text = String::from("books:\n");
        let books = self.catalog.books(&Scope::Account(LOCAL_ACCOUNT))?;
        if books.is_empty() {
            if !self.registry_file().exists() {
                return Ok(());
            }
            text = "books: []\n".into();
        }
        for book in books {
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
        let hash = Digest::of(text.as_bytes());
        if self.registry_written()? == Some(hash) && self.registry_file().exists() {
            return Ok(());
        }
        // The file comes before the note of it: after a crash in between it is imported again, which changes nothing.
        let target = self.registry_file();
        let temporary = self.folder().join(format!("registry.yaml.{}", std::process::id()));
        let written = fs::write(&temporary, &text).and_then(|()| fs::rename(&temporary, &target));
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            Error::writing("registry.yaml", error)
        })?;
        Ok(self.catalog.set_secret(WRITTEN, *hash.as_bytes())?)
    }

    fn registry_written(&self) -> Result<Option<Digest>> {
        const NONE: [u8; 32] = [0; 32];
        let written = self.catalog.secret(WRITTEN, NONE)?;
        Ok((written != NONE).then(|| Digest::new(written)))
    }

    /// Takes over what somebody wrote into `registry.yaml`. What cannot be read is left alone and said in the log.
    pub(crate) fn import_registry(&self) {
        let outcome = match fs::metadata(self.registry_file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => Err(Error::reading("registry.yaml", error)),
            Ok(facts) if facts.len() > MOST_BYTES => Err(Error::TooLarge {
                what: "registry.yaml".into(),
                limit: format!("{} MiB", MOST_BYTES >> 20),
            }),
            Ok(_) => self.read_registry(),
        };
        if let Err(error) = outcome {
            match self.keep_rejected() {
                Some(kept) => {
                    tracing::warn!(%error, "registry.yaml was not imported; {kept} is a copy of it")
                }
                None => tracing::warn!(%error, "registry.yaml was not imported"),
            }
        }
    }

    /// Keeps what somebody wrote and could not be taken over, since the next change of a book writes the file anew. The name
    /// of the copy, if there is one.
    fn keep_rejected(&self) -> Option<&'static str> {
        let copied = fs::copy(self.registry_file(), self.folder().join(REJECTED));
        copied.ok().map(|_| REJECTED)
    }

    fn read_registry(&self) -> Result<()> {
        let text = fs::read_to_string(self.registry_file());
        let text = text.map_err(|error| Error::reading("registry.yaml", error))?;
        if self.registry_written()? == Some(Digest::of(text.as_bytes())) {
            return Ok(());
        }
        let registry: Registry = serde_saphyr::from_str(&text).map_err(|error| {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default().to_owned();
            Error::invalid("registry.yaml", format!("cannot be read: {first}"))
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
