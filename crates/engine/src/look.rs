//! Looking around: one document with its versions and its text, folders, counts, what happened last, and what changed
//! between snapshots. This is what people ask for who look at what agents did.

use std::collections::BTreeMap;

use shelf_base::{CallContext, Digest, bounds, ids::DocumentId};
use shelf_catalog::{
    Document, Facets, Filter, FolderContent, Order, Page, Record, RecordFilter, SortBy, Subject, Version,
};

use crate::{
    Caller, Entry, Error, Library, OpenAsset, Result,
    maintain::{CheckReport, GcPlan, Retention},
    readings::{EXTRACTED_BYTES, Origin},
    validate,
};

/// Values of each kind that facets list.
const FACETS: usize = 50;
/// Records that are read at once when those of one person are asked for, and how often.
const OF_ONE: usize = 1_000;
const PAGES_OF_ONE: usize = 20;

/// A document with all that is known of its past.
#[derive(Clone, Debug)]
pub struct DescribedDocument {
    /// The document.
    pub document: Document,
    /// Its versions, newest first.
    pub versions: Vec<Version>,
}

/// Lines of a document's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPart {
    /// The lines.
    pub text: String,
    /// The first of them, from 1.
    pub first_line: u64,
    /// Lines of the whole text.
    pub total_lines: u64,
    /// Whether the text is the content as it is stored.
    pub as_stored: bool,
    /// The line on which each page begins.
    pub pages: Vec<u64>,
}

/// A folder of a collection.
#[derive(Clone, Debug)]
pub struct FolderReply {
    /// The folder that is shown: the one that was asked for, or the only one below it that branches.
    pub folder: String,
    /// What stands in it.
    pub content: FolderContent,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// The record of the journal.
    pub record: Record,
    /// Whose things it is about.
    pub subject: Subject,
    /// Who: the label of the token, else the name of the account.
    pub by: String,
    /// The name of the collection, when there still is one.
    pub collection: Option<String>,
}

/// A page of what happened.
#[derive(Clone, Debug)]
pub struct Activity {
    /// The events, newest first.
    pub events: Vec<Event>,
    /// Before which record the next page begins; `None` on the last one.
    pub next_before: Option<u64>,
    /// Whether everything was looked at up to the end of the page, or of the journal.
    pub is_complete: bool,
}

/// Whose events, and of what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityOf<'a> {
    /// Of this collection.
    pub collection: Option<&'a str>,
    /// Of this document.
    pub document: Option<&'a str>,
    /// By whoever has this name: the label of a token, or the name of an account.
    pub by: Option<&'a str>,
    /// After this record of the journal.
    pub after: Option<u64>,
}

/// Names that were looked up for events.
#[derive(Default)]
struct Names {
    people: BTreeMap<[u8; 16], String>,
    collections: BTreeMap<[u8; 16], Option<String>>,
}

impl Names {
    /// The label of the token, else the name of the account.
    fn who(&mut self, library: &Library, record: &Record) -> Result<String> {
        if let Some(label) = &record.token {
            return Ok(label.clone());
        }
        if let Some(known) = self.people.get(record.account.as_bytes()) {
            return Ok(known.clone());
        }
        let account = library.catalog.account(record.account)?;
        let name = account.map_or_else(|| record.account.to_string(), |found| found.username);
        self.people.insert(*record.account.as_bytes(), name.clone());
        Ok(name)
    }

    /// The name of the collection, when there still is one.
    fn collection(&mut self, library: &Library, caller: &Caller, record: &Record) -> Result<Option<String>> {
        let Some(id) = record.collection else { return Ok(None) };
        if let Some(known) = self.collections.get(id.as_bytes()) {
            return Ok(known.clone());
        }
        let found = library.catalog.known_collection(caller.pass.scope(), id)?;
        let name = found.map(|found| found.name);
        self.collections.insert(*id.as_bytes(), name.clone());
        Ok(name)
    }
}

/// A file that differs between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its path, relative to the roots.
    pub path: String,
    /// Content and size before.
    pub before: Option<(Digest, u64)>,
    /// Content and size after.
    pub after: Option<(Digest, u64)>,
}

impl Library {
    /// A document with its versions.
    pub fn describe(&self, caller: &Caller, id: &str) -> Result<DescribedDocument> {
        let document = self.document_by_id(caller, id)?;
        let mut versions = self.catalog.versions(&caller.pass.reach(), document.id)?;
        versions.reverse();
        Ok(DescribedDocument { document, versions })
    }

