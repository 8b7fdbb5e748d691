//! The endpoint against a local server that records every request.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Instant,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use shelf_base::{ErrorInfo, Kind, Retry, Secret, Stopped};

use super::*;

/// A response of the server.
struct Answer {
    status: u16,
    headers: &'static str,
    body: String,
    delay: Duration,
}

fn answer(status: u16, body: impl ToString) -> Answer {
    Answer { status, headers: "", body: body.to_string(), delay: Duration::ZERO }
}

/// A request that the server received.
#[derive(Clone)]
struct Seen {
    head: String,
    body: Value,
}

impl Seen {
    fn texts(&self) -> Vec<&str> {
        self.body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
    }
}

struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// Starts a server that answers the nth request with `respond(n, request)`.
fn serve(respond: impl Fn(usize, &Seen) -> Answer + Send + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = receive(&stream);
            let number = record.lock().len();
            record.lock().push(request.clone());
            let Answer { status, headers, body, delay } = respond(number, &request);
            thread::sleep(delay);
            let length = body.len();
            let head = format!("HTTP/1.1 {status} Word\r\nConnection: close\r\n{headers}");
            // The client may have disconnected, as in the test of slow responses.
            let _ = write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}");
        }
    });
    Server { url, seen }
}

fn receive(stream: &TcpStream) -> Seen {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0);
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap();
    let mut body = vec![0; length.trim().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    Seen { head: lower, body: serde_json::from_slice(&body).unwrap() }
}

/// A valid reply, in reverse order; the vector of a text is its length and 1.
fn vectors(request: &Seen) -> Answer {
    let texts = request.texts();
    let items = texts.iter().enumerate().rev();
    let data: Vec<Value> =
        items.map(|(index, text)| json!({"index": index, "embedding": [text.len(), 1]})).collect();
    answer(200, json!({"object": "list", "data": data, "model": "small", "usage": {"total_tokens": 1}}))
}

fn settings(server: &Server) -> EndpointSettings {
    EndpointSettings {
        key: Some(Secret::new("sk-very-secret".into())),
        ..EndpointSettings::new(&server.url, "small")
    }
}

fn embed(server: &Server, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
    Endpoint::new(settings(server)).unwrap().embed(texts, &CallContext::new())
}

fn expected(text: &str) -> Vec<f32> {
    let length = text.len() as f32;
    let norm = length.hypot(1.0);
    vec![length / norm, 1.0 / norm]
}

#[track_caller]
fn assert_vectors(found: &[Vec<f32>], texts: &[&str]) {
    assert_eq!(found.len(), texts.len());
    for (found, text) in found.iter().zip(texts) {
        let near = found.iter().zip(expected(text)).all(|(left, right)| (left - right).abs() < 1e-6);
        assert!(near && found.len() == 2, "{text}: {found:?}");
    }
}

#[test]
fn sends_what_servers_expect_and_orders_by_index() {
    let server = serve(|_, request| vectors(request));
    let endpoint = Endpoint::new(settings(&server)).unwrap();
    assert_eq!((endpoint.model(), endpoint.dimensions()), ("small@127.0.0.1", None));
    let texts = ["a", "four", "größer"];
    assert_vectors(&endpoint.embed(&texts, &CallContext::new()).unwrap(), &texts);
    assert_eq!(endpoint.dimensions(), Some(2));
    let seen = server.seen.lock();
    assert!(seen[0].head.starts_with("post /v1/embeddings http/1.1\r\n"), "{}", seen[0].head);
    assert!(seen[0].head.contains("\r\nauthorization: bearer sk-very-secret\r\n"));
    assert!(seen[0].head.contains("\r\ncontent-type: application/json"));
    assert_eq!(seen[0].body, json!({"model": "small", "input": texts, "encoding_format": "float"}));
}

