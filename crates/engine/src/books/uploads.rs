//! Uploads: an address that takes the content of one asset, once.
//!
//! The address says by itself, signed, what it takes: which asset, how many bytes, until when, for whom. Content is
//! written to a file of the data directory as it arrives, and only a complete one becomes an asset, in the transaction
//! that also notes that the address is used up. An upload that breaks off leaves nothing, and the address still works.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};
use shelf_base::{
    CallContext, Moment, hex,
    ids::{AccountId, TokenId},
};
use shelf_catalog::{Actor, Holder, UploadUse};

use super::{Answer, Asset, BookError, full_path};
use crate::{Caller, Error, Library, Result, commit::Content, signing::Purpose};

/// An address that content is awaited at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The upload.
    pub id: String,
    /// What the address ends with.
    pub text: String,
    /// Until when it works.
    pub expires_at: Moment,
    /// The full path of the asset.
    pub path: String,
    /// The asset as it will be.
    pub asset: Asset,
}

/// What an address says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claims {
    id: String,
    account: AccountId,
    /// The token that asked for the address, if one did.
    #[serde(default)]
    token: Option<TokenId>,
    label: Option<String>,
    book: String,
    path: String,
    filename: String,
    size: u64,
    expires_at: i64,
}

/// An upload that may begin.
#[derive(Debug)]
pub struct OpenUpload {
    claims: Claims,
    file: PathBuf,
    written: u64,
    output: Option<File>,
}

impl Drop for OpenUpload {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

impl OpenUpload {
    /// How many bytes the content has.
    pub const fn size(&self) -> u64 {
        self.claims.size
    }

    /// Takes the next bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Answer<()> {
        self.written += bytes.len() as u64;
        if self.written > self.claims.size {
            return Err(self.invalid(format!("more than the promised {} bytes arrived", self.claims.size)));
        }
        let Some(output) = &mut self.output else { return Ok(()) };
        output.write_all(bytes).map_err(|error| BookError::Engine {
            path: full_path(&self.claims.book, &self.claims.path),
            error: Error::writing("uploads", error),
        })
    }

    fn invalid(&self, message: String) -> BookError {
        BookError::Validation { path: full_path(&self.claims.book, &self.claims.path), message }
    }
}

impl Library {
    /// An address for the content of an asset.
    pub(super) fn await_upload(
        &self,
        caller: &Caller,
        (book, path, filename): (&str, &str, &str),
        size: u64,
    ) -> Answer<Ticket> {
        let full = full_path(book, path);
        let most = self.options.links.upload_bytes;
        if size == 0 || size > most {
            let message = format!("file_size must be 1 to {most} bytes");
            return Err(BookError::Validation { path: full, message });
        }
        let make = || -> Result<Ticket> {
            caller.must_write()?;
            self.must_take_writes(caller, book)?;
            let id = hex::encode(&crate::library::random()?[..16]);
            let seconds = i64::try_from(self.options.links.seconds).unwrap_or(i64::MAX / 2_000_000);
            let expires_at = Moment::from_micros(self.now().micros() + seconds * 1_000_000);
            let actor = caller.pass.actor();
            let claims = Claims {
                id: id.clone(),
                account: actor.account,
                token: caller.pass.token(),
                label: actor.token.clone(),
                book: book.to_owned(),
                path: path.to_owned(),
                filename: filename.to_owned(),
                size,
                expires_at: expires_at.micros(),
            };
            let text = self.url_keys()?.sign(Purpose::Upload, &claims);
            let text = text.ok_or_else(|| Error::invalid("filename", "cannot be signed"))?;
            let (kind, name) = shelf_base::book_names::asset_name(path).unwrap_or_default();
            let asset = Asset {
                book: book.to_owned(),
                owner: actor.account,
                path: path.to_owned(),
                kind: kind.to_owned(),
                name: name.to_owned(),
                size,
                mime: shelf_reading::detect(path, &[]).mime,
                uploaded_at: self.now(),
                uploaded_by: String::new(),
                hash: shelf_base::Digest::of(&[]),
            };
            Ok(Ticket { id, text, expires_at, path: full.clone(), asset })
        };
        make().map_err(|error| super::failed(book, path, error))
    }

    /// Refuses early what the catalog would refuse in the end.
    fn must_take_writes(&self, caller: &Caller, book: &str) -> Result<()> {
        use shelf_base::book_names::is_reserved;
        use shelf_catalog::{BookStatus, CollectionKind, Error as Catalog, Scope};
        let own = self.catalog.collection(caller.pass.scope(), book)?;
        let refusal = match own {
            Some(found) if found.kind != CollectionKind::Book && !is_reserved(book) => {
                Catalog::NotABook(found.name)
            }
            Some(found) if found.kind != CollectionKind::Book => Catalog::BookTaken,
            Some(found) if found.status != BookStatus::Active => {
                Catalog::BookClosed { book: found.name, status: found.status.word() }
            }
            Some(_) => return Ok(()),
            None => {
                let taken = self.catalog.books(&Scope::Library)?.iter().any(|known| known.name == book);
                if !taken && !is_reserved(book) {
                    return Ok(());
                }
                Catalog::BookTaken
            }
        };
        Err(refusal.into())
    }

