//! What can go wrong with the catalog.

use std::fmt;

use shelf_base::{Digest, ErrorInfo, Kind};

/// A failure of the catalog. No text of it shows SQL or a path.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database engine failed.
    #[error("the catalog failed: {0}")]
    Engine(#[source] EngineError),
    /// The data directory could not be used.
    #[error("the catalog's files could not be opened: {0}")]
    Files(#[source] std::io::Error),
    /// Written by a newer program.
    #[error(
        "this library was written by a newer version of shelf (schema {found}, this program knows {known})"
    )]
    TooNew {
        /// Schema version found.
        found: u32,
        /// Newest known.
        known: u32,
    },
    /// A value read back is not of its form.
    #[error("the catalog holds an unreadable value in {0}")]
    Unreadable(&'static str),
    /// Another document of the account has this resource id.
    #[error("resource_id '{0}' already names another document")]
    ResourceIdTaken(String),
    /// A document would have more than it may.
    #[error("{what} of a document may not be larger than {limit}")]
    OverBound {
        /// What.
        what: &'static str,
        /// The bound, with its unit.
        limit: String,
    },
    /// Another account has this address.
    #[error("Email already registered")]
    EmailTaken,
    /// Another account has this name.
    #[error("Username already taken")]
    UsernameTaken,
    /// An ordinary account cannot be the first.
    #[error("there is no administrator yet: the first account is made on the machine of the library itself")]
    NoAdministrator,
    /// The library would be left without an administrator.
    #[error("the last superuser cannot be demoted, deactivated or deleted")]
    LastSuperuser,
    /// The account has a collection of this name.
    #[error("you already have a collection named '{0}'")]
    CollectionTaken(String),
    /// The owner of a collection, who is somebody else, has another one of this name.
    #[error("the owner of this collection already has one named '{0}'")]
    OwnersCollectionTaken(String),
    /// Tokens of the collection still work.
    #[error("Cannot delete collection with active CATs")]
    ActiveTokens,
    /// The collection vanished while it was written to.
    #[error("the collection no longer exists")]
    NoCollection,
    /// The files of the library may be read but not written.
    #[error("this library is read-only: its files cannot be written by this user")]
    ReadOnly,
    /// Somebody else has been writing for too long.
    #[error("the catalog is busy: another process has been writing to this library for a minute")]
    Busy,
    /// The catalog is not there although the library is.
    #[error("this library is damaged: it has stored content, but its catalog (catalog.db) is {0}")]
    Missing(&'static str),
    /// The content of a document is not the one that a change was made from.
    #[error("the document has been changed by somebody else; read it again")]
    ContentChanged {
        /// The content it has now; `None` when it is not there.
        current: Option<Digest>,
    },
    /// The collection is of another kind.
    #[error("the collection '{0}' is not a book")]
    NotABook(String),
    /// Another account has a book of this id.
    #[error("book_id is not available")]
    BookTaken,
    /// The book takes no writes.
    #[error("the book '{book}' is {status}: it takes no writes")]
    BookClosed {
        /// Its id.
        book: String,
        /// Its status.
        status: &'static str,
    },
    /// A book cannot hold a document at this path.
    #[error(
        "'{0}' is not a path of a book: 1 to 255 letters, digits and the characters / _ . - are allowed, without empty \
         parts, '.' or '..'"
    )]
    BookPath(String),
    /// A path of a book leads through a file of it.
    #[error("'{path}' leads through '{file}', which is a file of the book and not a folder")]
    BelowFile {
        /// The path.
        path: String,
        /// The file.
        file: String,
    },
    /// A path of a book is a folder of it.
    #[error("'{0}' is a folder of the book, with files in it")]
    BookFolder(String),
    /// A book cannot have this name.
    #[error("a book's name must be 3 to 50 lowercase letters, digits and single hyphens between them")]
    BookName,
    /// The upload was completed before.
    #[error("this upload was completed before")]
    UploadUsed,
    /// The database cannot be reached. The text says why, without a password.
    #[error("the catalog's database is not available: {reason}")]
    Away {
        /// What happened.
        reason: String,
        /// Whether a write may have been made all the same.
        is_unsure: bool,
    },
    /// The database refuses to work with us, and will until somebody changes something.
    #[error("the catalog's database cannot be used: {what}")]
    Refused {
        /// What is wrong.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// Somebody else has held the lock alone under which a write was prepared.
    #[error("this write was prepared before others took over: nothing was written")]
    LockLost,
    /// The catalog lies elsewhere now.
    #[error("the catalog of this library has been moved to another place: nothing was written")]
    Moved,
    /// A catalog could not be copied to another database; the text says why. Nothing was changed.
    #[error("the catalog was not moved: {0}")]
    Transfer(String),
    /// The database cannot hold this text.
    #[error("text with a NUL character cannot be stored")]
    Nul,
    /// The writer has stopped.
    #[error("the catalog is shutting down")]
    Closed,
}

/// An error of the database engine. What it is stays within this crate; outside, its [`Kind`] counts.
#[derive(Debug)]
pub struct EngineError(pub(crate) Engine);

