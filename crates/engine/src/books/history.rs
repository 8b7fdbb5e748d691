//! What happened to a book: the versions of its files, who wrote them, and what changed since a state of it.

use std::collections::BTreeMap;

use shelf_base::{CallContext, Digest, Moment};
use shelf_catalog::{Operation, Record};

use super::{
    Answer, BookDraft, BookError, archive::BookManifest, check_path, failed, full_path, registry,
    without_book,
};
use crate::{Caller, Error, Library, Result, commit::Content};

/// Journal records that are read at once.
const AT_ONCE: usize = 4_096;
/// Records of a history that are given at most.
const MOST: usize = 10_000;
/// Changes that a plan goes back; a build that is further behind builds everything.
const LOOK_BACK: usize = 2_000;

/// A path and the content that it has now; `None` when there is no such file.
pub type PathHash = (String, Option<Digest>);

/// One change of a file of a book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookVersion {
    /// Its number in the journal.
    pub sequence: u64,
    /// When.
    pub at: Moment,
    /// Who: the label of the token, else the name of the account.
    pub by: String,
    /// `created`, `updated`, `deleted`, or what else happened.
    pub operation: &'static str,
    /// The file's path in the book.
    pub path: String,
    /// The content before.
    pub previous: Option<Digest>,
    /// The content after.
    pub new: Option<Digest>,
}

/// What a build has to do to come from one state of a book to the present one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The hash of the present state.
    pub manifest: Option<Digest>,
    /// Whether the given state is known.
    pub is_known: bool,
    /// Files that are new, with their content.
    pub added: Vec<(String, Digest)>,
    /// Files whose content changed.
    pub modified: Vec<(String, Digest)>,
    /// Files that are gone.
    pub deleted: Vec<String>,
    /// How many stayed as they were.
    pub unchanged: u64,
}

impl Library {
    /// The changes of a book, of one file when its path is given, newest first, at most `most`.
    pub fn book_history(
        &self,
        caller: &Caller,
        book: &str,
        path: Option<&str>,
        most: usize,
        call: &CallContext,
    ) -> Answer<Vec<BookVersion>> {
        let path = path.map(|path| self.meant_path(caller, book, path)).transpose()?;
        let Some(found) = self.own_book(caller, book)? else {
            return Err(BookError::NotFound { path: format!("books/{book}") });
        };
        let read = || -> Result<Vec<BookVersion>> {
            let mut names = BTreeMap::new();
            let mut history = Vec::new();
            let mut before = None;
            while history.len() < most.min(MOST) {
                call.check()?;
                let records = self.catalog.history(found.id, path, before, AT_ONCE)?;
                before = records.last().map(|record| record.sequence);
                let is_end = records.len() < AT_ONCE;
                for record in records.into_iter().filter(|record| record.document.is_some()) {
                    history.push(self.as_version(record, &mut names)?);
                }
                if is_end {
                    break;
                }
            }
            history.truncate(most.min(MOST));
            Ok(history)
        };
        read().map_err(|error| BookError::Engine { path: format!("books/{book}"), error })
    }

    fn as_version(&self, record: Record, names: &mut BTreeMap<[u8; 16], String>) -> Result<BookVersion> {
        let by = match record.token {
            Some(label) => label,
            None => match names.get(record.account.as_bytes()) {
                Some(name) => name.clone(),
                None => {
                    let account = self.catalog.account(record.account)?;
                    let name = account.map_or_else(|| record.account.to_string(), |found| found.username);
                    names.insert(*record.account.as_bytes(), name.clone());
                    name
                }
            },
        };
        let operation = match record.operation {
            Operation::Add => "created",
            Operation::Replace => "updated",
            Operation::Delete => "deleted",
            other => other.word(),
        };
        Ok(BookVersion {
            sequence: record.sequence,
            at: record.at,
            by,
            operation,
            path: record.path,
            previous: record.previous,
            new: record.new,
        })
    }

    /// The content that a file of a book once had. A prefix of its hash is enough.
    pub fn book_content_at(
        &self,
        caller: &Caller,
        (book, path): (&str, &str),
        hash: &str,
        call: &CallContext,
    ) -> Answer<(Digest, Vec<u8>)> {
        let path = self.meant_path(caller, book, path)?;
        let history = self.book_history(caller, book, Some(path), MOST, call)?;
        let known = history.iter().flat_map(|version| [version.new, version.previous]).flatten();
        let mut fitting: Vec<Digest> = known.filter(|known| known.to_string().starts_with(hash)).collect();
        fitting.sort_unstable();
        fitting.dedup();
        let full = full_path(book, path);
        let [found] = fitting[..] else {
            let message = match fitting.len() {
                0 => format!("{full} never had a content whose hash begins with '{hash}'"),
                several => format!("'{hash}' is the beginning of {several} hashes; give more of it"),
            };
            return Err(BookError::Validation { path: full, message });
        };
        let bytes = self.blobs.read_blob(call, &found);
        bytes.map(|bytes| (found, bytes)).map_err(|error| BookError::Engine { path: full, error })
    }

