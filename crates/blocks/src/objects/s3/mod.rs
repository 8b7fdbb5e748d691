//! Objects in a bucket of an S3-compatible store.
//!
//! The `object_store` crate speaks the protocol; this is a facade with plain calls over it. A call hands its work to a
//! small runtime and waits, so that it can be made from any thread. Requests that fail for a passing reason are repeated,
//! with pauses that grow and vary; what remains is an error that says whether the object is gone, the keys are refused,
//! the store asks for patience, or it does not answer.

mod transport;

use std::{
    error::Error as _,
    fmt, io,
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::{
    BackoffConfig, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder, Checksum},
    path::Path,
};
use shelf_base::Secret;

use self::transport::{Refusal, Traffic, Transport};
use super::{ByteRange, Failure, LIST_PAGE, Listed, Objects, Observed};

/// Objects larger than this are sent in parts.
const MULTIPART: usize = 16 << 20;
/// Bytes of a part; stores require at least 5 MiB.
const PART: usize = 8 << 20;
/// Parts that are under way at once.
const PARTS_AT_ONCE: usize = 4;
/// Requests that it pays to have under way at once.
const AT_ONCE: usize = 16;
/// How long an answer to a ping may take.
const PING: Duration = Duration::from_secs(2);
/// How long a request waits before it is repeated: at first, and at most. Each pause is drawn between the first one and this
/// many times the one before it, which makes pauses grow by half on average.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
const GROWTH: f64 = 3.0;
/// Where a machine in a cloud is told the keys of its role, and how long that may take.
const ROLES: ([u8; 4], u16) = ([169, 254, 169, 254], 80);
const ROLES_WAIT: Duration = Duration::from_secs(1);
/// The folder of a library's packs below its prefix.
const PACKS: &str = "packs";

/// Where a bucket is, and how it is used.
#[derive(Clone, Debug)]
pub struct BucketSettings {
    /// The bucket.
    pub bucket: String,
    /// What precedes the names of all objects of the library; empty for the whole bucket.
    pub prefix: String,
    /// The folder of the objects below the prefix: `packs` unless others are meant.
    pub folder: &'static str,
    /// The address of the store; `None` for that of the region.
    pub endpoint: Option<String>,
    /// The region; `None` for `us-east-1`.
    pub region: Option<String>,
    /// Key and secret; `None` for those of the role that the machine has in its cloud.
    pub keys: Option<(String, Secret)>,
    /// Whether it has none, so that it is not asked for.
    pub without_role: bool,
    /// The token that belongs to temporary keys.
    pub session_token: Option<Secret>,
    /// How long one request may take.
    pub patience: Duration,
    /// For how long a request that fails is repeated.
    pub retries: Duration,
}

impl BucketSettings {
    /// A bucket, and the prefix of a library in it.
    pub fn new(bucket: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self {
            bucket: bucket.into(),
            prefix: prefix.into(),
            folder: PACKS,
            endpoint: None,
            region: None,
            keys: None,
            without_role: false,
            session_token: None,
            patience: Duration::from_secs(60),
            retries: Duration::from_secs(45),
        }
    }

    /// Reads `s3://bucket/prefix`; `None` when the text is not of that form.
    pub fn parse(text: &str) -> Option<Self> {
        let (bucket, prefix) = text.strip_prefix("s3://")?.split_once('/').unwrap_or((&text[5..], ""));
        let is_bucket = (3..=63).contains(&bucket.len())
            && bucket
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte));
        let prefix = prefix.trim_matches('/');
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/.-_".contains(&byte);
        let is_prefix =
            prefix.bytes().all(is_plain) && !prefix.split('/').any(|part| part == "." || part == "..");
        (is_bucket && is_prefix).then(|| Self::new(bucket, prefix))
    }
}

impl fmt::Display for BucketSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "s3://{}", self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(formatter, "/{}", self.prefix) }
    }
}

/// Objects in a bucket.
pub struct Bucket {
    store: Arc<AmazonS3>,
    folder: Path,
    shown: String,
    patience: Duration,
    traffic: Arc<Traffic>,
    runtime: Option<tokio::runtime::Runtime>,
}

