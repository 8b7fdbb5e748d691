//! The web console over HTTP: every page for every kind of identity, signing in, forged forms, hostile documents.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::{binary, http::Server, shelf};

pub const PASSWORD: &str = "a password of some length";

/// Somebody with a browser.
pub struct Browser<'a> {
    server: &'a Server,
    pub cookie: String,
}

impl<'a> Browser<'a> {
    pub fn new(server: &'a Server) -> Self {
        Self { server, cookie: String::new() }
    }

    pub fn signed_in(server: &'a Server, form: &str) -> Self {
        let mut browser = Self::new(server);
        let headers = [("Content-Type", "application/x-www-form-urlencoded")];
        let (status, head, body) = server.request_as_sent("POST", "/sign-in", &headers, form);
        assert_eq!(status, 303, "{body}");
        browser.cookie = cookie_of(&head);
        browser
    }

    pub fn get(&self, path: &str) -> (u16, String, String) {
        let headers = [("Cookie", self.cookie.as_str())];
        self.server.request("GET", path, &headers, "")
    }

    /// A page that must be there.
    pub fn page(&self, path: &str) -> String {
        let (status, head, body) = self.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        assert_strict(path, &head, &body);
        body
    }

    pub fn post_plain(&self, path: &str, form: &str, more: &[(&str, &str)]) -> (u16, String, String) {
        let mut headers =
            vec![("Content-Type", "application/x-www-form-urlencoded"), ("Cookie", self.cookie.as_str())];
        headers.extend_from_slice(more);
        self.server.request("POST", path, &headers, form)
    }

    /// Sends a form as a page of this visitor would.
    pub fn post(&self, path: &str, form: &str) -> (u16, String, String) {
        self.post_plain(path, &format!("{form}&proof={}", self.proof()), &[])
    }

    pub fn proof(&self) -> String {
        let page = self.page("/account");
        let from = page.split("name=\"proof\" content=\"").nth(1).expect("a proof");
        from.split('"').next().unwrap().to_owned()
    }
}

fn cookie_of(head: &str) -> String {
    let line = head.lines().find(|line| line.to_lowercase().starts_with("set-cookie:")).expect("a cookie");
    line.split_once(':').unwrap().1.split(';').next().unwrap().trim().to_owned()
}

/// A page loads nothing from elsewhere, holds nothing inline, and proves nothing in an address: no form sends that by GET.
fn assert_strict(path: &str, head: &str, body: &str) {
    for rule in [
        "default-src 'self'",
        "script-src 'self'",
        "object-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(head.contains(rule), "{path}: {head}");
    }
    assert!(head.contains("x-content-type-options: nosniff"), "{path}: {head}");
    for (tag, name, value) in attributes(body) {
        assert!(
            !name.starts_with("on") && name != "style" && name != "srcdoc",
            "{path}: <{tag} {name}={value}>"
        );
        if ["src", "href", "action", "formaction", "poster", "data"].contains(&name) {
            let is_own = value.is_empty()
                || value.starts_with('#')
                || value.starts_with('/') && !value.starts_with("//");
            let is_link = tag == "a"
                && name == "href"
                && ["http://", "https://", "mailto:"].iter().any(|start| value.starts_with(start));
            assert!(is_own || is_link, "{path}: <{tag} {name}={value}>");
        }
        assert!(
            tag != "script" || name != "src" || value.starts_with("/console/"),
            "{path}: <{tag} {name}={value}>"
        );
    }
    for form in body.split("<form").skip(1).filter_map(|form| form.split("</form>").next()) {
        let is_post = form.split('>').next().is_some_and(|tag| tag.contains("method=\"post\""));
        assert!(is_post || !form.contains("name=\"proof\""), "{path}: <form{form}>");
    }
    let without =
        |tag: &str| !body.contains(&format!("<{tag}>")) && !body.contains(&format!("<{tag} type=\"text"));
    assert!(
        without("script") && without("style") && !body.contains("<base") && !body.contains("<object"),
        "{path}"
    );
}

/// The attributes of all tags: tag, name, value. Pages are made by one program, which always writes them alike.
fn attributes(body: &str) -> Vec<(&str, &str, &str)> {
    let mut found = Vec::new();
    let mut rest = body;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find(|sign: char| sign.is_whitespace() || sign == '>').unwrap_or(rest.len());
        let tag = &rest[..end];
        rest = &rest[end..];
        loop {
            rest = rest.trim_start();
            let end =
                rest.find(|sign: char| sign.is_whitespace() || "=>".contains(sign)).unwrap_or(rest.len());
            let name = &rest[..end];
            rest = &rest[end..];
            if let Some(value) = rest.strip_prefix("=\"") {
                let end = value.find('"').expect("the end of a value");
                found.push((tag, name, &value[..end]));
                rest = &value[end + 1..];
            } else if name.is_empty() {
                break;
            }
        }
    }
    found
}

