//! The part of the suite about accounts, sessions, tokens, collections as such, and documents with titles.

use shelf_base::{
    Digest, Moment,
    ids::{AccountId, DocumentId, SessionId, TokenId},
};

use super::{at, put, sample, scope};
use crate::{
    AccountChange, AccountStart, Actor, Catalog, DocumentChange, Error, Filter, Holder, NewAccount,
    NewContent, NewToken, NewType, Operation, Put, PutState, Rank, Rotation, Scope, Session, Shelf,
    TokenKind, scopes,
};

/// An account to be made.
fn person(name: &str, rank: Rank) -> NewAccount {
    NewAccount {
        id: AccountId::fresh(),
        username: name.to_owned(),
        email: format!("{name}@example.com"),
        password: "hash".into(),
        rank,
        created_at: at(1),
    }
}

fn add(catalog: &dyn Catalog, name: &str, rank: Rank) -> AccountId {
    catalog.add_account(&Actor::local(), &person(name, rank)).expect("an account").id
}

pub(super) fn accounts_are_unique_and_somebody_administers(catalog: &dyn Catalog) {
    let refused = catalog.add_account(&Actor::local(), &person("early", Rank::Ordinary));
    assert!(matches!(refused, Err(Error::NoAdministrator)), "{refused:?}");
    let root = add(catalog, "root", Rank::FirstIsSuperuser);
    let other = add(catalog, "other", Rank::FirstIsSuperuser);
    let is_superuser = |id| catalog.account(id).expect("a read").expect("an account").is_superuser;
    assert_eq!((is_superuser(root), is_superuser(other)), (true, false));
    let same_name = NewAccount { email: "new@example.com".into(), ..person("ROOT", Rank::Plain) };
    let same_email = NewAccount { username: "new".into(), ..person("Root", Rank::Plain) };
    assert!(matches!(catalog.add_account(&Actor::local(), &same_name), Err(Error::UsernameTaken)));
    assert!(matches!(catalog.add_account(&Actor::local(), &same_email), Err(Error::EmailTaken)));
    assert!(catalog.login("ROOT@example.com").expect("a read").is_some_and(|(found, _)| found.id == root));
    let start = AccountStart::Offset(0);
    assert_eq!(catalog.accounts(None, start, 10).expect("a list").1, 2, "local is not listed");
    assert_eq!(catalog.accounts(Some("OTH"), start, 10).expect("a list").0[0].id, other);
    let demote = AccountChange { is_superuser: Some(false), ..AccountChange::default() };
    let refused = catalog.change_account(&Actor::local(), root, &demote, at(2));
    assert!(matches!(refused, Err(Error::LastSuperuser)), "{refused:?}");
    let promote = AccountChange { is_superuser: Some(true), ..AccountChange::default() };
    catalog.change_account(&Actor::local(), other, &promote, at(2)).expect("a change");
    assert!(catalog.change_account(&Actor::local(), root, &demote, at(3)).expect("a change").is_some());
    assert!(matches!(catalog.delete_account(&Actor::local(), other, at(3)), Err(Error::LastSuperuser)));
    let own = Scope::Account(root);
    let collections = catalog.collections(&own).expect("a list");
    assert_eq!(collections[0].collection.name, "default");
    put(catalog, collections[0].collection.id, 4, vec![sample("a", "a text")]);
    assert!(catalog.delete_account(&Actor::local(), root, at(5)).expect("a deletion"));
    assert!(catalog.account(root).expect("a read").is_none());
    assert!(catalog.choose(&own, &Filter::default()).expect("a read").is_empty());
    assert!(!catalog.delete_account(&Actor::local(), root, at(6)).expect("a deletion"), "once");
    let records = catalog.journal(0, 100).expect("the journal");
    let has = |operation| records.iter().any(|record| record.operation == operation);
    assert!(has(Operation::CreateAccount) && has(Operation::UpdateAccount) && has(Operation::DeleteAccount));
    assert!(has(Operation::Delete), "indexes hear of each document");
    assert!(!format!("{records:?}").contains("hash\""), "no password in the journal");
    add(catalog, "root", Rank::Plain);
}

