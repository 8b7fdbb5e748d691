//! Assets: pictures, slides, videos and sound of a book.

use std::ops::Range;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use shelf_base::{
    CallContext, Digest, Moment,
    book_names::{asset_name, is_book_path},
    ids::{AccountId, LOCAL_ACCOUNT},
};
use shelf_catalog::{Actor, Document, Expected, Filter, Metadata, Order, Page, Scope, SortBy};

use super::{
    Answer, BookDraft, BookError, Ticket, asset_path, check_asset_type, check_book_id, failed,
    folder::{ORIGINAL as ORIGINAL_PATH, is_inside},
    full_path,
};
use crate::{Caller, Error, Library, Result, commit::Content, signing::Purpose};

/// Bytes from which on an asset is not sent with the call.
const DIRECT_BYTES: usize = 10 << 20;
/// Assets that are read from the catalog at once.
const AT_ONCE: usize = 1_000;
/// Metadata of an asset: the name that it was given, and who gave it.
const ORIGINAL: &str = "original_filename";
const UPLOADER: &str = "uploaded_by_agent_id";

/// An asset to be stored.
#[derive(Clone, Debug)]
pub struct UploadRequest {
    /// The book.
    pub book: String,
    /// The type: `images`, `slides`, `videos` or `audio`.
    pub kind: String,
    /// The name, as the caller has it.
    pub filename: String,
    /// The content in base64, of a small one.
    pub binary_data: Option<String>,
    /// The size in bytes, of one that is sent to an address afterwards.
    pub file_size: Option<u64>,
}

/// An asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its book.
    pub book: String,
    /// Whose book that is.
    pub owner: AccountId,
    /// Its path in the book.
    pub path: String,
    /// Its type.
    pub kind: String,
    /// The name it is stored under.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its MIME type.
    pub mime: String,
    /// When it was stored.
    pub uploaded_at: Moment,
    /// Who stored it.
    pub uploaded_by: String,
    /// Its content.
    pub hash: Digest,
}

impl Asset {
    /// Its path as replies show it.
    pub fn full_path(&self) -> String {
        full_path(&self.book, &self.path)
    }
}

/// An asset that whoever has its address may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenAsset {
    /// Its content.
    pub hash: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Its MIME type.
    pub mime: String,
    /// Its name.
    pub name: String,
    /// When it was stored.
    pub modified_at: Moment,
    /// Whether everybody may read it.
    pub is_public: bool,
}

impl Library {
    /// Stores an asset that comes with the call, or gives an address to send a large one to.
    pub fn upload_asset(
        &self,
        caller: &Caller,
        request: &UploadRequest,
        call: &CallContext,
    ) -> Answer<Result<Asset, Ticket>> {
        let UploadRequest { book, kind, filename, binary_data, file_size } = request;
        let path = self.place_of(caller, (book, kind, filename), call)?;
        let invalid = |message: String| BookError::Validation { path: full_path(book, &path), message };
        match (binary_data, file_size) {
            (None, None) => Err(invalid(format!(
                "binary_data (base64, less than {DIRECT_BYTES} bytes) or file_size is required"
            ))),
            (None, Some(size)) => self.await_upload(caller, (book, &path, filename), *size).map(Err),
            (Some(data), size) => {
                let bytes = STANDARD
                    .decode(data)
                    .map_err(|error| invalid(format!("binary_data is not valid base64: {error}")))?;
                if bytes.is_empty() {
                    return Err(invalid("binary_data is empty".into()));
                }
                if bytes.len() >= DIRECT_BYTES {
                    return Err(invalid(format!(
                        "binary_data has {} bytes; send {DIRECT_BYTES} bytes and more to an upload URL: give file_size \
                         instead of binary_data",
                        bytes.len()
                    )));
                }
                if size.is_some_and(|size| size != bytes.len() as u64) {
                    return Err(invalid(format!(
                        "file_size does not agree with binary_data, which has {} bytes",
                        bytes.len()
                    )));
                }
                caller.must_write().map_err(|error| failed(book, &path, error))?;
                let place = (book.as_str(), path.as_str(), filename.as_str());
                self.store_asset(caller.pass.actor(), place, Content::Bytes(&bytes), None, call).map(Ok)
            }
        }
    }