#[test]
fn without_a_key_none_is_sent_and_empty_texts_become_a_space() {
    let server = serve(|_, request| vectors(request));
    let endpoint = Endpoint::new(EndpointSettings::new(&server.url, "small")).unwrap();
    endpoint.embed(&["", "text"], &CallContext::new()).unwrap();
    assert_eq!(endpoint.embed(&[], &CallContext::new()).unwrap(), Vec::<Vec<f32>>::new());
    let seen = server.seen.lock();
    assert_eq!(seen.len(), 1);
    assert!(!seen[0].head.contains("authorization"));
    assert_eq!(seen[0].texts(), [" ", "text"]);
}

#[test]
fn long_lists_are_sent_in_batches() {
    let server = serve(|_, request| vectors(request));
    let long = "x".repeat(150_000);
    let mut texts = vec!["a"; 150];
    texts.extend([long.as_str(), &long, "b"]);
    let found = embed(&server, &texts).unwrap();
    assert_vectors(&found, &texts);
    let sizes: Vec<usize> = server.seen.lock().iter().map(|request| request.texts().len()).collect();
    assert_eq!(sizes, [64, 64, 23, 2]);
}

#[test]
fn transient_errors_are_retried() {
    let server = serve(|number, request| match number {
        0 => Answer { headers: "Retry-After: 0\r\n", ..answer(429, "slow down") },
        1 => answer(503, "starting"),
        _ => vectors(request),
    });
    let begun = Instant::now();
    assert_vectors(&embed(&server, &["a"]).unwrap(), &["a"]);
    assert_eq!(server.seen.lock().len(), 3);
    assert!(begun.elapsed() >= FIRST_PAUSE * 2, "the second pause has the default length");
}

