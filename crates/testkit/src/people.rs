//! Accounts, sessions and tokens, created the way users create them.

use serde_json::{Value, json};
use shelf_engine::{
    Account, AuthError, Caller, Door, FileAccess, KeyRequest, Minted, PersonalScope, Registration,
};

use crate::TestLibrary;

/// The password of all test accounts.
pub const PASSWORD: &str = "a password of some length";

impl TestLibrary {
    /// Creates an account.
    pub fn user(&self, name: &str, is_superuser: bool) -> Account {
        let request = Registration {
            email: format!("{name}@example.com"),
            username: name.to_owned(),
            password: PASSWORD.to_owned(),
        };
        self.library.create_user(&Caller::owner(), request, is_superuser).expect("an account")
    }

    /// Logs in and returns the access token.
    pub fn session(&self, name: &str) -> String {
        self.library.log_in(name, PASSWORD).expect("a session").access.reveal().to_owned()
    }

    /// The caller behind a token, as HTTP would admit it.
    pub fn admit(&self, proof: &str, door: Door) -> Result<Caller, AuthError> {
        self.library.verify(proof, door).map(|pass| Caller {
            pass,
            file_access: FileAccess::Configured,
            base_url: None,
        })
    }

    /// Creates a personal token for an account.
    pub fn personal(&self, name: &str, scopes: &[PersonalScope], days: Option<u64>) -> Minted {
        let person = self.admit(&self.session(name), Door::Rest).expect("a person");
        let request = KeyRequest { label: format!("{name}'s"), days };
        self.library.create_personal(&person, request, Some(scopes)).expect("a token")
    }

    /// A caller with a personal token that can read and write.
    pub fn caller(&self, name: &str) -> Caller {
        let minted = self.personal(name, &[PersonalScope::Read, PersonalScope::Write], None);
        self.admit(minted.text.reveal(), Door::Protocol).expect("a caller")
    }

    /// Calls a tool as `caller`; it must succeed.
    pub fn ok_as(&self, caller: &Caller, tool: &str, arguments: Value) -> Value {
        self.call_as(caller, tool, arguments).unwrap_or_else(|failure| panic!("{tool}: {}", failure.text))
    }

    /// The id of one of the caller's collections.
    pub fn collection_of(&self, caller: &Caller, name: &str) -> String {
        let listed = self.ok_as(caller, "list_collections_tool", json!({}));
        let found = listed.as_array().into_iter().flatten().find(|collection| collection["name"] == name);
        found.expect("the collection")["id"].as_str().expect("an id").to_owned()
    }

    /// Creates a collection token and returns its id and its text.
    pub fn collection_token(&self, caller: &Caller, collection: &str, permission: &str) -> (String, String) {
        let arguments =
            json!({ "label": "colleague", "collection_id": collection, "permission": permission });
        let made = self.ok_as(caller, "create_cat_tool", arguments);
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        (text("id"), text("key"))
    }
}
