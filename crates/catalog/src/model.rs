//! The plain values that go into and come out of the catalog.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use shelf_base::{
    Digest, Fence, Moment,
    ids::{AccountId, CollectionId, DocumentId, LOCAL_ACCOUNT},
};

use crate::{BookStatus, UploadUse};

/// A document's metadata: a JSON object.
pub type Metadata = Map<String, Value>;

/// Which documents a caller's queries cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything an account owns.
    Account(AccountId),
    /// One collection only.
    Collection(CollectionId),
    /// The whole library; for maintenance by the owner of the data directory.
    Library,
}

/// Who changes something, as the journal records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The account.
    pub account: AccountId,
    /// The label of the token that was used, if any.
    pub token: Option<String>,
}

impl Actor {
    /// The owner of the data directory.
    pub const fn local() -> Self {
        Self { account: LOCAL_ACCOUNT, token: None }
    }
}

/// The kind of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionKind {
    /// An ordinary one.
    Plain,
    /// A book.
    Book,
}

impl CollectionKind {
    /// The word in replies and in the database.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Book => "book",
        }
    }
}

/// A collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Its id.
    pub id: CollectionId,
    /// Whose it is.
    pub owner: AccountId,
    /// Its name, unique for its owner.
    pub name: String,
    /// Its kind.
    pub kind: CollectionKind,
    /// When it was made.
    pub created_at: Moment,
    /// The embedding model it is searched with; `None` is the built-in one.
    pub model: Option<String>,
    /// The title of a book, when somebody gave one.
    pub title: Option<String>,
    /// Whether a book takes writes; other collections do.
    pub status: BookStatus,
    /// Whether everybody may read the assets of a book.
    pub is_public: bool,
}

/// A collection and its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionSummary {
    /// The collection.
    pub collection: Collection,
    /// Live documents.
    pub documents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// The newest change of a document.
    pub updated_at: Option<Moment>,
}

/// A document as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The number of the document in this library. It tells how much all accounts have stored, so no reply shows it.
    pub number: i64,
    /// The number of the document among all that its account ever stored.
    pub account_number: i64,
    /// Its id.
    pub id: DocumentId,
    /// Its collection.
    pub collection: CollectionId,
    /// Its collection's name.
    pub collection_name: String,
    /// Its path.
    pub path: String,
    /// Its title.
    pub title: String,
    /// Its citation resource id.
    pub resource_id: Option<String>,
    /// Its extension with the dot, lowercase; empty when none.
    pub extension: String,
    /// Its MIME type.
    pub mime: String,
    /// Whether its bytes are text.
    pub is_text: bool,
    /// What its author called its type, when somebody did.
    pub document_type: Option<String>,
    /// The present version.
    pub version: Version,
    /// When the document was made.
    pub created_at: Moment,
    /// Its tags, sorted.
    pub tags: Vec<String>,
    /// Its metadata.
    pub metadata: Metadata,
    /// What of it the catalog cannot read any more and shows as empty.
    pub damaged: Vec<&'static str>,
}

/// One version of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// 1 for the first.
    pub number: u32,
    /// The content.
    pub hash: Digest,
    /// Its length.
    pub size: u64,
    /// The file's own modification time.
    pub modified_at: Moment,
    /// When this version was stored.
    pub indexed_at: Moment,
    /// Unix permission bits; 0 when unknown.
    pub mode: u32,
}

/// One document to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct PutDocument {
    /// The id to give it when it is new; a fresh one otherwise.
    pub id: Option<DocumentId>,
    /// Its path.
    pub path: String,
    /// Its title.
    pub title: String,
    /// Extension with the dot.
    pub extension: String,
    /// MIME type.
    pub mime: String,
    /// Whether it is text.
    pub is_text: bool,
    /// The content.
    pub hash: Digest,
    /// Its length.
    pub size: u64,
    /// The blob's manifest, encoded.
    pub manifest: Vec<u8>,
    /// The blob's blocks, short names and lengths, for the account's own accounting.
    pub blocks: Vec<(i64, u32)>,
    /// The file's modification time.
    pub modified_at: Moment,
    /// Permission bits.
    pub mode: u32,
    /// What the file system said of the file, to recognise it unchanged.
    pub stat: Option<[u8; 32]>,
    /// Tags to add.
    pub tags: BTreeSet<String>,
    /// Metadata keys to set.
    pub metadata: Metadata,
    /// Resource id to give.
    pub resource_id: Option<String>,
    /// What its author calls its type.
    pub document_type: Option<String>,
    /// What must be at its path now, or nothing is written.
    pub expected: Expected,
}

