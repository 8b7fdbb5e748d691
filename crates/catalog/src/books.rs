//! What the catalog keeps of books beyond their documents: title, status, whether everybody may read their assets, and
//! the uploads that were completed.

use shelf_base::{Moment, ids::CollectionId};

use crate::{Actor, Collection, Record, Result, Scope};

/// Whether a book takes writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BookStatus {
    /// It does.
    #[default]
    Active,
    /// It is finished.
    Archived,
    /// It is being moved.
    Migrating,
}

impl BookStatus {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Active, Self::Archived, Self::Migrating];

    /// The word in replies and in the database.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Archived => "archived",
            Self::Migrating => "migrating",
        }
    }

    /// Reads the word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }
}

/// What to change of a book; `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookChange {
    /// Its title.
    pub title: Option<String>,
    /// Its status.
    pub status: Option<BookStatus>,
    /// Whether everybody may read its assets.
    pub is_public: Option<bool>,
    /// When it was made, for a book that comes from elsewhere.
    pub created_at: Option<Moment>,
}

/// An upload that a transaction completes. Its address cannot be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadUse {
    /// The upload.
    pub id: [u8; 16],
    /// Until when its address would have worked, and so until when its use has to be known.
    pub expires_at: Moment,
}

/// What the rest of the program asks of a catalog about books.
pub trait Books: Send + Sync {
    /// The books in scope, by id.
    fn books(&self, scope: &Scope) -> Result<Vec<Collection>>;
    /// Changes a book of the actor's account and makes it when it is not there. An error when another account has a book
    /// of this id.
    fn set_book(&self, actor: &Actor, id: &str, change: &BookChange, now: Moment) -> Result<Collection>;
    /// Whether an upload was completed.
    fn is_upload_used(&self, id: &[u8; 16]) -> Result<bool>;
    /// Journal records of a collection, of one path when it is given, newest first: those before `before`, at most `most`.
    fn history(
        &self,
        collection: CollectionId,
        path: Option<&str>,
        before: Option<u64>,
        most: usize,
    ) -> Result<Vec<Record>>;
}
