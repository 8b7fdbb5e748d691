//! HTTP for the S3 client: the same small blocking client that downloads use, instead of a second one with its own TLS.
//!
//! A request runs on a thread of the client's runtime and is read to its end there: objects are at most some tens of
//! megabytes, so that a connection which is cut in the middle is a failed request that is sent again, not a half answer.
//! Answers that say why a request was refused become errors with a type of our own, which the caller finds again at the
//! end of the chain of causes.

use std::{
    error, fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt;
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
        HttpService,
    },
};
use ureq::{
    Agent, SendBody,
    http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header},
};

use super::Observed;

/// Why a request was not answered as it should be; the last cause of the errors that the client reports.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The store asks for fewer requests.
    Throttled(String),
    /// The store had an error of its own.
    Broken(String),
    /// The keys are wrong, or do not allow it; or there is no such bucket.
    Denied(String),
    /// The object ends before the range that was asked for begins.
    OutOfRange,
    /// No answer came, or not all of it.
    Unanswered(String),
    /// The store does not take such a request.
    Other(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Throttled(what)
            | Self::Broken(what)
            | Self::Unanswered(what)
            | Self::Denied(what)
            | Self::Other(what) => formatter.write_str(what),
            Self::OutOfRange => formatter.write_str("the object is shorter"),
        }
    }
}

impl error::Error for Refusal {}

/// Counts what goes over the network.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// Requests that got no usable answer: each was sent again, or given up.
    pub failed: AtomicU64,
    /// Seconds by which the clock of this machine was ahead of the store's at the last answer.
    ahead: AtomicI64,
    /// Whether an answer said what time it is there.
    told_time: AtomicBool,
    /// Whether the store gave something that was stored a version of its own.
    versioned: AtomicBool,
}

impl Traffic {
    pub(super) fn observed(&self) -> Observed {
        let ahead = self.ahead.load(Ordering::Relaxed);
        Observed {
            clock_ahead: self.told_time.load(Ordering::Relaxed).then_some(ahead),
            keeps_versions: self.versioned.load(Ordering::Relaxed),
        }
    }

    fn look_at(&self, answer: &HeaderMap) {
        let text = |name: &str| answer.get(name).and_then(|value| value.to_str().ok());
        if let Some(there) = text("date").and_then(|date| httpdate::parse_http_date(date).ok()) {
            let seconds =
                |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
            self.ahead.store(seconds(SystemTime::now()) - seconds(there), Ordering::Relaxed);
            self.told_time.store(true, Ordering::Relaxed);
        }
        if text("x-amz-version-id").is_some_and(|version| version != "null") {
            self.versioned.store(true, Ordering::Relaxed);
        }
    }
}

/// Sends requests.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    agent: Agent,
    traffic: Arc<Traffic>,
}

impl Transport {
    /// `patience` is how long one request may take, without those that follow when it fails.
    pub(super) fn new(patience: Duration, traffic: Arc<Traffic>) -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent("shelf")
            .max_idle_connections(32)
            .max_idle_connections_per_host(16)
            .timeout_connect(Some(patience.min(Duration::from_secs(5))))
            .timeout_global(Some(patience))
            .build()
            .new_agent();
        Self { agent, traffic }
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Vec<u8>>, HttpError> {
        let (mut parts, body) = request.into_parts();
        let has_body = matches!(parts.method, Method::PUT | Method::POST);
        // A store that refuses a condition may do so at once, and close. The answer would be lost behind a body that nobody
        // reads, so the body waits until it is asked for.
        if parts.headers.contains_key(header::IF_NONE_MATCH) && !body.is_empty() {
            parts.headers.insert(header::EXPECT, HeaderValue::from_static("100-continue"));
        }
        let sent = if has_body {
            self.agent.run(Request::from_parts(parts, &body[..]))
        } else {
            self.agent.run(Request::from_parts(parts, SendBody::none()))
        };
        let (parts, body) = sent.map_err(unanswered)?.into_parts();
        self.traffic.look_at(&parts.headers);
        let body = body.into_with_config().read_to_vec().map_err(unanswered)?;
        match refusal(parts.status, &body) {
            None => Ok(Response::from_parts(parts, body)),
            Some(refusal) => {
                let is_passing = matches!(refusal, Refusal::Throttled(_) | Refusal::Broken(_));
                let kind = if is_passing { HttpErrorKind::Request } else { HttpErrorKind::Unknown };
                Err(HttpError::new(kind, refusal))
            }
        }
    }
}

