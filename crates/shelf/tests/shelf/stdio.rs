//! MCP over stdio: the handshake, bad input, the end of input.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use shelf_testkit::StdioClient;

use crate::{binary, shelf};

#[test]
fn the_handshake_says_who_we_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::spawn(binary(), folder.path(), &[]);
    let reply = client.initialize();
    assert_eq!(reply["result"]["serverInfo"]["name"], "shelfmark");
    assert_eq!(reply["result"]["protocolVersion"], "2025-11-25");
    assert!(reply["result"]["instructions"].as_str().unwrap().len() <= 2_048);
    let tools = client.request("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), shelf_tools::registry().filter(|tool| tool.toolset() != "extras").count());
    for tool in tools {
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{tool}");
        }
        assert!(tool["outputSchema"]["type"] == "object" && tool["title"].is_string());
    }
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn the_stateless_revision_needs_no_handshake() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::spawn(binary(), folder.path(), &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.request("server/discover", json!({ "_meta": meta }));
    assert_eq!(found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "shelfmark");
    let reply = client.request("tools/call", json!({ "name": "hello", "arguments": {}, "_meta": meta }));
    assert_eq!(reply["result"]["structuredContent"]["message"], "Hello from AI Practitioner Learning OS!");
    assert_eq!(reply["result"]["resultType"], "complete");
}

#[test]
fn results_say_the_same_twice_and_failures_are_results() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::start(binary(), folder.path());
    let reply = client.request("tools/call", json!({ "name": "status", "arguments": {} }));
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), reply["result"]["structuredContent"]);
    let users = client.request("tools/call", json!({ "name": "list_users_tool", "arguments": {} }));
    let texts = users["result"]["content"].as_array().unwrap();
    let texts = texts.iter().map(|block| serde_json::from_str(block["text"].as_str().unwrap()).unwrap());
    let [list, about] = texts.collect::<Vec<Value>>().try_into().unwrap();
    assert_eq!(list, users["result"]["structuredContent"]["result"]);
    assert_eq!(about, json!({ "total": list.as_array().unwrap().len(), "truncated": false }));
    let failed = client.request("tools/call", json!({ "name": "get", "arguments": { "hsh": "x" } }));
    assert_eq!(failed["result"]["isError"], true);
    assert!(
        failed["result"]["content"][0]["text"].as_str().unwrap().starts_with("Error: unknown argument 'hsh'")
    );
    assert!(failed["result"].get("structuredContent").is_none());
    let unknown = client.request("tools/call", json!({ "name": "ad", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(unknown["error"]["message"].as_str().unwrap().contains("did you mean add"));
}

#[test]
fn bad_lines_are_answered_and_the_server_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::start(binary(), folder.path());
    client.send_line("this is not JSON");
    let answer: Value = serde_json::from_str(&client.read_line().unwrap()).unwrap();
    assert_eq!(answer["error"]["code"], -32700);
    let huge = format!(
        r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"x":"{}"}}}}"#,
        "y".repeat(33 << 20)
    );
    client.send_line(&huge);
    let answer: Value = serde_json::from_str(&client.read_line().unwrap()).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(77), &json!(-32600)));
    assert!(answer["error"]["message"].as_str().unwrap().contains("32 MiB"));
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":78,"method":"x","params":{{"x":{}{}}}}}"#,
        "[".repeat(3_000),
        "]".repeat(3_000)
    );
    client.send_line(&deep);
    let answer: Value = serde_json::from_str(&client.read_line().unwrap()).unwrap();
    assert_eq!(answer["id"], 78);
    // Just under the limit is fine.
    let content = "z".repeat(31 << 20);
    let added = client.call("add", json!({ "content": content, "name": "large.txt" }));
    assert_eq!(added["bytes_stored"].as_u64().unwrap() + added["bytes_deduped"].as_u64().unwrap(), 31 << 20);
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn the_end_of_input_is_the_end() {
    let folder = tempfile::tempdir().unwrap();
    // Before the first request.
    let client = StdioClient::spawn(binary(), folder.path(), &[]);
    let started = Instant::now();
    assert_eq!(client.finish(), Some(0));
    assert!(started.elapsed() < Duration::from_millis(1_500), "{:?}", started.elapsed());
    // With requests still pending: all of them are answered first.
    let mut client = StdioClient::start(binary(), folder.path());
    for id in 100..120 {
        let call =
            json!({ "name": "add", "arguments": { "content": id.to_string(), "name": id.to_string() } });
        client.send_line(
            &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call }).to_string(),
        );
    }
    let mut answered = 0;
    while answered < 20 {
        let line: Value = serde_json::from_str(&client.read_line().expect("an answer")).unwrap();
        answered += usize::from(line["id"].as_u64().is_some_and(|id| id >= 100));
    }
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn progress_comes_before_the_reply() {
    let folder = tempfile::tempdir().unwrap();
    let tree = crate::files(folder.path(), 3_000);
    let mut client = StdioClient::start(binary(), &folder.path().join("library"));
    let call = json!({ "name": "add", "arguments": { "path": tree }, "_meta": { "progressToken": "p" } });
    client.send_line(
        &json!({ "jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": call }).to_string(),
    );
    let mut reported = Vec::new();
    loop {
        let line: Value = serde_json::from_str(&client.read_line().expect("a line")).unwrap();
        if line["id"] == json!(900) {
            break;
        }
        assert_eq!(line["params"]["progressToken"], "p");
        reported.push(line["params"]["progress"].as_f64().unwrap());
    }
    assert!(!reported.is_empty() && reported.is_sorted(), "{reported:?}");
}

