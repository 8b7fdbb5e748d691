//! The web console as different people meet it: with a token of a collection, with the right to read only, with a form that
//! fails or is sent twice, with an address that does not exist.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    console::{Browser, password_form, store, user},
    http::Server,
};

/// The headers of a browser that goes to an address.
const FROM_A_BROWSER: (&str, &str) = ("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// The text between two others.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    text.split(from).nth(1).and_then(|rest| rest.split(to).next()).unwrap_or_else(|| panic!("{from}: {text}"))
}

/// A token of somebody, made on a page.
fn token(browser: &Browser<'_>, form: &str) -> String {
    let (status, _, page) = browser.post("/tokens/create", form);
    assert_eq!(status, 200, "{page}");
    between(&page, "<div class=\"paste\"><pre><code>", "<").to_owned()
}

#[test]
fn a_cookie_lasts_as_long_as_what_it_stands_for() {
    let folder = tempfile::tempdir().unwrap();
    user(folder.path(), "alice", &[]);
    let server = Server::start(folder.path(), &[]);
    let alice = Browser::signed_in(&server, &password_form("alice"));
    let key = token(&alice, "kind=personal&label=agent&scope=READ");
    let lasts = |form: &str| {
        let (_, head, _) = server.request("POST", "/sign-in", &[FORM], form);
        between(&head, "max-age=", "\r").split(';').next().unwrap().to_owned()
    };
    assert_eq!(lasts(&password_form("alice")), "604800", "a week");
    assert_eq!(lasts(&format!("token={key}")), "43200", "twelve hours");
}

#[test]
fn a_collection_token_searches_and_reads_its_documents() {
    let folder = tempfile::tempdir().unwrap();
    user(folder.path(), "alice", &[]);
    let server = Server::start(folder.path(), &[]);
    let alice = Browser::signed_in(&server, &password_form("alice"));
    let key = token(&alice, "kind=personal&label=agent&scope=READ&scope=WRITE");
    let id = store(&server, &key, "heron.md", "# The heron\n\nA heron waits.\n")["document_id"].clone();
    let id = id.as_str().unwrap();
    server.tool(&key, "add", &json!({ "name": "secret.md", "content": "# Secret\n", "collection": "other" }));
    let shelves = server.tool(&key, "list_collections", &json!({})).1;
    let shelf = shelves["collections"].as_array().unwrap().iter().find(|shelf| shelf["name"] == "default");
    let shelf = shelf.unwrap()["collection_id"].as_str().unwrap().to_owned();
    let (status, made) = server.tool(
        &key,
        "create_cat_tool",
        &json!({ "label": "reader", "collection_id": shelf, "permission": "read" }),
    );
    assert_eq!(status, 200, "{made}");
    let reader = Browser::signed_in(&server, &format!("token={}", made["key"].as_str().unwrap()));
    let start = reader.page("/");
    assert!(start.contains(&format!("href=\"/d/{id}\"")) && !start.contains("Secret"), "{start}");
    assert!(!start.contains("href=\"/activity\"") && !start.contains("href=\"/tokens\""), "{start}");
    assert!(reader.page("/search?q=heron").contains(&format!("href=\"/d/{id}\"")));
    let read = reader.page(&format!("/d/{id}"));
    assert!(read.contains("<h1 id=\"u-the-heron\">") && !read.contains("Delete"), "{read}");
    assert_eq!(reader.get(&format!("/raw/{id}")).0, 200);
    reader.page("/account");
    for path in ["/activity", "/graph", "/tokens", "/admin", "/c/default"] {
        assert_eq!(reader.get(path).0, 403, "{path}");
    }
}