fn refusal(status: StatusCode, body: &[u8]) -> Option<Refusal> {
    let told = || error_code(body).map_or_else(|| status.to_string(), |code| format!("{status}: {code}"));
    match status.as_u16() {
        429 | 503 => Some(Refusal::Throttled(told())),
        408 | 500 | 502 | 504 => Some(Refusal::Broken(told())),
        401 | 403 => Some(Refusal::Denied(told())),
        404 if body.windows(12).any(|word| word == b"NoSuchBucket") => {
            Some(Refusal::Denied("there is no such bucket".into()))
        }
        416 => Some(Refusal::OutOfRange),
        400 => Some(Refusal::Other(told())),
        _ => None,
    }
}

/// What the store calls the error. The rest of its answer names keys, hosts and requests, which are nobody's business.
fn error_code(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?;
    let (code, _) = text.split_once("<Code>")?.1.split_once("</Code>")?;
    let is_plain =
        !code.is_empty() && code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_plain.then_some(code)
}

fn unanswered(error: ureq::Error) -> HttpError {
    // Every request of ours may be sent twice: names follow from contents, and a part replaces its like.
    let kind = match &error {
        ureq::Error::Io(_)
        | ureq::Error::Timeout(_)
        | ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::Protocol(_) => HttpErrorKind::Request,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, Refusal::Unanswered(error.to_string()))
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let transport = self.clone();
        let sent =
            tokio::task::spawn_blocking(move || transport.send(Request::from_parts(parts, body))).await;
        let answer = sent.unwrap_or_else(|error| Err(HttpError::new(HttpErrorKind::Unknown, error)));
        if answer.is_err() {
            self.traffic.failed.fetch_add(1, Ordering::Relaxed);
            metrics::counter!("shelf_objects_failed_requests_total", "backend" => "s3").increment(1);
        }
        Ok(answer?.map(HttpResponseBody::from))
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_code_of_an_error_is_told() {
        let body = b"<?xml version=\"1.0\"?><Error><Code>InvalidAccessKeyId</Code><Message>The key does not exist</Message>\
                     <AWSAccessKeyId>AKIDEXAMPLE</AWSAccessKeyId><HostId>host</HostId></Error>";
        let told = |status: StatusCode, body: &[u8]| refusal(status, body).unwrap().to_string();
        assert_eq!(told(StatusCode::FORBIDDEN, body), "403 Forbidden: InvalidAccessKeyId");
        assert_eq!(told(StatusCode::BAD_REQUEST, body), "400 Bad Request: InvalidAccessKeyId");
        for other in [&b"<html>AKIDEXAMPLE</html>"[..], b"<Code>a key: AKIDEXAMPLE</Code>", b"\xff", b""] {
            assert_eq!(told(StatusCode::SERVICE_UNAVAILABLE, other), "503 Service Unavailable");
        }
    }

    #[test]
    fn the_time_at_the_store_and_versions_are_noticed() {
        let traffic = Traffic::default();
        assert_eq!(traffic.observed(), Observed::default());
        let earlier = SystemTime::now() - Duration::from_secs(600);
        let mut answer = HeaderMap::new();
        answer.insert("date", HeaderValue::from_str(&httpdate::fmt_http_date(earlier)).unwrap());
        answer.insert("x-amz-version-id", HeaderValue::from_static("null"));
        traffic.look_at(&answer);
        let seen = traffic.observed();
        assert!(
            !seen.keeps_versions && seen.clock_ahead.is_some_and(|ahead| (598..603).contains(&ahead)),
            "{seen:?}"
        );
        answer.insert("x-amz-version-id", HeaderValue::from_static("3sL4kqtJlcpXroDTDmJ"));
        traffic.look_at(&answer);
        assert!(traffic.observed().keeps_versions);
    }
}