/// New content of a document, or the old under another type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewContent {
    /// The content.
    pub hash: Digest,
    /// Its length.
    pub size: u64,
    /// Its manifest, encoded.
    pub manifest: Vec<u8>,
    /// Its blocks, short names and lengths.
    pub blocks: Vec<(i64, u32)>,
    /// Blocks kept in the catalog for now.
    pub loose: Vec<LooseBlock>,
    /// The lock under which it was stored; the change fails when somebody has held the lock alone since.
    pub fence: Option<Fence>,
}

/// How a document's bytes are to be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewType {
    /// What its author calls its type.
    pub document_type: String,
    /// Extension with the dot.
    pub extension: String,
    /// MIME type.
    pub mime: String,
    /// Whether it is text.
    pub is_text: bool,
}

/// What to change of a document; `None` stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DocumentChange {
    /// Only if this is still the content: whoever made the change looked at it.
    pub expected: Option<Digest>,
    /// New title.
    pub title: Option<String>,
    /// New type.
    pub r#type: Option<NewType>,
    /// New metadata, in place of the old.
    pub metadata: Option<Metadata>,
    /// New content.
    pub content: Option<NewContent>,
}

/// The collection that a put goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// One that is there.
    Known(CollectionId),
    /// The account's collection of that name, made when it is not there.
    Named(String),
    /// The same for a book; an error when the collection of that name is none.
    Book(String),
}

/// What a write expects of what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expected {
    /// Nothing: it writes over whatever is there.
    #[default]
    Anything,
    /// A document with this content.
    Content(Digest),
}

/// A transaction of writes.
#[derive(Clone, Debug)]
pub struct Put {
    /// Who.
    pub actor: Actor,
    /// Where.
    pub collection: Shelf,
    /// When.
    pub now: Moment,
    /// Documents.
    pub documents: Vec<PutDocument>,
    /// Blocks kept in the catalog for now.
    pub loose: Vec<LooseBlock>,
    /// A snapshot to make.
    pub snapshot: Option<SnapshotDraft>,
    /// The upload that this completes; it fails when the upload was completed before.
    pub upload: Option<UploadUse>,
    /// The lock under which the content was stored; it fails when somebody has held the lock alone since.
    pub fence: Option<Fence>,
    /// Whether it may wait for others who write. If not, it fails as [`Busy`](crate::Error::Busy) and has done nothing.
    pub may_wait: bool,
}

/// What became of a written document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutState {
    /// It is new.
    Added,
    /// It has a new version.
    Updated,
    /// Its bytes were the same.
    Unchanged,
}

/// The outcome for one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutResult {
    /// The document.
    pub id: DocumentId,
    /// What became of it.
    pub state: PutState,
    /// Bytes of blocks that the account did not have.
    pub stored: u64,
    /// Bytes of blocks that it had.
    pub deduplicated: u64,
}

/// A block that lies in the catalog until it is folded into a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LooseBlock {
    /// Its name.
    pub id: [u8; 32],
    /// Its encoding.
    pub bytes: Vec<u8>,
}

/// Where the listing of a snapshot is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredListing {
    /// With the snapshot itself, because it is short.
    Inline(Vec<u8>),
    /// In a blob with this manifest and size.
    #[expect(missing_docs, reason = "said above")]
    Blob { manifest: Vec<u8>, size: u64 },
}

/// A snapshot to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotDraft {
    /// Optional label.
    pub label: Option<String>,
    /// The folder that paths are relative to.
    pub root: String,
    /// Hash of what lists the files.
    pub listing: Digest,
    /// Where that is.
    pub stored: StoredListing,
    /// The Merkle root of the tree.
    pub merkle: Digest,
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Commit of the repository, when the folder is one.
    pub git_commit: Option<String>,
    /// Its branch.
    pub git_branch: Option<String>,
}

/// Which snapshots are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotFilter<'a> {
    /// Only of the collection with this name.
    pub collection: Option<&'a str>,
    /// Only the one with this id.
    pub at: Option<Moment>,
    /// Only those with this label.
    pub label: Option<&'a str>,
    /// Only those made before.
    pub before: Option<Moment>,
}

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// When it was made: unique in the library, and the snapshot's id.
    pub at: Moment,
    /// Its collection.
    pub collection: CollectionId,
    /// The collection's name.
    pub collection_name: String,
    /// What was drafted; the manifest and size of the listing are in its blob.
    pub draft: SnapshotDraft,
}

/// What the file system said of a file when it was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The document.
    pub id: DocumentId,
    /// Its path.
    pub path: String,
    /// The stored facts.
    pub stat: Option<[u8; 32]>,
    /// The content.
    pub hash: Digest,
    /// Its length.
    pub size: u64,
    /// When the file was last found to have this content.
    pub checked_at: Moment,
}

