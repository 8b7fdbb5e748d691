//! Embedding by any server that implements the OpenAI-compatible `POST {url}/embeddings`.
//!
//! Transient errors are retried: rate limits, server errors and connection errors. All others are final, including
//! timeouts, since retrying would only add to the load of an overloaded server. Redirects are not followed and proxies
//! are not taken from the environment, because the key and the texts are meant only for the configured host.

use std::{fmt, io::Read, ops::Range, sync::OnceLock, thread, time::Duration};

use serde::Serialize;
use shelf_base::CallContext;
use ureq::{
    Agent, Body,
    http::{HeaderValue, Response, Uri, header},
};

use crate::{
    Embedder, Error, ReplyError, Result, reply,
    settings::{Checked, EndpointSettings},
};

/// Maximum bytes of text in one request; a single longer text is sent alone.
const REQUEST_BYTES: usize = 200_000;
/// Maximum size of a reply, in bytes. 64 texts of 8,192 dimensions in long decimals take 12 MB.
const REPLY_BYTES: u64 = 64 * 1_024 * 1_024;
/// Maximum bytes to read of an error response.
const REFUSAL_BYTES: u64 = 8 * 1_024;
/// The pause before the second attempt; it doubles with each further attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause when the server does not ask for one.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// The longest pause that a server may ask for, in seconds.
const LONGEST_ASKED: u64 = 30;
/// How often a pause checks whether the call should stop.
const NAP: Duration = Duration::from_millis(25);

/// An embedder reached over HTTP.
pub struct Endpoint {
    settings: EndpointSettings,
    id: String,
    host: String,
    address: Uri,
    authorization: Option<HeaderValue>,
    agent: Agent,
    dimensions: OnceLock<usize>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Endpoint").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: Vec<&'a str>,
    encoding_format: &'static str,
}

/// A failed attempt, and whether a retry can help.
enum AttemptError {
    Final(Error),
    Passing { error: Error, asked: Option<Duration> },
}

