//! What a person who looks around asks for: folders, counts, and what happened last.

use shelf_base::{Moment, ids::AccountId, ids::CollectionId, ids::DocumentId, ids::SessionId};

use crate::{Document, Filter, Operation, Page, Record, Result, Scope};

/// A folder directly below another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Its own name.
    pub name: String,
    /// Documents anywhere below it.
    pub documents: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What stands in a folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FolderContent {
    /// Its folders, by name.
    pub folders: Vec<Folder>,
    /// A page of its own documents.
    pub documents: Vec<Document>,
    /// How many documents of its own it has.
    pub total: u64,
}

/// A value that documents share, and how many share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facet {
    /// The value.
    pub value: String,
    /// Documents.
    pub documents: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// How the documents of a filter divide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    /// By collection, the largest first.
    pub collections: Vec<Facet>,
    /// By MIME type, the most frequent first.
    pub types: Vec<Facet>,
    /// By tag, the most frequent first.
    pub tags: Vec<Facet>,
    /// By the day on which they were first stored, in order; the day counts from 1970.
    pub days: Vec<(i64, u64, u64)>,
}

/// Whose things a record is about, whichever tool changed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Documents with a path, snapshots, and the storage itself.
    Store,
    /// Documents with a title, collections, accounts and tokens.
    Documents,
    /// Books, and everything in them.
    Books,
    /// Maps of documents.
    Citations,
}

impl Subject {
    /// Every subject.
    pub const ALL: [Self; 4] = [Self::Store, Self::Documents, Self::Books, Self::Citations];

    /// The word in queries and replies: the name of the tool family.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Documents => "documents",
            Self::Books => "books",
            Self::Citations => "citations",
        }
    }

    /// Reads the word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.word() == word)
    }
}

/// Records of the journal, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentRecords {
    /// The records, and whose things they are about.
    pub records: Vec<(Record, Subject)>,
    /// Before which record to look on; `None` when all older ones were looked at.
    pub next_before: Option<u64>,
}

/// Which records of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFilter {
    /// Before this one.
    pub before: Option<u64>,
    /// Of this collection.
    pub collection: Option<CollectionId>,
    /// Of this document.
    pub document: Option<DocumentId>,
    /// Of one of these kinds; of all when there are none.
    pub operations: Vec<Operation>,
    /// By this account.
    pub by: Option<AccountId>,
    /// About these things.
    pub subject: Option<Subject>,
}

/// A session that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// When it began.
    pub created_at: Moment,
    /// When it ends.
    pub expires_at: Moment,
}

/// What the rest of the program asks of a catalog when somebody looks around.
pub trait Browse: Send + Sync {
    /// The content of a folder of a collection. `folder` is empty, or ends with a slash.
    fn folder(&self, scope: &Scope, collection: &str, folder: &str, page: &Page) -> Result<FolderContent>;
    /// The first and the last path below a folder of a collection; `None` when there is none.
    fn ends(&self, scope: &Scope, collection: &str, folder: &str) -> Result<Option<(String, String)>>;
    /// How the documents of a filter divide; at most `most` values of each kind.
    fn facets(&self, scope: &Scope, filter: &Filter, most: usize) -> Result<Facets>;
    /// Records in scope, newest first, at most `most`: those about the scope's collections, and those by the scope's
    /// account. Not all records of a large library are looked at in one call.
    fn recent(&self, scope: &Scope, filter: &RecordFilter, most: usize) -> Result<RecentRecords>;
    /// The sessions of an account that go on, newest first.
    fn sessions(&self, account: AccountId, now: Moment) -> Result<Vec<SessionRow>>;
}
