//! The journal: the ordered record of every change, each row sealed by a hash over itself and the row before.

use shelf_base::{
    Digest, DigestWriter, Moment,
    ids::{AccountId, CollectionId, DocumentId},
};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A document was added.
    Add,
    /// A document got a new version.
    Replace,
    /// Metadata or tags changed.
    Update,
    /// The title or type of a document changed, its content did not.
    Retitle,
    /// A document was deleted.
    Delete,
    /// A snapshot was made.
    Snapshot,
    /// A collection was made.
    CreateCollection,
    /// A collection got another name.
    RenameCollection,
    /// A collection was deleted with all that is in it.
    DeleteCollection,
    /// A collection is searched with another model from now on.
    SetModel,
    /// Title, status or visibility of a book changed.
    SetBook,
    /// A document got another map.
    SetMap,
    /// An account was made.
    CreateAccount,
    /// An account was changed.
    UpdateAccount,
    /// An account was deleted with all that is its own.
    DeleteAccount,
    /// A session was ended because its token was used twice.
    RevokeSession,
    /// A token was made.
    CreateToken,
    /// A token was revoked.
    RevokeToken,
    /// A token's text was replaced.
    RotateToken,
    /// The catalog was rebuilt from its recovery copy.
    Recover,
    /// Garbage collection dropped a snapshot.
    DropSnapshot,
    /// Garbage collection removed blobs that nothing needed.
    Collect,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 22] = [
        Self::Add,
        Self::Replace,
        Self::Update,
        Self::Retitle,
        Self::Delete,
        Self::Snapshot,
        Self::CreateCollection,
        Self::RenameCollection,
        Self::DeleteCollection,
        Self::SetModel,
        Self::SetBook,
        Self::SetMap,
        Self::CreateAccount,
        Self::UpdateAccount,
        Self::DeleteAccount,
        Self::RevokeSession,
        Self::CreateToken,
        Self::RevokeToken,
        Self::RotateToken,
        Self::Recover,
        Self::DropSnapshot,
        Self::Collect,
    ];

    /// The word in the database and in replies.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Replace => "replace",
            Self::Update => "update",
            Self::Retitle => "retitle",
            Self::Delete => "delete",
            Self::Snapshot => "snapshot",
            Self::CreateCollection => "create_collection",
            Self::RenameCollection => "rename_collection",
            Self::DeleteCollection => "delete_collection",
            Self::SetModel => "set_model",
            Self::SetBook => "set_book",
            Self::SetMap => "set_map",
            Self::CreateAccount => "create_account",
            Self::UpdateAccount => "update_account",
            Self::DeleteAccount => "delete_account",
            Self::RevokeSession => "revoke_session",
            Self::CreateToken => "create_token",
            Self::RevokeToken => "revoke_token",
            Self::RotateToken => "rotate_token",
            Self::Recover => "recover",
            Self::DropSnapshot => "drop_snapshot",
            Self::Collect => "collect",
        }
    }

    /// Reads the word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.word() == word)
    }
}

/// One row of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// 1, 2, 3, … without gaps.
    pub sequence: u64,
    /// When.
    pub at: Moment,
    /// Whose account.
    pub account: AccountId,
    /// Which token, by label.
    pub token: Option<String>,
    /// What.
    pub operation: Operation,
    /// Where.
    pub collection: Option<CollectionId>,
    /// Which document.
    pub document: Option<DocumentId>,
    /// Its path, or the name of what was changed.
    pub path: String,
    /// Content before.
    pub previous: Option<Digest>,
    /// Content after.
    pub new: Option<Digest>,
    /// SHA-256 over all that the catalog says of the document or snapshot from now on; `None` for other changes and in
    /// rows that were written before schema 4.
    pub state: Option<Digest>,
    /// The seal: SHA-256 over the fields above and the seal of the row before.
    pub seal: Digest,
}

impl Record {
    /// The seal this row must have after a row sealed with `before`.
    pub fn expected_seal(&self, before: &Digest) -> Digest {
        let mut writer = DigestWriter::new();
        // Rows without a state are sealed as they were before there was one.
        writer.update(if self.state.is_some() { b"shelf-journal-2\0" } else { b"shelf-journal-1\0" });
        writer.update(before.as_bytes());
        writer.update(&self.sequence.to_le_bytes());
        writer.update(&self.at.micros().to_le_bytes());
        writer.update(self.account.as_bytes());
        field(&mut writer, self.token.as_deref().map(str::as_bytes));
        field(&mut writer, Some(self.operation.word().as_bytes()));
        field(&mut writer, self.collection.as_ref().map(|id| &id.as_bytes()[..]));
        field(&mut writer, self.document.as_ref().map(|id| &id.as_bytes()[..]));
        field(&mut writer, Some(self.path.as_bytes()));
        field(&mut writer, self.previous.as_ref().map(|hash| &hash.as_bytes()[..]));
        field(&mut writer, self.new.as_ref().map(|hash| &hash.as_bytes()[..]));
        if let Some(state) = &self.state {
            writer.update(state.as_bytes());
        }
        writer.finish()
    }

    /// The seal before the first row.
    pub const fn genesis() -> Digest {
        Digest::new([0; 32])
    }
}

/// Absent fields and empty ones must not look alike, and neither may run into the next.
pub(crate) fn field(writer: &mut DigestWriter, bytes: Option<&[u8]>) {
    let length = bytes.map_or(u32::MAX, |bytes| bytes.len() as u32);
    writer.update(&length.to_le_bytes());
    writer.update(bytes.unwrap_or_default());
}
