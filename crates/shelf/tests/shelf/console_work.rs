//! What people do in the web console beside reading: undoing, downloading, narrowing a search, following the activity.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    console::{Browser, PASSWORD, password_form, store, user},
    http::Server,
};

/// A document with two pages that say one word each.
const PAGES: &str = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n\
2 0 obj<</Type/Pages/Kids[3 0 R 6 0 R]/Count 2>>endobj\n\
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n\
4 0 obj<</Length 40>>stream\nBT /F 24 Tf 20 40 Td (Heron) Tj ET      \nendstream endobj\n\
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n\
6 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 7 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n\
7 0 obj<</Length 40>>stream\nBT /F 24 Tf 20 40 Td (Frogs) Tj ET      \nendstream endobj\n\
trailer<</Root 1 0 R/Size 8>>\n%%EOF\n";

/// A library with two members, and a token of the first.
struct House {
    _folder: tempfile::TempDir,
    server: Server,
    token: String,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        user(folder.path(), "alice", &[]);
        user(folder.path(), "bob", &[]);
        user(folder.path(), "root", &["--admin"]);
        let server = Server::start(folder.path(), &[]);
        let token = {
            let alice = Browser::signed_in(&server, &password_form("alice"));
            let (_, _, made) =
                alice.post("/tokens/create", "kind=personal&label=agent&scope=READ&scope=WRITE");
            made.split("pat_live_").nth(1).map(|rest| format!("pat_live_{}", &rest[..32])).unwrap()
        };
        Self { _folder: folder, server, token }
    }

    fn browser(&self, name: &str) -> Browser<'_> {
        Browser::signed_in(&self.server, &password_form(name))
    }

    fn add(&self, name: &str, content: &str) -> String {
        store(&self.server, &self.token, name, content)["document_id"].as_str().unwrap().to_owned()
    }

    fn tool(&self, name: &str, arguments: &Value) -> Value {
        let (status, reply) = self.server.tool(&self.token, name, arguments);
        assert_eq!(status, 200, "{name}: {reply}");
        reply
    }

    /// Where a page leads to, letter by letter.
    fn way(&self, browser: &Browser<'_>, path: &str) -> String {
        let headers = [("Cookie", browser.cookie.as_str())];
        let (status, head, body) = self.server.request_as_sent("GET", path, &headers, "");
        assert_eq!(status, 303, "{body}");
        location(&head).to_owned()
    }

    /// The head and the bytes of a reply.
    fn bytes(&self, path: &str, header: (&str, &str)) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.server.address).unwrap();
        let address = &self.server.address;
        let (name, value) = header;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{name}: {value}\r\n\r\n"
        )
        .unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        let end = reply.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        (String::from_utf8_lossy(&reply[..end]).to_lowercase(), reply.split_off(end + 4))
    }
}

fn location(head: &str) -> &str {
    head.split("location: ").nth(1).and_then(|rest| rest.lines().next()).expect("a place to go to").trim()
}

#[test]
fn pages_of_a_document_are_seen_as_they_were_set() {
    let house = House::new();
    let id = house.add("pages.pdf", PAGES);
    let alice = house.browser("alice");
    let page = alice.page(&format!("/d/{id}"));
    assert!(page.contains(&format!("src=\"/d/{id}/page?n=2&amp;version=")), "{page}");
    assert!(page.contains("Text of page 1") && page.contains("Frogs"), "{page}");
    let (head, png) = house.bytes(&format!("/d/{id}/page?n=1"), ("Cookie", &alice.cookie));
    assert!(head.contains(" 200 ") && head.contains("content-type: image/png"), "{head}");
    assert!(png.starts_with(b"\x89PNG") && png.len() > 300, "{}", png.len());
    let (_, other) = house.bytes(&format!("/d/{id}/page?n=2"), ("Cookie", &alice.cookie));
    assert_ne!(png, other);
    // The same over REST, with a token.
    let bearer = format!("Bearer {}", house.token);
    let path = format!("/api/v1/documents/{id}/page?page=1&width=1400");
    assert_eq!(house.bytes(&path, ("Authorization", &bearer)).1, png);
    for (path, status) in [
        (format!("/d/{id}/page?n=3"), 400),
        (format!("/d/{id}/page?n=0"), 400),
        (format!("/d/{id}/page"), 400),
    ] {
        assert_eq!(alice.get(&path).0, status, "{path}");
    }
    assert_eq!(house.browser("bob").get(&format!("/d/{id}/page?n=1")).0, 404, "of somebody else");
    let found = alice.page(&format!("/d/{id}?find=FROGS"));
    assert!(found.contains("1 line") && found.contains("text-line marked"), "{found}");
    let text = house.add("notes.txt", "no pages");
    assert_eq!(alice.get(&format!("/d/{text}/page?n=1")).0, 400);
}

