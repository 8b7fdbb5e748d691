//! The behaviour that every catalog must show, as functions over the trait: each backend's tests call [`run`].
//!
//! Written as part of the library so that a backend in another crate, or another process, can be put through the same
//! suite. Every check panics with what it saw.

mod browsing;
mod maps;
mod people;

use std::{collections::BTreeSet, path::Path, sync::Arc};

use shelf_base::{Digest, Moment, ids::CollectionId, ids::LOCAL_ACCOUNT};

use crate::{
    Actor, Catalog, Error, Filter, LooseBlock, Metadata, Operation, Order, Page, Purge, Put, PutDocument,
    PutState, Record, Revival, Scope, Shelf, SnapshotDraft, SnapshotFilter, SortBy, TagChange, Update,
};

/// Runs every check on catalogs that `open` makes empty.
pub fn run(open: impl Fn() -> Arc<dyn Catalog>) {
    documents_have_versions(&*open());
    a_failed_put_leaves_nothing(&*open());
    bytes_are_counted_for_the_account(&*open());
    names_and_hashes_find(&*open());
    lists_page_without_gaps(&*open());
    updates_say_what_changed(&*open());
    deleted_documents_vanish_and_return_new(&*open());
    deleted_documents_come_back_as_they_were(&*open());
    scopes_keep_apart(&*open());
    a_collection_remembers_its_model(&*open());
    snapshot_ids_are_unique(&*open());
    a_clock_that_jumped_is_forgotten(&*open());
    the_journal_has_no_gaps_and_holds_together(open());
    a_purge_keeps_what_it_must(&*open());
    secrets_and_loose_blocks_stay(&*open());
    browsing::folders_facets_and_records_are_counted(&*open());
    maps::resources_have_ids_and_maps(&*open());
    people::accounts_are_unique_and_somebody_administers(&*open());
    people::names_are_the_same_whatever_the_case_of_any_letter(&*open());
    people::pages_of_accounts_go_on_where_they_ended(&*open());
    people::sessions_rotate_once(&*open());
    people::tokens_belong_to_their_holder(&*open());
    people::collections_end_with_all_that_is_in_them(&*open());
    people::titled_documents_are_stored_once_and_change_whole(&*open());
}

fn a_collection_remembers_its_model(catalog: &dyn Catalog) {
    let id = default_collection(catalog);
    assert_eq!(catalog.models(&scope()).expect("models"), [(id, None)]);
    catalog.set_model(&Actor::local(), id, Some("model@host"), at(2)).expect("a model");
    assert_eq!(catalog.models(&scope()).expect("models"), [(id, Some("model@host".to_owned()))]);
    let found = catalog.collection(&scope(), "default").expect("a read").expect("the collection");
    assert_eq!(found.model.as_deref(), Some("model@host"));
    let last = catalog.journal(0, 100).expect("the journal").pop().expect("a record");
    assert_eq!((last.operation, last.path.as_str()), (Operation::SetModel, "model@host"));
    assert!(catalog.set_model(&Actor::local(), CollectionId::fresh(), None, at(3)).is_err());
}

fn scope() -> Scope {
    Scope::Account(LOCAL_ACCOUNT)
}

fn at(second: i64) -> Moment {
    Moment::from_micros(second * 1_000_000)
}

/// A document with made-up content.
pub fn sample(path: &str, content: &str) -> PutDocument {
    PutDocument {
        id: None,
        path: path.to_owned(),
        title: path.rsplit('/').next().unwrap_or_default().to_owned(),
        extension: ".txt".into(),
        mime: "text/plain".into(),
        is_text: true,
        hash: Digest::of(content.as_bytes()),
        size: content.len() as u64,
        manifest: content.as_bytes().to_vec(),
        blocks: vec![(short(content), content.len() as u32)],
        modified_at: at(1),
        mode: 0o644,
        stat: None,
        tags: BTreeSet::new(),
        metadata: Metadata::new(),
        resource_id: None,
        document_type: None,
        expected: crate::Expected::Anything,
    }
}

fn short(content: &str) -> i64 {
    let hash = Digest::of(content.as_bytes());
    i64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap_or_default())
}

