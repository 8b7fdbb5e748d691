//! A stress test: servers add, delete and re-add from a small pool of contents, while garbage collection, reindexing
//! and repairs run concurrently. A model tracks what must be readable after every acknowledged step.
//!
//! A run has 20 rounds by default; `TEST_ROUNDS=200` makes a long one, as `cargo xtask test --full` does.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use shelf_testkit::StdioClient;

use crate::{assert_sound, binary, http::Server, shelf};

/// Number of contents that all clients pick from. Most are large enough for packs, some are loose blocks at first.
const POOL: usize = 10;
/// Number of documents that belong to each client.
const NAMES: usize = 2;
/// Steps of each client per round.
const STEPS: usize = 10;

pub fn rounds(usual: u64) -> u64 {
    std::env::var("TEST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A small seeded generator, so that a round can be repeated.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % below
    }
}

fn marker(content: usize) -> String {
    format!("marker{content}of{POOL}")
}

fn content(number: usize) -> String {
    let length = if number % 3 == 2 { 900 } else { 150_000 + 20_000 * number };
    let mut dice = Dice(number as u64 * 977 + 13);
    let mut text = format!("{}\n", marker(number));
    while text.len() < length {
        text.push_str(&format!("word{} ", dice.roll(40_000)));
    }
    text
}

/// A connection to a running server.
enum Client {
    Stdio(Box<StdioClient>),
    Http(Server),
}

impl Client {
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        match self {
            Self::Stdio(client) => client.call(tool, arguments),
            Self::Http(server) => {
                let (status, reply) = server.tool("", tool, &arguments);
                assert_eq!(status, 200, "{tool}: {reply}");
                reply
            }
        }
    }
}

/// The documents that were acknowledged to one client.
type Model = BTreeMap<String, usize>;

fn step(client: &mut Client, own: usize, model: &mut Model, folder: &Path, dice: &mut Dice) {
    let (name, number) = (format!("own{own}/{}", dice.roll(NAMES)), dice.roll(POOL));
    match dice.roll(10) {
        0..4 => {
            client.call("add", json!({ "name": name, "content": content(number) }));
            model.insert(name, number);
        }
        4..9 => {
            let gone = client.call("delete_by_name", json!({ "name": name }));
            assert_eq!(gone["count"], json!(u64::from(model.remove(&name).is_some())), "{name}");
        }
        _ => {
            let place = folder.join(format!("tree{own}"));
            std::fs::create_dir_all(&place).unwrap();
            for file in 0..2 {
                let number = dice.roll(POOL);
                let path = place.join(format!("{file}.txt"));
                std::fs::write(&path, content(number)).unwrap();
                model.insert(path.to_str().unwrap().to_owned(), number);
            }
            // Local files cannot be added over HTTP, so the command line adds them while the server runs.
            let (code, out, err) = shelf(&folder.join("library"), &["add", place.to_str().unwrap()]);
            assert_eq!(code, 0, "{out}{err}");
        }
    }
    for name in model.keys().filter(|_| dice.roll(4) == 0) {
        must_read(client, name, model[name]);
    }
}

fn must_read(client: &mut Client, name: &str, number: usize) {
    let got = client.call("get", json!({ "name": name, "include_content": true }));
    assert_eq!(got["content"].as_str().map(str::len), Some(content(number).len()), "{name}: {}", got["hash"]);
    assert_eq!(got["content"], json!(content(number)), "{name}");
}

