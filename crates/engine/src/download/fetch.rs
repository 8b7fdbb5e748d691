//! Asking for the content, hop by hop, until all of it is there.

use std::{
    io::Read,
    thread,
    time::{Duration, Instant},
};

use shelf_base::{Call, Kind};
use ureq::{
    Agent, Body,
    http::{HeaderMap, Response, StatusCode, header},
    unversioned::transport::DefaultConnector,
};
use url::Url;

use super::{
    DownloadSettings, Told, check_address, host, name,
    partial::{Mark, Partial},
    reach::{Public, REFUSED},
};
use crate::{Error, Result};

/// Redirects that are followed.
const HOPS: usize = 8;
/// How often an exchange that broke off is begun again.
const ATTEMPTS: usize = 4;
/// The pause before the second attempt; it doubles.
const PAUSE: Duration = Duration::from_millis(300);
/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a connection may take to be there.
const CONNECTING: Duration = Duration::from_secs(15);
/// Bytes that are read at once.
const PIECE: usize = 64 << 10;
/// Bytes after which progress is told.
const TELL: u64 = 1 << 20;

/// An attempt that failed, and whether another can help.
enum Failure {
    Final(Error),
    Passing(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// Everything that an attempt needs.
struct Fetch<'a> {
    url: &'a Url,
    settings: &'a DownloadSettings,
    deadline: Instant,
    call: &'a Call,
}

/// Fills the file with all of the content, taking up what is there.
pub(super) fn all(
    url: &Url,
    partial: &mut Partial,
    settings: &DownloadSettings,
    deadline: Instant,
    call: &Call,
) -> Result<Told> {
    let fetch = Fetch { url, settings, deadline, call };
    let mut pause = PAUSE;
    let mut left = ATTEMPTS;
    loop {
        let before = partial.length();
        match fetch.attempt(partial) {
            Ok(told) => return Ok(told),
            Err(Failure::Final(error)) => return Err(error),
            Err(Failure::Passing(error)) => {
                // What brings bytes is worth another attempt.
                left = if partial.length() > before { ATTEMPTS } else { left - 1 };
                if left == 0 {
                    return Err(error);
                }
            }
        }
        fetch.wait(pause)?;
        pause *= 2;
    }
}

impl Fetch<'_> {
    fn attempt(&self, partial: &mut Partial) -> Result<Told, Failure> {
        let mut url = self.url.clone();
        for _ in 0..=HOPS {
            let response = self.ask(&url, partial)?;
            let status = response.status();
            if status.is_redirection()
                && let Some(place) = response.headers().get(header::LOCATION)
            {
                let place = place.to_str().unwrap_or_default();
                url = self.next(&url, place)?;
                continue;
            }
            return self.take(&url, response, partial);
        }
        Err(self.failed(Kind::Io, format!("more than {HOPS} redirects")).into())
    }

    fn ask(&self, url: &Url, partial: &Partial) -> Result<Response<Body>, Failure> {
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
        let resolver = Public::new(self.settings.private_addresses);
        let agent = Agent::with_parts(config, DefaultConnector::default(), resolver);
        let mut request = agent.get(url.as_str());
        if let Some(Mark { validator: Some(validator) }) = partial.mark() {
            request = request
                .header(header::RANGE, format!("bytes={}-", partial.length()))
                .header(header::IF_RANGE, validator);
        }
        request.call().map_err(|error| self.broken(&error))
    }

    /// Where a redirect leads. It is looked at like the first address, and never from a protected connection to an open
    /// one.
    fn next(&self, from: &Url, place: &str) -> Result<Url> {
        let url = from.join(place).map_err(|_| self.failed(Kind::Io, "a redirect leads to no address"))?;
        check_address(&url)
            .map_err(|error| self.failed(Kind::Denied, format!("a redirect was refused: {error}")))?;
        if from.scheme() == "https" && url.scheme() == "http" {
            return Err(self.failed(Kind::Denied, "a redirect leads from https to http"));
        }
        Ok(url)
    }