fn put(
    catalog: &dyn Catalog,
    collection: CollectionId,
    second: i64,
    documents: Vec<PutDocument>,
) -> Vec<crate::PutResult> {
    let put = Put {
        actor: Actor::local(),
        collection: Shelf::Known(collection),
        now: at(second),
        documents,
        loose: Vec::new(),
        snapshot: None,
        upload: None,
        fence: None,
        may_wait: true,
    };
    catalog.put(put).expect("a put").0
}

fn default_collection(catalog: &dyn Catalog) -> CollectionId {
    catalog.ensure_collection(&Actor::local(), "default", at(1)).expect("a collection").id
}

fn documents_have_versions(catalog: &dyn Catalog) {
    let collection = default_collection(catalog);
    let first = &put(catalog, collection, 1, vec![sample("a.txt", "one")])[0];
    let same = &put(catalog, collection, 2, vec![sample("a.txt", "one")])[0];
    let second = &put(catalog, collection, 3, vec![sample("a.txt", "two")])[0];
    assert_eq!(
        (first.state, same.state, second.state),
        (PutState::Added, PutState::Unchanged, PutState::Updated)
    );
    assert!(first.id == same.id && first.id == second.id);
    let document = catalog.document(&scope(), first.id).expect("a read").expect("the document");
    assert_eq!((document.version.number, document.version.hash), (2, Digest::of(b"two")));
    assert_eq!((document.created_at, document.version.indexed_at), (at(1), at(3)));
    let versions = catalog.versions(&scope(), first.id).expect("versions");
    assert_eq!(versions.iter().map(|version| version.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(catalog.blob(&Digest::of(b"one")).expect("a read").expect("a blob").manifest, b"one");
    let mut asked: Vec<Digest> = (0..1_000_u32).map(|number| Digest::of(&number.to_le_bytes())).collect();
    asked.insert(700, Digest::of(b"one"));
    let found = catalog.blobs(&asked).expect("a read");
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].0, &found[0].1.manifest[..]), (Digest::of(b"one"), &b"one"[..]));
    assert!(catalog.blobs(&[]).expect("a read").is_empty());
}

fn a_failed_put_leaves_nothing(catalog: &dyn Catalog) {
    let collection = default_collection(catalog);
    let mut first = sample("a", "a");
    first.resource_id = Some("id".into());
    put(catalog, collection, 1, vec![first]);
    let before = catalog.sequence().expect("a sequence");
    let mut clash = sample("c", "c");
    clash.resource_id = Some("id".into());
    let documents = vec![sample("b", "b"), clash];
    let failed = catalog.put(Put {
        actor: Actor::local(),
        collection: Shelf::Known(collection),
        now: at(2),
        documents,
        loose: Vec::new(),
        snapshot: None,
        upload: None,
        fence: None,
        may_wait: true,
    });
    assert!(matches!(failed, Err(Error::ResourceIdTaken(_))));
    assert!(catalog.named(&scope(), None, "b", 9).expect("a read").is_empty(), "the whole put is undone");
    assert_eq!(catalog.sequence().expect("a sequence"), before);
    let missing = Put {
        actor: Actor::local(),
        collection: Shelf::Known(CollectionId::fresh()),
        now: at(2),
        documents: Vec::new(),
        loose: Vec::new(),
        snapshot: None,
        upload: None,
        fence: None,
        may_wait: true,
    };
    assert!(matches!(catalog.put(missing), Err(Error::NoCollection)));
}

fn bytes_are_counted_for_the_account(catalog: &dyn Catalog) {
    let collection = default_collection(catalog);
    let results =
        put(catalog, collection, 1, vec![sample("a", "shared"), sample("b", "shared"), sample("c", "own")]);
    let counted: Vec<(u64, u64)> =
        results.iter().map(|result| (result.stored, result.deduplicated)).collect();
    assert_eq!(counted, [(6, 0), (0, 6), (3, 0)]);
}