#[test]
fn people_get_pages_and_programs_get_json() {
    let folder = tempfile::tempdir().unwrap();
    user(folder.path(), "alice", &[]);
    let server = Server::start_with(folder.path(), &[], &[("SHELF_LOGIN_PER_MINUTE", "3")]);
    let alice = Browser::signed_in(&server, &password_form("alice"));
    let cookie = ("Cookie", alice.cookie.as_str());
    let (status, head, body) = server.request("GET", "/no/such/page", &[cookie, FROM_A_BROWSER], "");
    assert!(status == 404 && head.contains("text/html") && body.contains("Collections"), "{head}{body}");
    let (status, head, _) = server.request("GET", "/no/such/page", &[FROM_A_BROWSER], "");
    assert!(status == 404 && head.contains("text/html"), "{head}");
    let (status, head, _) = server.request("GET", "/no/such/page", &[cookie], "");
    assert!(status == 404 && head.contains("application/json"), "{head}");
    // A form of a page that is older than the session.
    let stale = |accept: &[(&str, &str)]| {
        let mut headers = vec![cookie, FORM];
        headers.extend_from_slice(accept);
        server.request("POST", "/account/end", &headers, "id=x&proof=old")
    };
    let (status, head, body) = stale(&[FROM_A_BROWSER]);
    assert!(status == 403 && head.contains("text/html") && body.contains("no longer valid"), "{head}{body}");
    let (status, head, _) = stale(&[]);
    assert!(status == 403 && head.contains("application/json"), "{head}");
    // Asking for the head of a page is asking for the page.
    assert_eq!(server.request("HEAD", "/account", &[cookie], "").0, 200);
    assert_eq!(server.request("HEAD", "/", &[cookie], "").0, 200);
    let mut last = (0, String::new(), String::new());
    for _ in 0..4 {
        last = server.request("POST", "/sign-in", &[FORM, FROM_A_BROWSER], "name=alice&password=wrong");
    }
    let (status, head, body) = last;
    assert!(
        status == 429 && head.contains("text/html") && head.contains("retry-after:"),
        "{status} {head}{body}"
    );
    let (status, head, _) = server.request("POST", "/sign-in", &[FORM], "name=alice&password=wrong");
    assert!(status == 429 && head.contains("application/json"), "{head}");
}

#[test]
fn what_cannot_be_taken_back_is_asked_first() {
    let folder = tempfile::tempdir().unwrap();
    user(folder.path(), "alice", &[]);
    user(folder.path(), "root", &["--admin"]);
    let server = Server::start(folder.path(), &[]);
    let alice = Browser::signed_in(&server, &password_form("alice"));
    let key = token(&alice, "kind=personal&label=agent&scope=READ");
    let page = alice.page("/tokens");
    let id = between(&page, "name=\"id\" value=\"", "\"");
    for (does, words) in [("rotate", "present text stops working"), ("revoke", "stops working at once")] {
        let form = format!("kind=personal&id={id}&label=agent&do={does}");
        let (status, _, asked) = alice.post("/tokens/change", &form);
        assert!(status == 200 && asked.contains(words) && asked.contains("“agent”"), "{asked}");
        assert_eq!(server.tool(&key, "status", &json!({})).0, 200, "asking changes nothing");
    }
    assert_eq!(alice.post("/tokens/change", &format!("kind=personal&id={id}&do=revoke&sure=1")).0, 303);
    assert_eq!(server.tool(&key, "status", &json!({})).0, 401);
    let root = Browser::signed_in(&server, &password_form("root"));
    let page = root.page("/admin");
    let row = page.split("<tr>").find(|row| row.contains("alice@example.com")).unwrap();
    let id = between(row, "name=\"id\" value=\"", "\"");
    let form = format!("id={id}&name=alice&do=deactivate");
    let (status, _, asked) = root.post("/admin/change", &form);
    assert!(status == 200 && asked.contains("Deactivate alice?"), "{asked}");
    alice.page("/account");
    assert_eq!(root.post("/admin/change", &format!("{form}&sure=1")).0, 303);
    assert_eq!(alice.get("/account").0, 401);
}

#[test]
fn a_form_that_is_sent_again_makes_no_second_token() {
    let folder = tempfile::tempdir().unwrap();
    user(folder.path(), "alice", &[]);
    let server = Server::start(folder.path(), &[]);
    let alice = Browser::signed_in(&server, &password_form("alice"));
    let once = between(&alice.page("/tokens"), "name=\"once\" value=\"", "\"").to_owned();
    let form = format!("kind=personal&label=agent&scope=READ&once={once}");
    token(&alice, &form);
    let (status, _, again) = alice.post("/tokens/create", &form);
    assert!(status == 409 && !again.contains("pat_live_"), "{status} {again}");
    assert_eq!(alice.page("/tokens").matches("name=\"id\"").count(), 1);
}