    /// The path that an asset of this name goes to: what an import has put below a folder is known by its whole name.
    fn place_of(
        &self,
        caller: &Caller,
        (book, kind, filename): (&str, &str, &str),
        call: &CallContext,
    ) -> Answer<String> {
        let refusal = match asset_path(book, kind, filename) {
            Err(refusal) if is_inside(filename) => refusal,
            placed => return placed,
        };
        let engine = |error| BookError::Engine { path: refusal.path().to_owned(), error };
        caller.must_read().map_err(engine)?;
        let stored = format!("assets/{kind}/{filename}");
        if is_book_path(&stored) && self.book_document(caller, book, &stored).map_err(engine)?.is_some() {
            return Ok(stored);
        }
        let imported = self.imported_asset(caller, (book, kind, filename), call)?;
        imported.map(|document| document.path).ok_or(refusal)
    }

    /// Stores an asset at its path.
    pub(super) fn store_asset(
        &self,
        actor: &Actor,
        (book, path, filename): (&str, &str, &str),
        content: Content<'_>,
        upload: Option<shelf_catalog::UploadUse>,
        call: &CallContext,
    ) -> Answer<Asset> {
        let store = || -> Result<Asset> {
            let uploaded_by = self.agent_of(actor)?;
            let mut metadata = Metadata::new();
            metadata.insert(ORIGINAL.into(), Value::String(filename.to_owned()));
            metadata.insert(UPLOADER.into(), Value::String(uploaded_by.clone()));
            let expected = Expected::Anything;
            let draft = BookDraft { actor, book, path, content, metadata, expected, upload };
            let is_known = self.has_book(actor, book)?;
            let written = self.commit(draft, call)?;
            self.book_changed(actor, book, (false, !is_known));
            let (kind, name) = asset_name(path).unwrap_or_default();
            Ok(Asset {
                book: book.to_owned(),
                owner: actor.account,
                path: path.to_owned(),
                kind: kind.to_owned(),
                name: name.to_owned(),
                size: written.size,
                mime: written.mime,
                uploaded_at: self.now(),
                uploaded_by,
                hash: written.hash,
            })
        };
        store().map_err(|error| failed(book, path, error))
    }

    /// Who uploads, as replies say it: the label of the token, else the name of the account.
    fn agent_of(&self, actor: &Actor) -> Result<String> {
        if let Some(label) = &actor.token {
            return Ok(label.clone());
        }
        if actor.account == LOCAL_ACCOUNT {
            return Ok("system".into());
        }
        let account = self.catalog.account(actor.account)?;
        Ok(account.map_or_else(|| "system".into(), |account| account.username))
    }

    /// An asset, by the name it was given, the one it is stored under, or where it stood in the folder that it was imported
    /// from.
    pub fn asset(
        &self,
        caller: &Caller,
        (book, kind, filename): (&str, &str, &str),
        call: &CallContext,
    ) -> Answer<Asset> {
        check_asset_type(book, kind)?;
        let given = asset_path(book, kind, filename);
        let stored = format!("assets/{kind}/{filename}");
        let full = full_path(book, &stored);
        let find = |path: &str| -> Answer<Option<Document>> {
            caller
                .must_read()
                .and_then(|()| self.book_document(caller, book, path))
                .map_err(|error| BookError::Engine { path: full.clone(), error })
        };
        // Lists show the stored name, so it comes first: whoever has it gets what was listed.
        let found = if is_book_path(&stored) { find(&stored)? } else { None };
        let found = match (found, &given) {
            (None, Ok(path)) => find(path)?,
            (found, _) => found,
        };
        let found = match found {
            None if is_inside(filename) => self.imported_asset(caller, (book, kind, filename), call)?,
            found => found,
        };
        match (found, given) {
            (Some(document), _) => Ok(described(caller, book, document)),
            (None, Err(error)) if !is_book_path(&stored) => Err(error),
            (None, _) => Err(BookError::NotFound { path: full }),
        }
    }

    /// The asset of this type that stood at this place, or below the folder of its type, when it was imported.
    fn imported_asset(
        &self,
        caller: &Caller,
        (book, kind, filename): (&str, &str, &str),
        call: &CallContext,
    ) -> Answer<Option<Document>> {
        let places = [filename.to_owned(), format!("assets/{kind}/{filename}")];
        let assets = self.asset_documents(caller, book, Some(kind), call)?;
        Ok(assets.into_iter().find(|document| {
            let original = document.metadata.get(ORIGINAL_PATH).and_then(Value::as_str);
            original.is_some_and(|original| places.iter().any(|place| place == original))
        }))
    }