fn names_and_hashes_find(catalog: &dyn Catalog) {
    let collection = default_collection(catalog);
    let with_title = |path: &str, title: &str| PutDocument { title: title.into(), ..sample(path, "one") };
    put(
        catalog,
        collection,
        1,
        vec![
            with_title("documents/1", "A Title"),
            sample("/src/lib.rs", "two"),
            sample("/deep/src/lib.rs", "two"),
            sample("ü/lib.rs", "x"),
            with_title("notes/herons.md", "herons.md"),
            with_title("old/herons.md", "Herons"),
            with_title("new/herons.md", "new/herons.md"),
            with_title("white-herons.md", "herons.md"),
            with_title("herons.md/more", "herons.md"),
        ],
    );
    let paths = |name: &str| -> Vec<String> {
        catalog
            .named(&scope(), None, name, 9)
            .expect("a read")
            .into_iter()
            .map(|document| document.path)
            .collect()
    };
    assert_eq!(paths("/src/lib.rs"), ["/src/lib.rs"], "the whole path wins");
    assert_eq!(paths("src/lib.rs"), ["/deep/src/lib.rs", "/src/lib.rs"]);
    assert_eq!(paths("A Title"), ["documents/1"]);
    let herons = ["new/herons.md", "notes/herons.md", "old/herons.md"];
    assert_eq!(paths("herons.md"), herons, "by the end of the path, whatever the title");
    assert_eq!(paths("/herons.md"), herons);
    let most = |most: usize| catalog.named(&scope(), None, "herons.md", most).expect("a read");
    assert_eq!(most(2).iter().map(|found| found.path.as_str()).collect::<Vec<_>>(), herons[..2]);
    assert_eq!(paths("Herons"), ["old/herons.md"]);
    assert_eq!(paths("new/herons.md"), ["new/herons.md"]);
    assert_eq!(paths("ib.rs"), Vec::<String>::new());
    assert_eq!(paths("%"), Vec::<String>::new());
    let prefix = &Digest::of(b"two").to_string()[..8];
    assert_eq!(catalog.hashed(&scope(), prefix, 9).expect("a read").len(), 2);
    assert_eq!(catalog.hashed(&scope(), prefix, 1).expect("a read").len(), 1);
    assert!(catalog.hashed(&scope(), "zz", 9).expect("a read").is_empty());
}

fn lists_page_without_gaps(catalog: &dyn Catalog) {
    let collection = default_collection(catalog);
    let many = (0..57).map(|number| sample(&format!("d{number:02}"), &"x".repeat(number % 5))).collect();
    put(catalog, collection, 1, many);
    for (sort, order) in [
        (SortBy::Name, Order::Ascending),
        (SortBy::Size, Order::Descending),
        (SortBy::Indexed, Order::Ascending),
    ] {
        let mut seen = BTreeSet::new();
        let mut after = None;
        loop {
            let page = Page { sort, order, limit: 10, offset: 0, after: after.clone() };
            let listed = catalog.list(&scope(), &Filter::default(), &page).expect("a page");
            assert_eq!(listed.total, 57);
            assert!(
                listed.documents.iter().all(|document| seen.insert(document.number)),
                "no document twice"
            );
            let Some(last) = listed.documents.last().filter(|_| listed.more) else { break };
            let value = match sort {
                SortBy::Name => last.path.clone().into(),
                SortBy::Size => last.version.size.into(),
                _ => last.version.indexed_at.micros().into(),
            };
            after = Some((value, last.number));
        }
        assert_eq!(seen.len(), 57);
    }
    let filter = Filter { recent: Some(3), ..Filter::default() };
    let page = Page { sort: SortBy::Name, order: Order::Ascending, limit: 10, offset: 0, after: None };
    assert_eq!(catalog.list(&scope(), &filter, &page).expect("a page").total, 3);
}

fn updates_say_what_changed(catalog: &dyn Catalog) {
    let collection = default_collection(catalog);
    let id = put(catalog, collection, 1, vec![sample("a", "a")])[0].id;
    let mut update = Update { add_tags: BTreeSet::from(["t".to_owned()]), ..Update::default() };
    update.set.insert("k".into(), 1.into());
    let changes = catalog
        .update(&Actor::local(), &scope(), id, &update, at(2))
        .expect("an update")
        .expect("the document");
    let expected =
        [TagChange::Metadata { key: "k".into(), old: None, new: 1.into() }, TagChange::Added("t".into())];
    assert_eq!(changes, expected);
    assert_eq!(
        catalog.update(&Actor::local(), &scope(), id, &update, at(3)).expect("an update"),
        Some(Vec::new())
    );
    let tagged = Filter { tags: vec!["t".into()], ..Filter::default() };
    assert_eq!(catalog.choose(&scope(), &tagged).expect("a choice").len(), 1);
    let unknown =
        catalog.update(&Actor::local(), &scope(), shelf_base::ids::DocumentId::fresh(), &update, at(4));
    assert_eq!(unknown.expect("an answer"), None);
}