#[test]
fn a_form_that_fails_keeps_what_was_typed() {
    let folder = tempfile::tempdir().unwrap();
    user(folder.path(), "alice", &[]);
    user(folder.path(), "root", &["--admin"]);
    let server = Server::start(folder.path(), &[]);
    let root = Browser::signed_in(&server, &password_form("root"));
    let form = "username=alice&email=second%40example.com&password=another+long+password";
    let (status, _, page) = root.post("/admin/create", form);
    assert!(status == 409 && page.contains("value=\"second@example.com\""), "{status} {page}");
    assert!(page.contains("role=\"alert\"") && !page.contains("another long password"), "{page}");
    let alice = Browser::signed_in(&server, &password_form("alice"));
    let (status, _, page) = alice.post("/tokens/create", "kind=personal&label=agent&scope=READ&days=many");
    assert!(status == 400 && page.contains("value=\"agent\"") && page.contains("value=\"many\""), "{page}");
    let (status, _, page) = alice.post("/account/password", "current=wrong+password&new=another+long+one");
    assert!(
        status == 403
            && page.contains("The present password is not right")
            && !page.contains("Not signed in"),
        "{page}"
    );
    let page = root.page("/admin");
    let row = page.split("<tr>").find(|row| row.contains("root@example.com")).unwrap();
    let id = between(row, "name=\"id\" value=\"", "\"");
    let (status, _, page) = root.post("/admin/change", &format!("id={id}&do=deactivate&sure=1"));
    assert!(
        status == 409 && page.contains("last administrator") && !page.contains("superuser"),
        "{status} {page}"
    );
}

#[test]
fn lessons_are_begun_titled_and_linked_in_the_reading_view() {
    let folder = tempfile::tempdir().unwrap();
    user(folder.path(), "alice", &[]);
    let server = Server::start(folder.path(), &[]);
    let alice = Browser::signed_in(&server, &password_form("alice"));
    let (one, two) = ("lessons/part-1/chapter-01/lesson-01.md", "lessons/part-1/chapter-01/lesson-02.md");
    let (status, head, _) = alice.get(&format!("/books?book=lake&lesson={one}"));
    assert!(status == 303 && head.contains(&format!("location: /books/lake/{one}?edit=1")), "{head}");
    assert!(alice.page(&format!("/books/lake/{one}?edit=1")).contains("<textarea"));
    let write = |path: &str, text: &str| {
        alice.post(&format!("/books/lake/{path}"), &format!("do=save&hash=&text={text}"))
    };
    assert_eq!(write(one, "%23+Herons%0D%0A%0D%0A[next](lesson-02.md)%0D%0A").0, 303);
    assert_eq!(write(two, "%23+Frogs%0D%0A").0, 303);
    assert_eq!(write(two, "%23+Newts%0D%0A").0, 409, "a new lesson takes no other one's place");
    let read = alice.page(&format!("/books/lake/{one}"));
    assert!(read.contains(&format!("<p><a href=\"/books/lake/{two}\"")), "{read}");
    assert!(read.contains("Frogs →"), "{read}");
    let contents = alice.page("/books/lake");
    assert!(contents.contains(">Herons</a>") && contents.contains(">Frogs</a>"), "{contents}");
    // An asset of this server is shown under whatever name the server had.
    let key = token(&alice, "kind=personal&label=agent&scope=READ&scope=WRITE");
    let (_, asset) = server.tool(
        &key,
        "upload_asset",
        &json!({ "book_id": "lake", "asset_type": "images", "filename": "dot.png", "binary_data": STANDARD.encode(b"\x89PNG\r\n\x1a\n") }),
    );
    let url = asset["cdn_url"].as_str().unwrap_or_else(|| panic!("{asset}"));
    server.tool(
        &key,
        "write_content",
        &json!({ "book_id": "lake", "path": two, "content": format!("# Frogs\n\n![dot]({url})\n") }),
    );
    let read = alice.page(&format!("/books/lake/{two}"));
    assert!(read.contains("src=\"/cdn/books/lake/"), "{url}: {read}");
    // Who may only read gets no editor.
    let reader = token(&alice, "kind=personal&label=reader&scope=READ");
    let reader = Browser::signed_in(&server, &format!("token={reader}"));
    assert_eq!(reader.get(&format!("/books/lake/{one}?edit=1")).0, 403);
    assert_eq!(reader.get(&format!("/books?book=lake&lesson={one}")).0, 403);
    assert!(!reader.page("/books").contains("Write a lesson"));
}

/// A server for its owner without signing in, with some documents.
fn at_home(folder: &std::path::Path, documents: &[(&str, &str)]) -> (Server, Vec<String>) {
    let server = Server::start(folder, &["--no-auth"]);
    let id = |added: Value| added["document_id"].as_str().unwrap().to_owned();
    let ids = documents.iter().map(|(name, content)| id(store(&server, "x", name, content))).collect();
    (server, ids)
}