#[test]
fn a_deletion_can_be_undone() {
    let house = House::new();
    let id = house.add("birds/heron.txt", "A heron.");
    house.tool(
        "update",
        &json!({ "name": "birds/heron.txt", "tags": ["bird"], "metadata": { "legs": 2, "by": "Ann \"A\"" } }),
    );
    let alice = house.browser("alice");
    let (status, _, gone) = alice.post(&format!("/d/{id}/delete"), "");
    assert_eq!(status, 200, "{gone}");
    assert_eq!(alice.get(&format!("/d/{id}")).0, 410);
    assert!(
        alice.get(&format!("/d/{id}")).2.contains("agent")
            || alice.get(&format!("/d/{id}")).2.contains("alice")
    );
    assert_eq!(house.browser("bob").get(&format!("/d/{id}")).0, 404, "nothing is said to others");
    let remembered = gone.split("name=\"document\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let remembered = remembered.replace("&quot;", "\"").replace("&amp;", "&");
    let form = format!("document={}", percent_encoded(&remembered));
    assert_eq!(house.browser("bob").post(&format!("/d/{id}/undelete"), &form).0, 404);
    let (status, head, body) = alice.post(&format!("/d/{id}/undelete"), &form);
    assert_eq!(status, 303, "{body}");
    assert_eq!(location(&head), format!("/d/{id}"), "it is the same document");
    let back = alice.page(location(&head));
    assert!(
        back.contains("A heron.") && back.contains(">bird<") && back.contains("value=\"legs\""),
        "{back}"
    );
    let got = house.tool("get", &json!({ "name": "birds/heron.txt" }));
    assert_eq!(got["metadata"], json!({ "legs": 2, "by": "Ann \"A\"" }));
    let (status, _, body) = alice.post(&format!("/d/{id}/undelete"), &form);
    assert!(status == 400 && body.contains("not deleted"), "{status} {body}");
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn metadata_is_edited_in_place() {
    let house = House::new();
    let id = house.add("a.txt", "one");
    house.tool("update", &json!({ "name": "a.txt", "metadata": { "legs": 2, "old": "x", "by": "Ann" } }));
    let alice = house.browser("alice");
    let form = "key=legs&value=2&key=old&value=&key=by&value=Bea&key=new&value=7&key=&value=";
    assert_eq!(alice.post(&format!("/d/{id}/metadata"), form).0, 303);
    let got = house.tool("get", &json!({ "name": "a.txt" }));
    assert_eq!(got["metadata"], json!({ "legs": 2, "by": "Bea", "new": "7" }));
    assert_eq!(house.browser("bob").post(&format!("/d/{id}/metadata"), form).0, 404);
}

#[test]
fn counts_are_those_of_the_hits() {
    let house = House::new();
    for number in 0..5 {
        house.add(&format!("notes/{number}.txt"), &format!("Reeds and water, part {number}."));
    }
    house.add("heron.md", "# Heron\n\nA heron in the reeds.\n");
    house.tool("update", &json!({ "name": "heron.md", "tags": ["bird"] }));
    let alice = house.browser("alice");
    let all = alice.page("/search?q=reeds&mode=words&part=facets");
    assert!(all.contains("Text</a><span class=\"figure\">5<") && all.contains("Markdown</a>"), "{all}");
    let one = alice.page("/search?q=heron&mode=words&part=facets");
    assert!(!one.contains(">5<"), "{one}");
    let narrowed = alice.page("/search?q=reeds&mode=words&tag=bird");
    assert!(narrowed.contains("heron.md") && !narrowed.contains("notes/1.txt"), "{narrowed}");
    assert!(alice.page("/search?q=reeds&mode=words&time=day").contains("6 documents"));
    assert!(alice.page("/search?q=reeds&mode=words&time=older").contains("Nothing found"));
    let by_tag = alice.page("/search?tag=bird");
    assert!(by_tag.contains("heron.md") && by_tag.contains("1 document,"), "{by_tag}");
}

#[test]
fn folders_and_snapshots_come_as_zip_files() {
    let house = House::new();
    house.add("notes/a.txt", "one");
    house.add("notes/deep/b.txt", "two");
    house.add("other.txt", "three");
    let alice = house.browser("alice");
    let (head, zip) = house.bytes(&house.way(&alice, "/c/default/zip?folder=notes%2F"), ("Accept", "*/*"));
    assert!(head.contains("content-type: application/zip") && head.contains("attachment"), "{head}");
    let mut names = names_in(&zip);
    names.sort();
    assert_eq!(names, ["a.txt", "deep/b.txt"]);
    assert_eq!(alice.get("/c/default/zip?folder=nothing%2F").0, 400);
    // The collection of that name is Bob's own, and empty.
    assert_eq!(house.browser("bob").get("/c/default/zip").0, 400);
    let snapshots = house.tool("list_snapshots", &json!({}));
    let id = snapshots["snapshots"][0]["snapshot_id"].as_str().unwrap();
    let way = house.way(&alice, &format!("/snapshots/zip?id={}", percent_encoded(id)));
    assert_eq!(names_in(&house.bytes(&way, ("Accept", "*/*")).1), ["other.txt"]);
    assert_eq!(house.browser("bob").get(&format!("/snapshots/zip?id={}", percent_encoded(id))).0, 404);
}

/// The names in the local headers of a ZIP file.
fn names_in(zip: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    for at in 0..zip.len().saturating_sub(30) {
        if zip[at..].starts_with(b"PK\x03\x04") {
            let length = u16::from_le_bytes([zip[at + 26], zip[at + 27]]) as usize;
            names.push(String::from_utf8_lossy(&zip[at + 30..at + 30 + length]).into_owned());
        }
    }
    names
}

/// The next events of a stream, up to the end of one whose data contains `wanted`.
fn heard(stream: &mut BufReader<TcpStream>, wanted: &str) -> String {
    let mut text = String::new();
    let mut line = String::new();
    while !(text.contains(wanted) && line == "\n") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended: {text}");
        text.push_str(&line);
    }
    text
}

