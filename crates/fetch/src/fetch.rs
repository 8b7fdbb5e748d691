//! Asking for the content, hop by hop, until all of it is there.

use std::{
    io::Read,
    thread,
    time::{Duration, Instant},
};

use shelf_base::{CallContext, ErrorInfo, Kind};
use ureq::{
    Agent, Body,
    http::{HeaderMap, Response, StatusCode, header},
    unversioned::transport::DefaultConnector,
};
use url::Url;

use crate::{Error, Result};
use crate::{
    FetchSettings, Told,
    address::{AddressPolicy, REFUSED},
    check_address, host, name,
    partial::{Mark, Partial},
};

/// Redirects that are followed.
const HOPS: usize = 8;
/// How often an exchange that broke off is begun again.
const ATTEMPTS: usize = 4;
/// The pause before the second attempt; it doubles.
const PAUSE: Duration = Duration::from_millis(300);
/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a connection may take to be there.
const CONNECTING: Duration = Duration::from_secs(15);
/// Bytes that are read at once.
const PIECE: usize = 64 << 10;
/// Bytes after which progress is told.
const TELL: u64 = 1 << 20;

/// An attempt that failed, and whether another can help.
enum AttemptError {
    Final(Error),
    Passing(Error),
}

impl From<Error> for AttemptError {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// Everything that an attempt needs.
struct Fetch<'a> {
    url: &'a Url,
    settings: &'a FetchSettings,
    deadline: Instant,
    call: &'a CallContext,
}

/// Fills the file with all of the content, taking up what is there. What is of no use afterwards is deleted.
pub(crate) fn all(
    url: &Url,
    partial: &mut Partial,
    settings: &FetchSettings,
    deadline: Instant,
    call: &CallContext,
) -> Result<Told> {
    let fetch = Fetch { url, settings, deadline, call };
    let outcome = fetch.with_patience(partial);
    let may_go_on = match &outcome {
        Ok(_) => true,
        Err(error) => {
            partial.mark().is_some()
                && !matches!(error.kind(), Kind::StorageFull | Kind::TooLarge | Kind::Denied)
        }
    };
    if !may_go_on {
        partial.remove();
    }
    outcome
}