/// The engines and their errors.
#[derive(Debug)]
pub(crate) enum Engine {
    Sqlite(rusqlite::Error),
    Postgres(tokio_postgres::Error),
}

impl fmt::Display for EngineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Engine::Sqlite(error) => match error.sqlite_error_code() {
                Some(code) => write!(formatter, "{code:?}"),
                None => formatter.write_str("an unexpected value"),
            },
            Engine::Postgres(error) => match error.as_db_error() {
                Some(told) => write!(formatter, "{} ({})", told.message(), told.code().code()),
                None => formatter.write_str("an unexpected answer of the database"),
            },
        }
    }
}

impl std::error::Error for EngineError {}

impl EngineError {
    fn kind(&self) -> Kind {
        use rusqlite::ErrorCode as Code;
        use tokio_postgres::error::SqlState;
        match &self.0 {
            Engine::Sqlite(error) => match error.sqlite_error_code() {
                Some(Code::DiskFull) => Kind::StorageFull,
                Some(Code::DatabaseBusy | Code::DatabaseLocked) => Kind::Busy,
                Some(Code::DatabaseCorrupt | Code::NotADatabase) => Kind::Corrupt,
                Some(Code::ReadOnly | Code::PermissionDenied) => Kind::Denied,
                Some(Code::SystemIoFailure | Code::CannotOpen) => Kind::Io,
                _ => Kind::Internal,
            },
            Engine::Postgres(error) => match error.code() {
                Some(&SqlState::DISK_FULL) => Kind::StorageFull,
                Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Kind::Denied,
                Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED) => Kind::Corrupt,
                Some(&SqlState::IO_ERROR) => Kind::Io,
                Some(&SqlState::OUT_OF_MEMORY) => Kind::Busy,
                _ => Kind::Internal,
            },
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::ReadOnly) => Self::ReadOnly,
            _ => Self::Engine(EngineError(Engine::Sqlite(error))),
        }
    }
}

impl ErrorInfo for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Engine(error) => error.kind(),
            Self::Files(error) => Kind::of_io(error),
            Self::TooNew { .. } => Kind::Unavailable,
            Self::Unreadable(_) => Kind::Corrupt,
            Self::ResourceIdTaken(_)
            | Self::EmailTaken
            | Self::UsernameTaken
            | Self::LastSuperuser
            | Self::CollectionTaken(_)
            | Self::OwnersCollectionTaken(_)
            | Self::ContentChanged { .. }
            | Self::NotABook(_)
            | Self::BookClosed { .. }
            | Self::UploadUsed
            | Self::ActiveTokens => Kind::Conflict,
            Self::BookTaken
            | Self::BookPath(_)
            | Self::BelowFile { .. }
            | Self::BookFolder(_)
            | Self::BookName => Kind::Invalid,
            Self::NoAdministrator | Self::ReadOnly => Kind::Denied,
            Self::OverBound { .. } => Kind::TooLarge,
            Self::NoCollection => Kind::NotFound,
            Self::Closed | Self::Busy | Self::LockLost | Self::Away { .. } => Kind::Busy,
            Self::Refused { .. } | Self::Moved => Kind::Unavailable,
            Self::Transfer(_) => Kind::Conflict,
            Self::Nul => Kind::Invalid,
            Self::Missing(_) => Kind::Corrupt,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::NoAdministrator => return vec!["on that machine, run `shelf user create --admin`".into()],
            Self::ReadOnly => {
                return vec![
                    "reading works; to write, use the account that owns the library's folder, or a copy of the folder"
                        .into(),
                ];
            }
            Self::Busy | Self::LockLost => {
                return vec!["nothing was written; repeat the call a little later".into()];
            }
            Self::Missing(_) => {
                return vec![
                    "nothing was changed or deleted".into(),
                    "put catalog.db back from a backup, or run `shelf recover` to rebuild it from the library's own copy".into(),
                ];
            }
            Self::Away { is_unsure: true, .. } => {
                return vec![
                    "it is not known whether the write was made: look, or repeat the call a little later"
                        .into(),
                ];
            }
            Self::Away { is_unsure: false, .. } => {
                return vec!["nothing was written; repeat the call a little later".into()];
            }
            Self::Refused { hint, .. } => return vec![hint.clone()],
            Self::Moved => {
                return vec!["set library.catalog to the place where the catalog is now, and restart".into()];
            }
            Self::BookClosed { book, .. } => {
                return vec![format!("`shelf books set {book} --status active` lets it take writes again")];
            }
            Self::ActiveTokens => return vec!["revoke all CATs of the collection first".into()],
            _ => {}
        }
        match self.kind() {
            Kind::StorageFull => vec!["free some disk space, then repeat the call; nothing was lost".into()],
            Kind::Io => vec!["if the disk is full, free some space or run `shelf gc`; nothing was lost".into()],
            Kind::Corrupt => vec![
                "run `shelf check` to see what is affected; `shelf recover` rebuilds the catalog from its recovery copy"
                    .into(),
            ],
            Kind::Unavailable => vec!["use the newer shelf for this data directory".into()],
            _ => Vec::new(),
        }
    }
}