fn listen(server: &Server, path: &str, cookie: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nCookie: {cookie}\r\n\r\n",
        server.address
    )
    .unwrap();
    BufReader::new(stream)
}

#[test]
fn activity_arrives_while_it_happens() {
    let house = House::new();
    let alice = house.browser("alice");
    house.add("before.txt", "one");
    let mut stream = listen(&house.server, "/activity/stream?kind=stored", &alice.cookie);
    let head = heard(&mut stream, "\r\n");
    assert!(head.contains("200 OK"), "{head}");
    std::thread::sleep(Duration::from_millis(800));
    house.add("now.txt", "two");
    let event = heard(&mut stream, "now.txt");
    assert!(event.contains("<tr data-sequence=") && !event.contains("before.txt"), "{event}");
    // Others hear nothing of it, and who is not signed in does not listen.
    let (status, _, _) = house.server.request("GET", "/activity/stream", &[], "");
    assert_eq!(status, 401);
    assert!(alice.page("/activity?by=agent").contains("now.txt"));
    assert!(!alice.page("/activity?by=nobody").contains("now.txt"));
    // Signing out ends the stream.
    assert_eq!(alice.post("/sign-out", "").0, 303);
    house.add("later.txt", "three");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("later.txt"), "{rest}");
}

#[test]
fn an_administrator_checks_the_library_and_sees_the_calls() {
    let house = House::new();
    house.add("a.txt", "one");
    let root = house.browser("root");
    assert!(root.page("/admin?run=check").contains("Everything is as it was stored"));
    let mut stream = listen(&house.server, "/admin/stream?run=check", &root.cookie);
    let done = heard(&mut stream, "event: done");
    assert!(done.contains("Everything is as it was stored"), "{done}");
    let activity = root.page("/activity");
    assert!(activity.contains("Calls of the last hour") && activity.contains("check_library"), "{activity}");
    let alice = house.browser("alice");
    assert!(!alice.page("/activity").contains("Calls of the last hour"));
    let mut refused = listen(&house.server, "/admin/stream?run=check", &alice.cookie);
    let refused = heard(&mut refused, "event: done");
    assert!(refused.contains("for administrators") && !refused.contains("as it was stored"), "{refused}");
    assert_eq!(alice.get("/admin?run=check").0, 403);
}