fn deleted_documents_vanish_and_return_new(catalog: &dyn Catalog) {
    let collection = default_collection(catalog);
    let id = put(catalog, collection, 1, vec![sample("a", "a")])[0].id;
    let other = Scope::Collection(CollectionId::fresh());
    assert!(
        catalog.delete(&Actor::local(), &other, &[id], at(2)).expect("a delete").is_empty(),
        "not in that scope"
    );
    assert_eq!(catalog.delete(&Actor::local(), &scope(), &[id, id], at(2)).expect("a delete"), [id]);
    assert!(catalog.document(&scope(), id).expect("a read").is_none());
    assert!(catalog.hashed(&scope(), &Digest::of(b"a").to_string(), 9).expect("a read").is_empty());
    let again = &put(catalog, collection, 3, vec![sample("a", "a")])[0];
    assert!(again.state == PutState::Added && again.id != id);
}

fn deleted_documents_come_back_as_they_were(catalog: &dyn Catalog) {
    let collection = default_collection(catalog);
    let described = PutDocument {
        title: "A title".into(),
        tags: BTreeSet::from(["t".to_owned()]),
        resource_id: Some("own-id".into()),
        document_type: Some("markdown".into()),
        ..sample("a", "one")
    };
    let id = put(catalog, collection, 1, vec![described])[0].id;
    put(catalog, collection, 2, vec![sample("a", "two")]);
    let before = catalog.document(&scope(), id).expect("a read").expect("the document");
    let revive = |scope: &Scope, revival: Revival, second: i64| {
        catalog.revive(&Actor::local(), scope, id, revival, at(second))
    };
    assert_eq!(revive(&scope(), Revival::default(), 3).expect("a try"), None, "it is there");
    catalog.delete(&Actor::local(), &scope(), &[id], at(3)).expect("a delete");
    let other = Scope::Collection(CollectionId::fresh());
    assert_eq!(revive(&other, Revival::default(), 4).expect("a try"), None, "not in that scope");
    assert_eq!(revive(&scope(), Revival::default(), 4).expect("a revival"), Some(before));
    assert_eq!(catalog.versions(&scope(), id).expect("versions").len(), 2);
    assert_eq!(catalog.audit().expect("an audit"), Vec::<String>::new());
    catalog.delete(&Actor::local(), &scope(), &[id], at(5)).expect("a delete");
    let second = PutDocument { resource_id: Some("own-id".into()), ..sample("a", "three") };
    let second = put(catalog, collection, 6, vec![second])[0].id;
    let refused = revive(&scope(), Revival::default(), 7);
    assert!(matches!(refused, Err(Error::ContentChanged { .. })), "its path is taken: {refused:?}");
    catalog.delete(&Actor::local(), &scope(), &[second], at(8)).expect("a delete");
    let third = PutDocument { resource_id: Some("own-id".into()), ..sample("b", "four") };
    put(catalog, collection, 9, vec![third]);
    let tags = BTreeSet::from(["new".to_owned()]);
    let metadata: Metadata = [("k".to_owned(), 1.into())].into_iter().collect();
    let revival = Revival { tags: Some(tags), metadata: Some(metadata.clone()), fence: None };
    let back = revive(&scope(), revival, 10).expect("a revival").expect("the document");
    assert_eq!((back.tags, back.metadata, back.resource_id), (vec!["new".to_owned()], metadata, None));
    let tagged = Filter { tags: vec!["new".into()], ..Filter::default() };
    assert_eq!(catalog.choose(&scope(), &tagged).expect("a choice").len(), 1);
    assert_eq!(catalog.audit().expect("an audit"), Vec::<String>::new());
}

fn scopes_keep_apart(catalog: &dyn Catalog) {
    let one = default_collection(catalog);
    let two = catalog.ensure_collection(&Actor::local(), "two", at(1)).expect("a collection").id;
    put(catalog, one, 1, vec![sample("a", "in one")]);
    put(catalog, two, 1, vec![sample("a", "in two")]);
    let inside = Scope::Collection(two);
    assert_eq!(catalog.choose(&inside, &Filter::default()).expect("a choice").len(), 1);
    assert!(catalog.hashed(&inside, &Digest::of(b"in one").to_string(), 9).expect("a read").is_empty());
    assert_eq!(catalog.collections(&inside).expect("a list").len(), 1);
    let nobody = Scope::Account(shelf_base::ids::AccountId::fresh());
    assert!(catalog.choose(&nobody, &Filter::default()).expect("a choice").is_empty());
    assert!(catalog.collections(&nobody).expect("a list").is_empty());
    assert!(catalog.snapshots(&nobody, &SnapshotFilter::default(), 10).expect("a list").is_empty());
}