pub fn store(server: &Server, token: &str, name: &str, content: &str) -> Value {
    let (status, added) = server.tool(token, "add", &json!({ "content": content, "name": name }));
    assert_eq!(status, 200, "{added}");
    added
}

pub fn user(library: &Path, name: &str, more: &[&str]) {
    let mut command = Command::new(binary());
    command
        .arg("--data-dir")
        .arg(library)
        .args(["user", "create", name, "--email", &format!("{name}@example.com")])
        .args(more);
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), format!("{PASSWORD}\n").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

pub fn password_form(name: &str) -> String {
    format!("name={name}&password={}", PASSWORD.replace(' ', "+"))
}

const PAGES: [&str; 11] = [
    "/",
    "/search?q=heron",
    "/c",
    "/c/default",
    "/graph",
    "/cite",
    "/books",
    "/snapshots",
    "/activity",
    "/tokens",
    "/account",
];

#[test]
fn strangers_see_how_to_sign_in_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let browser = Browser::new(&server);
    let door = browser.page("/");
    assert!(door.contains("Password") && door.contains("shelf open") && door.contains("/mcp"), "{door}");
    for path in PAGES.iter().skip(1).chain(&["/admin", "/d/x", "/to?path=x"]) {
        let (status, head, body) = browser.get(path);
        assert_eq!(status, 401, "{path}");
        assert!(body.contains("Password") && !body.contains("proof\" content=\"a"), "{path}");
        assert_strict(path, &head, &body);
    }
    assert_eq!(browser.get("/raw/x").0, 401);
    assert_eq!(browser.post_plain("/upload?name=x", "x", &[]).0, 401);
    let (status, head, _) = browser.get("/console/console.css");
    assert!(status == 200 && head.contains("text/css"), "{head}");
    assert_eq!(browser.get("/console/..%2f..%2fetc%2fpasswd").0, 404);
}

#[test]
fn an_empty_library_says_what_to_paste_into_clients() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--no-auth"]);
    let page = Browser::new(&server).page("/");
    assert!(page.contains("claude mcp add --transport http shelfmark http://127.0.0.1"), "{page}");
    assert!(page.contains("--no-auth") && page.contains("is empty"), "{page}");
}