pub(super) fn names_are_the_same_whatever_the_case_of_any_letter(catalog: &dyn Catalog) {
    let turkish = add(catalog, "ÖZIL", Rank::Plain);
    let greek = add(catalog, "ΟΔΥΣΣΕΑΣ", Rank::Plain);
    for name in ["özil", "Özil", "ÖZIL"] {
        let taken = catalog.add_account(&Actor::local(), &person(name, Rank::Plain));
        assert!(matches!(taken, Err(Error::EmailTaken)), "{name}: {taken:?}");
        let other_address = NewAccount { email: "new@example.com".into(), ..person(name, Rank::Plain) };
        let taken = catalog.add_account(&Actor::local(), &other_address);
        assert!(matches!(taken, Err(Error::UsernameTaken)), "{name}: {taken:?}");
        for login in [name.to_owned(), format!("{name}@EXAMPLE.com")] {
            let found = catalog.login(&login).expect("a read").expect("the account").0;
            assert_eq!(found.id, turkish, "{login}");
        }
    }
    for (text, id) in [("ÖZ", turkish), ("özil", turkish), ("zIl", turkish), ("σσεας", greek), ("ΣΣ", greek)]
    {
        let (found, total) = catalog.accounts(Some(text), AccountStart::Offset(0), 10).expect("a list");
        assert_eq!((found.len(), total, found[0].id), (1, 1, id), "{text}");
    }
    let rename = |name: &str| AccountChange { username: Some(name.into()), ..AccountChange::default() };
    let own = catalog.change_account(&Actor::local(), turkish, &rename("özil"), at(2));
    assert_eq!(own.expect("a change").expect("the account").username, "özil");
    let taken = catalog.change_account(&Actor::local(), greek, &rename("ÖZIL"), at(3));
    assert!(matches!(taken, Err(Error::UsernameTaken)), "{taken:?}");
}

pub(super) fn pages_of_accounts_go_on_where_they_ended(catalog: &dyn Catalog) {
    // Some were made at the same moment.
    let made: Vec<AccountId> = (0..6)
        .map(|number| {
            let account =
                NewAccount { created_at: at(number / 2), ..person(&format!("p{number}"), Rank::Plain) };
            catalog.add_account(&Actor::local(), &account).expect("an account").id
        })
        .collect();
    for matching in [None, Some("P")] {
        let page = |start| catalog.accounts(matching, start, 2).expect("a page").0;
        let mut seen = Vec::new();
        let mut start = AccountStart::Offset(0);
        loop {
            let found = page(start);
            let Some(last) = found.last() else { break };
            start = AccountStart::After(last.created_at, last.id);
            seen.extend(found.iter().map(|account| account.id));
            // Whoever comes or goes in front of the place moves nobody.
            let newest = add(catalog, &format!("later{}{}", seen.len(), matching.is_some()), Rank::Plain);
            assert!(catalog.delete_account(&Actor::local(), newest, at(9)).expect("a deletion"));
        }
        let mut expected = made.clone();
        expected.sort_by_key(|id| {
            (std::cmp::Reverse(made.iter().position(|known| known == id).unwrap_or(0) / 2), *id)
        });
        assert_eq!(seen, expected, "{matching:?}");
        assert_eq!(page(AccountStart::Offset(4)).len(), 2);
    }
}

pub(super) fn sessions_rotate_once(catalog: &dyn Catalog) {
    let account = add(catalog, "alice", Rank::Plain);
    let digest = |text: &str| Digest::of(text.as_bytes());
    let session = Session {
        id: SessionId::fresh(),
        account,
        refresh: digest("one"),
        created_at: at(1),
        expires_at: at(100),
    };
    catalog.add_session(&session).expect("a session");
    let id = session.id;
    assert!(catalog.session(id, at(99)).expect("a read").is_some_and(|found| found.id == account));
    assert!(catalog.session(id, at(100)).expect("a read").is_none(), "run out");
    let rotate = |old: &str, new: &str| {
        catalog.rotate_session(id, &digest(old), &digest(new), at(200), at(50)).expect("a rotation")
    };
    assert!(matches!(rotate("one", "two"), Rotation::Done(_)));
    assert_eq!(rotate("one", "three"), Rotation::Reused);
    assert_eq!(rotate("two", "three"), Rotation::Gone);
    assert!(!catalog.end_session(id).expect("an end"));
}