#[test]
fn a_cancelled_call_stops() {
    let folder = tempfile::tempdir().unwrap();
    let tree = crate::files(folder.path(), 6_000);
    // How long it takes when nobody cancels it.
    let mut patient = StdioClient::start(binary(), &folder.path().join("other"));
    let begun = Instant::now();
    patient.call("add", json!({ "path": tree, "tags": ["x"] }));
    let usual = begun.elapsed();
    let library = folder.path().join("library");
    let mut client = StdioClient::start(binary(), &library);
    let call = json!({ "name": "add", "arguments": { "path": tree, "tags": ["x"] } });
    client.send_line(
        &json!({ "jsonrpc": "2.0", "id": 901, "method": "tools/call", "params": call }).to_string(),
    );
    std::thread::sleep(Duration::from_millis(15));
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 901 } });
    client.send_line(&cancel.to_string());
    std::thread::sleep(4 * usual + Duration::from_millis(300));
    // An add that went on would have ended by now, and made a snapshot.
    let snapshots = client.call("list_snapshots", json!({}));
    assert_eq!(snapshots["total"], 0);
    crate::assert_sound(&library);
}

#[test]
fn a_selection_hides_and_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let mut client =
        StdioClient::spawn(binary(), folder.path(), &["--read-only", "--exclude-tools", "status"]);
    client.initialize();
    let tools = client.request("tools/list", json!({}));
    let names: Vec<&str> = tools["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let reading = shelf_tools::registry()
        .filter(|tool| tool.hints.read_only && tool.name != "status" && tool.toolset() != "extras");
    assert_eq!(names, reading.map(|tool| tool.name).collect::<Vec<_>>());
    assert!(names.contains(&"grep") && names.contains(&"list_cats_tool") && !names.contains(&"add"));
    let hidden = [
        ("add", "Error: Insufficient permissions: write access required"),
        ("status", "Error: This tool is not offered here"),
        ("delete_by_name", "Error: Insufficient permissions: write access required"),
    ];
    for (name, sentence) in hidden {
        let refused = client.request("tools/call", json!({ "name": name, "arguments": {} }));
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        assert_eq!(refused["result"]["content"][0]["text"], sentence);
    }
    let target = folder.path().join("copy");
    let call = json!({ "name": "get", "arguments": { "name": "a", "outputPath": target } });
    let refused = client.request("tools/call", call);
    assert_eq!(
        refused["result"]["content"][0]["text"],
        "Error: Insufficient permissions: write access required"
    );
    let (code, _, err) = shelf(folder.path(), &["serve", "--tools", "ad"]);
    assert_eq!(code, 2);
    assert!(err.contains("unknown tool 'ad'"), "{err}");
}

