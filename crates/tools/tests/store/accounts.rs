//! Collection tokens, and user management by administrators.

use serde_json::{Value, json};
use shelf_engine::{AuthError, Caller, Door, PersonalScope};
use shelf_testkit::{TestLibrary, error_of};

#[test]
fn a_collection_token_is_made_rotated_and_revoked() {
    let library = TestLibrary::with_clock();
    library.user("alice", false);
    let alice = library.caller("alice");
    let collection = library.collection_of(&alice, "default");
    let wanted = json!({
        "label": "Work Laptop", "collection_id": collection, "permission": "read_write", "expires_in_days": 30,
    });
    let made = library.ok_as(&alice, "create_cat_tool", wanted);
    let key = made["key"].as_str().unwrap();
    assert!(key.starts_with("cat_live_") && key.len() == 41, "{key}");
    assert_eq!((&made["permission"], &made["collection_id"]), (&json!("read_write"), &json!(collection)));
    let colleague = library.admit(key, Door::Protocol).unwrap();
    library.ok_as(
        &colleague,
        "store_document_tool",
        json!({ "title": "From afar", "content": "hello heron" }),
    );
    let listed = library.ok_as(&alice, "list_cats_tool", json!({}));
    assert_eq!(listed[0]["collection_name"], "default");
    assert_eq!((&listed[0]["is_active"], &listed[0]["label"]), (&json!(true), &json!("Work Laptop")));
    assert!(!listed.to_string().contains(key), "never shown again");
    library.days_pass(20);
    let rotated = library.ok_as(&alice, "rotate_cat_tool", json!({ "key_id": made["id"] }));
    assert_eq!((&rotated["id"], &rotated["label"]), (&made["id"], &made["label"]));
    let fresh = rotated["key"].as_str().unwrap();
    assert!(
        matches!(library.admit(key, Door::Protocol), Err(AuthError::Collection)),
        "the old key stops working immediately"
    );
    library.days_pass(29);
    assert!(library.admit(fresh, Door::Protocol).is_ok(), "the lifetime restarts");
    library.days_pass(1);
    assert!(library.admit(fresh, Door::Protocol).is_err());
    let listed = library.ok_as(&alice, "list_cats_tool", json!({}));
    assert_eq!(listed[0]["is_active"], false);
    let details = library.ok_as(&alice, "get_collection_tool", json!({ "collection_id": collection }));
    assert_eq!(details["cat_count"], 0, "an expired token does not count");
    let (id, key) = library.collection_token(&alice, &collection, "read");
    let done = library.ok_as(&alice, "revoke_cat_tool", json!({ "key_id": id }));
    assert_eq!(done, json!({ "message": "CAT revoked successfully" }));
    assert!(matches!(library.admit(&key, Door::Protocol), Err(AuthError::Collection)));
    for tool in ["revoke_cat_tool", "rotate_cat_tool"] {
        assert_eq!(error_of(library.call_as(&alice, tool, json!({ "key_id": id }))), "CAT not found");
    }
    let odd = json!({ "label": "x", "collection_id": collection, "permission": "write" });
    let refused = error_of(library.call_as(&alice, "create_cat_tool", odd));
    assert_eq!(refused, "permission must be \"read\" or \"read_write\"");
}

#[test]
fn administrators_manage_users_and_never_lock_themselves_out() {
    let library = TestLibrary::new();
    let alice = library.user("alice", true);
    let bob = library.user("bob", false);
    let minted =
        library.personal("alice", &[PersonalScope::Read, PersonalScope::Write, PersonalScope::Admin], None);
    let admin = library.admit(minted.text.reveal(), Door::Protocol).unwrap();
    let users = library.ok_as(&admin, "list_users_tool", json!({}));
    let names: Vec<&str> =
        users.as_array().unwrap().iter().map(|u| u["username"].as_str().unwrap()).collect();
    assert_eq!(names, ["bob", "alice"], "newest first, without the library's own account");
    let fields: Vec<&String> = users[0].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id", "email", "username", "is_active", "is_superuser", "created_at"]);
    let search = |query: &str| library.ok_as(&admin, "search_users_tool", json!({ "query": query }));
    assert_eq!(search("BOB@ex").as_array().unwrap().len(), 1);
    assert_eq!(search("example.com").as_array().unwrap().len(), 2);
    assert_eq!(search("%"), json!([]), "no wildcards");
    let bob_id = bob.id.to_string();
    let got = library.ok_as(&admin, "get_user_tool", json!({ "user_id": bob_id }));
    assert_eq!((&got["email"], &got["is_superuser"]), (&json!("bob@example.com"), &json!(false)));
    let update = |id: &str, mut fields: Value| {
        fields["user_id"] = json!(id);
        library.call_as(&admin, "update_user_tool", fields)
    };
    assert_eq!(
        error_of(update(&bob_id, json!({ "email": "ALICE@example.com" }))),
        "Email already registered"
    );
    assert_eq!(error_of(update(&bob_id, json!({ "username": "Alice" }))), "Username already taken");
    assert!(error_of(update(&bob_id, json!({ "password": "short" }))).contains("at least 10"));
    assert_eq!(update(&bob_id, json!({ "username": "robert" })).unwrap()["username"], "robert");
    let alice_id = alice.id.to_string();
    let last = "The last superuser cannot be demoted, deactivated or deleted";
    assert_eq!(error_of(update(&alice_id, json!({ "is_superuser": false }))), last);
    assert_eq!(error_of(update(&alice_id, json!({ "is_active": false }))), last);
    let own = error_of(library.call_as(&admin, "delete_user_tool", json!({ "user_id": alice_id })));
    assert_eq!(own, "You cannot delete your own account");
    let robert = library.caller("robert");
    let stored = library.ok_as(&robert, "store_document_tool", json!({ "title": "T", "content": "quokka" }));
    let done = library.ok_as(&admin, "delete_user_tool", json!({ "user_id": bob_id }));
    assert_eq!(done, json!({ "message": "User deleted successfully" }));
    let gone = library.call_as(&admin, "get_document_tool", json!({ "document_id": stored["document_id"] }));
    assert_eq!(error_of(gone), "Document not found");
    for id in [bob_id.as_str(), "nobody", "00000000-0000-7000-8000-000000000001"] {
        assert_eq!(
            error_of(library.call_as(&admin, "get_user_tool", json!({ "user_id": id }))),
            "User not found"
        );
        assert_eq!(error_of(update(id, json!({ "is_active": false }))), "User not found");
        let deleted = library.call_as(&admin, "delete_user_tool", json!({ "user_id": id }));
        assert_eq!(error_of(deleted), "User not found");
    }
    library.user("robert", false);
}

