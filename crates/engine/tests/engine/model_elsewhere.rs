//! A collection that is searched with a model elsewhere: a real endpoint over HTTP, which also goes away.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use shelf_base::CallContext;
use shelf_engine::{AddRequest, Caller, EndpointSettings, Library, Options, SearchKind, SearchRequest, What};

/// An endpoint whose vectors tell how often three letters occur: nothing like the built-in model's.
struct Server {
    url: String,
    down: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

fn serve() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (down, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let server = Server { url, down: down.clone(), asked: asked.clone() };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or(0);
                }
                line.clear();
            }
            let mut body = vec![0; length];
            if length == 0 || reader.read_exact(&mut body).is_err() {
                continue;
            }
            asked.fetch_add(1, Ordering::Relaxed);
            let (status, reply) = if down.load(Ordering::Relaxed) {
                ("400 Bad Request", json!({}))
            } else {
                ("200 OK", answer(&body))
            };
            let reply = reply.to_string();
            let mut stream = stream;
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{reply}",
                reply.len()
            );
        }
    });
    server
}

fn answer(body: &[u8]) -> Value {
    let request: Value = serde_json::from_slice(body).unwrap();
    let letters = |text: &str| ['x', 'y', 'z'].map(|letter| 0.01 + text.matches(letter).count() as f64);
    let input = request["input"].as_array().unwrap();
    let data: Vec<Value> = input
        .iter()
        .enumerate()
        .map(|(index, text)| json!({ "index": index, "embedding": letters(text.as_str().unwrap()) }))
        .collect();
    json!({ "data": data })
}

fn options(server: &Server) -> Options {
    Options { embedding: Some(EndpointSettings::new(&server.url, "letters")), ..Options::default() }
}

fn add(library: &Library, name: &str, content: &str) {
    let what = What::Content { name: name.into(), bytes: content.as_bytes().to_vec() };
    let request = AddRequest { collection: Some("papers".into()), ..AddRequest::new(what) };
    library.add(&Caller::owner(), &request, &CallContext::new()).unwrap();
}

fn search(library: &Library, query: &str) -> (Vec<String>, String, Option<String>) {
    let mut request = SearchRequest { kind: SearchKind::Semantic, ..SearchRequest::new(query) };
    request.filter.collection = Some("papers".into());
    let found = library.search(&Caller::owner(), &request, &CallContext::new()).unwrap();
    let paths = found.hits.iter().map(|hit| hit.document.path.clone()).collect();
    (paths, found.model.unwrap_or_default(), found.note)
}

#[test]
fn a_collection_remembers_its_model_and_falls_back_to_the_built_in_one() {
    let (server, folder) = (serve(), tempfile::tempdir().unwrap());
    let library = Library::open(folder.path(), options(&server)).unwrap();
    add(&library, "one", "xxxx is all there is");
    add(&library, "two", "zzzz is all there is");
    add(&library, "three", "yyyy is all there is");
    let (_, model, note) = search(&library, "there is all");
    assert_eq!((model.as_str(), note), ("shelf-static-384-1", None), "not asked for yet");
    assert_eq!(server.asked.load(Ordering::Relaxed), 0);

    // The background thread may have made some of the three before this call came to them.
    assert!(library.set_model(&Caller::owner(), "papers", true, &CallContext::new()).unwrap() <= 3);
    assert!(server.asked.load(Ordering::Relaxed) > 0);
    let (paths, model, note) = search(&library, "zz");
    assert_eq!((paths[0].as_str(), model.as_str(), note), ("two", "letters@127.0.0.1", None));
    assert_eq!(search(&library, "yy").0[0], "three");

    // What was embedded once is not asked for again, by another process neither.
    drop(library);
    let library = Library::open(folder.path(), options(&server)).unwrap();
    let before = server.asked.load(Ordering::Relaxed);
    assert_eq!(search(&library, "zz").0[0], "two");
    assert_eq!(server.asked.load(Ordering::Relaxed), before, "passages and queries come from the cache");

    // A new document is searched at once, with the built-in model until its vector is there.
    server.down.store(true, Ordering::Relaxed);
    add(&library, "four", "xyxyxy is all there is");
    let (paths, model, note) = search(&library, "four xyxyxy");
    assert!(
        paths.contains(&"four".to_owned()) && model == "shelf-static-384-1" && note.is_some(),
        "{paths:?} {model} {note:?}"
    );
    server.down.store(false, Ordering::Relaxed);
    library.set_model(&Caller::owner(), "papers", true, &CallContext::new()).unwrap();
    let (_, model, note) = search(&library, "xy xy");
    assert_eq!((model.as_str(), note), ("letters@127.0.0.1", None));

    // The endpoint goes away: a question it has not seen is answered all the same.
    server.down.store(true, Ordering::Relaxed);
    let (paths, model, note) = search(&library, "all there is");
    assert!(!paths.is_empty() && model == "shelf-static-384-1" && note.unwrap().contains("built-in"));

    library.set_model(&Caller::owner(), "papers", false, &CallContext::new()).unwrap();
    assert_eq!(search(&library, "zz").1, "shelf-static-384-1");
    drop(library);
    let library = Library::open(folder.path(), Options::default()).unwrap();
    assert!(library.set_model(&Caller::owner(), "papers", true, &CallContext::new()).is_err());
}