fn draft(label: Option<&str>, listing: &str) -> SnapshotDraft {
    SnapshotDraft {
        label: label.map(str::to_owned),
        root: "/".into(),
        listing: Digest::of(listing.as_bytes()),
        stored: if listing.len().is_multiple_of(2) {
            crate::StoredListing::Inline(listing.as_bytes().to_vec())
        } else {
            crate::StoredListing::Blob { manifest: listing.as_bytes().to_vec(), size: listing.len() as u64 }
        },
        merkle: Digest::of(b"root"),
        files: 1,
        bytes: 1,
        git_commit: None,
        git_branch: None,
    }
}

fn snapshot(catalog: &dyn Catalog, collection: CollectionId, second: i64, listing: &str) -> Moment {
    let put = Put {
        actor: Actor::local(),
        collection: Shelf::Known(collection),
        now: at(second),
        documents: Vec::new(),
        loose: Vec::new(),
        snapshot: Some(draft(Some("l"), listing)),
        upload: None,
        fence: None,
        may_wait: true,
    };
    catalog.put(put).expect("a put").1.expect("a snapshot").at
}

/// The files of a library with documents of several versions, tags, a deletion and a snapshot, and their count.
pub fn furnish(catalog: &dyn Catalog) -> u64 {
    let collection = default_collection(catalog);
    let mut tagged = sample("tagged", "tagged");
    tagged.tags = ["a".to_owned(), "b".to_owned()].into();
    tagged.metadata.insert("key".into(), "value".into());
    let results = put(catalog, collection, 1, vec![sample("one", "1"), sample("gone", "x"), tagged]);
    put(catalog, collection, 2, vec![sample("one", "2")]);
    catalog.delete(&Actor::local(), &scope(), &[results[1].id], at(3)).expect("a delete");
    snapshot(catalog, collection, 4, "listing");
    let update = Update { add_tags: ["late".to_owned()].into(), ..Update::default() };
    catalog.update(&Actor::local(), &scope(), results[0].id, &update, at(5)).expect("an update");
    catalog.numbers(&scope(), &Filter::default()).expect("a list").len() as u64
}

fn a_clock_that_jumped_is_forgotten(catalog: &dyn Catalog) {
    let collection = default_collection(catalog);
    let ahead = snapshot(catalog, collection, 1_000_000, "ahead");
    let back = snapshot(catalog, collection, 10, "back");
    let again = snapshot(catalog, collection, 10, "again");
    assert_eq!((ahead, back), (at(1_000_000), at(10)));
    assert_eq!(again.micros(), at(10).micros() + 1);
}

fn snapshot_ids_are_unique(catalog: &dyn Catalog) {
    let collection = default_collection(catalog);
    let ids: Vec<Moment> = (0..3).map(|_| snapshot(catalog, collection, 5, "same time")).collect();
    assert_eq!(ids, [at(5), Moment::from_micros(5_000_001), Moment::from_micros(5_000_002)]);
    let listed: Vec<Moment> = catalog
        .snapshots(&scope(), &SnapshotFilter { collection: Some("default"), ..SnapshotFilter::default() }, 99)
        .expect("a list")
        .iter()
        .map(|s| s.at)
        .collect();
    assert_eq!(listed, ids.into_iter().rev().collect::<Vec<_>>());
}

fn the_journal_has_no_gaps_and_holds_together(catalog: Arc<dyn Catalog>) {
    let collection = default_collection(&*catalog);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let catalog = &catalog;
            scope.spawn(move || {
                for number in 0..25 {
                    put(
                        &**catalog,
                        collection,
                        1,
                        vec![sample(&format!("{thread}/{number}"), &format!("{thread} {number}"))],
                    );
                }
            });
        }
    });
    let records = catalog.journal(0, 10_000).expect("the journal");
    assert_eq!(records.len(), 201);
    let mut before = Record::genesis();
    for (at, record) in records.iter().enumerate() {
        assert_eq!(record.sequence, at as u64 + 1);
        assert_eq!(record.seal, record.expected_seal(&before));
        before = record.seal;
    }
    assert_eq!(records[0].operation, Operation::CreateCollection);
    assert_eq!(catalog.journal(199, 10).expect("the journal").len(), 2);
}