fn token(account: AccountId, kind: TokenKind, text: &str, expires_at: Option<Moment>) -> NewToken {
    NewToken {
        id: TokenId::fresh(),
        account,
        kind,
        label: text.to_owned(),
        hash: Digest::of(text.as_bytes()),
        scopes: scopes::READ,
        created_at: at(1),
        expires_at,
    }
}

pub(super) fn tokens_belong_to_their_holder(catalog: &dyn Catalog) {
    let (alice, bob) = (add(catalog, "alice", Rank::Plain), add(catalog, "bob", Rank::Plain));
    let default = |id| catalog.collections(&Scope::Account(id)).expect("a list")[0].collection.id;
    let personal = token(alice, TokenKind::Personal, "personal", None);
    let shared = token(alice, TokenKind::Collection(default(alice)), "shared", Some(at(11)));
    for token in [&personal, &shared] {
        catalog.add_token(&Actor::local(), token).expect("a token");
    }
    let holders = [Holder::Personal(alice), Holder::Collections(Scope::Account(alice))];
    let labels = |holder: &Holder| -> Vec<String> {
        catalog.tokens(holder).expect("a list").into_iter().map(|found| found.token.label).collect()
    };
    assert_eq!(
        (labels(&holders[0]), labels(&holders[1])),
        (vec!["personal".to_owned()], vec!["shared".into()])
    );
    assert_eq!(labels(&Holder::Collections(Scope::Library)), ["shared"]);
    let strangers = [
        Holder::Personal(bob),
        Holder::Collections(Scope::Account(bob)),
        Holder::Collections(Scope::Collection(default(bob))),
    ];
    for holder in &strangers {
        assert!(labels(holder).is_empty());
        assert!(!catalog.revoke_token(&Actor::local(), holder, shared.id, at(2)).expect("a try"));
        let rotated = catalog.rotate_token(&Actor::local(), holder, shared.id, &Digest::of(b"x"), at(2));
        assert!(rotated.expect("a try").is_none());
    }
    catalog.token_used(shared.id, at(3)).expect("a note");
    // The note is written before any later write.
    catalog.secret("written after the note", [0; 32]).expect("a secret");
    let found = catalog.token(&shared.hash).expect("a read").expect("the token");
    assert_eq!((found.last_used_at, found.collection_name.as_deref()), (Some(at(3)), Some("default")));
    let rotated = catalog.rotate_token(&Actor::local(), &holders[1], shared.id, &Digest::of(b"new"), at(20));
    assert_eq!(rotated.expect("a rotation").expect("the token").token.expires_at, Some(at(30)));
    assert!(catalog.token(&shared.hash).expect("a read").is_none());
    assert_eq!(catalog.active_tokens(default(alice), at(21)).expect("a count"), 1);
    assert_eq!(catalog.active_tokens(default(alice), at(30)).expect("a count"), 0);
}

pub(super) fn collections_end_with_all_that_is_in_them(catalog: &dyn Catalog) {
    let actor = Actor::local();
    let work = catalog.create_collection(&actor, "work", at(1)).expect("a collection");
    let taken = catalog.create_collection(&actor, "work", at(2));
    assert!(matches!(taken, Err(Error::CollectionTaken(_))), "{taken:?}");
    put(catalog, work.id, 3, vec![sample("a", "text of a"), sample("b", "text of b")]);
    super::snapshot(catalog, work.id, 4, "listing");
    let other = Scope::Account(AccountId::fresh());
    let renamed = catalog.rename_collection(&actor, &other, work.id, "x", at(5)).expect("a try");
    assert!(renamed.is_none(), "not somebody else's");
    let owner = add(catalog, "owner", Rank::Plain);
    let own = Actor { account: owner, token: None };
    let second = catalog.create_collection(&own, "second", at(5)).expect("a collection");
    let rename =
        |actor: &Actor| catalog.rename_collection(actor, &Scope::Library, second.id, "default", at(5));
    assert!(matches!(rename(&own), Err(Error::CollectionTaken(_))));
    assert!(matches!(rename(&actor), Err(Error::OwnersCollectionTaken(_))));
    assert!(!catalog.delete_collection(&actor, &other, work.id, at(5)).expect("a try"));
    let renamed = catalog.rename_collection(&actor, &scope(), work.id, "play", at(5)).expect("a name");
    assert_eq!(renamed.map(|found| found.name), Some("play".to_owned()));
    let key = token(actor.account, TokenKind::Collection(work.id), "key", None);
    catalog.add_token(&actor, &key).expect("a token");
    let refused = catalog.delete_collection(&actor, &scope(), work.id, at(6));
    assert!(matches!(refused, Err(Error::ActiveTokens)), "{refused:?}");
    let holder = Holder::Collections(scope());
    assert!(catalog.revoke_token(&actor, &holder, key.id, at(7)).expect("a try"));
    let before = catalog.sequence().expect("a number");
    assert!(catalog.delete_collection(&actor, &scope(), work.id, at(8)).expect("a deletion"));
    let after = catalog.sequence().expect("a number");
    let gone = catalog.changes(before, after).expect("changes").documents;
    assert!(gone.len() == 2 && gone.iter().all(|document| !document.is_live), "{gone:?}");
    assert!(catalog.collection_by_id(&Scope::Library, work.id).expect("a read").is_none());
    assert!(
        catalog.snapshots(&Scope::Library, &crate::SnapshotFilter::default(), 10).expect("a list").is_empty()
    );
    assert!(catalog.tokens(&Holder::Collections(Scope::Library)).expect("a list").is_empty());
    let again = catalog.create_collection(&actor, "play", at(9)).expect("the name is free");
    assert_ne!(again.id, work.id);
    let late = token(actor.account, TokenKind::Collection(work.id), "late", None);
    assert!(catalog.add_token(&actor, &late).is_err(), "no token for what is gone");
}

