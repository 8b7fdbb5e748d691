//! Downloading: an address on the web becomes a document.
//!
//! The address comes from a model that may have read it anywhere, so it is hostile: only http and https, no addresses of
//! this machine or its networks ([`reach`]), no endless answers. The bytes go to a file beside the library first; only
//! when all are there, and have the sum that was asked for, do they become a document. What was cut off is taken up
//! again where it ended ([`partial`]).

mod fetch;
mod name;
mod partial;
mod reach;
mod sum;

use std::time::{Duration, Instant};

use partial::Partial;
use shelf_base::Call;
use shelf_catalog::Metadata;
use sum::Sum;
use url::Url;

use crate::{AddReply, AddRequest, Caller, Error, House, Reach, Result, What};

/// Bytes of an address at most.
const URL_BYTES: usize = 4 << 10;

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

/// What the server said of the content.
#[derive(Clone, Debug, Default)]
struct Told {
    /// Where it was found in the end.
    url: String,
    content_type: Option<String>,
    /// The name that the server gives it.
    filename: Option<String>,
}

impl House {
    /// Downloads and stores; nothing is stored unless all of it came and has the sum that was asked for.
    pub fn download(&self, caller: &Caller, request: &DownloadRequest, call: &Call) -> Result<DownloadReply> {
        caller.must_write()?;
        let settings = self.options.download;
        if caller.reach == Reach::Configured && !settings.over_http {
            return Err(Error::Unavailable {
                what: "downloading is off over HTTP".into(),
                hint: "send the content with `add`, or set download.over_http in shelf.toml".into(),
            });
        }
        let url = address(&request.url)?;
        let sum = request.checksum.as_deref().map(Sum::parse).transpose()?;
        let name = request.name.clone().unwrap_or_else(|| name::of(&url));
        let mut adding = AddRequest {
            collection: request.collection.clone(),
            tags: request.tags.clone(),
            metadata: request.metadata.clone(),
            snapshot_label: request.snapshot_label.clone(),
            ..AddRequest::new(What::Content { name: name.clone(), bytes: Vec::new() })
        };
        // What cannot be stored need not be fetched.
        self.check_adding(caller, &adding)?;
        let folder = self.folder().join("downloads");
        let mut partial = Partial::open(&folder, caller.pass.account(), &url)?;
        let deadline = Instant::now() + settings.time;
        let told = fetch::all(&url, &mut partial, &settings, deadline, call)?;
        if let Some(sum) = &sum {
            let found = sum.of(partial.reader()?, call)?;
            if found != *sum {
                partial.remove();
                return Err(Error::Fetch {
                    host: host(&url),
                    kind: shelf_base::Kind::Conflict,
                    what: format!("the content has {found} instead of {sum}; nothing was stored"),
                });
            }
        }
        adding.metadata = described(&url, &told, request.metadata.clone());
        let size = partial.length();
        let added = self.add_fetched(caller, &adding, &name, partial.reader()?, call)?;
        partial.remove();
        Ok(DownloadReply { added, size, checksum_ok: sum.map(|_| true) })
    }
}

/// Where it came from, unless the caller says otherwise.
fn described(url: &Url, told: &Told, given: Metadata) -> Metadata {
    let mut plain = url.clone();
    plain.set_fragment(None);
    let mut metadata = Metadata::new();
    metadata.insert("source_url".into(), plain.as_str().into());
    if told.url != plain.as_str() {
        metadata.insert("final_url".into(), told.url.clone().into());
    }
    for (key, value) in [("filename", &told.filename), ("content_type", &told.content_type)] {
        if let Some(value) = value {
            metadata.insert(key.into(), value.clone().into());
        }
    }
    metadata.extend(given);
    metadata
}

/// An address that may be asked: of the web, and without a password in it.
fn address(text: &str) -> Result<Url> {
    if text.len() > URL_BYTES {
        return Err(Error::TooLarge { what: "url".into(), limit: format!("{URL_BYTES} bytes") });
    }
    let url =
        Url::parse(text.trim()).map_err(|error| Error::invalid("url", format!("is no address: {error}")))?;
    check_address(&url)?;
    Ok(url)
}

fn check_address(url: &Url) -> Result<()> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::invalid(
            "url",
            format!("must begin with http:// or https://, not {}:", url.scheme()),
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::invalid("url", "must not hold a user name or password"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(Error::invalid("url", "must name a host"));
    }
    Ok(())
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}