impl Endpoint {
    /// Prepares an endpoint; nothing is sent yet.
    pub fn new(settings: EndpointSettings) -> Result<Self> {
        let Checked { address, host, authorization } = settings.check()?;
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(settings.timeout))
            .user_agent("shelf")
            .build()
            .new_agent();
        let id = format!("{}@{host}", settings.model);
        Ok(Self { settings, id, host, address, authorization, agent, dimensions: OnceLock::new() })
    }

    fn request(&self, texts: &[&str], call: &CallContext) -> Result<Vec<Vec<f32>>> {
        let mut pause = FIRST_PAUSE;
        let mut left = self.settings.attempts.max(1);
        loop {
            call.check()?;
            left -= 1;
            match self.attempt(texts) {
                Ok(vectors) => return Ok(vectors),
                Err(AttemptError::Final(error)) => return Err(error),
                Err(AttemptError::Passing { error, .. }) if left == 0 => return Err(error),
                Err(AttemptError::Passing { asked, .. }) => wait(asked.unwrap_or(pause), call)?,
            }
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    fn attempt(&self, texts: &[&str]) -> std::result::Result<Vec<Vec<f32>>, AttemptError> {
        let mut post = self.agent.post(&self.address);
        if let Some(value) = &self.authorization {
            post = post.header(header::AUTHORIZATION, value);
        }
        // Servers reject a whole batch that contains an empty text; a space is the closest text they accept.
        let input = texts.iter().map(|&text| if text.is_empty() { " " } else { text }).collect();
        let request = Request { model: &self.settings.model, input, encoding_format: "float" };
        let mut response = post.send_json(&request).map_err(|error| self.broken(error))?;
        if !response.status().is_success() {
            return Err(self.refused(&mut response));
        }
        let read = response.body_mut().with_config().limit(REPLY_BYTES).read_to_vec();
        let bytes = read.map_err(|error| self.broken(error))?;
        reply::read(&bytes, texts.len()).map_err(|problem| AttemptError::Final(self.unusable(problem)))
    }

    /// Classifies an exchange that failed.
    fn broken(&self, error: ureq::Error) -> AttemptError {
        let host = self.host.clone();
        match error {
            ureq::Error::Timeout(_) => {
                AttemptError::Final(Error::Slow { host, timeout: self.settings.timeout })
            }
            ureq::Error::BodyExceedsLimit(limit) => {
                AttemptError::Final(self.unusable(ReplyError::TooLong { limit }))
            }
            error @ (ureq::Error::Io(_)
            | ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed
            | ureq::Error::Protocol(_)) => AttemptError::Passing {
                error: Error::Unreachable { host, source: error.into_io() },
                asked: None,
            },
            error => AttemptError::Final(Error::Unreachable { host, source: error.into_io() }),
        }
    }

    /// Classifies a response with an error status.
    fn refused(&self, response: &mut Response<Body>) -> AttemptError {
        let status = response.status().as_u16();
        let asked = pause_asked_for(response);
        let error = Error::Refused { host: self.host.clone(), status, said: self.said(status, response) };
        match status {
            429 | 500.. => AttemptError::Passing { error, asked },
            _ => AttemptError::Final(error),
        }
    }

    /// The server's error message. Authorization errors often repeat part of the key, so they are not quoted.
    fn said(&self, status: u16, response: &mut Response<Body>) -> String {
        let mut bytes = Vec::new();
        let read = response.body_mut().as_reader().take(REFUSAL_BYTES).read_to_end(&mut bytes);
        if read.is_err() || matches!(status, 401 | 403) {
            return String::new();
        }
        reply::excerpt(&self.settings.without_key(&reply::message(&bytes)))
    }

    fn unusable(&self, problem: ReplyError) -> Error {
        let problem = match problem {
            ReplyError::NotEmbeddings(what) => ReplyError::NotEmbeddings(self.settings.without_key(&what)),
            problem => problem,
        };
        Error::Reply { host: self.host.clone(), problem }
    }

    /// Records the dimensions of the first vectors and requires later ones to match.
    fn check_dimensions(&self, vectors: &[Vec<f32>]) -> Result<()> {
        let Some(found) = vectors.first().map(Vec::len) else { return Ok(()) };
        let expected = *self.dimensions.get_or_init(|| found);
        if found == expected {
            return Ok(());
        }
        Err(Error::Dimensions { model: self.id.clone(), expected, found })
    }
}

impl Embedder for Endpoint {
    fn model(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> Option<usize> {
        self.dimensions.get().copied()
    }

    fn embed(&self, texts: &[&str], call: &CallContext) -> Result<Vec<Vec<f32>>> {
        let mut vectors = Vec::with_capacity(texts.len());
        for range in batches(texts, self.settings.batch.max(1)) {
            let more = self.request(&texts[range], call)?;
            self.check_dimensions(&more)?;
            vectors.extend(more);
        }
        Ok(vectors)
    }
}

/// Splits texts into batches of one request each.
fn batches(texts: &[&str], most: usize) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let (mut first, mut bytes) = (0, 0);
    for (at, text) in texts.iter().enumerate() {
        if at > first && (at - first == most || bytes + text.len() > REQUEST_BYTES) {
            batches.push(first..at);
            (first, bytes) = (at, 0);
        }
        bytes += text.len();
    }
    if first < texts.len() {
        batches.push(first..texts.len());
    }
    batches
}

/// The pause in `Retry-After`, when it is given in seconds.
fn pause_asked_for(response: &Response<Body>) -> Option<Duration> {
    let seconds: u64 = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(LONGEST_ASKED)))
}

/// Waits, but fails as soon as the call should stop.
fn wait(pause: Duration, call: &CallContext) -> Result<()> {
    let mut left = pause;
    while !left.is_zero() {
        call.check()?;
        let nap = left.min(NAP);
        thread::sleep(nap);
        left -= nap;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