    /// The content of a document, or of the version with this hash, to be read in parts.
    pub fn open_document(&self, caller: &Caller, id: &str, hash: Option<&str>) -> Result<OpenAsset> {
        let DescribedDocument { document, versions } = self.describe(caller, id)?;
        let version = one_version(&document, versions, hash)?;
        Ok(OpenAsset {
            hash: version.hash,
            size: version.size,
            mime: document.mime,
            name: document.path.rsplit('/').next().unwrap_or_default().to_owned(),
            modified_at: version.indexed_at,
            is_public: false,
        })
    }

    /// Lines of the text of a document, extracted where the content is not text; `None` when it has none.
    pub fn text_part(
        &self,
        caller: &Caller,
        (id, hash): (&str, Option<&str>),
        (first_line, most): (u64, u64),
        call: &CallContext,
    ) -> Result<Option<TextPart>> {
        let DescribedDocument { document, versions } = self.describe(caller, id)?;
        let version = one_version(&document, versions, hash)?;
        let origin = Origin {
            hash: version.hash,
            path: &document.path,
            mime: &document.mime,
            is_text: document.is_text,
        };
        let most_bytes = if document.is_text { bounds::REQUEST_BYTES as u64 } else { EXTRACTED_BYTES };
        if version.size > most_bytes {
            let limit = format!("must not be larger than {} MiB for this", most_bytes >> 20);
            return Err(Error::invalid("document_id", limit));
        }
        if !origin.may_have_text() {
            return Ok(None);
        }
        if !document.is_text {
            let found = self.blobs.readings.text_at(&origin.key(), &origin, &self.blobs, call)?;
            return Ok(found.map(|text| part(&text.text, &text.pages, text.as_stored, first_line, most)));
        }
        let _share = self.budget.take(version.size, call)?;
        let bytes = self.blobs.read_blob(call, &version.hash)?;
        let found = self.blobs.readings.text(&origin, &bytes);
        Ok(found.map(|(text, _)| part(&text.text, &text.pages, text.as_stored, first_line, most)))
    }

    /// What stands in a folder of a collection. Folders that hold nothing but one folder are passed through, unless exactly
    /// that folder is asked for.
    pub fn browse(
        &self,
        caller: &Caller,
        collection: &str,
        (folder, exact): (&str, bool),
        (sort, order): (SortBy, Order),
        (limit, offset): (usize, u64),
    ) -> Result<FolderReply> {
        caller.must_read()?;
        self.known_collection(caller, collection)?;
        let mut folder = match folder {
            "" => String::new(),
            folder if folder.ends_with('/') => folder.to_owned(),
            folder => format!("{folder}/"),
        };
        if folder.len() > bounds::PATH_BYTES + 1 {
            return Err(Error::invalid("folder", "is longer than any path"));
        }
        let page = Page { sort, order, limit, offset, after: None };
        let scope = caller.pass.scope();
        let sequence = self.catalog.sequence()?;
        // All paths stand between the first and the last, so what these two share is shared by all.
        let ends = if exact { None } else { self.catalog.ends(scope, collection, &folder)? };
        if let Some((first, last)) = ends {
            let shared = shared_folder(&first, &last);
            if shared.len() > folder.len() {
                shared.clone_into(&mut folder);
            }
        }
        let asked = format!("{scope:?} {collection:?} {folder:?} {page:?}");
        let find = || Ok(self.catalog.folder(scope, collection, &folder, &page)?);
        let content = self.remembered.folder(asked, sequence, find)?;
        Ok(FolderReply { folder, content })
    }

    /// How the caller's documents divide by collection, type, tag and day.
    pub fn facets(&self, caller: &Caller, filter: &Filter) -> Result<Facets> {
        caller.must_read()?;
        if let Some(name) = &filter.collection {
            self.known_collection(caller, name)?;
        }
        let scope = caller.pass.scope();
        let sequence = self.catalog.sequence()?;
        let find = || Ok(self.catalog.facets(scope, filter, FACETS)?);
        self.remembered.facets(format!("{scope:?} {filter:?}"), sequence, find)
    }