fn a_purge_keeps_what_it_must(catalog: &dyn Catalog) {
    let collection = default_collection(catalog);
    let results = put(
        catalog,
        collection,
        1,
        vec![sample("live", "live"), sample("gone", "gone"), sample("kept", "kept")],
    );
    let old = snapshot(catalog, collection, 2, "old listing");
    catalog.delete(&Actor::local(), &scope(), &[results[1].id, results[2].id], at(3)).expect("a delete");
    let hashes = catalog.version_hashes().expect("hashes");
    assert_eq!(hashes.iter().filter(|(_, live)| *live).count(), 1);
    let keep = [&b"live"[..], b"kept"].iter().map(|content| Digest::of(content)).collect();
    let purge = Purge {
        snapshots: vec![old],
        keep,
        blocks_of: Some(|manifest| vec![manifest.len() as i64]),
        followed: 0,
        fence: None,
    };
    let before = catalog.sequence().expect("a number");
    let numbers = catalog.changes(0, before).expect("changes").documents;
    let gone = numbers.iter().find(|document| document.path == "gone").expect("the document").number;
    catalog.purge(&Actor::local(), &purge, at(4)).expect("a purge");
    // Whoever has not heard of the deletion yet still does, also when it only wants to come to where it was then.
    for (after, until) in [(0, before), (before - 1, before), (before, before + 2)] {
        let buried = catalog.changes(after, until).expect("changes").buried;
        assert_eq!(buried, [gone], "after {after}");
    }
    assert!(catalog.changes(before + 2, before + 2).expect("changes").buried.is_empty());
    let operations: Vec<Operation> =
        catalog.journal(before, 9).expect("the journal").iter().map(|record| record.operation).collect();
    assert_eq!(operations, [Operation::DropSnapshot, Operation::Collect]);
    assert_eq!(catalog.audit().expect("an audit"), [""; 0]);
    assert!(catalog.blob(&Digest::of(b"gone")).expect("a read").is_none());
    assert!(catalog.blob(&Digest::of(b"kept")).expect("a read").is_some());
    assert!(catalog.snapshots(&scope(), &SnapshotFilter::default(), 99).expect("a list").is_empty());
    assert!(catalog.document(&scope(), results[0].id).expect("a read").is_some());
    assert!(catalog.integrity().expect("a check").is_empty());
    let again = Purge { followed: before + 2, ..purge };
    catalog.purge(&Actor::local(), &Purge { snapshots: Vec::new(), ..again }, at(5)).expect("a purge");
    assert!(catalog.changes(0, before).expect("changes").buried.is_empty(), "everybody has heard of it");
}

fn secrets_and_loose_blocks_stay(catalog: &dyn Catalog) {
    assert_eq!(catalog.secret("a", [1; 32]).expect("a secret"), [1; 32]);
    assert_eq!(catalog.secret("a", [2; 32]).expect("a secret"), [1; 32]);
    let collection = default_collection(catalog);
    let loose =
        vec![LooseBlock { id: [7; 32], bytes: vec![1, 2] }, LooseBlock { id: [8; 32], bytes: vec![3] }];
    let put = Put {
        actor: Actor::local(),
        collection: Shelf::Known(collection),
        now: at(1),
        documents: Vec::new(),
        loose: loose.clone(),
        snapshot: None,
        upload: None,
        fence: None,
        may_wait: true,
    };
    catalog.put(put).expect("a put");
    assert_eq!(catalog.loose_figures().expect("figures"), (2, 3));
    assert_eq!(catalog.loose(&[[8; 32], [9; 32]]).expect("a read"), [loose[1].clone()]);
    catalog.drop_loose(&[[7; 32]], None).expect("a drop");
    assert_eq!(catalog.loose_after(None, 9).expect("a read"), [loose[1].clone()]);
}

/// Changes rows behind the catalog's back, to see whether a check notices.
pub fn tamper(folder: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(folder.join("catalog.db")).expect("the database");
    connection.execute_batch(sql).expect("a change");
}

/// Takes the versions of the first documents away, as damage would, to see whether anything is deleted on that word.
pub fn lose_versions(folder: &Path, documents: u32) {
    tamper(folder, &format!("PRAGMA foreign_keys = off; DELETE FROM versions WHERE document <= {documents}"));
}