#[test]
fn every_page_for_owner_member_administrator_and_reader() {
    let folder = tempfile::tempdir().unwrap();
    user(folder.path(), "alice", &[]);
    user(folder.path(), "root", &["--admin"]);
    let server = Server::start(folder.path(), &[]);
    let alice = Browser::signed_in(&server, &password_form("alice"));
    // A member makes a token on the page and it is shown once.
    let (status, _, made) = alice.post("/tokens/create", "kind=personal&label=agent&scope=READ&scope=WRITE");
    assert_eq!(status, 200, "{made}");
    let key =
        made.split("pat_live_").nth(1).map(|rest| format!("pat_live_{}", &rest[..32])).expect("a token");
    assert!(!alice.page("/tokens").contains(&key), "only once");
    let added = store(
        &server,
        &key,
        "notes/heron.md",
        "# The heron\n\nA *heron* waits. [Other](other.md)\n\n## Food\n\nfish\n",
    );
    store(&server, &key, "notes/heron.md", "# The heron\n\nA heron waits long.\n\n## Food\n\nfish\n");
    store(&server, &key, "notes/other.md", "Frogs.\n");
    store(&server, &key, "src/main.rs", "fn main() {\n    println!(\"heron\");\n}\n");
    store(&server, &key, "data/birds.csv", "name,legs\nheron,2\n");
    let id = added["document_id"].as_str().unwrap().to_owned();
    for path in PAGES {
        alice.page(path);
    }
    assert!(alice.page("/").contains("notes/heron.md"));
    let found = alice.page("/search?q=heron");
    assert!(found.contains("<mark>heron</mark>") && found.contains(&format!("/d/{id}?lines=")), "{found}");
    assert!(alice.page("/search?q=her.n&mode=pattern").contains("<mark>heron</mark>"));
    assert!(alice.page("/search?q=heron&part=results").starts_with("<p class=\"tally\" role=\"status\">"));
    let read = alice.page(&format!("/d/{id}"));
    assert!(read.contains("<h1 id=\"u-the-heron\">") && read.contains("On this page"), "{read}");
    for view in ["source", "versions", "links", "map"] {
        alice.page(&format!("/d/{id}?view={view}"));
    }
    assert!(alice.page(&format!("/d/{id}?view=source")).contains("id=\"L1\""));
    let other = alice.get(&format!("/to?from={id}&path=other.md"));
    assert!(other.0 == 303 && other.1.contains("location: /d/"), "{}", other.1);
    let listed = alice.page("/c/default?folder=data%2F");
    let table = listed.split("/d/").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    assert!(alice.page(&format!("/d/{table}")).contains("<td class=\"figure\">2</td>"));
    let (_, _, versions) = alice.get(&format!("/d/{id}?view=versions"));
    let hashes: Vec<&str> =
        versions.split("name=\"from\" value=\"").skip(1).map(|rest| &rest[..64]).collect();
    assert_eq!(hashes.len(), 2);
    let diff = alice.page(&format!("/d/{id}/diff?from={}&to={}", hashes[1], hashes[0]));
    assert!(diff.contains("class=\"added\"") && diff.contains("class=\"removed\""), "{diff}");
    alice.page(&format!("/d/{id}/diff?from={}&to={}&side=1", hashes[1], hashes[0]));
    // An old version comes back as the newest.
    assert_eq!(alice.post(&format!("/d/{id}/restore"), &format!("hash={}", hashes[1])).0, 303);
    assert!(alice.page(&format!("/d/{id}?view=source")).contains("*heron*"));
    alice.page(&format!("/graph?node=doc:{id}"));
    assert_eq!(alice.get("/admin").0, 403);
    assert_eq!(alice.post("/admin/create", "username=x").0, 403);

    let reader = server.request(
        "POST",
        "/api/v1/auth/login",
        &[],
        &json!({ "username": "alice", "password": PASSWORD }).to_string(),
    );
    let login: Value = serde_json::from_str(&reader.2).unwrap();
    let bearer = format!("Bearer {}", login["access_token"].as_str().unwrap());
    let (_, _, made) = server.request(
        "POST",
        "/api/v1/auth/pat",
        &[("Authorization", &bearer)],
        r#"{"label": "reader", "scopes": ["READ"]}"#,
    );
    let key: Value = serde_json::from_str(&made).unwrap();
    let reader = Browser::signed_in(&server, &format!("token={}", key["key"].as_str().unwrap()));
    for path in PAGES {
        reader.page(path);
    }
    let read = reader.page(&format!("/d/{id}"));
    assert!(
        read.contains("read only") && !read.contains("Delete this document") && !read.contains("Add a tag"),
        "{read}"
    );
    assert_eq!(
        reader.post(&format!("/d/{id}/delete"), "").0,
        403,
        "what is not shown is not possible either"
    );
    assert_eq!(reader.post(&format!("/d/{id}/tags"), "tag=x").0, 403);
    assert_eq!(reader.post("/upload?name=x", "x").0, 403);

    let root = Browser::signed_in(&server, &password_form("root"));
    for path in PAGES
        .iter()
        .chain(&["/admin", "/admin?run=check", "/admin?run=audit", "/admin?run=gc"])
        .filter(|path| **path != "/c/default")
    {
        root.page(path);
    }
    assert!(root.page("/admin?run=audit").contains("The chain holds"));
    assert_eq!(
        root.post("/admin/create", "username=carol&email=carol%40example.com&password=carols+first+password")
            .0,
        303
    );
    assert!(root.page("/admin").contains("carol@example.com"));

    // Tags, choosing, deleting.
    assert_eq!(alice.post(&format!("/d/{id}/tags"), "tag=bird").0, 303);
    assert!(alice.page(&format!("/d/{id}")).contains("bird"));
    let asked = alice.post("/c/default/chosen", &format!("id={table}&do=delete"));
    assert!(
        asked.0 == 200 && asked.2.contains("data/birds.csv") && asked.2.contains("Delete them"),
        "{}",
        asked.2
    );
    assert_eq!(alice.get(&format!("/d/{table}")).0, 200, "asking deletes nothing");
    let gone = alice.post("/c/default/chosen", &format!("id={table}&do=delete&sure=1"));
    assert!(gone.0 == 200 && gone.2.contains("Undo"), "{}", gone.2);
    assert_eq!(alice.get(&format!("/d/{table}")).0, 410);
    assert_eq!(alice.post("/sign-out", "").0, 303);
    assert_eq!(alice.get("/activity").0, 401, "signed out");
}