#[test]
fn sessions_and_passwords_are_reached_over_rest_too() {
    let house = House::new();
    let server = &house.server;
    let log_in = |password: &str| {
        let body = json!({ "username": "alice", "password": password }).to_string();
        let (status, _, reply) = server.request("POST", "/auth/login", &[], &body);
        (status, serde_json::from_str::<Value>(&reply).unwrap())
    };
    let (_, first) = log_in(PASSWORD);
    let (_, second) = log_in(PASSWORD);
    let bearer = |login: &Value| format!("Bearer {}", login["access_token"].as_str().unwrap());
    let ask = |method: &str, path: &str, bearer: &str, body: &str| {
        let (status, _, reply) = server.request(method, path, &[("Authorization", bearer)], body);
        (status, serde_json::from_str::<Value>(&reply).unwrap_or_default())
    };
    let (first, second) = (bearer(&first), bearer(&second));
    let (status, sessions) = ask("GET", "/auth/sessions", &first, "");
    assert_eq!(status, 200, "{sessions}");
    let sessions = sessions.as_array().unwrap().clone();
    let own = sessions.iter().filter(|session| session["is_current"] == true).count();
    assert!(sessions.len() >= 2 && own == 1, "{sessions:?}");
    let token = format!("Bearer {}", house.token);
    assert_eq!(ask("GET", "/api/v1/auth/sessions", &token, "").0, 403, "tokens have no sessions");
    let other = ask("GET", "/auth/sessions", &second, "").1;
    let id = other.as_array().unwrap().iter().find(|one| one["is_current"] == true).unwrap()["id"].clone();
    let path = format!("/auth/sessions/{}", id.as_str().unwrap());
    assert_eq!(ask("DELETE", &path, &first, "").0, 200);
    assert_eq!(ask("GET", "/auth/sessions", &second, "").0, 401, "ended");
    assert_eq!(ask("DELETE", &path, &first, "").0, 404);
    let change =
        |current: &str, new: &str| json!({ "current_password": current, "new_password": new }).to_string();
    assert_eq!(ask("POST", "/auth/password", &first, &change("wrong password", "another password")).0, 401);
    assert_eq!(ask("POST", "/auth/password", &first, &change(PASSWORD, "short")).0, 400);
    assert_eq!(ask("POST", "/auth/password", &first, &change(PASSWORD, "another password")).0, 200);
    assert_eq!((log_in(PASSWORD).0, log_in("another password").0), (401, 200));
}

#[test]
fn memory_is_a_time_line_with_a_chain_that_is_checked() {
    let (library, space) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = space.path().to_str().unwrap();
    let server = Server::start(library.path(), &["--no-auth", "--workspace", path]);
    let owner = Browser::new(&server);
    assert!(owner.page("/memory").contains("Nothing remembered"));
    for number in 1..=3 {
        let entry = json!({ "timestamp": "2026-01-31T10:00:00Z", "event": format!("task_{number}"), "details": "<script>1</script>" });
        let asked = json!({ "file": "progress_log.jsonl", "entry": entry });
        let (status, _, body) =
            server.request("POST", "/api/v1/tools/write_memory_entry", &[], &asked.to_string());
        assert_eq!(status, 200, "{body}");
    }
    let page = owner.page("/memory");
    assert!(page.contains("The chain holds") && page.contains("task_2"), "{page}");
    assert!(!owner.page("/memory?contains=task_3").contains("task_2"));
    assert!(!owner.page("/memory?file=decisions.jsonl").contains("task_1"));
    let file = walk(space.path(), "progress_log.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("task_2", "task_9")).unwrap();
    let page = owner.page("/memory");
    assert!(page.contains("The chain is broken") && page.contains("line 2"), "{page}");
}

fn walk(folder: &std::path::Path, name: &str) -> std::path::PathBuf {
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_name() == name {
                return entry.path();
            }
            if entry.path().is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    panic!("no {name}")
}

#[test]
fn assets_are_added_to_books_and_it_is_told_where_they_are_used() {
    let house = House::new();
    let lesson = "lessons/part-1/chapter-01/lesson-01.md";
    let content = "# One\n\n![a dot](dot.png)\n";
    house.tool("write_content", &json!({ "book_id": "birds", "path": lesson, "content": content }));
    let alice = house.browser("alice");
    let proof = alice.proof();
    let png = String::from_utf8_lossy(&STANDARD.decode("QUJD").unwrap()).into_owned();
    let headers = [
        ("Cookie", alice.cookie.as_str()),
        ("X-Proof", &proof),
        ("Content-Type", "application/octet-stream"),
    ];
    for name in ["dot.png", "unused.png"] {
        let path = format!("/books/birds/assets/images?name={name}");
        let (status, _, body) = house.server.request("POST", &path, &headers, &png);
        assert_eq!(status, 200, "{body}");
    }
    let without = [headers[0], headers[2]];
    let (status, _, _) = house.server.request("POST", "/books/birds/assets/images?name=x.png", &without, "x");
    assert_eq!(status, 403, "without a proof");
    let page = alice.page("/books/birds");
    assert!(
        page.contains("dot.png") && page.contains(">lesson-01.md</a></td>") && page.contains("nothing"),
        "{page}"
    );
    let (status, _, body) =
        house.server.request("POST", "/books/birds/assets/nonsense?name=x.png", &headers, "x");
    assert_eq!(status, 400, "{body}");
}