    /// What happened in the caller's collections and by the caller, newest first.
    pub fn activity(
        &self,
        caller: &Caller,
        of: ActivityOf<'_>,
        mut filter: RecordFilter,
        most: usize,
    ) -> Result<Activity> {
        caller.must_read()?;
        let scope = caller.pass.scope();
        if let Some(name) = of.collection {
            let found = self.catalog.collection(scope, name)?;
            filter.collection = Some(found.ok_or_else(|| Error::missing("collection", name))?.id);
        }
        if let Some(id) = of.document {
            let parsed: DocumentId = id.parse().map_err(|_| Error::missing("document", id))?;
            filter.document = Some(parsed);
        }
        // Whoever asks for one person's events gets them from several pages of the journal.
        let (wanted, pages) = if of.by.is_some() { (OF_ONE, PAGES_OF_ONE) } else { (most, 1) };
        let mut names = Names::default();
        let mut events = Vec::new();
        for _ in 0..pages {
            let found = self.catalog.recent(scope, &filter, wanted)?;
            for (record, subject) in found.records {
                if of.after.is_some_and(|after| record.sequence <= after) {
                    return Ok(Activity { events, next_before: None, is_complete: true });
                }
                let by = names.who(self, &record)?;
                if of.by.is_some_and(|wanted| wanted != by) {
                    continue;
                }
                let collection = names.collection(self, caller, &record)?;
                let sequence = record.sequence;
                events.push(Event { record, subject, by, collection });
                if events.len() == most {
                    return Ok(Activity { events, next_before: Some(sequence), is_complete: true });
                }
            }
            filter.before = found.next_before;
            if filter.before.is_none() {
                return Ok(Activity { events, next_before: None, is_complete: true });
            }
        }
        Ok(Activity { events, next_before: filter.before, is_complete: false })
    }

    /// The number of the last thing that happened in the library, to whomever.
    pub fn last_event(&self) -> Result<u64> {
        Ok(self.catalog.sequence()?)
    }

    /// What changed from one snapshot to another, by path; with the present state of its collection when no other is
    /// named. Also how many files stayed as they were.
    pub fn snapshot_changes(
        &self,
        caller: &Caller,
        from: &str,
        to: Option<&str>,
        call: &CallContext,
    ) -> Result<(Vec<FileChange>, u64)> {
        let first = self.one_snapshot(caller, None, Some(from), None)?;
        let before = self.listing(&first, call)?;
        let after = match to {
            Some(to) => {
                let second = self.one_snapshot(caller, None, Some(to), None)?;
                self.listing(&second, call)?
            }
            None => {
                let present = self.present_listing(caller, &first.collection_name)?;
                let root = first.draft.root.trim_end_matches('/');
                crate::Listing::new(present.entries.into_iter().filter_map(|entry| below(root, entry)))
            }
        };
        Ok(differences(before.files(), after.files()))
    }

    /// Verifies the chain of the journal for an administrator: how many records, and what is wrong with them.
    pub fn audit_for(&self, caller: &Caller, call: &CallContext) -> Result<(u64, Vec<String>)> {
        caller.must_administer()?;
        self.audit(call)
    }

    /// Reads and verifies everything that the library holds, for an administrator.
    pub fn check_for(&self, caller: &Caller, call: &CallContext) -> Result<CheckReport> {
        caller.must_administer()?;
        self.check(call)
    }

    /// What garbage collection would free, for an administrator. Snapshots are kept.
    pub fn gc_plan_for(&self, caller: &Caller, call: &CallContext) -> Result<GcPlan> {
        caller.must_administer()?;
        self.plan_gc(&Retention::default(), call)
    }
}

/// The folder that two paths have in common, with its slash; empty when they have none.
fn shared_folder<'a>(first: &'a str, last: &str) -> &'a str {
    let same = first.bytes().zip(last.bytes()).take_while(|(one, other)| one == other).count();
    let end = first.as_bytes()[..same].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    first.get(..end).unwrap_or_default()
}

/// A file below the root of a snapshot, with its path relative to it.
fn below(root: &str, entry: Entry) -> Option<Entry> {
    if root.is_empty() {
        return Some(entry);
    }
    let path = entry.path.strip_prefix(root)?.strip_prefix('/')?.to_owned();
    Some(Entry { path, ..entry })
}