#[test]
fn resources_are_listed_read_and_completed() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::start(binary(), folder.path());
    let added = client.call("add", json!({ "content": "text", "name": "notes/a.md" }));
    let listed = client.request("resources/list", json!({}));
    let uri = listed["result"]["resources"][0]["uri"].as_str().unwrap().to_owned();
    assert_eq!(uri, format!("shelf://documents/{}", added["document_id"].as_str().unwrap()));
    let read = client.request("resources/read", json!({ "uri": uri }));
    assert_eq!(read["result"]["contents"][0]["text"], "text");
    let snapshot = format!("shelf://snapshots/{}", added["snapshot_id"].as_str().unwrap());
    let read = client.request("resources/read", json!({ "uri": snapshot }));
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains("notes/a.md"));
    let missing = client.request("resources/read", json!({ "uri": "shelf://documents/none" }));
    assert_eq!(
        (&missing["error"]["code"], &missing["error"]["data"]["uri"]),
        (&json!(-32002), &json!("shelf://documents/none"))
    );
    let completed = client.request(
        "completion/complete",
        json!({
            "ref": { "type": "ref/resource", "uri": "shelf://documents/{document_id}" },
            "argument": { "name": "document_id", "value": "notes" },
        }),
    );
    assert_eq!(completed["result"]["completion"]["values"], json!([added["document_id"]]));
}

#[test]
fn prompts_are_listed_got_and_completed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("prompts")).unwrap();
    std::fs::write(folder.path().join("prompts/PROMPT-my-way.md"), "# My way\n\nDo it.").unwrap();
    let mut client = StdioClient::start(binary(), folder.path());
    client.call("add", json!({ "content": "text", "name": "notes/a.md" }));
    let listed = client.request("prompts/list", json!({}));
    let listed = listed["result"]["prompts"].as_array().unwrap().clone();
    let find = |name: &str| listed.iter().find(|prompt| prompt["name"] == name).cloned().unwrap();
    assert_eq!(find("search_codebase")["description"], "Search for code patterns in the codebase");
    assert_eq!(find("search_codebase")["arguments"][0]["required"], true);
    assert_eq!(find("my_way")["description"], "My way (from PROMPT-my-way.md)");
    assert!(find("my_way").get("arguments").is_none());
    let got = client.request("prompts/get", json!({ "name": "my_way" }));
    assert_eq!(
        got["result"]["messages"],
        json!([{ "role": "assistant", "content": { "type": "text", "text": "# My way\n\nDo it." } }])
    );
    let arguments = json!({ "document_name": "notes/a.md", "max_length": 50 });
    let got = client.request("prompts/get", json!({ "name": "summarize_document", "arguments": arguments }));
    assert_eq!(got["result"]["messages"][0]["role"], "user");
    let text = got["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("'notes/a.md'") && text.contains("at most 50 words"), "{text}");
    for wrong in [
        json!({ "name": "nothing" }),
        json!({ "name": "summarize_document" }),
        json!({ "name": "summarize_document", "arguments": { "document_name": ["a"] } }),
    ] {
        assert_eq!(client.request("prompts/get", wrong.clone())["error"]["code"], -32602, "{wrong}");
    }
    let completed = client.request(
        "completion/complete",
        json!({
            "ref": { "type": "ref/prompt", "name": "summarize_document" },
            "argument": { "name": "document_name", "value": "not" },
        }),
    );
    assert_eq!(completed["result"]["completion"]["values"], json!(["notes/a.md"]));
}