/// Begins the counter of failed requests at zero, so that it can be watched before the first.
pub fn begin_counters() {
    metrics::counter!("shelf_objects_failed_requests_total", "backend" => "s3").increment(0);
}

impl Bucket {
    /// Prepares a bucket; nothing is sent yet.
    pub fn new(settings: &BucketSettings) -> io::Result<Self> {
        if settings.keys.is_none() && (settings.without_role || !has_role()) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "no keys are set, and this machine has no role that gives it any",
            ));
        }
        let traffic = Arc::new(Traffic::default());
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&settings.bucket)
            .with_region(settings.region.as_deref().unwrap_or("us-east-1"))
            .with_checksum_algorithm(Checksum::SHA256)
            .with_disable_bulk_delete(true)
            .with_http_connector(Transport::new(settings.patience, traffic.clone()))
            .with_retry(RetryConfig {
                backoff: BackoffConfig { init_backoff: PAUSES.0, max_backoff: PAUSES.1, base: GROWTH },
                // The time decides.
                max_retries: usize::MAX,
                retry_timeout: settings.retries,
            });
        if let Some(endpoint) = &settings.endpoint {
            builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
        }
        if let Some((key, secret)) = &settings.keys {
            builder = builder.with_access_key_id(key).with_secret_access_key(secret.reveal());
        }
        if let Some(token) = &settings.session_token {
            builder = builder.with_token(token.reveal());
        }
        let store = builder
            .build()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(AT_ONCE * 2)
            .thread_name("objects")
            .enable_time()
            .build()?;
        let parts = [settings.prefix.as_str(), settings.folder];
        Ok(Self {
            store: Arc::new(store),
            folder: Path::from(parts.join("/").trim_start_matches('/')),
            shown: settings.to_string(),
            patience: settings.patience + settings.retries + Duration::from_secs(5),
            traffic,
            runtime: Some(runtime),
        })
    }

    /// How many requests got no usable answer so far.
    pub fn failed_requests(&self) -> u64 {
        self.traffic.failed.load(Ordering::Relaxed)
    }

    fn path(&self, name: &str) -> Path {
        self.folder.clone().join(name)
    }

    /// Runs the work on the runtime and waits for it. It is not run by the calling thread, which may belong to a runtime of
    /// its own.
    fn wait<T: Send + 'static>(
        &self,
        operation: &'static str,
        name: &str,
        work: impl Future<Output = Result<T, object_store::Error>> + Send + 'static,
    ) -> io::Result<T> {
        let started = Instant::now();
        let (send, receive) = mpsc::sync_channel(1);
        let Some(runtime) = &self.runtime else { return Err(Failure::Away.error("it was closed")) };
        runtime.spawn(async move {
            let _ = send.send(work.await);
        });
        let outcome = receive.recv_timeout(self.patience * 4).map_err(|error| match error {
            RecvTimeoutError::Timeout => Failure::Away.error("no answer for a long time"),
            RecvTimeoutError::Disconnected => io::Error::other("a request to the object store was lost"),
        });
        let outcome = outcome.and_then(|outcome| outcome.map_err(|error| typed(&error)));
        let seconds = started.elapsed().as_secs_f64();
        let code = if outcome.is_ok() { "ok" } else { "error" };
        metrics::histogram!("shelf_objects_seconds", "backend" => "s3", "operation" => operation)
            .record(seconds);
        metrics::counter!("shelf_objects_total", "backend" => "s3", "operation" => operation, "outcome" => code)
            .increment(1);
        if let Err(error) = &outcome
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(%error, operation, name, "the object store failed");
        }
        outcome
    }

    fn put_whole(&self, name: &str, bytes: Bytes, mode: PutMode) -> io::Result<()> {
        let (store, path) = (self.store.clone(), self.path(name));
        self.wait("put", name, async move {
            let options = PutOptions { mode, ..PutOptions::default() };
            store.put_opts(&path, PutPayload::from_bytes(bytes), options).await.map(drop)
        })
    }

    /// Sends a large object in parts, several at a time.
    fn put_parts(&self, name: &str, bytes: Bytes) -> io::Result<()> {
        let (store, path) = (self.store.clone(), self.path(name));
        self.wait("put", name, async move {
            let mut upload = store.put_multipart(&path).await?;
            let starts = (0..bytes.len()).step_by(PART);
            let parts: Vec<_> = starts
                .map(|start| upload.put_part(bytes.slice(start..bytes.len().min(start + PART)).into()))
                .collect();
            let sent: Result<Vec<()>, _> =
                futures_util::stream::iter(parts).buffer_unordered(PARTS_AT_ONCE).try_collect().await;
            let done = match sent {
                Ok(_) => upload.complete().await.map(drop),
                Err(error) => Err(error),
            };
            if done.is_err() {
                // What is left of it would be stored, and paid for, for ever.
                let _ = upload.abort().await;
            }
            done
        })
    }

    /// Whether the bucket has exactly these bytes under that name.
    fn holds(&self, name: &str, bytes: &Bytes) -> io::Result<bool> {
        match self.length(name) {
            Ok(length) if length == bytes.len() as u64 => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        }
        let found = self.read(name, &[ByteRange { offset: 0, length: bytes.len() }])?;
        Ok(found.first().is_some_and(|found| found == bytes))
    }
}