    /// Gives a file of a book the content back that it once had.
    pub fn restore_book_file(
        &self,
        caller: &Caller,
        (book, path): (&str, &str),
        hash: &str,
        call: &CallContext,
    ) -> Answer<(Digest, u64)> {
        let path = self.meant_path(caller, book, path)?;
        let (_, bytes) = self.book_content_at(caller, (book, path), hash, call)?;
        let draft = BookDraft {
            actor: caller.pass.actor(),
            book,
            path,
            content: Content::Bytes(&bytes),
            metadata: shelf_catalog::Metadata::new(),
            expected: shelf_catalog::Expected::Anything,
            upload: None,
        };
        let written = caller.must_write().and_then(|()| self.commit(draft, call));
        let written = written.map_err(|error| failed(book, path, error))?;
        self.book_changed(caller.pass.actor(), book, (path == registry::BOOK_FILE, false));
        Ok((written.hash, written.size))
    }

    /// The hashes of files of a book, in the order of the given paths; of all of them when none are given.
    pub fn book_hashes(
        &self,
        caller: &Caller,
        book: &str,
        paths: Option<&[String]>,
        call: &CallContext,
    ) -> Answer<(Digest, Vec<PathHash>)> {
        for path in paths.unwrap_or_default() {
            check_path(book, without_book(book, path))?;
        }
        let (_, manifest) = self.book_manifest(caller, book, call)?;
        let known: BTreeMap<&str, Digest> =
            manifest.files.iter().map(|file| (file.path.as_str(), file.version.hash)).collect();
        let find = |path: &str| known.get(path).or_else(|| known.get(without_book(book, path))).copied();
        let hashes = match paths {
            None => known.iter().map(|(path, hash)| ((*path).to_owned(), Some(*hash))).collect(),
            Some(paths) => paths.iter().map(|path| (path.clone(), find(path))).collect(),
        };
        Ok((manifest.hash, hashes))
    }

    /// What changed in a book since it had this manifest hash. The journal is walked back until the book has it; a state
    /// that it never had asks for a build of everything.
    pub fn book_plan(
        &self,
        caller: &Caller,
        book: &str,
        since: Option<&str>,
        call: &CallContext,
    ) -> Answer<Plan> {
        let (described, present) = self.book_manifest(caller, book, call)?;
        let since = since.map(|hash| {
            hash.parse::<Digest>().map_err(|_| BookError::Validation {
                path: format!("books/{book}"),
                message: "manifest_hash must be 64 hexadecimal digits".into(),
            })
        });
        let since = since.transpose()?;
        let now: BTreeMap<String, Digest> =
            present.files.iter().map(|file| (file.path.clone(), file.version.hash)).collect();
        let earlier = match since {
            None => None,
            Some(since) if since == present.hash => Some(now.clone()),
            Some(since) => self.state_at(caller, book, since, (&described, &present), call)?,
        };
        let mut plan = Plan { manifest: Some(present.hash), is_known: earlier.is_some(), ..Plan::default() };
        let earlier = earlier.unwrap_or_default();
        for (path, hash) in &now {
            match earlier.get(path) {
                None => plan.added.push((path.clone(), *hash)),
                Some(before) if before != hash => plan.modified.push((path.clone(), *hash)),
                Some(_) => plan.unchanged += 1,
            }
        }
        plan.deleted = earlier.into_keys().filter(|path| !now.contains_key(path)).collect();
        Ok(plan)
    }

    /// The files of a book when it had this manifest hash.
    fn state_at(
        &self,
        caller: &Caller,
        book: &str,
        since: Digest,
        (described, present): (&super::Book, &BookManifest),
        call: &CallContext,
    ) -> Answer<Option<BTreeMap<String, Digest>>> {
        let history = self.book_history(caller, book, None, LOOK_BACK, call)?;
        let mut files: BTreeMap<String, _> =
            present.files.iter().map(|file| (file.path.clone(), file.clone())).collect();
        for change in history {
            call.check().map_err(|stopped| BookError::Engine {
                path: format!("books/{book}"),
                error: Error::from(stopped),
            })?;
            if change.previous == change.new {
                continue;
            }
            match change.previous {
                None => {
                    files.remove(&change.path);
                }
                Some(hash) => {
                    let mut file = match files.get(&change.path).or_else(|| present.files.first()) {
                        Some(file) => file.clone(),
                        None => return Ok(None),
                    };
                    file.path.clone_from(&change.path);
                    file.version.hash = hash;
                    files.insert(change.path, file);
                }
            }
            let manifest = BookManifest::new(described, files.values().cloned().collect());
            if manifest.hash == since {
                return Ok(Some(files.into_iter().map(|(path, file)| (path, file.version.hash)).collect()));
            }
        }
        Ok(None)
    }

    /// What the audit of the whole library finds, and how many records it verified.
    pub fn audit(&self, call: &CallContext) -> Result<(u64, Vec<String>)> {
        let (records, broken) = self.audit_journal(call)?;
        let mut findings: Vec<String> =
            broken.into_iter().map(|finding| format!("{}: {}", finding.place, finding.what)).collect();
        findings.extend(self.catalog.audit()?);
        Ok((records, findings))
    }
}