impl Fetch<'_> {
    fn with_patience(&self, partial: &mut Partial) -> Result<Told> {
        let (mut pause, mut left) = (PAUSE, ATTEMPTS);
        loop {
            let before = partial.length();
            match self.attempt(partial) {
                Ok(told) => return Ok(told),
                Err(AttemptError::Final(error)) => return Err(error),
                // What brings bytes is worth another attempt, at once.
                Err(AttemptError::Passing(_)) if partial.mark().is_some() && partial.length() > before => {
                    (pause, left) = (PAUSE, ATTEMPTS);
                }
                Err(AttemptError::Passing(error)) => {
                    left -= 1;
                    if left == 0 {
                        return Err(error);
                    }
                    self.wait(pause)?;
                    pause *= 2;
                }
            }
            self.call.check()?;
        }
    }

    fn attempt(&self, partial: &mut Partial) -> Result<Told, AttemptError> {
        let mut url = self.url.clone();
        for _ in 0..=HOPS {
            let (response, asked) = self.ask(&url, partial)?;
            if response.status().is_redirection()
                && let Some(place) = text(response.headers(), header::LOCATION)
            {
                url = self.next(&url, place.trim())?;
                continue;
            }
            return self.take(&url, response, asked, partial);
        }
        Err(self.failed(self.url, Kind::Io, format!("more than {HOPS} redirects")).into())
    }

    /// Asks for the content, or for the rest of it; the answer, and where the rest begins.
    fn ask(&self, url: &Url, partial: &Partial) -> Result<(Response<Body>, Option<u64>), AttemptError> {
        let left = self.left()?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(left))
            .timeout_per_read(Some(SILENCE.min(left)))
            .timeout_connect(Some(CONNECTING.min(left)))
            .timeout_resolve(Some(CONNECTING.min(left)))
            .user_agent(concat!("shelf/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .build();
        let resolver = AddressPolicy::new(self.settings.private_addresses);
        let agent = Agent::with_parts(config, DefaultConnector::default(), resolver);
        let mut request = agent.get(url.as_str());
        let asked = partial.mark().map(|mark| (partial.length(), mark.tag.clone()));
        if let Some((start, tag)) = &asked {
            request = request.header(header::RANGE, format!("bytes={start}-")).header(header::IF_RANGE, tag);
        }
        let response = request.call().map_err(|error| self.broken(url, &error))?;
        Ok((response, asked.map(|(start, _)| start)))
    }

    /// Where a redirect leads. It is looked at like the first address, and never from a protected connection to an open
    /// one.
    fn next(&self, from: &Url, place: &str) -> Result<Url> {
        let wrong = || self.failed(from, Kind::Io, "a redirect leads to no address");
        if place.is_empty() {
            return Err(wrong());
        }
        let url = from.join(place).map_err(|_| wrong())?;
        check_address(&url)
            .map_err(|error| self.failed(from, Kind::Denied, format!("a redirect was refused: {error}")))?;
        if from.scheme() == "https" && url.scheme() == "http" {
            return Err(self.failed(from, Kind::Denied, "a redirect leads from https to http"));
        }
        Ok(url)
    }

    /// Takes the content of an answer.
    fn take(
        &self,
        url: &Url,
        response: Response<Body>,
        asked: Option<u64>,
        partial: &mut Partial,
    ) -> Result<Told, AttemptError> {
        let headers = response.headers();
        let told = Told::new(url, headers);
        let length = text(headers, header::CONTENT_LENGTH).and_then(|text| text.trim().parse::<u64>().ok());
        let (end, total) = match response.status() {
            StatusCode::OK => {
                let tag = strong_tag(headers);
                let mark = tag.zip(length).map(|(tag, total)| Mark::new(tag, told.url.clone(), total));
                partial.begin(mark).map_err(writing)?;
                (length, length)
            }
            StatusCode::PARTIAL_CONTENT if self.goes_on(&told, headers, asked, partial) => {
                let end = text(headers, header::CONTENT_RANGE).and_then(|text| range(&text));
                (end.map(|(_, last, _)| last + 1), partial.mark().map(|mark| mark.total))
            }
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                partial.begin(None).map_err(writing)?;
                let what = "it sent a part of something else than before";
                return Err(AttemptError::Passing(self.failed(url, Kind::Io, what)));
            }
            status => return Err(self.refused(url, status)),
        };
        self.has_room(url, total, partial)?;
        self.fill(url, response.into_body(), (end, total), partial)?;
        Ok(told)
    }

    /// Whether an answer is the rest of what is there: asked for, of the same content, at the same place, to its end.
    fn goes_on(&self, told: &Told, headers: &HeaderMap, asked: Option<u64>, partial: &Partial) -> bool {
        let (Some(start), Some(mark)) = (asked, partial.mark()) else { return false };
        let range = text(headers, header::CONTENT_RANGE).and_then(|text| range(&text));
        start == partial.length()
            && strong_tag(headers).as_deref() == Some(mark.tag.as_str())
            && told.url == mark.url
            && range.is_some_and(|(from, to, total)| from == start && to < total && total == mark.total)
    }

    /// Refuses what is too large, or what the disk could not hold: once on its way and once stored.
    fn has_room(&self, url: &Url, total: Option<u64>, partial: &Partial) -> Result<()> {
        let Some(total) = total else { return Ok(()) };
        if total > self.settings.most_bytes {
            return Err(self.too_large(url));
        }
        let needed = total.saturating_sub(partial.length()).saturating_add(total);
        match partial.free() {
            Some(free) if free < needed => Err(self.failed(
                url,
                Kind::StorageFull,
                format!("it has {} MiB and there is too little room on the disk", total >> 20),
            )),
            _ => Ok(()),
        }
    }

    /// Writes what comes, up to the end of this answer; an error when that is not the end of all.
    fn fill(
        &self,
        url: &Url,
        body: Body,
        (end, total): (Option<u64>, Option<u64>),
        partial: &mut Partial,
    ) -> Result<(), AttemptError> {
        let mut reader = body.into_with_config().limit(u64::MAX).reader();
        let (mut buffer, mut said) = (vec![0; PIECE], 0);
        loop {
            self.call.check().map_err(Error::from)?;
            self.left()?;
            let read = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(_) if self.deadline <= Instant::now() => return Err(self.too_slow().into()),
                Err(error) => {
                    return Err(AttemptError::Passing(self.failed(url, Kind::Io, plain(&error.to_string()))));
                }
            };
            let length = partial.length() + read as u64;
            if length > self.settings.most_bytes {
                return Err(self.too_large(url).into());
            }
            if end.is_some_and(|end| length > end) {
                return Err(self.failed(url, Kind::Io, "it sent more than it had said").into());
            }
            partial.write(&buffer[..read]).map_err(writing)?;
            if partial.length() - said >= TELL {
                said = partial.length();
                self.call.report(said, total, "downloading");
            }
        }
        match total {
            Some(total) if partial.length() != total => {
                let what = format!("it sent {} of {total} bytes", partial.length());
                Err(AttemptError::Passing(self.failed(url, Kind::Io, what)))
            }
            _ => Ok(()),
        }
    }

    /// What becomes of an exchange that broke off before an answer.
    fn broken(&self, url: &Url, error: &ureq::Error) -> AttemptError {
        match error {
            ureq::Error::Io(io) if io.to_string().contains(REFUSED) => AttemptError::Final(self.failed(
                url,
                Kind::Denied,
                "this address belongs to this machine or a private network; set download.private_addresses in \
                 shelf.toml to allow that",
            )),
            ureq::Error::HostNotFound => {
                AttemptError::Final(self.failed(url, Kind::NotFound, "there is no host of that name"))
            }
            _ if self.deadline <= Instant::now() => AttemptError::Final(self.too_slow()),
            ureq::Error::Io(_) | ureq::Error::Timeout(_) | ureq::Error::ConnectionFailed => {
                AttemptError::Passing(self.failed(url, Kind::Io, plain(&error.to_string())))
            }
            // What is no answer of the protocol now will be none in a second.
            other => AttemptError::Final(self.failed(url, Kind::Io, plain(&other.to_string()))),
        }
    }

    fn refused(&self, url: &Url, status: StatusCode) -> AttemptError {
        let error = |kind| self.failed(url, kind, format!("it answers {status}"));
        match status {
            StatusCode::NOT_FOUND | StatusCode::GONE => AttemptError::Final(error(Kind::NotFound)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => AttemptError::Final(error(Kind::Denied)),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                AttemptError::Passing(error(Kind::Io))
            }
            status if status.is_server_error() => AttemptError::Passing(error(Kind::Io)),
            _ => AttemptError::Final(error(Kind::Io)),
        }
    }

    /// The time that is left.
    fn left(&self) -> Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(self.too_slow()) } else { Ok(left) }
    }

    fn wait(&self, pause: Duration) -> Result<()> {
        let until = Instant::now() + pause.min(self.left()?);
        while Instant::now() < until {
            self.call.check()?;
            thread::sleep(Duration::from_millis(25));
        }
        Ok(())
    }

    fn failed(&self, url: &Url, kind: Kind, what: impl Into<String>) -> Error {
        Error::Host { host: host(url), kind, what: what.into() }
    }

    fn too_slow(&self) -> Error {
        let seconds = self.settings.time.as_secs();
        let what = format!("it took longer than {seconds} s (download.seconds in shelf.toml)");
        self.failed(self.url, Kind::TimedOut, what)
    }

    fn too_large(&self, url: &Url) -> Error {
        let megabytes = self.settings.most_bytes >> 20;
        let what = format!("it is larger than {megabytes} MiB (download.megabytes in shelf.toml)");
        self.failed(url, Kind::TooLarge, what)
    }
}

