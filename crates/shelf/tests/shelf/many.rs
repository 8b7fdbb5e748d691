//! Many processes on one library: kills, races, and reading what another has just written.

use std::{
    process::{Command, Stdio},
    sync::Mutex,
    time::Duration,
};

use serde_json::{Value, json};
use shelf_testkit::StdioClient;

use crate::{assert_sound, binary, files, shelf};

#[test]
fn acknowledged_writes_survive_kill_nine_in_several_processes() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let acknowledged = Mutex::new(Vec::<(String, String)>::new());
    for round in 0..6_u64 {
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let (library, acknowledged) = (&library, &acknowledged);
                scope.spawn(move || {
                    let mut client = StdioClient::start(binary(), library);
                    let pid = client.id();
                    let killer = std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_millis(60 + round * 37 + writer * 23));
                        let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
                    });
                    for number in 0.. {
                        let name = format!("{round}/{writer}/{number}");
                        let size = if number % 7 == 3 { 60_000 } else { 20 };
                        let content = format!("{name} ").repeat(size);
                        let call =
                            json!({ "name": "add", "arguments": { "content": content, "name": name } });
                        let Some(reply) = client.try_request("tools/call", call) else { break };
                        let hash =
                            reply["result"]["structuredContent"]["hash"].as_str().expect("a hash").to_owned();
                        acknowledged.lock().unwrap().push((name, hash));
                    }
                    killer.join().unwrap();
                });
            }
        });
        assert_sound(&library);
    }
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() > 50, "only {} writes", acknowledged.len());
    let mut client = StdioClient::start(binary(), &library);
    for (name, hash) in &acknowledged {
        let got = client.call("get", json!({ "name": name, "include_content": true }));
        assert_eq!(got["hash"], json!(hash), "{name}");
    }
}

#[test]
fn a_killed_folder_add_leaves_a_sound_library_and_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let (library, tree) = (folder.path().join("library"), files(folder.path(), 3_000));
    for round in 0..8 {
        let mut child = Command::new(binary())
            .args(["--quiet", "--data-dir"])
            .arg(&library)
            .arg("add")
            .arg(&tree)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(5 + round * 9));
        let _ = child.kill();
        child.wait().unwrap();
        assert_sound(&library);
    }
    let (code, out, _) = shelf(&library, &["add", "--json", tree.to_str().unwrap()]);
    let reply: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, reply["files_added"].as_u64().unwrap() + reply["files_unchanged"].as_u64().unwrap()),
        (0, 3_000)
    );
    let (_, out, _) = shelf(&library, &["status", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["total_objects"], 3_000);
    assert_sound(&library);
}

#[test]
fn two_processes_add_the_same_folder_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (library, tree) = (folder.path().join("library"), files(folder.path(), 2_000));
    let replies: Vec<Value> = std::thread::scope(|scope| {
        let adds: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| shelf(&library, &["add", "--json", tree.to_str().unwrap()])))
            .collect();
        adds.into_iter()
            .map(|add| {
                let (code, out, err) = add.join().unwrap();
                assert_eq!(code, 0, "{err}");
                serde_json::from_str(&out).unwrap()
            })
            .collect()
    });
    assert!(replies.iter().all(|reply| reply["hash"] == replies[0]["hash"]));
    let added: u64 = replies.iter().map(|reply| reply["files_added"].as_u64().unwrap()).sum();
    assert_eq!(added, 2_000, "each file is added once");
    let (_, out, _) = shelf(&library, &["snapshot", "list", "--json"]);
    let snapshots = serde_json::from_str::<Value>(&out).unwrap();
    assert_eq!(snapshots["snapshots"].as_array().unwrap().len(), 3);
    assert_sound(&library);
}

#[test]
fn eight_servers_read_each_others_writes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let mut clients: Vec<StdioClient> = (0..8).map(|_| StdioClient::start(binary(), &library)).collect();
    for number in 0..200 {
        let name = format!("note-{number}");
        // Some are large enough for their own pack, which the reader has never seen.
        let content = name.repeat(if number % 10 == 5 { 30_000 } else { 1 });
        let added = clients[number % 8].call("add", json!({ "content": content, "name": name }));
        let reader = &mut clients[(number * 3 + 1) % 8];
        let got = reader.call("get", json!({ "hash": added["hash"], "include_content": true }));
        assert_eq!(got["content"], json!(content));
        assert_eq!(reader.call("list", json!({ "limit": 1 }))["total"], number + 1);
    }
    let (code, out, _) = shelf(&library, &["get", "note-199"]);
    assert_eq!((code, out.as_str()), (0, "note-199"));
    // All of them write at once: no call fails because of a lock, and nothing is lost.
    std::thread::scope(|scope| {
        for (writer, client) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                for number in 0..30 {
                    client.call("add", json!({ "content": format!("{writer} {number}"), "name": format!("w{writer}/{number}") }));
                }
            });
        }
    });
    assert_eq!(clients[0].call("status", json!({}))["total_objects"], 440);
    drop(clients);
    assert_sound(&library);
}