#[test]
fn an_administrator_reaches_others_by_id_and_only_so() {
    let library = TestLibrary::new();
    library.user("alice", true);
    library.user("bob", false);
    let bob = library.caller("bob");
    let minted =
        library.personal("alice", &[PersonalScope::Read, PersonalScope::Write, PersonalScope::Admin], None);
    let admin = library.admit(minted.text.reveal(), Door::Protocol).unwrap();
    let collection = library.collection_of(&bob, "default");
    let stored =
        library.ok_as(&bob, "store_document_tool", json!({ "title": "Diary", "content": "a quokka" }));
    let id = json!({ "document_id": stored["document_id"] });
    assert_eq!(library.ok_as(&admin, "get_document_tool", id.clone())["title"], "Diary");
    assert_eq!(library.ok_as(&admin, "list_documents_tool", json!({})), json!([]), "not in lists");
    let found = library.ok_as(&admin, "search_documents_tool", json!({ "query": "quokka" }));
    assert_eq!(found["total_results"], 0, "not in searches");
    let change = json!({ "document_id": stored["document_id"], "title": "Moderated" });
    library.ok_as(&admin, "update_document_tool", change);
    assert_eq!(library.ok_as(&bob, "get_document_tool", id.clone())["title"], "Moderated");
    library.collection_token(&admin, &collection, "read");
    assert_eq!(library.ok_as(&bob, "list_cats_tool", json!({})).as_array().unwrap().len(), 1);
    assert_eq!(library.ok_as(&admin, "list_cats_tool", json!({})).as_array().unwrap().len(), 1);
    let listed = library.ok_as(&admin, "list_documents_tool", json!({ "collection_id": collection }));
    assert_eq!(listed[0]["title"], "Moderated", "by explicit collection id");
    library.ok_as(&admin, "delete_document_tool", id.clone());
    assert_eq!(error_of(library.call_as(&bob, "get_document_tool", id)), "Document not found");
}

#[test]
fn a_cursor_of_users_goes_on_where_it_ended() {
    let library = TestLibrary::new();
    for name in ["a1", "a2", "a3", "a4", "a5", "a6"] {
        library.user(name, false);
    }
    let id_of = |name: &str| library.library.user_named(&Caller::owner(), name).unwrap().id.to_string();
    for (matching, expected) in
        [(None, vec!["a6", "a5", "a4", "a3", "a2", "a1"]), (Some("A"), vec!["a6", "a4", "a3", "a2", "a1"])]
    {
        let (mut seen, mut cursor) = (Vec::new(), None);
        for round in 0.. {
            let from = (0, cursor.as_deref());
            let (page, _, next) = library.library.users_page(&Caller::owner(), matching, 2, from).unwrap();
            seen.extend(page.into_iter().map(|user| user.username));
            // Neither who comes nor who goes moves anybody to another page, not even whom the page ended with.
            let newcomer = format!("newcomer{round}");
            library.user(&newcomer, false);
            library.ok("delete_user_tool", json!({ "user_id": id_of(&newcomer) }));
            if round == 0 {
                library.ok("delete_user_tool", json!({ "user_id": id_of(&seen[1]) }));
            }
            cursor = next;
            if cursor.is_none() {
                break;
            }
            library.user(&format!("stays{round}-{}", matching.is_some()), false);
        }
        assert_eq!(seen, expected, "{matching:?}");
        for name in ["stays0", "stays1"].map(|name| format!("{name}-{}", matching.is_some())) {
            library.ok("delete_user_tool", json!({ "user_id": id_of(&name) }));
        }
    }
}

#[test]
fn names_are_found_and_taken_whatever_the_case_of_any_letter() {
    let library = TestLibrary::new();
    library.user("ÖZIL", false);
    for query in ["ÖZIL", "özil", "Özi"] {
        let found = library.ok("search_users_tool", json!({ "query": query }));
        assert_eq!(found[0]["username"], "ÖZIL", "{query}");
    }
    assert!(library.library.log_in("özil", shelf_testkit::PASSWORD).is_ok());
    let other =
        json!({ "email": "new@example.com", "username": "özil", "password": "a password of some length" });
    assert_eq!(error_of(library.call("create_user", other)), "Username already taken");
}

#[test]
fn a_taken_name_of_a_collection_is_that_of_its_owner() {
    let library = TestLibrary::new();
    library.user("alice", false);
    let alice = library.caller("alice");
    let second = library.ok_as(&alice, "create_collection_tool", json!({ "name": "second" }))["id"].clone();
    let rename = json!({ "collection_id": second, "name": "default" });
    let refused = error_of(library.call_as(&alice, "rename_collection_tool", rename.clone()));
    assert_eq!(refused, "You already have a collection named 'default'");
    let refused = error_of(library.call("rename_collection_tool", rename));
    assert_eq!(refused, "The owner of this collection already has one named 'default'");
}