impl Told {
    fn new(url: &Url, headers: &HeaderMap) -> Self {
        let mut plain = url.clone();
        plain.set_fragment(None);
        let short = |text: String| text.chars().take(200).collect();
        Self {
            url: plain.into(),
            content_type: text(headers, header::CONTENT_TYPE).map(short),
            content_encoding: text(headers, header::CONTENT_ENCODING).map(short),
            filename: text(headers, header::CONTENT_DISPOSITION).and_then(|text| name::disposed(&text)),
        }
    }
}

fn writing(error: std::io::Error) -> Error {
    Error::File { action: "cannot write the download", path: "downloads".into(), source: error }
}

/// A header's text. Some servers write names in UTF-8, others in Latin-1; both are plain to read.
fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    let bytes = headers.get(name)?.as_bytes();
    Some(match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    })
}

/// The entity tag, when it promises the same bytes.
fn strong_tag(headers: &HeaderMap) -> Option<String> {
    text(headers, header::ETAG).filter(|tag| tag.starts_with('"') && tag.len() > 2)
}

/// First and last byte of a part, and the length of the whole.
fn range(text: &str) -> Option<(u64, u64, u64)> {
    let (part, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = part.split_once('-')?;
    Some((start.trim().parse().ok()?, end.trim().parse().ok()?, total.trim().parse().ok()?))
}

/// The text of an error without the operating system's number.
fn plain(text: &str) -> String {
    text.split(" (os error").next().unwrap_or(text).to_owned()
}