    /// The assets of a book, of one type when it is given, by path. An unknown book has none.
    pub fn assets(
        &self,
        caller: &Caller,
        book: &str,
        kind: Option<&str>,
        call: &CallContext,
    ) -> Answer<Vec<Asset>> {
        let documents = self.asset_documents(caller, book, kind, call)?;
        Ok(documents.into_iter().map(|document| described(caller, book, document)).collect())
    }

    fn asset_documents(
        &self,
        caller: &Caller,
        book: &str,
        kind: Option<&str>,
        call: &CallContext,
    ) -> Answer<Vec<Document>> {
        match kind {
            Some(kind) => check_asset_type(book, kind)?,
            None => check_book_id(book)?,
        }
        if self.own_book(caller, book)?.is_none() {
            return Ok(Vec::new());
        }
        let list = || -> Result<Vec<Document>> {
            let filter = Filter { collection: Some(book.to_owned()), ..Filter::default() };
            let mut found = Vec::new();
            let mut page = Page {
                sort: SortBy::Name,
                order: Order::Ascending,
                limit: AT_ONCE,
                offset: 0,
                // Lists go on after a path; all assets stand together.
                after: Some((Value::String("assets/".into()), 0)),
            };
            loop {
                call.check()?;
                let listed = self.catalog.list(caller.pass.scope(), &filter, &page)?;
                page.after = listed
                    .documents
                    .last()
                    .map(|document| (Value::String(document.path.clone()), document.number));
                let is_end = !listed.more
                    || listed.documents.last().is_none_or(|document| !document.path.starts_with("assets/"));
                let wanted = listed.documents.into_iter().filter(|document| {
                    asset_name(&document.path).is_some_and(|(found, _)| kind.is_none_or(|kind| kind == found))
                });
                found.extend(wanted);
                if is_end {
                    return Ok(found);
                }
            }
        };
        list().map_err(|error| BookError::Engine { path: format!("books/{book}"), error })
    }

    /// The asset at a path of the whole library, for whoever has proved the right to it or when everybody may read it.
    /// What is not there and what is not allowed get the same answer.
    pub fn open_asset(&self, book: &str, path: &str, capability: Option<&str>) -> Result<Option<OpenAsset>> {
        if asset_name(path).is_none() {
            return Ok(None);
        }
        let books = self.catalog.books(&Scope::Library)?;
        let Some(found) = books.into_iter().find(|known| known.name == book) else { return Ok(None) };
        let what = proof_of(found.owner, &full_path(book, path));
        let proved = capability
            .map(|given| Ok::<_, Error>(self.url_keys()?.opens(Purpose::Asset, &what, given)))
            .transpose()?;
        if !found.is_public && proved != Some(true) {
            return Ok(None);
        }
        let named = self.catalog.named(&Scope::Collection(found.id), None, path, 1)?;
        let document = named.into_iter().find(|document| document.path == path);
        Ok(document.map(|document| OpenAsset {
            hash: document.version.hash,
            size: document.version.size,
            mime: document.mime,
            name: document.path.rsplit('/').next().unwrap_or_default().to_owned(),
            modified_at: document.version.indexed_at,
            is_public: found.is_public,
        }))
    }

    /// A part of an asset.
    pub fn read_asset(&self, asset: &OpenAsset, range: Range<u64>, call: &CallContext) -> Result<Vec<u8>> {
        self.blobs.read_range(call, &asset.hash, range)
    }
}

/// What the address of an asset proves the right to. The owner is part of it, so that the address opens nothing when
/// somebody else gets the id of the book.
pub(super) fn proof_of(owner: AccountId, full_path: &str) -> String {
    format!("{owner} {full_path}")
}

fn described(caller: &Caller, book: &str, document: Document) -> Asset {
    let (kind, name) = asset_name(&document.path).unwrap_or_default();
    let uploaded_by = document.metadata.get(UPLOADER).and_then(Value::as_str).unwrap_or("system");
    Asset {
        book: book.to_owned(),
        owner: caller.pass.account(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        size: document.version.size,
        uploaded_at: document.version.indexed_at,
        uploaded_by: uploaded_by.to_owned(),
        hash: document.version.hash,
        mime: document.mime.clone(),
        path: document.path,
    }
}