    /// Opens an upload for the content that arrives at its address. `length` is what the sender says of it.
    pub fn open_upload(&self, text: &str, length: Option<u64>) -> Answer<OpenUpload> {
        let refused = |message: &str| BookError::Refused { path: "uploads".into(), message: message.into() };
        let engine = |error| BookError::Engine { path: "uploads".into(), error };
        let keys = self.url_keys().map_err(engine)?;
        let claims: Claims = keys
            .read(Purpose::Upload, text)
            .ok_or_else(|| refused("this upload URL is not valid; ask upload_asset for one"))?;
        if self.now().micros() >= claims.expires_at {
            return Err(refused("this upload URL has expired; ask upload_asset for another"));
        }
        let path = full_path(&claims.book, &claims.path);
        self.sender_of(&claims).map_err(|error| BookError::Engine { path: path.clone(), error })?;
        let used = self.catalog.is_upload_used(&id_of(&claims).map_err(engine)?);
        if used.map_err(|error| engine(error.into()))? {
            let message = "this upload was completed before; ask upload_asset for another URL".into();
            return Err(BookError::Closed { path, message });
        }
        if let Some(length) = length.filter(|length| *length != claims.size) {
            let message = format!("the body has {length} bytes; file_size said {}", claims.size);
            return Err(BookError::Validation { path, message });
        }
        let file = self.upload_file(&claims).map_err(engine)?;
        let mut options = OpenOptions::new();
        let output = options.write(true).create_new(true).mode(0o600).open(&file);
        let output = output.map_err(|error| engine(Error::writing("uploads", error)))?;
        Ok(OpenUpload { claims, file, written: 0, output: Some(output) })
    }

    fn upload_file(&self, claims: &Claims) -> Result<PathBuf> {
        let folder = self.folder().join("uploads");
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| Error::writing("uploads", error))?;
        // Two senders may use one address at once; the first that is complete wins.
        let sender = hex::encode(&crate::library::random()?[..8]);
        Ok(folder.join(format!("{}-{}-{sender}.part", claims.id, std::process::id())))
    }

    /// Makes the content that arrived an asset.
    pub fn complete_upload(&self, mut upload: OpenUpload, call: &CallContext) -> Answer<Asset> {
        let claims = upload.claims.clone();
        if upload.written != claims.size {
            return Err(upload.invalid(format!(
                "{} of {} bytes arrived; send the whole content to the same URL",
                upload.written, claims.size
            )));
        }
        upload.output = None;
        let engine = |error: Error| BookError::Engine { path: full_path(&claims.book, &claims.path), error };
        let actor = self.sender_of(&claims).map_err(engine)?;
        let reader = File::open(&upload.file).map_err(|error| engine(Error::reading("uploads", error)))?;
        let content = Content::Stream { reader: Box::new(reader), size: claims.size, name: &claims.filename };
        let used = UploadUse {
            id: id_of(&claims).map_err(engine)?,
            expires_at: Moment::from_micros(claims.expires_at),
        };
        self.store_asset(&actor, (&claims.book, &claims.path, &claims.filename), content, Some(used), call)
    }

    /// Whoever asked for the address, if its account and its token still work.
    fn sender_of(&self, claims: &Claims) -> Result<Actor> {
        let account = self.catalog.account(claims.account)?.filter(|account| account.is_active);
        let gone = || Error::Denied("the account that asked for this upload is not active any more".into());
        let account = account.ok_or_else(gone)?.id;
        if let Some(id) = claims.token {
            let now = self.now();
            let tokens = self.catalog.tokens(&Holder::Personal(account))?;
            if !tokens.iter().any(|known| known.token.id == id && known.is_active(now)) {
                return Err(Error::Denied(
                    "the token that asked for this upload does not work any more; ask upload_asset for another URL"
                        .into(),
                ));
            }
        }
        Ok(Actor { account, token: claims.label.clone() })
    }

    /// Removes what uploads left that were cut off by a crash. Parts of processes that still run are younger than any
    /// address works.
    pub(crate) fn clear_uploads(&self) {
        let Ok(parts) = fs::read_dir(self.folder().join("uploads")) else { return };
        let oldest = std::time::Duration::from_secs(self.options.links.seconds.saturating_add(3_600));
        for part in parts.flatten() {
            let age = part.metadata().and_then(|facts| facts.modified()).map(|at| at.elapsed());
            if matches!(age, Ok(Ok(age)) if age > oldest) {
                let _ = fs::remove_file(part.path());
            }
        }
    }
}

fn id_of(claims: &Claims) -> Result<[u8; 16]> {
    let id = hex::decode(&claims.id).and_then(|id| id.try_into().ok());
    id.ok_or_else(|| Error::invalid("upload", "has no id"))
}
