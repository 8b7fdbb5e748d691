//! Every tool and every identity: what is hidden is refused, what is refused is hidden, and no one sees another
//! account's data. Generated from the registry, so that a new tool cannot be missed.

use serde_json::{Map, Value, json};
use shelf_engine::{AuthError, Caller, Door, FileAccess, Options, PersonalScope, WorkspaceSettings};
use shelf_testkit::{TestLibrary, error_of};
use shelf_tools::{Tool, policy, policy::Selection, registry, resources};

use PersonalScope::{Admin, Read, Write};

/// The tools that the contract grants to collection tokens.
const READING: [&str; 3] = ["search_documents_tool", "get_document_tool", "list_documents_tool"];
const WRITING: [&str; 3] = ["store_document_tool", "update_document_tool", "delete_document_tool"];
const ADMIN: [&str; 5] =
    ["list_users_tool", "search_users_tool", "get_user_tool", "update_user_tool", "delete_user_tool"];

/// Why an identity may not use a tool, according to the contract rather than the table under test.
fn expected_refusal(identity: &str, tool: &Tool) -> Option<&'static str> {
    let writes = !tool.hints.read_only;
    let document = READING.contains(&tool.name) || WRITING.contains(&tool.name);
    let needs = |what: &'static str, missing: bool| missing.then_some(what);
    match identity {
        "read CAT" if !document => Some("Insufficient permissions: PAT required"),
        "write CAT" => needs("Insufficient permissions: PAT required", !document),
        "read CAT" | "read PAT" if ADMIN.contains(&tool.name) => {
            Some("Insufficient permissions: ADMIN scope required")
        }
        "read CAT" | "read PAT" => needs("Insufficient permissions: write access required", writes),
        "owner PAT" | "other PAT" | "JWT" => {
            needs("Insufficient permissions: ADMIN scope required", ADMIN.contains(&tool.name))
        }
        "admin PAT" | "local" => None,
        other => panic!("{other}"),
    }
}

