//! The workshop: the only place where the rooms meet.
//!
//! A [`Library`] joins the catalog, the block store and the readers into what tools ask for: [`add`](Library::add),
//! [`get`](Library::get), [`list`](Library::list), [`restore`](Library::restore) and the rest, each a plain request and a
//! plain reply. Nothing here knows JSON-RPC, HTTP or a terminal.
//!
//! Writing goes one way: blocks are stored first (idempotent, durable), then one catalog transaction makes the write
//! true. Reading goes the other way: the catalog says which blob, the blocks give its bytes, verified.

mod accounts;
mod blobs;
mod books;
mod budget;
mod catalog_place;
mod changes;
mod citations;
mod collections;
mod commit;
mod cursor;
mod delete;
mod documents;
mod download;
mod edit;
mod error;
mod file_names;
mod follow;
mod get;
mod graph;
mod grep;
mod indexing;
mod ingest;
mod library;
mod list;
mod locks;
mod look;
pub mod maintain;
mod manifests;
mod near_names;
mod packing;
mod page_images;
mod pattern;
mod readings;
mod remembered;
mod restore;
mod retired;
mod search;
mod shelves;
mod signing;
mod status;
mod storage;
mod texts;
mod times;
mod transfer;
mod tree;
mod undelete;
mod update;
mod validate;
mod workspace;

pub use accounts::{AccountUpdate, Door, KeyRequest, Permission, PersonalScope, Registration, Usage};
pub use books::{
    Archive, Asset, Book, BookError, BookFile, BookMatch, BookVersion, BookWritten, FolderTally, OpenAsset,
    OpenFile, OpenUpload, PathHash, Plan, Ticket, UploadRequest, book_error_name,
};
pub use catalog_place::CatalogAddress;
pub use changes::Changes;
pub use citations::{
    Citation, CitationError, CitationReport, EvidenceContent, GivenMapReply, ImportedMap, LocationJson,
    MOST_RESOURCES, NodeJson, NodeReply, ResolveRequest, Resolved, ResourceList, Structure, addresses_in,
    location_json,
};
pub use delete::{DeleteRequest, Deleted};
pub use documents::{ChangeRequest, DocumentType, OtherContent, StoreRequest, StoredDocument, WholeDocument};
pub use download::{DownloadReply, DownloadRequest, DownloadSettings};
pub use edit::{EditReply, EditRequest};
pub use error::Error;
pub use file_names::{path_text, text_path};
pub use get::{CitedPlace, Content, GetRequest, Got, Window};
pub use graph::{
    GraphEdge, GraphNode, GraphReply, GraphRequest, GraphStats, NODE_TYPES, Related, Relation, facts_size,
};
pub use grep::{GrepFile, GrepLine, GrepOutput, GrepReply, GrepRequest, GrepShow};
pub use indexing::{Deepen, DeepenFigures, EndpointSettings, IndexFigures};
pub use ingest::{AddReply, AddRequest, FailedFile, What};
pub use library::{Caller, FileAccess, Idle, Library, LinkSettings, Options, Ports};
pub use list::{ListReply, ListRequest};
pub use look::{Activity, ActivityOf, DescribedDocument, Event, FileChange, FolderReply, TextPart};
pub use packing::ArchiveOf;
pub use page_images::PageImage;
pub use restore::{RestoreReply, RestoreRequest, Restored};
pub use search::{
    Correction, FoundPassage, PassageReply, PassageRequest, SearchHit, SearchKind, SearchReply,
    SearchRequest, Searched, Snippet, SnippetLine,
};
pub use shelf_accounts::{
    AuthError, Bearer, CONSOLE_SESSION_SECONDS, CONSOLE_TOKEN_SECONDS, Minted, Pass, Tokens,
};
pub use shelf_catalog::{
    Account, BookChange, BookStatus, Collection, CollectionSummary, Document, Facet, Facets, Filter, Folder,
    FolderContent, Metadata, Operation, Order, Record, RecordFilter, SessionRow, Snapshot, SortBy, Subject,
    TagChange, Token as TokenRow, TokenKind, TypeFigures, Version,
};
pub use shelf_reading::{DRAW_COMMAND, DRAW_MEMORY, DRAW_SECONDS, draw_alone};
pub use shelf_workspace::{
    Appended, MemoryFault, MemoryFile, MemoryFinding, MemoryLine, MemoryMatches, MemoryQuery, MemoryReport,
    Practice, RepoEntry, RepoFile, RepoList, RepoWindow, WorkspaceError,
};
pub use status::{Figures, StatusReply};
pub use storage::{Backend, BucketAccess, ObjectsPlace, StorageSettings};
pub use transfer::{ImportContent, ImportItem, ImportReply};
pub use tree::{Entry, Listing};
pub use undelete::{UndeleteRequest, Undeleted};
pub use update::{UpdateReply, UpdateRequest};
pub use workspace::WorkspaceSettings;

/// Shorthand for this crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
