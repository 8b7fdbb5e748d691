//! Downloading: an address on the web becomes a document.
//!
//! The address comes from a model that may have read it anywhere, so it is hostile: only http and https, no addresses of
//! this machine or its networks ([`reach`]), no endless answers. The bytes go to a file beside the library first; only
//! when all are there, and have the sum that was asked for, do they become a document. What was cut off is taken up
//! again where it ended ([`partial`]).

mod address;
mod fetch;
mod name;
mod partial;
mod sum;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use partial::Partial;
use shelf_base::{CallContext, Kind, ids::AccountId};
use shelf_catalog::Metadata;
use sum::Sum;
use url::Url;

use crate::{AddReply, AddRequest, Caller, Error, FileAccess, Library, Result, What};

/// Bytes of an address at most.
const URL_BYTES: usize = 4 << 10;

/// Downloads that run at once, of one account and of all.
const OWN_AT_ONCE: usize = 4;
const AT_ONCE: usize = 12;
/// How long a download may take at most, whatever the settings say.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How often a waiting call looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(50);

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
    content_encoding: Option<String>,
    /// The name that the server gives it.
    filename: Option<String>,
}

/// Downloads under way, by account: each holds a thread and a connection, and machines that say nothing hold them long.
#[derive(Clone, Default)]
pub(crate) struct UnderWay(Arc<Mutex<HashMap<AccountId, usize>>>);

/// A place among the downloads under way.
struct Turn {
    all: UnderWay,
    account: AccountId,
}

impl UnderWay {
    fn take(&self, account: AccountId) -> Result<Turn> {
        let mut all = self.0.lock();
        let (own, everybody) = (all.get(&account).copied().unwrap_or(0), all.values().sum::<usize>());
        if own >= OWN_AT_ONCE || everybody >= AT_ONCE {
            let whose = if own >= OWN_AT_ONCE { "of yours " } else { "" };
            return Err(Error::Busy(format!("too many downloads {whose}are under way: wait for one to end")));
        }
        *all.entry(account).or_default() += 1;
        Ok(Turn { all: self.clone(), account })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        if let Some(own) = all.get_mut(&self.account) {
            *own -= 1;
        }
        all.retain(|_, own| *own > 0);
    }
}

impl Library {
    /// Downloads and stores; nothing is stored unless all of it came and has the sum that was asked for.
    pub fn download(
        &self,
        caller: &Caller,
        request: &DownloadRequest,
        call: &CallContext,
    ) -> Result<DownloadReply> {
        caller.must_write()?;
        let settings = self.options.download;
        if caller.file_access == FileAccess::Configured && !settings.over_http {
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
            metadata: described(&url, &Told::default(), request.metadata.clone()),
            snapshot_label: request.snapshot_label.clone(),
            ..AddRequest::new(What::Content { name, bytes: Vec::new() })
        };
        // What cannot be stored need not be fetched.
        self.check_adding(caller, &adding)?;
        let turn = self.under_way.take(caller.pass.account())?;
        let partial = Partial::open(&self.downloads(), caller.pass.account(), &url)?;
        let (told, mut partial, _turn) = fetch_apart(&url, partial, settings, turn, call)?;
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
        partial::clear(&self.downloads(), |_| true);
    }
}

/// Fetches on a thread of its own, so that a call that was cancelled ends at once; the thread ends when the other machine
/// speaks, or has been silent for too long.
fn fetch_apart(
    url: &Url,
    mut partial: Partial,
    settings: DownloadSettings,
    turn: Turn,
    call: &CallContext,
) -> Result<(Told, Partial, Turn)> {
    let deadline = Instant::now() + settings.time.min(LONGEST);
    let (sender, outcome) = mpsc::sync_channel(1);
    let (url, own_call) = (url.clone(), call.clone());
    let work = move || {
        let told = fetch::all(&url, &mut partial, &settings, deadline, &own_call);
        let _ = sender.send(told.map(|told| (told, partial, turn)));
    };
    let started = thread::Builder::new().name("download".into()).spawn(work);
    let failed = |source| Error::File { action: "cannot download", path: "downloads".into(), source };
    started.map_err(failed)?;
    loop {
        match outcome.recv_timeout(LOOK) {
            Ok(outcome) => return outcome,
            Err(RecvTimeoutError::Timeout) => call.check()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed(std::io::Error::other("the download ended by a defect")));
            }
        }
    }
}

/// Where it came from, unless the caller says otherwise. All of it is always said, so that nothing of an earlier
/// download under the same name stays.
fn described(url: &Url, told: &Told, given: Metadata) -> Metadata {
    let mut plain = url.clone();
    plain.set_fragment(None);
    let final_url = if told.url.is_empty() { plain.as_str() } else { told.url.as_str() };
    let filename = told.filename.clone().unwrap_or_else(|| name::of(url));
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