#[test]
fn wrong_names_and_passwords_get_the_same_sentence() {
    let folder = tempfile::tempdir().unwrap();
    user(folder.path(), "alice", &[]);
    let server = Server::start(folder.path(), &[]);
    let browser = Browser::new(&server);
    let says = |form: &str| {
        let (status, _, body) = browser.post_plain("/sign-in", form, &[]);
        assert_eq!(status, 401);
        body.split("role=\"alert\">").nth(1).unwrap().split('<').next().unwrap().to_owned()
    };
    assert_eq!(says("name=alice&password=wrong+password"), says("name=nobody&password=wrong+password"));
    assert_eq!(says("token=pat_live_wrong"), says("token=cat_live_wrong"));
    let (_, head, _) =
        browser.post_plain("/sign-in", &format!("{}&next=%2Fsearch", password_form("alice")), &[]);
    assert!(head.contains("location: /search") && head.contains("httponly; samesite=strict"), "{head}");
    assert!(!head.contains("secure"), "there is no https here: {head}");
    let evil = format!("{}&next=https%3A%2F%2Fevil.example", password_form("alice"));
    assert!(browser.post_plain("/sign-in", &evil, &[]).1.contains("location: /\r\n"));
    let (_, head, _) =
        browser.post_plain("/sign-in", &password_form("alice"), &[("X-Forwarded-Proto", "https")]);
    assert!(head.contains("; secure"), "{head}");
    // Somebody else's page cannot sign a browser in.
    let forged =
        browser.post_plain("/sign-in", &password_form("alice"), &[("Origin", "http://localhost:9999")]);
    assert_eq!(forged.0, 403);
}

#[test]
fn forged_forms_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    user(folder.path(), "alice", &[]);
    let server = Server::start(folder.path(), &[]);
    let (alice, again) = (
        Browser::signed_in(&server, &password_form("alice")),
        Browser::signed_in(&server, &password_form("alice")),
    );
    let form = |proof: &str| format!("name=mine&proof={proof}");
    assert_eq!(alice.post_plain("/c", "name=mine", &[]).0, 403, "no proof");
    assert_eq!(alice.post_plain("/c", &form("nonsense"), &[]).0, 403, "a wrong proof");
    assert_eq!(alice.post_plain("/c", &form(&again.proof()), &[]).0, 403, "the proof of another session");
    for (name, value) in [
        ("Origin", "http://localhost:9999"),
        ("Sec-Fetch-Site", "same-site"),
        ("Sec-Fetch-Site", "cross-site"),
    ] {
        assert_eq!(alice.post_plain("/c", &form(&alice.proof()), &[(name, value)]).0, 403, "{name}: {value}");
    }
    let own = format!("http://{}", server.address);
    assert_eq!(alice.post_plain("/c", &form(&alice.proof()), &[("Origin", &own)]).0, 303);
    assert_eq!(alice.post_plain("/sign-out", "", &[]).0, 403);
    // Without authentication the proof is needed all the same.
    let open = tempfile::tempdir().unwrap();
    let server = Server::start(open.path(), &["--no-auth"]);
    let owner = Browser::new(&server);
    assert_eq!(owner.post_plain("/upload?name=x", "x", &[]).0, 403);
    assert_eq!(owner.post("/c", "name=mine").0, 303);
}

#[test]
fn a_link_opens_the_console_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let link = || {
        let output = Command::new(binary())
            .arg("--data-dir")
            .arg(folder.path())
            .args(["open", "--print"])
            .env("SHELF_HTTP_LISTEN", &server.address)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let path = text.trim().strip_prefix(&format!("http://{}", server.address));
        path.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let path = link();
    let mut browser = Browser::new(&server);
    let (status, head, _) = browser.get(&path);
    assert!(status == 303 && head.contains("location: /\r\n"), "{head}");
    browser.cookie = raw_cookie(&server, &link());
    let page = browser.page("/");
    assert!(page.contains("owner"), "{page}");
    assert_eq!(Browser::new(&server).get(&path).0, 401, "a link works once");
    assert_eq!(Browser::new(&server).get("/open/nonsense").0, 401);
    assert_eq!(browser.get("/tokens").0, 200);
}

