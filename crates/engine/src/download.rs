//! Downloading: an address on the web becomes a document.
//!
//! The file is fetched to a folder of the data directory ([`shelf_fetch`]). Only when all of it is there, and has the
//! checksum that was asked for, does it become a document.

use std::{path::PathBuf, time::Duration};

use shelf_base::{CallContext, Kind};
use shelf_catalog::Metadata;
use shelf_fetch::{FetchSettings, Partial, Sum, Told, fetch, host, name_of, parse_address};
use url::Url;

use crate::{AddReply, AddRequest, Caller, Error, FileAccess, Library, Result, What};

/// What downloads may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DownloadSettings {
    /// Whether callers over HTTP may download.
    pub over_http: bool,
    /// Whether addresses of this machine and of private networks may be asked.
    pub private_addresses: bool,
    /// Bytes of one download at most.
    pub most_bytes: u64,
    /// How long one may take.
    pub time: Duration,
}

impl Default for DownloadSettings {
    fn default() -> Self {
        Self {
            over_http: false,
            private_addresses: false,
            most_bytes: 1 << 30,
            time: Duration::from_secs(300),
        }
    }
}

impl DownloadSettings {
    const fn fetch(&self) -> FetchSettings {
        let Self { over_http: _, private_addresses, most_bytes, time } = *self;
        FetchSettings { private_addresses, most_bytes, time }
    }
}

impl From<shelf_fetch::Error> for Error {
    fn from(error: shelf_fetch::Error) -> Self {
        use shelf_fetch::Error as Fetch;
        match error {
            Fetch::Invalid { field, expected } => Self::invalid(field, expected),
            Fetch::TooLarge { what, limit } => Self::TooLarge { what: what.to_owned(), limit },
            Fetch::Busy(what) => Self::Busy(what),
            Fetch::Host { host, kind, what } => Self::Fetch { host, kind, what },
            Fetch::File { action, path, source } => Self::File { action, path, source },
            Fetch::Stopped(stopped) => Self::Stopped(stopped),
        }
    }
}

/// A request to download.
#[derive(Clone, Debug, Default)]
pub struct DownloadRequest {
    /// The address.
    pub url: String,
    /// `sha256:…`, `sha512:…`, `md5:…` or `blake3:…` that the content must have.
    pub checksum: Option<String>,
    /// The name it is stored under; the last part of the address when not given.
    pub name: Option<String>,
    /// Collection; `default` when not given.
    pub collection: Option<String>,
    /// Tags to give.
    pub tags: Vec<String>,
    /// Metadata to give, beside where it came from.
    pub metadata: Metadata,
    /// Label of the snapshot.
    pub snapshot_label: Option<String>,
}

/// What was downloaded.
#[derive(Clone, Debug)]
pub struct DownloadReply {
    /// What storing it did.
    pub added: AddReply,
    /// Its size.
    pub size: u64,
    /// Whether the sum was as asked for; `None` when none was given.
    pub checksum_ok: Option<bool>,
}

impl Library {
    /// Whether the caller's downloads are on, or what to set.
    pub fn can_download(&self, caller: &Caller) -> Result<()> {
        if caller.file_access == FileAccess::OperatingSystem || self.options.download.over_http {
            return Ok(());
        }
        Err(Error::Unavailable {
            what: "downloading is off over HTTP".into(),
            hint: "send the content with `add`, or set download.over_http in shelf.toml".into(),
        })
    }

    /// Downloads and stores; nothing is stored unless all of it came and has the sum that was asked for.
    pub fn download(
        &self,
        caller: &Caller,
        request: &DownloadRequest,
        call: &CallContext,
    ) -> Result<DownloadReply> {
        caller.must_write()?;
        self.can_download(caller)?;
        let settings = self.options.download;
        let url = parse_address(&request.url)?;
        let sum = request.checksum.as_deref().map(Sum::parse).transpose()?;
        let name = request.name.clone().unwrap_or_else(|| name_of(&url));
        let mut adding = AddRequest {
            collection: request.collection.clone(),
            tags: request.tags.clone(),
            metadata: described(&url, &Told::default(), request.metadata.clone()),
            snapshot_label: request.snapshot_label.clone(),
            ..AddRequest::new(What::Content { name, bytes: Vec::new() })
        };
        // What cannot be stored need not be fetched.
        self.check_adding(caller, &adding)?;
        let turn = self.under_way.take(caller.pass.account())?;
        let partial = Partial::open(&self.downloads(), caller.pass.account(), &url)?;
        let (told, mut partial, _turn) = fetch(&url, partial, settings.fetch(), turn, call)?;
        adding.metadata = described(&url, &told, request.metadata.clone());
        let stored = self.store_fetched(caller, &adding, (&url, sum.as_ref()), &mut partial, call);
        partial.remove();
        let (added, size) = (stored?, partial.length());
        Ok(DownloadReply { added, size, checksum_ok: sum.map(|_| true) })
    }

    /// Stores what was fetched, once it has the sum that was asked for.
    fn store_fetched(
        &self,
        caller: &Caller,
        adding: &AddRequest,
        (url, sum): (&Url, Option<&Sum>),
        partial: &mut Partial,
        call: &CallContext,
    ) -> Result<AddReply> {
        if let Some(sum) = sum {
            let found = sum.of(partial.reader()?, call)?;
            if found != *sum {
                return Err(Error::Fetch {
                    host: host(url),
                    kind: Kind::Conflict,
                    what: format!("the content has {found} instead of {sum}; nothing was stored"),
                });
            }
        }
        let What::Content { name, .. } = &adding.what else {
            return Err(Error::invalid("name", "is needed"));
        };
        self.add_fetched(caller, adding, name, partial.reader()?, call)
    }

    fn downloads(&self) -> PathBuf {
        self.folder().join("downloads")
    }

    /// Deletes what broken transfers left, unless somebody is at it.
    pub(crate) fn clear_downloads(&self) {
        shelf_fetch::clear_partials(&self.downloads(), |_| true);
    }
}

/// Where it came from, unless the caller says otherwise. All of it is always said, so that nothing of an earlier
/// download under the same name stays.
fn described(url: &Url, told: &Told, given: Metadata) -> Metadata {
    let mut plain = url.clone();
    plain.set_fragment(None);
    let final_url = if told.url.is_empty() { plain.as_str() } else { told.url.as_str() };
    let filename = told.filename.clone().unwrap_or_else(|| name_of(url));
    let content_type = told.content_type.as_deref().unwrap_or("application/octet-stream");
    let encoding = told.content_encoding.as_deref().unwrap_or("identity");
    let mut metadata = Metadata::new();
    for (key, value) in [
        ("source_url", plain.as_str()),
        ("final_url", final_url),
        ("filename", filename.as_str()),
        ("content_type", content_type),
        ("content_encoding", encoding),
    ] {
        metadata.insert(key.into(), value.into());
    }
    metadata.extend(given);
    metadata
}
