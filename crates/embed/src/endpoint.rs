//! Embedding by a server: any that speaks the OpenAI-compatible `POST {url}/embeddings`.
//!
//! Servers fail in passing, so what may pass is tried again: refusals for too many requests, failures of the server
//! and of the connection. What cannot pass is not: other refusals, and an answer that took the whole time allowed,
//! since asking an overloaded server once more only adds to its load. Redirects are not followed, because the key and
//! the texts are meant for the host in the settings and no other; nor is a proxy taken from the environment.

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

/// Bytes of text after which a request is closed; a single longer text still goes out, alone.
const REQUEST_BYTES: usize = 200_000;
/// The most bytes of a reply: 64 texts of 8,192 dimensions in long decimals are 12 MB.
const REPLY_BYTES: u64 = 64 * 1_024 * 1_024;
/// The most bytes of a refusal that are read.
const REFUSAL_BYTES: u64 = 8 * 1_024;
/// The pause before the second attempt; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause of our own choice.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// The longest pause that a server may ask for.
const LONGEST_ASKED: u64 = 30;
/// How long a pause goes on before the call is asked whether to stop.
const NAP: Duration = Duration::from_millis(25);

/// An embedder behind HTTP.
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

/// An attempt that failed, and whether another can help.
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
        // Servers refuse an empty text and with it the whole batch; a space is the nearest they take.
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

    /// What becomes of an exchange that broke off.
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

    /// What becomes of an answer that is not success.
    fn refused(&self, response: &mut Response<Body>) -> AttemptError {
        let status = response.status().as_u16();
        let asked = pause_asked_for(response);
        let error = Error::Refused { host: self.host.clone(), status, said: self.said(status, response) };
        match status {
            429 | 500.. => AttemptError::Passing { error, asked },
            _ => AttemptError::Final(error),
        }
    }

    /// The server's own words. A refusal for lack of rights likes to repeat part of the key, so it is not quoted.
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

    /// Remembers the size of the first vectors and holds later ones to it.
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

/// Cuts texts into runs for one request each.
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

/// Waits, unless the call has to stop meanwhile.
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