/// The cookie of a reply, whose letters matter.
fn raw_cookie(server: &Server, path: &str) -> String {
    let (_, head, _) = server.request_as_sent("GET", path, &[], "");
    cookie_of(&head)
}

#[test]
fn an_identity_sees_nothing_of_another() {
    let folder = tempfile::tempdir().unwrap();
    user(folder.path(), "alice", &[]);
    user(folder.path(), "bob", &[]);
    let server = Server::start(folder.path(), &[]);
    let (alice, bob) = (
        Browser::signed_in(&server, &password_form("alice")),
        Browser::signed_in(&server, &password_form("bob")),
    );
    let upload = server.request(
        "POST",
        "/upload?name=secret-plan.md&collection=plans",
        &[
            ("Cookie", &alice.cookie),
            ("X-Proof", &alice.proof()),
            ("Content-Type", "application/octet-stream"),
        ],
        "the heron plan",
    );
    assert_eq!(upload.0, 200, "{}", upload.2);
    let added: Value = serde_json::from_str(&upload.2).unwrap();
    let id = added["document_id"].as_str().unwrap();
    assert!(alice.page("/search?q=heron").contains("secret-plan.md"));
    assert_eq!(alice.get(&format!("/raw/{id}")).2, "the heron plan");
    for path in [
        format!("/d/{id}"),
        format!("/raw/{id}"),
        format!("/d/{id}?part=preview"),
        "/c/plans".into(),
        format!("/graph?node=doc:{id}"),
        format!("/to?path=secret-plan.md&hash={}", added["hash"].as_str().unwrap()),
    ] {
        let (status, _, body) = bob.get(&path);
        assert_eq!(status, 404, "{path}: {body}");
        assert!(!body.contains("heron plan"), "{path}");
    }
    for path in PAGES.iter().filter(|path| **path != "/c/default") {
        let page = bob.page(path);
        assert!(!page.contains("secret-plan") && !page.contains("plans"), "{path}: {page}");
    }
    assert_eq!(bob.post(&format!("/d/{id}/delete"), "").0, 404);
    assert_eq!(alice.get(&format!("/d/{id}")).0, 200);
}

#[test]
fn hostile_documents_break_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--no-auth"]);
    let script = "<script>alert(1)</script>";
    let owner = Browser::new(&server);
    let files = [
        (
            format!("{script}.md"),
            format!(
                "# {script}\n\n<img src=x onerror=alert(1)>\n\n[x](javascript:alert(1)) {script}\n\n![p](https://evil.example/p.png)\n"
            ),
        ),
        ("page.html".into(), format!("<html>{script}<body onload=alert(1)></html>")),
        (
            "drawing.svg".into(),
            format!("<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\">{script}</svg>"),
        ),
        ("code.rs".into(), format!("// {script}\nlet a = \"{script}\";\n")),
        ("data.json".into(), format!("{{\"{script}\": \"{script}\"}}").replace("</", "<\\/")),
        ("table.csv".into(), format!("{script},b\n{script},2\n")),
        ("turn\u{202e}gpj.txt".into(), "x \u{202e} y\n".into()),
        ("\"onmouseover=alert(1) x=\".txt".into(), "x\n".into()),
    ];
    let mut ids = Vec::new();
    for (name, content) in &files {
        let arguments = json!({ "content": content, "name": name, "tags": [script, "\" onclick=x"], "metadata": { script: script } });
        let (status, added) = server.tool("x", "add", &arguments);
        assert_eq!(status, 200, "{added}");
        ids.push(added["document_id"].as_str().unwrap().to_owned());
    }
    let mut paths: Vec<String> = PAGES.iter().map(|path| (*path).to_owned()).collect();
    paths.extend([
        "/search?q=alert".into(),
        "/search?q=%3Cscript%3E&mode=pattern".into(),
        "/search?q=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E".into(),
    ]);
    for id in &ids {
        paths.push(format!("/d/{id}"));
        paths.extend(["source", "versions", "links", "map"].map(|view| format!("/d/{id}?view={view}")));
        paths.push(format!("/graph?node=doc:{id}"));
        paths.push(format!("/cite?address=text://{id}%23lines=1-1"));
    }
    for path in &paths {
        let page = owner.page(path);
        // What a button copies is the exact text; it is not shown.
        let shown: String = page
            .split("data-copy=\"")
            .enumerate()
            .map(|(at, part)| if at == 0 { part } else { part.split_once('"').map_or("", |(_, rest)| rest) })
            .collect();
        assert!(!page.contains(script) && !shown.contains('\u{202e}'), "{path}: {page}");
        let foreign = attributes(&page)
            .into_iter()
            .find(|(_, name, value)| *name == "src" && value.contains("evil.example"));
        assert_eq!(foreign, None, "{path}");
    }
    // The bytes themselves are never a page of this server.
    for (id, (name, _)) in ids.iter().zip(&files) {
        let (status, head, _) = owner.get(&format!("/raw/{id}"));
        assert_eq!(status, 200, "{name}");
        assert!(
            head.contains("content-security-policy: default-src 'none'")
                && head.contains("sandbox")
                && head.contains("nosniff"),
            "{name}: {head}"
        );
        assert!(!head.contains("content-type: text/html"), "{name}: {head}");
        let (_, framed, _) = owner.get(&format!("/raw/{id}?frame=1"));
        assert!(
            framed.contains("sandbox; frame-ancestors 'self'") && !framed.contains("allow-scripts"),
            "{name}: {framed}"
        );
    }
}