/// A change of metadata or tags.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    /// Keys to set.
    pub set: Metadata,
    /// Tags to add.
    pub add_tags: BTreeSet<String>,
    /// Tags to remove.
    pub remove_tags: BTreeSet<String>,
}

/// One thing that an update changed.
#[derive(Clone, Debug, PartialEq)]
pub enum TagChange {
    /// A metadata key.
    Metadata {
        /// The key.
        key: String,
        /// Its value before.
        old: Option<Value>,
        /// Its value now.
        new: Value,
    },
    /// A tag that was added.
    Added(String),
    /// A tag that was removed.
    Removed(String),
}

/// Which documents a list takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Only this collection.
    pub collection: Option<String>,
    /// Exact title.
    pub title: Option<String>,
    /// Exact MIME type, or a prefix such as `image/`.
    pub mime: Option<String>,
    /// MIME types and prefixes of which one must fit.
    pub mime_any: Vec<String>,
    /// Extensions with the dot, lowercase.
    pub extensions: Vec<String>,
    /// Text or binary.
    pub is_text: Option<bool>,
    /// Tags.
    pub tags: Vec<String>,
    /// All tags must be there, not just one.
    pub match_all_tags: bool,
    /// Made at or after, made before.
    pub created: (Option<Moment>, Option<Moment>),
    /// The file's own time.
    pub modified: (Option<Moment>, Option<Moment>),
    /// Stored.
    pub indexed: (Option<Moment>, Option<Moment>),
    /// Only the newest so many (by storing time) of what fits.
    pub recent: Option<u64>,
    /// Only these documents (by number), for patterns that SQL cannot express.
    pub numbers: Option<Vec<i64>>,
}

/// What a list is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// The path.
    #[default]
    Name,
    /// The length.
    Size,
    /// When the document was made.
    Created,
    /// The file's own time.
    Modified,
    /// When the version was stored.
    Indexed,
}

/// Ascending or descending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Smallest first.
    #[default]
    Ascending,
    /// Largest first.
    Descending,
}

/// Which page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Sorted by.
    pub sort: SortBy,
    /// In which order.
    pub order: Order,
    /// At most so many.
    pub limit: usize,
    /// Leave out so many first.
    pub offset: u64,
    /// Go on after this sort value and document number.
    pub after: Option<(Value, i64)>,
}

/// A page and the true count of everything that fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The page.
    pub documents: Vec<Document>,
    /// How many fit in all.
    pub total: u64,
    /// Whether more follow.
    pub more: bool,
}

/// One document of a choice: enough to match patterns and to restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its number.
    pub number: i64,
    /// Its id.
    pub id: DocumentId,
    /// Its collection's name.
    pub collection_name: String,
    /// Its path.
    pub path: String,
    /// Its present version.
    pub version: Version,
}

/// A document that the journal says something of, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its number.
    pub number: i64,
    /// Whether it lives.
    pub is_live: bool,
    /// Whether its title or type changed, so that the same content is to be indexed anew.
    pub is_renamed: bool,
    /// Its collection.
    pub collection: CollectionId,
    /// Its path.
    pub path: String,
    /// Its title.
    pub title: String,
    /// Its MIME type.
    pub mime: String,
    /// Whether its bytes are text.
    pub is_text: bool,
    /// Its content.
    pub hash: Digest,
    /// The content's length.
    pub size: u64,
}

/// What followers of the journal have to do to come from one sequence number to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Documents that changed.
    pub documents: Vec<Changed>,
    /// Numbers of deleted documents that garbage collection has forgotten altogether.
    pub buried: Vec<i64>,
}

/// Figures of one type of file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFigures {
    /// Extension with the dot.
    pub extension: String,
    /// MIME type.
    pub mime: String,
    /// Whether it is text.
    pub is_text: bool,
    /// Documents.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A blob's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRow {
    /// Length.
    pub size: u64,
    /// Encoded manifest.
    pub manifest: Vec<u8>,
}

/// Reads the short names of the blocks out of a manifest, which the catalog itself does not understand.
pub type BlocksOf = fn(&[u8]) -> Vec<i64>;

/// What garbage collection removes from the catalog.
#[derive(Clone, Debug, Default)]
pub struct Purge {
    /// Snapshots to forget, by id.
    pub snapshots: Vec<Moment>,
    /// Blobs to keep; versions of deleted documents that use others are forgotten.
    pub keep: std::collections::HashSet<Digest>,
    /// For every account, the short names of the blocks under its kept blobs are made anew from manifests by this.
    pub blocks_of: Option<BlocksOf>,
    /// Every follower of the journal has come at least this far: what it had to know of documents that were forgotten
    /// before may go too.
    pub followed: u64,
    /// The lock under which the plan was made; nothing is forgotten when somebody else has held the lock alone since.
    pub fence: Option<Fence>,
}