/// A put of one titled document.
fn titled(title: &str, content: &str) -> Put {
    let id = DocumentId::fresh();
    let mut document = sample(&format!("documents/{id}"), content);
    document.id = Some(id);
    title.clone_into(&mut document.title);
    document.document_type = Some("markdown".into());
    Put {
        actor: Actor::local(),
        collection: Shelf::Named("default".into()),
        now: at(1),
        documents: vec![document],
        loose: Vec::new(),
        snapshot: None,
        upload: None,
        fence: None,
        may_wait: true,
    }
}

pub(super) fn titled_documents_are_stored_once_and_change_whole(catalog: &dyn Catalog) {
    let (id, state) = catalog.store(titled("T", "text")).expect("a document");
    assert_eq!(state, PutState::Added);
    assert_eq!(catalog.store(titled("T", "text")).expect("the same"), (id, PutState::Unchanged));
    assert_ne!(catalog.store(titled("U", "text")).expect("another").0, id);
    let before = catalog.sequence().expect("a number");
    let new = sample("x", "other text");
    let change = DocumentChange {
        expected: None,
        title: Some("V".into()),
        r#type: Some(NewType {
            document_type: "text".into(),
            extension: ".txt".into(),
            mime: "text/plain".into(),
            is_text: true,
        }),
        metadata: Some([("k".to_owned(), 1.into())].into_iter().collect()),
        content: Some(NewContent {
            hash: new.hash,
            size: new.size,
            manifest: new.manifest,
            blocks: new.blocks,
            loose: Vec::new(),
            fence: None,
        }),
    };
    let stranger = Scope::Account(AccountId::fresh());
    let refused = catalog.change(&Actor::local(), &stranger, id, change.clone(), at(2)).expect("a try");
    assert!(refused.is_none());
    let changed = catalog.change(&Actor::local(), &scope(), id, change, at(2)).expect("a change");
    let changed = changed.expect("the document");
    assert_eq!((changed.title.as_str(), changed.version.number), ("V", 2));
    assert_eq!((changed.document_type.as_deref(), changed.metadata.len()), (Some("text"), 1));
    assert_eq!(catalog.versions(&scope(), id).expect("versions").len(), 2);
    let after = catalog.sequence().expect("a number");
    assert_eq!(after - before, 1, "one record for one change");
    let retitle = DocumentChange { title: Some("W".into()), ..DocumentChange::default() };
    catalog.change(&Actor::local(), &scope(), id, retitle.clone(), at(3)).expect("a change");
    let changes = catalog.changes(after, after + 1).expect("changes").documents;
    assert!(changes[0].is_renamed && changes[0].title == "W", "{changes:?}");
    catalog.change(&Actor::local(), &scope(), id, retitle, at(4)).expect("nothing to change");
    assert_eq!(catalog.sequence().expect("a number"), after + 1, "nothing changed, nothing recorded");
}