    /// Takes the content of an answer.
    fn take(&self, url: &Url, response: Response<Body>, partial: &mut Partial) -> Result<Told, Failure> {
        let headers = response.headers();
        let told = Told {
            url: {
                let mut plain = url.clone();
                plain.set_fragment(None);
                plain.into()
            },
            content_type: text(headers, header::CONTENT_TYPE).map(|text| text.chars().take(200).collect()),
            filename: text(headers, header::CONTENT_DISPOSITION).and_then(|text| name::disposed(&text)),
        };
        let length = text(headers, header::CONTENT_LENGTH).and_then(|text| text.trim().parse::<u64>().ok());
        let total = match response.status() {
            StatusCode::OK => {
                self.begin(partial, headers)?;
                length
            }
            StatusCode::PARTIAL_CONTENT => match range(headers) {
                Some((start, total)) if start == partial.length() => {
                    total.or(length.map(|length| start + length))
                }
                _ => {
                    self.begin(partial, &HeaderMap::new())?;
                    return Err(Failure::Passing(
                        self.failed(Kind::Io, "it sent another part than asked for"),
                    ));
                }
            },
            StatusCode::RANGE_NOT_SATISFIABLE if partial.length() > 0 => {
                self.begin(partial, &HeaderMap::new())?;
                return Err(Failure::Passing(self.failed(Kind::Io, "it does not know the part asked for")));
            }
            status => return Err(self.refused(status)),
        };
        if total.is_some_and(|total| total > self.settings.most_bytes) {
            partial.remove();
            return Err(self.too_large().into());
        }
        self.fill(response.into_body(), total, partial)?;
        Ok(told)
    }

    /// Begins the file anew, with what tells this content from a later one.
    fn begin(&self, partial: &mut Partial, headers: &HeaderMap) -> Result<()> {
        let tag = text(headers, header::ETAG).filter(|tag| tag.starts_with('"'));
        let validator = tag.or_else(|| text(headers, header::LAST_MODIFIED));
        partial.begin(&Mark { validator }).map_err(writing)
    }

    fn fill(&self, body: Body, total: Option<u64>, partial: &mut Partial) -> Result<(), Failure> {
        let mut reader = body.into_with_config().limit(u64::MAX).reader();
        let (mut buffer, mut said) = (vec![0; PIECE], 0);
        loop {
            self.call.check().map_err(Error::from)?;
            self.left()?;
            let read = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(_) if self.deadline <= Instant::now() => return Err(self.too_slow().into()),
                Err(error) => return Err(Failure::Passing(self.failed(Kind::Io, plain(&error.to_string())))),
            };
            if partial.length() + read as u64 > self.settings.most_bytes {
                partial.remove();
                return Err(self.too_large().into());
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
                Err(Failure::Passing(self.failed(Kind::Io, what)))
            }
            _ => Ok(()),
        }
    }

    /// What becomes of an exchange that broke off before an answer.
    fn broken(&self, error: &ureq::Error) -> Failure {
        match error {
            ureq::Error::Io(io) if io.to_string().contains(REFUSED) => Failure::Final(self.failed(
                Kind::Denied,
                "it is a machine of this network or a private one; set download.private_addresses in shelf.toml to \
                 allow that",
            )),
            ureq::Error::HostNotFound => {
                Failure::Final(self.failed(Kind::NotFound, "there is no host of that name"))
            }
            _ if self.deadline <= Instant::now() => Failure::Final(self.too_slow()),
            other => Failure::Passing(self.failed(Kind::Io, plain(&other.to_string()))),
        }
    }

    fn refused(&self, status: StatusCode) -> Failure {
        let error = |kind| self.failed(kind, format!("it answers {status}"));
        match status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Failure::Final(error(Kind::NotFound)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failure::Final(error(Kind::Denied)),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Failure::Passing(error(Kind::Io)),
            status if status.is_server_error() => Failure::Passing(error(Kind::Io)),
            _ => Failure::Final(error(Kind::Io)),
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

    fn failed(&self, kind: Kind, what: impl Into<String>) -> Error {
        Error::Fetch { host: host(self.url), kind, what: what.into() }
    }

    fn too_slow(&self) -> Error {
        let seconds = self.settings.time.as_secs();
        self.failed(
            Kind::TimedOut,
            format!("it took longer than {seconds} s (download.seconds in shelf.toml)"),
        )
    }

    fn too_large(&self) -> Error {
        let megabytes = self.settings.most_bytes >> 20;
        let what = format!("it is larger than {megabytes} MiB (download.megabytes in shelf.toml)");
        self.failed(Kind::TooLarge, what)
    }
}

fn writing(error: std::io::Error) -> Error {
    Error::File { action: "cannot write the download", path: "downloads".into(), source: error }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    // Some servers write names in UTF-8, which is no token of the protocol but plain to read.
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Where a part begins, and how long the whole is.
fn range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let value = text(headers, header::CONTENT_RANGE)?;
    let (part, total) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
    let start = part.split_once('-')?.0.trim().parse().ok()?;
    Some((start, total.trim().parse().ok()))
}

/// The text of an error without the operating system's number.
fn plain(text: &str) -> String {
    text.split(" (os error").next().unwrap_or(text).to_owned()
}