/// Every server sees exactly what the combined models contain: by name, in lists, and by pattern.
fn must_agree(client: &mut Client, all: &Model) {
    let listed = client.call("list", json!({ "limit": 1000 }));
    let paths: Vec<&str> =
        listed["documents"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    let expected: Vec<&String> = all.keys().collect();
    let mut sorted = paths.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    for number in 0..POOL {
        let found = client.call("grep", json!({ "pattern": marker(number), "count": true }));
        let mut files: Vec<&str> =
            found["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
        files.sort_unstable();
        let expected: Vec<&String> =
            all.iter().filter(|(_, own)| **own == number).map(|(name, _)| name).collect();
        assert_eq!(files, expected, "documents with {}", marker(number));
    }
    for (name, number) in all {
        must_read(client, name, *number);
    }
}

/// Garbage collection, reindexing and repairs, one after the other, until `stop`.
fn upkeep(library: &Path, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let drop_all = &["gc", "--keep-last", "1"][..];
        for command in [drop_all, drop_all, &["reindex"], drop_all, &["check", "--repair"], &["gc"]] {
            let (code, out, err) = shelf(library, command);
            assert_eq!(code, 0, "{command:?}: {out}{err}");
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_in_the_storm() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let mut clients: Vec<(Client, Model)> = Vec::new();
    for number in 0..4 {
        let client = if number % 2 == 0 {
            Client::Stdio(Box::new(StdioClient::start(binary(), &library)))
        } else {
            Client::Http(Server::start(&library, &["--no-auth"]))
        };
        clients.push((client, Model::new()));
    }
    for round in 0..rounds(20) {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let upkeep = scope.spawn(|| upkeep(&library, &stop));
            let working: Vec<_> = clients
                .iter_mut()
                .enumerate()
                .map(|(own, (client, model))| {
                    let folder = folder.path();
                    scope.spawn(move || {
                        let mut dice = Dice(round * 4_099 + own as u64 * 31 + 7);
                        (0..STEPS).for_each(|_| step(client, own, model, folder, &mut dice));
                    })
                })
                .collect();
            let outcomes: Vec<_> = working.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            stop.store(true, Ordering::Relaxed);
            upkeep.join().unwrap();
            outcomes.into_iter().for_each(Result::unwrap);
        });
        let all: Model = clients.iter().flat_map(|(_, model)| model.clone()).collect();
        for (client, _) in &mut clients {
            must_agree(client, &all);
        }
        if round % 5 == 4 {
            assert_sound(&library);
        }
    }
}

/// The sequence of steps that first showed the failure.
#[test]
fn content_that_was_collected_is_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let mut server = StdioClient::start(binary(), &library);
    for retention in [&["gc", "--keep-last", "1"][..], &["gc", "--keep-last", "1"]] {
        server.call("add", json!({ "name": "a", "content": content(0) }));
        server.call("delete_by_name", json!({ "name": "a" }));
        server.call("add", json!({ "name": "other", "content": "something else" }));
        let (code, out, err) = shelf(&library, retention);
        assert_eq!(code, 0, "{out}{err}");
        server.call("add", json!({ "name": "b", "content": content(0) }));
        let got = server.call("get", json!({ "name": "b", "include_content": true }));
        assert_eq!(got["content"], json!(content(0)));
        server.call("delete_by_name", json!({ "name": "b" }));
    }
    assert_sound(&library);
}

/// A lost pack is repaired by sending its content again, even through a server that still remembers the pack.
#[test]
fn content_whose_pack_was_lost_is_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let mut server = StdioClient::start(binary(), &library);
    server.call("add", json!({ "name": "a", "content": content(0) }));
    for pack in std::fs::read_dir(library.join("packs")).unwrap() {
        std::fs::remove_file(pack.unwrap().path()).unwrap();
    }
    assert_ne!(shelf(&library, &["check"]).0, 0);
    server.call("add", json!({ "name": "a", "content": content(0) }));
    assert_eq!(
        server.call("get", json!({ "name": "a", "include_content": true }))["content"],
        json!(content(0))
    );
    assert_sound(&library);
    // The same after the program itself has taken a damaged pack out of use.
    let pack = std::fs::read_dir(library.join("packs")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&pack, bytes).unwrap();
    assert_ne!(shelf(&library, &["check", "--repair"]).0, 0, "the loss is reported");
    server.call("add", json!({ "name": "a", "content": content(0) }));
    assert_eq!(
        server.call("get", json!({ "name": "a", "include_content": true }))["content"],
        json!(content(0))
    );
    assert_sound(&library);
}