#[test]
fn a_collection_beside_writers_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let tree = files(folder.path(), 400);
    shelf(&library, &["add", tree.to_str().unwrap()]);
    let added = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut client = StdioClient::start(binary(), &library);
            let mut added = Vec::new();
            for number in 0..60 {
                let name = format!("n{number}");
                let content = format!("{number} ").repeat(if number % 5 == 0 { 80_000 } else { 10 });
                added.push((
                    name.clone(),
                    client.call("add", json!({ "content": content, "name": name }))["hash"].clone(),
                ));
                if number % 3 == 0 {
                    client.call("delete_by_name", json!({ "name": added.pop().unwrap().0 }));
                }
            }
            added
        });
        for _ in 0..6 {
            let (code, _, err) = shelf(&library, &["gc", "--keep-last", "1"]);
            assert_eq!(code, 0, "{err}");
        }
        writer.join().unwrap()
    });
    assert_sound(&library);
    let mut client = StdioClient::start(binary(), &library);
    for (name, hash) in added {
        assert_eq!(client.call("get", json!({ "name": name, "include_content": true }))["hash"], hash);
    }
}

#[test]
fn short_runs_on_a_new_library_never_see_a_lock() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let library = &library;
            scope.spawn(move || {
                for number in 0..12 {
                    let arguments = format!(r#"{{"content": "x", "name": "{thread}/{number}"}}"#);
                    let (code, _, err) = shelf(library, &["call", "add", &arguments]);
                    assert_eq!(code, 0, "{err}");
                    let (code, _, err) = shelf(library, &["status"]);
                    assert_eq!(code, 0, "{err}");
                }
            });
        }
    });
    let (_, out, _) = shelf(&library, &["status", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["total_objects"], 72);
    assert_sound(&library);
}

#[test]
fn what_was_added_is_found_at_once_by_both_of_two_processes() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let mut clients = [StdioClient::start(binary(), &library), StdioClient::start(binary(), &library)];
    for number in 0..1_000 {
        let word = format!("zebra{number}quagga");
        let content = format!("A note about {word} and nothing else of importance.");
        let name = format!("notes/{}.txt", number % 700);
        clients[number % 2].call("add", json!({ "content": content, "name": name }));
        let reader = (number / 2) % 2;
        let found =
            clients[reader].call("search", json!({ "query": word, "fuzzy": false, "type": "keyword" }));
        assert_eq!(
            (found["total"].as_u64(), found["results"][0]["path"].as_str()),
            (Some(1), Some(name.as_str())),
            "{number}"
        );
        if number % 10 == 0 {
            let lines = clients[1 - reader].call("grep", json!({ "pattern": word }));
            assert_eq!(lines["total_matches"], 1, "{number}");
        }
    }
    let all = clients[0].call("search", json!({ "query": "importance", "limit": 1 }));
    assert_eq!(all["total"], 700);
    assert_sound(&library);
}

#[test]
fn a_kill_anywhere_in_indexing_is_made_good_by_the_next_search() {
    let folder = tempfile::tempdir().unwrap();
    let (library, tree) = (folder.path().join("library"), files(folder.path(), 2_500));
    for round in 0..8 {
        let mut child = Command::new(binary())
            .arg("--data-dir")
            .arg(&library)
            .args(["--quiet", if round == 0 { "add" } else { "reindex" }])
            .args((round == 0).then_some(&tree))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(150 + 90 * round));
        let _ = child.kill();
        let _ = child.wait();
    }
    shelf(&library, &["add", tree.to_str().unwrap()]);
    let mut client = StdioClient::start(binary(), &library);
    let all = client.call("list", json!({ "limit": 1 }))["total"].clone();
    let found = client.call("search", json!({ "query": "*", "type": "keyword" }));
    assert!(found["total"].is_u64());
    let named = client.call("search", json!({ "query": "txt", "type": "keyword", "limit": 1 }));
    assert_eq!(named["total"], all, "every document is in the index, once");
    assert_sound(&library);
}