impl Objects for Bucket {
    fn describe(&self) -> String {
        self.shown.clone()
    }

    fn is_remote(&self) -> bool {
        true
    }

    /// Asks for the beginning of the list: what that needs is what everything else needs.
    fn ping(&self) -> io::Result<()> {
        let (store, folder) = (self.store.clone(), self.folder.clone());
        let answered = self.wait("ping", "the bucket", async move {
            let first = async { store.list(Some(&folder)).take(1).try_collect::<Vec<_>>().await };
            match tokio::time::timeout(PING, first).await {
                Ok(outcome) => outcome.map(|_| true),
                Err(_) => Ok(false),
            }
        })?;
        if answered { Ok(()) } else { Err(Failure::Away.error(format!("not within {} s", PING.as_secs()))) }
    }

    fn observed(&self) -> Observed {
        self.traffic.observed()
    }

    fn parallel(&self) -> usize {
        AT_ONCE
    }

    fn put(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let bytes = Bytes::from(parts.concat());
        // The store compares every request with the checksum that comes with it, before it keeps anything.
        let written = if bytes.len() > MULTIPART {
            match self.length(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => self.put_parts(name, bytes.clone()),
                Err(error) => Err(error),
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            }
        } else {
            self.put_whole(name, bytes.clone(), PutMode::Create)
        };
        match written {
            // It may have arrived, and only the answers were lost.
            Err(error) if Failure::of(&error).is_some_and(Failure::is_passing) => {
                if !self.holds(name, &bytes).unwrap_or(false) {
                    return Err(error);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if self.holds(name, &bytes)? {
                    return Ok(());
                }
                if bytes.len() > MULTIPART {
                    self.put_parts(name, bytes.clone())?;
                } else {
                    self.put_whole(name, bytes.clone(), PutMode::Overwrite)?;
                }
            }
            outcome => outcome?,
        }
        match self.length(name)? {
            length if length == bytes.len() as u64 => Ok(()),
            length => Err(io::Error::other(format!("{length} bytes were kept of {}", bytes.len()))),
        }
    }

    /// The store refuses the request when there is an object of that name. An answer that was lost is made up for by looking:
    /// whoever finds the very bytes was the one who stored them.
    fn put_new(&self, name: &str, parts: &[&[u8]]) -> io::Result<bool> {
        let bytes = Bytes::from(parts.concat());
        match self.put_whole(name, bytes.clone(), PutMode::Create) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.holds(name, &bytes),
            Err(error) if Failure::of(&error).is_some_and(Failure::is_passing) => {
                if self.holds(name, &bytes).unwrap_or(false) { Ok(true) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }

    fn read(&self, name: &str, ranges: &[ByteRange]) -> io::Result<Vec<Vec<u8>>> {
        // A range of nothing is no request, but the object must be there.
        if ranges.iter().all(|range| range.length == 0) {
            let length = self.length(name)?;
            let is_inside = ranges.iter().all(|range| range.offset <= length);
            return if is_inside {
                Ok(vec![Vec::new(); ranges.len()])
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
        let wanted: Vec<_> = ranges.iter().filter(|range| range.length > 0).collect();
        let asked: Vec<_> =
            wanted.iter().map(|range| range.offset..range.offset + range.length as u64).collect();
        let (store, path) = (self.store.clone(), self.path(name));
        let found = self.wait("read", name, async move { store.get_ranges(&path, &asked).await })?;
        if found.iter().zip(&wanted).any(|(found, range)| found.len() != range.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut found = found.into_iter();
        let next = |range: &ByteRange| match range.length {
            0 => Vec::new(),
            _ => found.next().unwrap_or_default().to_vec(),
        };
        Ok(ranges.iter().map(next).collect())
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        let (store, path) = (self.store.clone(), self.path(name));
        self.wait("length", name, async move { store.head(&path).await }).map(|found| found.size)
    }

    fn list(&self, after: &str) -> io::Result<Vec<Listed>> {
        let (store, folder) = (self.store.clone(), self.folder.clone());
        let offset = (!after.is_empty()).then(|| self.path(after));
        let depth = folder.parts().count() + 1;
        let found: Vec<_> = self.wait("list", "objects", async move {
            let found = match &offset {
                Some(offset) => store.list_with_offset(Some(&folder), offset),
                None => store.list(Some(&folder)),
            };
            let own = found.try_filter(|found| std::future::ready(found.location.parts().count() == depth));
            own.take(LIST_PAGE).try_collect().await
        })?;
        let listed = |found: object_store::ObjectMeta| {
            let name = found.location.filename().unwrap_or_default().to_owned();
            Listed { name, size: found.size }
        };
        let mut page: Vec<Listed> =
            found.into_iter().map(listed).filter(|found| found.name.as_str() > after).collect();
        page.sort_unstable();
        Ok(page)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let (store, path) = (self.store.clone(), self.path(name));
        match self.wait("delete", name, async move { store.delete(&path).await }) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }

    /// An upload that is interrupted is aborted; those of a process that was killed are for a rule of the bucket.
    fn sweep(&self) -> io::Result<u64> {
        Ok(0)
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // Without waiting: this may happen on a thread of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Whether the machine can ask for keys of a role.
fn has_role() -> bool {
    TcpStream::connect_timeout(&SocketAddr::from(ROLES), ROLES_WAIT).is_ok()
}

/// The class of an error of the client.
fn typed(error: &object_store::Error) -> io::Error {
    use object_store::Error;
    let said = last_cause(error);
    match error {
        Error::NotFound { .. } => Failure::Gone.error(""),
        Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => {
            io::ErrorKind::AlreadyExists.into()
        }
        other => match refusal(other) {
            Some(Refusal::Denied(said)) => Failure::Denied.error(said),
            Some(Refusal::Throttled(said)) => Failure::Throttled.error(said),
            Some(Refusal::Broken(said) | Refusal::Unanswered(said)) => Failure::Away.error(said),
            Some(Refusal::Other(said)) => io::Error::other(said.clone()),
            Some(Refusal::OutOfRange) => io::ErrorKind::UnexpectedEof.into(),
            None => io::Error::other(said),
        },
    }
}

fn refusal(error: &object_store::Error) -> Option<&Refusal> {
    let mut cause = error.source();
    while let Some(found) = cause {
        if let Some(refusal) = found.downcast_ref::<Refusal>() {
            return Some(refusal);
        }
        cause = found.source();
    }
    None
}

/// The innermost message, without addresses and counts of retries around it.
fn last_cause(error: &object_store::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(found) = cause.source() {
        cause = found;
    }
    let text: String = cause.to_string().chars().take(400).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_buckets_are_read() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            let found = BucketSettings::parse(text);
            let found = found.as_ref().map(|found| (found.bucket.as_str(), found.prefix.as_str()));
            assert_eq!(found, expected, "{text}");
        };
        check("s3://shelf", Some(("shelf", "")));
        check("s3://shelf/", Some(("shelf", "")));
        check("s3://shelf.example/a/b/", Some(("shelf.example", "a/b")));
        for wrong in [
            "",
            "s3:",
            "s3://",
            "s3:///x",
            "s3://a",
            "S3://shelf",
            "s3://shelf/../x",
            "s3://sh elf",
            "file:///x",
        ] {
            check(wrong, None);
        }
        assert_eq!(BucketSettings::parse("s3://shelf/a/").unwrap().to_string(), "s3://shelf/a");
    }
}