#[test]
fn a_tag_leads_to_its_documents() {
    let folder = tempfile::tempdir().unwrap();
    let (server, ids) = at_home(folder.path(), &[("heron.txt", "A heron.")]);
    server.tool("x", "update", &json!({ "name": "heron.txt", "tags": ["bird"] }));
    let page = Browser::new(&server).page("/graph?node=tag:bird");
    assert!(page.contains(&format!("data-node=\"doc:{}\"", ids[0])) && page.contains("heron.txt"), "{page}");
}

#[test]
fn a_resource_is_cited_by_its_parts_and_by_the_address_of_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let (server, ids) = at_home(folder.path(), &[]);
    assert!(ids.is_empty());
    let text = json!({ "name": "a.txt", "content": "one\ntwo\n", "resource_id": "birds" });
    let (_, added) = server.tool("x", "add", &text);
    let owner = Browser::new(&server);
    assert!(owner.page("/cite").contains("href=\"/cite?resource=birds\""));
    let parts = owner.page("/cite?resource=birds");
    assert!(parts.contains("text://birds") && !parts.contains("doc://birds"), "{parts}");
    let whole = between(&parts, "href=\"/cite?address=", "\"");
    assert!(!owner.page(&format!("/cite?address={whole}")).contains("No evidence"));
    // Only an address with a hash says what the source had.
    let hash = added["hash"].as_str().unwrap_or_else(|| panic!("{added}"));
    let known = owner.page(&format!("/cite?address=text://{hash}%23lines=1-1"));
    assert!(known.contains("still has the content"), "{known}");
    let unknown = owner.page("/cite?address=text://birds%23lines=1-1");
    assert!(!unknown.contains("still has the content"), "{unknown}");
    store(&server, "x", "a.txt", "other\n");
    let changed = owner.page(&format!("/cite?address=text://{hash}%23lines=1-1"));
    assert!(changed.contains("The source has changed"), "{changed}");
}

#[test]
fn the_source_of_a_page_of_html_is_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let (server, ids) = at_home(folder.path(), &[("a.html", "<html><body><h1>Old page</h1></body></html>")]);
    let page = Browser::new(&server).page(&format!("/d/{}?view=source", ids[0]));
    assert!(page.contains("&lt;h1&gt;Old page"), "{page}");
    assert!(!page.contains("text that was extracted"), "{page}");
}

#[test]
fn a_folder_that_is_asked_for_is_the_one_that_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = at_home(folder.path(), &[("up/inner/deep/a.txt", "a"), ("up/inner/deep/b.txt", "b")]);
    let owner = Browser::new(&server);
    for (asked, inner) in [("up/", "inner/"), ("up/inner/", "deep/")] {
        let page = owner.page(&format!("/c/default?folder={asked}"));
        assert!(page.contains(&format!("data-folder=\"{asked}\"")), "uploads go there: {page}");
        assert!(page.contains(&format!(">{inner}</a>")) && page.contains("0 documents here"), "{page}");
    }
    // In the tree a folder is still opened together with the only one in it.
    let rows = owner.page("/c/default?folder=up/&part=folders");
    assert!(rows.contains("inner/deep/ 2 documents"), "{rows}");
}

#[test]
fn counts_beside_a_search_are_those_of_its_hits() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = at_home(folder.path(), &[("a.md", "heron"), ("b.md", "heron"), ("c.md", "frog")]);
    server.tool("x", "update", &json!({ "name": "a.md", "tags": ["bird"] }));
    server.tool("x", "add", &json!({ "name": "d.md", "content": "newt", "collection": "other" }));
    let owner = Browser::new(&server);
    let aside = |path: &str| {
        let page = owner.page(path);
        between(&page, "<aside class=\"facets\"", "</aside>").to_owned()
    };
    // One of two hits has the tag, which is the only one.
    assert!(aside("/search?q=heron&mode=words").contains("tag=bird"));
    // Counts of all documents are no counts of the hits of a pattern.
    let pattern = aside("/search?q=her.n&mode=pattern");
    assert!(pattern.contains("collection=other") && !pattern.contains("class=\"figure\""), "{pattern}");
}

#[test]
fn nothing_found_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = at_home(folder.path(), &[("a.md", "heron")]);
    let page = Browser::new(&server).page("/search?q=zzzzqqq&mode=words");
    assert!(
        page.contains("Nothing found") && !page.contains("nothing matches") && !page.contains("use grep"),
        "{page}"
    );
}