#[test]
fn retry_after_is_honoured() {
    let server = serve(|number, request| match number {
        0 => Answer { headers: "Retry-After: 1\r\n", ..answer(429, "") },
        _ => vectors(request),
    });
    let begun = Instant::now();
    embed(&server, &["a"]).unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[test]
fn repeated_failures_return_the_last_error() {
    let server = serve(|_, _| answer(500, json!({"error": {"message": "sk-very-secret broke\nthe disk"}})));
    let endpoint = Endpoint::new(EndpointSettings { attempts: 2, ..settings(&server) }).unwrap();
    let error = endpoint.embed(&["a"], &CallContext::new()).unwrap_err();
    assert!(matches!(&error, Error::Refused { status: 500, said, .. } if said == "*** broke the disk"));
    assert_eq!((error.kind(), error.retry()), (Kind::Unavailable, Retry::Later));
    assert_eq!(server.seen.lock().len(), 2);
}

#[test]
fn other_errors_are_final_and_do_not_reveal_the_key() {
    for (status, kind) in [(400, Kind::Unavailable), (401, Kind::Unavailable), (404, Kind::Unavailable)] {
        let server = serve(move |_, _| answer(status, json!({"error": "bad key sk-very-***"})));
        let error = embed(&server, &["a"]).unwrap_err();
        let words = format!("{error} {error:?} {:?}", error.hints());
        assert_eq!((error.kind(), error.retry()), (kind, Retry::Never));
        assert_eq!(words.contains("sk-very"), status != 401, "{words}");
        assert!(!words.contains("sk-very-secret"));
        assert_eq!(server.seen.lock().len(), 1);
    }
    let server = serve(|_, _| Answer { headers: "Retry-After: 0\r\n", ..answer(429, "") });
    assert_eq!(embed(&server, &["a"]).unwrap_err().kind(), Kind::RateLimited);
    assert_eq!(server.seen.lock().len(), 4);
}

#[test]
fn redirects_are_not_followed() {
    let elsewhere = serve(|_, request| vectors(request));
    let location: &'static str = format!("Location: {}embeddings\r\n", elsewhere.url).leak();
    for status in [301, 302, 307, 308] {
        let server = serve(move |_, _| Answer { headers: location, ..answer(status, "") });
        let error = embed(&server, &["a"]).unwrap_err();
        assert!(matches!(error, Error::Refused { status: found, .. } if found == status), "{error:?}");
    }
    assert!(elsewhere.seen.lock().is_empty());
}

#[test]
fn unusable_replies_are_not_retried() {
    let item = |index: usize| json!({"index": index, "embedding": [1, 2]});
    let cases = [
        (json!({"data": [item(0)]}).to_string(), ReplyError::Count { expected: 2, found: 1 }),
        (json!({"data": [item(1), item(1)]}).to_string(), ReplyError::Index { index: 1 }),
        ("<html>".into(), ReplyError::NotEmbeddings("expected value at line 1 column 1".into())),
    ];
    for (body, expect) in cases {
        let server = serve(move |_, _| answer(200, &body));
        let error = embed(&server, &["a", "b"]).unwrap_err();
        assert!(matches!(&error, Error::Reply { problem, .. } if *problem == expect), "{error:?}");
        assert_eq!(server.seen.lock().len(), 1);
    }
}

#[test]
fn oversized_replies_are_rejected() {
    let server = serve(|_, _| answer(200, " ".repeat(REPLY_BYTES as usize + 1)));
    let error = embed(&server, &["a"]).unwrap_err();
    let problem = ReplyError::TooLong { limit: REPLY_BYTES };
    assert!(matches!(&error, Error::Reply { problem: found, .. } if *found == problem), "{error:?}");
}

#[test]
fn a_change_of_dimensions_is_detected() {
    let server =
        serve(|number, _| answer(200, json!({"data": [{"index": 0, "embedding": vec![1; number + 2]}]})));
    let endpoint = Endpoint::new(settings(&server)).unwrap();
    endpoint.embed(&["a"], &CallContext::new()).unwrap();
    let error = endpoint.embed(&["a"], &CallContext::new()).unwrap_err();
    assert!(matches!(error, Error::Dimensions { expected: 2, found: 3, .. }));
}

#[test]
fn slow_responses_time_out() {
    let server = serve(|_, request| Answer { delay: Duration::from_secs(2), ..vectors(request) });
    let timeout = Duration::from_millis(200);
    let endpoint = Endpoint::new(EndpointSettings { timeout, ..settings(&server) }).unwrap();
    let begun = Instant::now();
    let error = endpoint.embed(&["a"], &CallContext::new()).unwrap_err();
    assert!(matches!(error, Error::Slow { .. }), "{error:?}");
    assert_eq!(error.kind(), Kind::TimedOut);
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_call_can_be_stopped_during_a_pause() {
    let server = serve(|_, _| Answer { headers: "Retry-After: 20\r\n", ..answer(429, "") });
    let endpoint = Endpoint::new(settings(&server)).unwrap();
    let begun = Instant::now();
    let error = endpoint.embed(&["a"], &CallContext::new().within(Duration::from_millis(300))).unwrap_err();
    assert!(matches!(error, Error::Stopped(Stopped::TimedOut)));
    let call = CallContext::new();
    let other = call.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        other.cancel();
    });
    let error = endpoint.embed(&["a"], &call).unwrap_err();
    assert!(matches!(error, Error::Stopped(Stopped::Cancelled)));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(server.seen.lock().len(), 2);
}

#[test]
fn an_unreachable_server_is_reported_after_all_attempts() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let attempts = 2;
    let settings =
        EndpointSettings { attempts, ..EndpointSettings::new(format!("http://{address}"), "small") };
    let begun = Instant::now();
    let error = Endpoint::new(settings).unwrap().embed(&["a"], &CallContext::new()).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert_eq!((error.kind(), error.retry()), (Kind::Unavailable, Retry::Later));
    assert!(begun.elapsed() >= FIRST_PAUSE);
}

#[test]
fn batches_cover_every_text_once() {
    let text = "x".repeat(REQUEST_BYTES / 2);
    let texts = [text.as_str(), &text, "y", "", "z"];
    assert_eq!(batches(&texts, 64), [0..2, 2..5]);
    assert_eq!(batches(&texts, 2), [0..2, 2..4, 4..5]);
    assert_eq!(batches(&[], 64), Vec::<Range<usize>>::new());
}