struct World {
    library: TestLibrary,
    /// Identities that are admitted.
    callers: Vec<(&'static str, Caller)>,
    /// Identities that are refused over MCP, with their token and the error message.
    outside: Vec<(&'static str, String, &'static str)>,
    secret_ids: Vec<String>,
}

/// Appears in all of Alice's data.
const MARKER: &str = "quokka7741";

fn world() -> World {
    let library = TestLibrary::with_clock();
    for (name, is_superuser) in [("alice", false), ("bob", false), ("root", true), ("closed", false)] {
        library.user(name, is_superuser);
    }
    let expired = library.personal("alice", &[Read, Write], Some(1));
    library.days_pass(2);
    let revoked = library.personal("alice", &[Read], None);
    let person = library.admit(&library.session("alice"), Door::Rest).unwrap();
    library.library.revoke_personal(&person, &revoked.token.id.to_string()).unwrap();
    let closed = library.personal("closed", &[Read, Write], None);
    let closed_id = library.library.user_named(&Caller::owner(), "closed").unwrap().id;
    library.ok("update_user_tool", json!({ "user_id": closed_id.to_string(), "is_active": false }));
    let alice = library.caller("alice");
    let secret_ids = fill(&library, &alice);
    let bob = library.caller("bob");
    let bobs = library.collection_of(&bob, "default");
    let cat = |permission| library.collection_token(&bob, &bobs, permission).1;
    let (read_cat, write_cat) = (cat("read"), cat("read_write"));
    let admin = library.personal("root", &[Read, Write, Admin], None);
    let reader = library.personal("bob", &[Read], None);
    let admit = |text: &str| library.admit(text, Door::Protocol).unwrap();
    let jwt = library.session("bob");
    let callers = vec![
        ("owner PAT", alice),
        ("other PAT", bob),
        ("read PAT", admit(reader.text.reveal())),
        ("read CAT", admit(&read_cat)),
        ("write CAT", admit(&write_cat)),
        ("admin PAT", admit(admin.text.reveal())),
        ("JWT", library.admit(&jwt, Door::Rest).unwrap()),
        ("local", Caller::owner()),
    ];
    let text = |minted: &shelf_engine::Minted| minted.text.reveal().to_owned();
    let outside = vec![
        ("garbage", "garbage".to_owned(), "Not authenticated"),
        ("JWT at the protocol", jwt, "JWT tokens not accepted for MCP"),
        ("expired", text(&expired), "Invalid PAT token"),
        ("revoked", text(&revoked), "Invalid PAT token"),
        ("deactivated", text(&closed), "Invalid PAT token"),
        ("made up", format!("cat_live_{}", "a".repeat(32)), "Invalid CAT"),
    ];
    World { library, callers, outside, secret_ids }
}

/// Puts the marker into everything that Alice can write, and returns the ids.
fn fill(library: &TestLibrary, alice: &Caller) -> Vec<String> {
    let name = format!("{MARKER} shelf");
    let collection = library.ok_as(alice, "create_collection_tool", json!({ "name": name }))["id"].clone();
    let stored = json!({
        "title": format!("{MARKER} title"), "content": format!("A zebrafish called {MARKER}."),
        "doc_metadata": { MARKER: MARKER }, "collection_id": collection,
    });
    let document = library.ok_as(alice, "store_document_tool", stored)["document_id"].clone();
    let added = json!({
        "content": format!("Another zebrafish, {MARKER} too."), "name": format!("{MARKER}/zebrafish.txt"),
        "tags": [MARKER], "metadata": { "who": MARKER }, "resource_id": format!("{MARKER}-r"),
        "snapshot_label": format!("{MARKER}-label"),
    });
    let added = library.ok_as(alice, "add", added);
    let wanted =
        json!({ "label": format!("{MARKER} key"), "collection_id": collection, "permission": "read" });
    let key = library.ok_as(alice, "create_cat_tool", wanted)["id"].clone();
    [&document, &collection, &key, &added["document_id"], &added["hash"], &added["snapshot_id"]]
        .iter()
        .map(|id| id.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn hidden_means_refused_and_refused_means_hidden() {
    let world = world();
    for (_, text, sentence) in &world.outside {
        let refusal = world.library.admit(text, Door::Protocol).unwrap_err();
        assert_eq!(refusal.to_string(), *sentence);
        assert!(!matches!(refusal, AuthError::Catalog(_)));
    }
    let selection = Selection::default();
    for (identity, caller) in &world.callers {
        let listed = policy::listed(&world.library.library, caller, &selection);
        let listed: Vec<&str> = listed.iter().map(|tool| tool.name).collect();
        for tool in registry().filter(|tool| tool.toolset() != "extras") {
            let expected = expected_refusal(identity, tool);
            // What nothing is configured for does nothing over HTTP.
            let is_off = caller.file_access == FileAccess::Configured
                && ["read_repo_file", "write_memory_entry", "download", "restore"].contains(&tool.name);
            let is_listed = expected.is_none() && !is_off;
            assert_eq!(listed.contains(&tool.name), is_listed, "{identity} sees {}", tool.name);
            // The policy is checked before the arguments, so wrong arguments do no harm.
            let outcome = world.library.call_as(caller, tool.name, json!({ "no such argument": 1 }));
            let text = error_of(outcome);
            match expected {
                Some(sentence) => assert!(text.contains(sentence), "{identity} {}: {text}", tool.name),
                None if is_off => {
                    assert!(
                        text.contains("shelf.toml") || text.contains("--workspace"),
                        "{identity} {}: {text}",
                        tool.name
                    );
                }
                None => assert!(text.contains("no such argument"), "{identity} {}: {text}", tool.name),
            }
        }
    }
}

/// Arguments that an attacker would try on a tool.
fn attempts(tool: &Tool, ids: &[String]) -> Vec<Value> {
    let schema = tool.input_schema();
    let properties = schema["properties"].as_object().unwrap().clone();
    let required: Vec<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    let mut attempts: Vec<Value> = vec![serde_json::from_str(tool.example).unwrap()];
    let base = |id: &str| -> Map<String, Value> {
        required
            .iter()
            .map(|name| {
                let value = match (name.as_str(), properties[name]["type"].as_str()) {
                    ("pattern", _) => json!("zebra"),
                    ("query", _) => json!("zebrafish"),
                    ("permission", _) => json!("read"),
                    (name, _) if name.ends_with("_id") => json!(id),
                    (_, Some("integer")) => json!(1),
                    (_, Some("object")) => json!({ "about": "zebrafish" }),
                    _ => json!("zebrafish"),
                };
                (name.clone(), value)
            })
            .collect()
    };
    for id in ids {
        let mut plain = base(id);
        attempts.push(Value::Object(plain.clone()));
        for (name, property) in &properties {
            if property["type"] == "string" && name != "outputPath" && name != "path" {
                let mut one = plain.clone();
                one.insert(name.clone(), json!(id));
                attempts.push(Value::Object(one));
            }
        }
        for name in ["detailed", "include_content", "paths_only", "dry_run"] {
            if properties.contains_key(name) {
                plain.insert(name.into(), json!(true));
            }
        }
        attempts.push(Value::Object(plain));
    }
    attempts
}

#[test]
fn nothing_of_one_person_reaches_another() {
    let world = world();
    let selection = Selection::default();
    let alice_sees = |tool: &str, arguments: Value| {
        world.library.ok_as(&world.callers[0].1, tool, arguments).to_string().contains(MARKER)
    };
    assert!(alice_sees("list", json!({})) && alice_sees("search", json!({ "query": "zebrafish" })));
    assert!(alice_sees("search_documents_tool", json!({ "query": "zebrafish" })));
    for (identity, caller) in &world.callers {
        // Administrators, including the owner, may reach others by explicit id.
        if ["owner PAT", "admin PAT", "local"].contains(identity) {
            continue;
        }
        for tool in policy::visible(&caller.pass, &selection).collect::<Vec<_>>() {
            for arguments in attempts(tool, &world.secret_ids) {
                let outcome = world.library.call_as(caller, tool.name, arguments.clone());
                let text = outcome.map_or_else(|failure| failure.text, |reply| reply.to_string());
                assert!(!text.contains(MARKER), "{identity}: {} {arguments} gave {text}", tool.name);
            }
        }
        let call = shelf_base::CallContext::new();
        let (listed, _) = resources::list(&world.library.library, caller, None, &call).unwrap();
        assert!(!format!("{listed:?}").contains(MARKER), "{identity}: resources");
        for id in &world.secret_ids {
            for uri in [format!("shelf://documents/{id}"), format!("shelf://snapshots/{id}")] {
                let read = resources::read(&world.library.library, caller, &selection, &uri, &call).unwrap();
                assert!(read.is_none(), "{identity}: {uri}");
            }
        }
        for (template, argument) in
            [(resources::DOCUMENT_TEMPLATE, "document_id"), (resources::SNAPSHOT_TEMPLATE, "snapshot_id")]
        {
            let library = &world.library.library;
            let (values, _) =
                resources::complete(library, caller, &selection, template, argument, "").unwrap();
            let leaked = values.iter().any(|value| world.secret_ids.contains(value));
            assert!(!leaked, "{identity}: {template}");
        }
    }
    // After all those attempts, all of Alice's data is still there.
    assert!(alice_sees("list", json!({})) && alice_sees("list_cats_tool", json!({})));
    let kept = world.library.ok_as(&world.callers[0].1, "list_documents_tool", json!({}));
    assert_eq!(kept.as_array().unwrap().len(), 2, "{kept}");
}

#[test]
fn over_http_the_workspace_is_for_administrators_and_those_who_are_named() {
    let root = tempfile::tempdir().unwrap();
    let settings =
        WorkspaceSettings { root: root.path().to_owned(), also: Vec::new(), accounts: vec!["alice".into()] };
    let library = TestLibrary::with(Options { workspace: Some(settings), ..Options::default() });
    for (name, is_superuser) in [("alice", false), ("bob", false), ("root", true)] {
        library.user(name, is_superuser);
    }
    let read =
        |caller: &Caller| library.call_as(caller, "read_repo_file", json!({ "path": "docs/README.md" }));
    assert!(read(&library.caller("alice")).is_ok());
    let admin = library.personal("root", &[Admin], None);
    assert!(read(&library.admit(admin.text.reveal(), Door::Protocol).unwrap()).is_ok());
    assert!(read(&library.caller("root")).is_ok(), "an administrator's plain token");
    let refused = error_of(read(&library.caller("bob")));
    assert!(refused.contains("PATH_NOT_ALLOWED") && refused.contains("workspace.accounts"), "{refused}");
    let entry = json!({ "file": "progress_log.jsonl", "entry": { "note": "x" } });
    let written = error_of(library.call_as(&library.caller("bob"), "write_memory_entry", entry));
    assert!(written.contains("workspace.accounts"), "{written}");
    assert!(library.call_as(&library.caller("bob"), "hello", json!({})).is_ok(), "it accesses nothing");
}

#[test]
fn figures_do_not_tell_of_others() {
    let library = TestLibrary::new();
    library.user("alice", false);
    library.user("bob", false);
    let (alice, bob) = (library.caller("alice"), library.caller("bob"));
    let content = "the same bytes for both ".repeat(50);
    let store =
        |caller: &Caller| library.ok_as(caller, "add", json!({ "content": content, "name": "same.txt" }));
    let first = store(&alice);
    let second = store(&bob);
    assert_eq!(first["bytes_stored"], second["bytes_stored"], "it does not reveal what others have stored");
    assert_eq!(second["bytes_deduped"], 0);
    let status = |caller: &Caller| library.ok_as(caller, "status", json!({}));
    assert_eq!(status(&alice)["total_objects"], 1);
    library.ok_as(&alice, "add", json!({ "content": "more", "name": "more.txt" }));
    assert_eq!(status(&bob)["total_objects"], 1);
    let cursor_owner = library.ok_as(&alice, "list", json!({ "limit": 1 }));
    let cursor = &cursor_owner["next_cursor"];
    assert!(cursor.is_string());
    let stolen = error_of(library.call_as(&bob, "list", json!({ "limit": 1, "cursor": cursor })));
    assert!(stolen.contains("cursor is not one"), "{stolen}");
}

#[test]
fn numbers_count_what_the_account_itself_stored() {
    let library = TestLibrary::new();
    library.user("alice", false);
    library.user("bob", false);
    let (alice, bob) = (library.caller("alice"), library.caller("bob"));
    for number in 0..7 {
        library.ok_as(&alice, "add", json!({ "content": "a heron", "name": format!("a/{number}") }));
    }
    library.ok_as(&bob, "add", json!({ "content": "a heron", "name": "b" }));
    library.ok_as(&alice, "add", json!({ "content": "an egret", "name": "c" }));
    let id_of = |caller: &Caller, query: &str| {
        library.ok_as(caller, "search", json!({ "query": query }))["results"][0]["id"].clone()
    };
    assert_eq!((id_of(&bob, "heron"), id_of(&alice, "egret")), (json!(1), json!(8)));
    // A number is never given twice.
    library.ok_as(&bob, "delete_by_name", json!({ "name": "b" }));
    library.ok_as(&bob, "add", json!({ "content": "a heron again", "name": "b" }));
    assert_eq!(id_of(&bob, "heron"), 2);
    let details = library.ok_as(&bob, "status", json!({ "detailed": true }))["details"].clone();
    assert!(details.get("journal_sequence").is_none(), "{details}");
    let details = library.ok("status", json!({ "detailed": true }))["details"].clone();
    assert!(details["journal_sequence"].as_u64().is_some_and(|sequence| sequence > 9), "{details}");
}

#[test]
fn a_copy_to_a_file_needs_write_access() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { export_roots: vec![folder.path().to_owned()], ..Options::default() };
    let library = TestLibrary::with(options);
    library.user("bob", false);
    let bob = library.caller("bob");
    library.ok_as(&bob, "add", json!({ "content": "a heron", "name": "b" }));
    let reader = library.personal("bob", &[Read], None);
    let reader = library.admit(reader.text.reveal(), Door::Protocol).unwrap();
    let target = folder.path().join("out");
    let request = json!({ "name": "b", "outputPath": target });
    let refused = error_of(library.call_as(&reader, "get", request.clone()));
    assert_eq!(refused, "Error: Insufficient permissions: write access required");
    assert!(!target.exists());
    assert_eq!(library.ok_as(&reader, "get", json!({ "name": "b" }))["found"], true);
    library.ok_as(&bob, "get", request);
    assert_eq!(std::fs::read(target).unwrap(), b"a heron");
}

const LESSON: &str = "lessons/part-1/chapter-01/lesson-01.md";

/// Arguments with which each tool that writes does something; `made` has the ids of what a call may be about.
fn valid_arguments(name: &str, made: &Value) -> Value {
    let id = |of: &str| made[of].clone();
    match name {
        "store_document_tool" => {
            json!({ "title": "T", "content": "text", "collection_id": id("collection") })
        }
        "update_document_tool" => json!({ "document_id": id("document"), "title": "Another" }),
        "delete_document_tool" => json!({ "document_id": id("document") }),
        "undelete_document" => json!({ "document_id": id("deleted") }),
        "create_collection_tool" => json!({ "name": "a new one" }),
        "rename_collection_tool" => json!({ "collection_id": id("collection"), "name": "renamed" }),
        "delete_collection_tool" => json!({ "collection_id": id("empty") }),
        "revoke_cat_tool" => json!({ "key_id": id("key") }),
        "add" => json!({ "name": "added.txt", "content": "text" }),
        "update" => json!({ "name": "a.txt", "tags": ["t"] }),
        "delete_by_name" => json!({ "name": "a.txt" }),
        "write_content" => json!({ "book_id": "a-book", "path": LESSON, "content": "text" }),
        "write_summary" => json!({ "book_id": "a-book", "chapter_id": "chapter-01", "content": "text" }),
        "delete_content" => json!({ "book_id": "a-book", "path": LESSON }),
        "delete_summary" => json!({ "book_id": "a-book", "chapter_id": "chapter-01" }),
        "upload_asset" => {
            json!({ "book_id": "a-book", "asset_type": "slides", "filename": "a.pdf", "binary_data": "JVBERg==" })
        }
        other => panic!("which arguments does {other} take?"),
    }
}

#[test]
fn who_only_writes_is_offered_what_writing_is_enough_for() {
    let library = TestLibrary::new();
    library.user("alice", false);
    let alice = library.caller("alice");
    let make =
        |tool: &str, arguments: Value, field: &str| library.ok_as(&alice, tool, arguments)[field].clone();
    let collection = library.collection_of(&alice, "default");
    let store = |title: &str| {
        let content = format!("a quokka in secret: {title}");
        make("store_document_tool", json!({ "title": title, "content": content }), "document_id")
    };
    let made = json!({
        "document": store("Diary"),
        "deleted": store("Gone"),
        "empty": make("create_collection_tool", json!({ "name": "empty" }), "id"),
        "key": library.collection_token(&alice, &collection, "read").0,
        "collection": collection,
    });
    library.ok_as(&alice, "delete_document_tool", json!({ "document_id": made["deleted"] }));
    library.ok_as(&alice, "add", json!({ "name": "a.txt", "content": "old quokka" }));
    let token = library.personal("alice", &[Write], None);
    let writer = library.admit(token.text.reveal(), Door::Protocol).unwrap();
    let listed = policy::listed(&library.library, &writer, &Selection::everything());
    for tool in &listed {
        let arguments = valid_arguments(tool.name, &made);
        let outcome = library.call_as(&writer, tool.name, arguments);
        let text =
            outcome.map_or_else(|failure| format!("refused: {}", failure.text), |done| done.to_string());
        assert!(!text.contains("refused: "), "{}: {text}", tool.name);
        assert!(!text.contains("quokka"), "{} shows what it may not read: {text}", tool.name);
    }
    assert!(listed.len() >= 16 && listed.iter().all(|tool| !tool.hints.read_only));
    // Keys of collections read: who may not read hands out none, whether a new one or another text of an old one.
    let wanted = json!({ "label": "x", "collection_id": made["collection"], "permission": "read" });
    let key = library.collection_token(&alice, made["collection"].as_str().unwrap(), "read").0;
    for (tool, arguments) in [("create_cat_tool", wanted), ("rotate_cat_tool", json!({ "key_id": key }))] {
        let refused = error_of(library.call_as(&writer, tool, arguments.clone()));
        assert_eq!(refused, "Insufficient permissions: read access required", "{tool}");
        library.ok_as(&alice, tool, arguments);
    }
    assert!(library.library.rotate_collection_token(&writer, &key).is_err(), "nor without the table");
}

#[test]
fn resources_are_those_that_the_tools_give() {
    let library = TestLibrary::new();
    library.user("alice", false);
    let alice = library.caller("alice");
    let collection = library.collection_of(&alice, "default");
    let added = library.ok_as(&alice, "add", json!({ "content": "an egret", "name": "gone.txt" }));
    library.ok_as(&alice, "delete_by_name", json!({ "name": "gone.txt" }));
    let kept = library.ok_as(&alice, "add", json!({ "content": "a heron", "name": "kept.txt" }));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let snapshot = text(&added["snapshot_id"]);
    let uri = format!("shelf://snapshots/{snapshot}");
    let (_, token) = library.collection_token(&alice, &collection, "read");
    let limited = library.admit(&token, Door::Protocol).unwrap();
    let (offered, call) = (Selection::default(), shelf_base::CallContext::new());
    let read = |caller: &Caller, selection: &Selection, uri: &str| {
        resources::read(&library.library, caller, selection, uri, &call).unwrap().map(|read| read.content)
    };
    let complete = |caller: &Caller, selection: &Selection| {
        let (template, argument) = (resources::SNAPSHOT_TEMPLATE, "snapshot_id");
        resources::complete(&library.library, caller, selection, template, argument, "").unwrap().0
    };
    assert!(read(&alice, &offered, &uri).unwrap().contains("gone.txt"));
    assert!(complete(&alice, &offered).contains(&snapshot));
    // list_snapshots is not for collection tokens, so their snapshots are not either.
    assert_eq!((read(&limited, &offered, &uri), complete(&limited, &offered)), (None, Vec::new()));
    let without = Selection { excluded: vec!["list_snapshots".into()], ..Selection::default() };
    assert_eq!((read(&alice, &without, &uri), complete(&alice, &without)), (None, Vec::new()));
    // They read documents, and which there are.
    let document = format!("shelf://documents/{}", text(&kept["document_id"]));
    assert_eq!(read(&limited, &offered, &document).as_deref(), Some("a heron"));
    let shown = read(&limited, &offered, &format!("shelf://collections/{collection}")).unwrap();
    assert!(shown.contains("kept.txt") && !shown.contains("snapshot"), "{shown}");
    let shown = read(&alice, &offered, &format!("shelf://collections/{collection}")).unwrap();
    assert!(shown.contains("\"snapshot_count\":2"), "{shown}");
}
