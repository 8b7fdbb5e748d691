//! Getting a file from the web.
//!
//! The address comes from a model that may have read it anywhere, so it is treated as hostile: only http and https, no
//! addresses of this machine or its networks (`address`), no endless replies. The bytes go to a file first; a transfer
//! that broke off is resumed where it ended (`partial`). This crate knows no library: what becomes of the file is for
//! its caller to decide.

mod address;
mod error;
mod fetch;
mod name;
mod partial;
mod sum;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

pub use error::Error;
pub use name::of as name_of;
pub use partial::{Partial, clear as clear_partials};
use shelf_base::{CallContext, ids::AccountId};
pub use sum::Sum;
use url::Url;

/// Shorthand for this crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Bytes of an address at most.
const URL_BYTES: usize = 4 << 10;

/// Downloads that run at once, of one account and of all.
const OWN_AT_ONCE: usize = 4;
const AT_ONCE: usize = 12;
/// How long a download may take at most, whatever the settings say.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How often a waiting call looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(50);

/// What a fetch may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchSettings {
    /// Whether addresses of this machine and of private networks may be asked.
    pub private_addresses: bool,
    /// Bytes of one file at most.
    pub most_bytes: u64,
    /// How long one may take.
    pub time: Duration,
}

/// What the server said of the content.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Where it was found in the end.
    pub url: String,
    /// The type of the content.
    pub content_type: Option<String>,
    /// Its encoding.
    pub content_encoding: Option<String>,
    /// The name that the server gives it.
    pub filename: Option<String>,
}

/// Downloads under way, by account: each holds a thread and a connection, and machines that say nothing hold them long.
#[derive(Clone, Default)]
pub struct UnderWay(Arc<Mutex<HashMap<AccountId, usize>>>);

/// A place among the downloads under way.
pub struct Turn {
    all: UnderWay,
    account: AccountId,
}

impl UnderWay {
    /// Takes a place for an account; an error when it, or all together, have too many.
    pub fn take(&self, account: AccountId) -> Result<Turn> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = all.get_mut(&self.account) {
            *own -= 1;
        }
        all.retain(|_, own| *own > 0);
    }
}

/// Fetches on a thread of its own, so that a call that was cancelled ends at once; the thread ends when the other machine
/// speaks, or has been silent for too long.
pub fn fetch(
    url: &Url,
    mut partial: Partial,
    settings: FetchSettings,
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

/// An address that may be asked: of the web, and without a password in it.
pub fn parse_address(text: &str) -> Result<Url> {
    if text.len() > URL_BYTES {
        return Err(Error::TooLarge { what: "url", limit: format!("{URL_BYTES} bytes") });
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

/// The host of an address, for messages.
pub fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}