/// The lines that a server answers to a handshake and a few calls, over the given ends of its stdin and stdout.
fn talk(mut child: std::process::Child, input: impl Write, output: impl Read) {
    let mut input = input;
    let parameters = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let mut lines = BufReader::new(output).lines();
    let mut ask = |id: u64, method: &str, parameters: Value| -> Value {
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters });
        writeln!(input, "{line}").unwrap();
        serde_json::from_str(&lines.next().expect("an answer").unwrap()).unwrap()
    };
    assert_eq!(ask(1, "initialize", parameters)["id"], 1);
    let added = json!({ "name": "add", "arguments": { "content": "x".repeat(300_000), "name": "a.txt" } });
    assert_eq!(ask(2, "tools/call", added)["result"]["isError"], false);
    let got = ask(
        3,
        "tools/call",
        json!({ "name": "get", "arguments": { "name": "a.txt", "include_content": true } }),
    );
    assert!(got["result"]["structuredContent"]["content"].as_str().unwrap().len() > 1_000);
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn sockets_serve_as_well_as_pipes() {
    // Node gives its children sockets.
    let folder = tempfile::tempdir().unwrap();
    let ((input, child_input), (output, child_output)) =
        (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
    let child = Command::new(binary())
        .args(["--data-dir".as_ref(), folder.path().as_os_str(), "serve".as_ref()])
        .stdin(OwnedFd::from(child_input))
        .stdout(OwnedFd::from(child_output))
        .spawn()
        .unwrap();
    talk(child, input, output);
}

#[test]
fn files_serve_as_well_as_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let (requests, answers) = (folder.path().join("requests"), folder.path().join("answers"));
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }),
    ];
    std::fs::write(&requests, lines.map(|line| format!("{line}\n")).concat()).unwrap();
    let status = Command::new(binary())
        .args(["--data-dir".as_ref(), folder.path().join("library").as_os_str(), "serve".as_ref()])
        .stdin(File::open(&requests).unwrap())
        .stdout(File::create(&answers).unwrap())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    let answers = std::fs::read_to_string(&answers).unwrap();
    let ids: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert_eq!(ids, [json!(1), json!(2)]);
}

#[test]
fn a_client_that_does_not_read_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::start(binary(), folder.path());
    client.call("add", json!({ "content": "word ".repeat(4_000), "name": "a.txt" }));
    let id = client.id();
    let memory = || {
        let facts = std::fs::read_to_string(format!("/proc/{id}/statm")).unwrap();
        facts.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
    };
    let before = memory();
    // 20,000 answers of more than 40 KB each, and as many to lines that are no requests, would be 800 MB.
    let input = client.take_input();
    let sender = std::thread::spawn(move || {
        let mut input = input;
        for id in 1_000..21_000 {
            let call = json!({ "name": "get", "arguments": { "name": "a.txt", "include_content": true } });
            let line = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call });
            if writeln!(input, "{line}\nno request").is_err() {
                return;
            }
        }
    });
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(!sender.is_finished(), "the server took all requests of a client that reads no answers");
    let grown = memory().saturating_sub(before);
    assert!(grown < 48 << 20, "{grown} bytes more");
    client.kill();
    sender.join().unwrap();
}

/// A short write runs where it was read, unless somebody else has a lock that it needs: it is waited for elsewhere, and the
/// server goes on answering.
#[test]
fn a_short_write_that_has_to_wait_keeps_nobody_else_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::start(binary(), folder.path());
    client.call("add", json!({ "content": "first", "name": "first.md" }));
    for lock in ["locks/writers.lock", "locks/gate.lock", "catalog.lock"] {
        let file = File::options().write(true).open(folder.path().join(lock)).unwrap();
        file.lock().unwrap();
        let add = json!({
            "jsonrpc": "2.0", "id": "waits", "method": "tools/call",
            "params": { "name": "add", "arguments": { "content": lock, "name": format!("{lock}.md") } },
        });
        client.send_line(&add.to_string());
        client.send_line(&json!({ "jsonrpc": "2.0", "id": "ping", "method": "ping" }).to_string());
        let reply: Value = serde_json::from_str(&client.read_line().unwrap()).unwrap();
        assert_eq!(reply["id"], "ping", "{lock}: {reply}");
        file.unlock().unwrap();
        let reply: Value = serde_json::from_str(&client.read_line().unwrap()).unwrap();
        assert_eq!((&reply["id"], reply["result"]["isError"].as_bool()), (&json!("waits"), Some(false)));
        let found = client.call("list", json!({ "name": format!("{lock}.md") }));
        assert!(found.to_string().contains(lock), "{found}");
    }
    // Written once each, in spite of the second attempt.
    let status = client.call("status", json!({}));
    assert_eq!(status["total_objects"], 4, "{status}");
    let snapshots = client.call("list_snapshots", json!({}));
    assert_eq!(snapshots["total"], 4, "{snapshots}");
}