fn differences<'a>(
    before: impl Iterator<Item = &'a Entry>,
    after: impl Iterator<Item = &'a Entry>,
) -> (Vec<FileChange>, u64) {
    let mut files: BTreeMap<&str, (Option<&Entry>, Option<&Entry>)> = BTreeMap::new();
    before.for_each(|entry| files.entry(&entry.path).or_default().0 = Some(entry));
    after.for_each(|entry| files.entry(&entry.path).or_default().1 = Some(entry));
    let facts = |entry: Option<&Entry>| entry.map(|entry| (entry.hash, entry.size));
    let mut unchanged = 0;
    let mut changes = Vec::new();
    for (path, (before, after)) in files {
        let (before, after) = (facts(before), facts(after));
        if before == after {
            unchanged += 1;
        } else {
            changes.push(FileChange { path: path.to_owned(), before, after });
        }
    }
    (changes, unchanged)
}

/// The version with this hash or beginning of a hash; the present one when none is given.
pub(crate) fn one_version(
    document: &Document,
    versions: Vec<Version>,
    hash: Option<&str>,
) -> Result<Version> {
    let Some(hash) = hash else { return Ok(document.version.clone()) };
    let prefix = validate::hash_prefix(hash)?;
    let found = versions.into_iter().find(|version| version.hash.to_string().starts_with(&prefix));
    found.ok_or_else(|| Error::missing("version", hash))
}

/// Some lines of a text.
fn part(text: &str, pages: &[u32], as_stored: bool, first_line: u64, most: u64) -> TextPart {
    let first = first_line.max(1);
    let mut total_lines = 0;
    let (mut start, mut end) = (text.len(), text.len());
    let mut page_lines = Vec::with_capacity(pages.len());
    let mut waiting = pages.iter().copied().peekable();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        total_lines += 1;
        while waiting.next_if(|page| (*page as usize) < at + line.len()).is_some() {
            page_lines.push(total_lines);
        }
        if total_lines == first {
            start = at;
        }
        at += line.len();
        if total_lines == first.saturating_add(most).saturating_sub(1) {
            end = at;
        }
    }
    let text = text.get(start..end.max(start)).unwrap_or_default().to_owned();
    TextPart { text, first_line: first, total_lines, as_stored, pages: page_lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_shared_up_to_a_slash() {
        for (first, last, shared) in [
            ("a/b/c", "a/b/d", "a/b/"),
            ("a/b/c", "a/bc/d", "a/"),
            ("a/b", "c", ""),
            ("x", "x", ""),
            ("/home/é/a", "/home/ê/a", "/home/"),
            ("d/only", "d/only", "d/"),
        ] {
            assert_eq!(shared_folder(first, last), shared, "{first} {last}");
        }
    }

    #[test]
    fn parts_of_a_text_are_whole_lines() {
        let text = "one\ntwo\nthree\nfour";
        let look = |first, most| {
            let part = part(text, &[0, 8], true, first, most);
            (part.text, part.total_lines, part.pages)
        };
        assert_eq!(look(1, 2), ("one\ntwo\n".into(), 4, vec![1, 3]));
        assert_eq!(look(3, 100).0, "three\nfour");
        assert_eq!(look(4, 1).0, "four");
        assert_eq!(look(9, 5).0, "");
        assert_eq!(part("", &[], true, 1, 5).total_lines, 0);
    }

    #[test]
    fn differences_list_what_changed() {
        let entry = |path: &str, content: &str| Entry {
            path: path.into(),
            hash: Digest::of(content.as_bytes()),
            size: content.len() as u64,
            mode: 0,
            modified_at: shelf_base::Moment::from_micros(0),
            link: None,
        };
        let before = [entry("a", "1"), entry("b", "2"), entry("c", "3")];
        let after = [entry("b", "22"), entry("c", "3"), entry("d", "4")];
        let (changes, unchanged) = differences(before.iter(), after.iter());
        let words: Vec<(&str, bool, bool)> = changes
            .iter()
            .map(|change| (change.path.as_str(), change.before.is_some(), change.after.is_some()))
            .collect();
        assert_eq!(words, [("a", true, false), ("b", true, true), ("d", false, true)]);
        assert_eq!(unchanged, 1);
        assert_eq!(below("/home", entry("/home/a/b", "")).unwrap().path, "a/b");
        assert!(below("/home", entry("/homes/b", "")).is_none());
    }
}