#[test]
fn lessons_are_written_without_overwriting_somebody_else() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--no-auth"]);
    let owner = Browser::new(&server);
    let path = "lessons/part-1/chapter-01/lesson-01.md";
    let write = |content: &str| {
        server.tool("x", "write_content", &json!({ "book_id": "birds", "path": path, "content": content })).0
    };
    assert_eq!(write("# Herons\n\none\n"), 200);
    assert!(owner.page("/books").contains("birds"));
    assert!(owner.page("/books/birds").contains("lesson-01.md"));
    assert!(owner.page(&format!("/books/birds/{path}")).contains("<h1 id=\"u-herons\">"));
    let page = owner.page(&format!("/books/birds/{path}?edit=1"));
    let hash = page.split("name=\"hash\" value=\"").nth(1).unwrap()[..64].to_owned();
    let form = |text: &str, hash: &str| format!("do=save&hash={hash}&text={text}");
    let preview =
        owner.post(&format!("/books/birds/{path}"), &format!("do=preview&hash={hash}&text=**bold**"));
    assert!(preview.2.contains("<strong>bold</strong>"), "{}", preview.2);
    assert_eq!(write("# Herons\n\nan agent was here\n"), 200);
    let (status, _, conflict) = owner.post(&format!("/books/birds/{path}"), &form("mine%0D%0A", &hash));
    assert_eq!(status, 409, "{conflict}");
    assert!(conflict.contains("an agent was here") && conflict.contains("mine"), "both texts: {conflict}");
    let newer = conflict.split("name=\"hash\" value=\"").nth(1).unwrap()[..64].to_owned();
    assert_eq!(owner.post(&format!("/books/birds/{path}"), &form("merged%0D%0A", &newer)).0, 303);
    let (_, read) = server.tool("x", "read_content", &json!({ "book_id": "birds", "path": path }));
    assert_eq!(read["content"], "merged\n");
    assert!(owner.page(&format!("/books/birds/{path}?history=1")).contains("updated"));
}

#[test]
fn evidence_is_shown_beside_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--no-auth"]);
    let owner = Browser::new(&server);
    let (_, added) = server.tool(
        "x",
        "add",
        &json!({ "content": "one\ntwo heron\nthree\n", "name": "a.txt", "resource_id": "birds" }),
    );
    let page = owner.page("/cite?address=text://birds%23lines=2-2");
    assert!(
        page.contains("two heron")
            && page.contains("class=\"line marked\" id=\"L2\"")
            && page.contains("the address names no version"),
        "{page}"
    );
    server.tool("x", "add", &json!({ "content": "other\n", "name": "a.txt" }));
    assert!(owner.page("/cite?address=nonsense").contains("No evidence"));
    let snapshots = owner.page("/snapshots");
    let from =
        snapshots.split("name=\"from\" value=\"").nth(2).unwrap().split('"').next().unwrap().to_owned();
    let compared = owner.page(&format!("/snapshots/compare?from={}&now=1", from.replace(':', "%3A")));
    assert!(compared.contains("1 changed") && compared.contains("a.txt"), "{compared}");
    let diff =
        compared.split("/snapshots/diff?").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    assert!(owner.page(&format!("/snapshots/diff?{diff}")).contains("two heron"));
    assert!(added["document_id"].is_string());
    let (code, _, err) = shelf(folder.path(), &["check"]);
    assert_eq!(code, 0, "{err}");
}
