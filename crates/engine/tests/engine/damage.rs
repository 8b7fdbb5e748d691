//! Damage on disk: noticed, named, and confined to what it touches.

use std::{fs, path::Path};

use shelf_base::{CallContext, ErrorInfo, Kind};
use shelf_engine::{AddRequest, Caller, GetRequest, Library, Options, What};

fn content(seed: u32) -> Vec<u8> {
    (0..300_000_u32).map(|n| (n.wrapping_mul(seed * 2 + 1) >> 6) as u8).collect()
}

fn library(folder: &Path) -> Library {
    let library = Library::open(folder, Options::default()).unwrap();
    for number in 0..4 {
        let what = What::Content { name: format!("document-{number}"), bytes: content(number) };
        library.add(&Caller::owner(), &AddRequest::new(what), &CallContext::new()).unwrap();
    }
    library.fold_now().unwrap();
    library
}

#[test]
fn a_flipped_bit_in_a_pack_is_found_named_and_confined() {
    let folder = tempfile::tempdir().unwrap();
    drop(library(folder.path()));
    let mut packs: Vec<_> =
        fs::read_dir(folder.path().join("packs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    packs.sort_by_key(|path| std::cmp::Reverse(fs::metadata(path).unwrap().len()));
    let mut bytes = fs::read(&packs[0]).unwrap();
    bytes[5_000] ^= 4;
    fs::write(&packs[0], bytes).unwrap();
    let library = Library::open(folder.path(), Options::default()).unwrap();
    let report = library.check(&CallContext::new()).unwrap();
    let pack = packs[0].file_name().unwrap().to_str().unwrap();
    assert!(report.findings.iter().any(|finding| finding.place == pack), "{:?}", report.findings);
    let affected: Vec<&String> = report.findings.iter().flat_map(|finding| &finding.affects).collect();
    assert_eq!(affected.len(), 1, "{affected:?}");
    for number in 0..4 {
        let name = format!("document-{number}");
        let request = GetRequest { name: Some(name.clone()), include_content: true, ..GetRequest::default() };
        let got = library.get(&Caller::owner(), &request, &CallContext::new());
        if affected[0].starts_with(&name) {
            assert_eq!(got.unwrap_err().kind(), Kind::Corrupt);
        } else {
            assert!(got.unwrap().is_some());
        }
    }
    // A repair takes the damaged pack out of use, and the same bytes heal the document.
    assert!(
        !library.repair(&CallContext::new()).unwrap().findings.is_empty(),
        "lost bytes are still reported"
    );
    assert!(!packs[0].exists());
    for number in 0..4 {
        let what = What::Content { name: format!("document-{number}"), bytes: content(number) };
        library.add(&Caller::owner(), &AddRequest::new(what), &CallContext::new()).unwrap();
    }
    let healed = library.check(&CallContext::new()).unwrap();
    assert!(healed.findings.is_empty(), "{:?}", healed.findings);
}

#[test]
fn a_server_that_saw_the_damage_stores_the_bytes_anew() {
    let folder = tempfile::tempdir().unwrap();
    drop(library(folder.path()));
    for entry in fs::read_dir(folder.path().join("packs")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        bytes[300] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    let library = Library::open(folder.path(), Options::default()).unwrap();
    let get = |name: &str| {
        let request = GetRequest { name: Some(name.into()), include_content: true, ..GetRequest::default() };
        library.get(&Caller::owner(), &request, &CallContext::new())
    };
    let broken: Vec<u32> = (0..4).filter(|number| get(&format!("document-{number}")).is_err()).collect();
    assert!(!broken.is_empty());
    for number in broken {
        let what = What::Content { name: format!("copy-{number}"), bytes: content(number) };
        library.add(&Caller::owner(), &AddRequest::new(what), &CallContext::new()).unwrap();
        assert!(get(&format!("copy-{number}")).unwrap().is_some());
        assert!(get(&format!("document-{number}")).unwrap().is_some(), "the old document is healed with it");
    }
}

#[test]
fn a_document_with_the_bytes_of_a_listing_does_not_confuse_a_collection() {
    let folder = tempfile::tempdir().unwrap();
    let library = Library::open(folder.path(), Options::default()).unwrap();
    let (caller, call) = (Caller::owner(), CallContext::new());
    let add = |name: &str, bytes: Vec<u8>| {
        let what = What::Content { name: name.into(), bytes };
        library.add(&caller, &AddRequest::new(what), &call).unwrap()
    };
    add("precious", b"precious".to_vec());
    let snapshot = library.snapshots_after(&caller, None, None, 1).unwrap().remove(0);
    add("twin", library.listing(&snapshot, &call).unwrap().encode());
    let request = shelf_engine::DeleteRequest { names: vec!["precious".into()], ..Default::default() };
    library.delete(&caller, &request, &call).unwrap();
    library
        .gc(&shelf_engine::maintain::Retention::default(), std::time::Duration::from_secs(5), &call)
        .unwrap();
    assert!(library.check(&call).unwrap().findings.is_empty());
}

#[test]
fn an_edited_journal_row_breaks_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    drop(library(folder.path()));
    assert!(
        Library::open(folder.path(), Options::default())
            .unwrap()
            .check(&CallContext::new())
            .unwrap()
            .findings
            .is_empty()
    );
    let database =
        fs::read_dir(folder.path()).unwrap().any(|entry| entry.unwrap().file_name() == "catalog.db");
    assert!(database);
    shelf_catalog::suite::tamper(folder.path(), "UPDATE journal SET path = path || 'x' WHERE sequence = 3");
    let library = Library::open(folder.path(), Options::default()).unwrap();
    let report = library.check(&CallContext::new()).unwrap();
    assert!(report.findings.iter().any(|finding| finding.place == "journal row 3"), "{:?}", report.findings);
}

#[test]
fn an_audit_follows_the_chain_of_the_journal() {
    for change in [
        "UPDATE journal SET token = 'somebody' WHERE sequence = 2",
        "UPDATE journal SET at = at + 1 WHERE sequence = 2",
        "UPDATE journal SET operation = 'replace' WHERE sequence = 2",
        "UPDATE journal SET previous = new WHERE sequence = 2",
        "UPDATE journal SET seal = zeroblob(32) WHERE sequence = 2",
        "UPDATE journal SET sequence = 1000 WHERE sequence = 2",
    ] {
        let folder = tempfile::tempdir().unwrap();
        drop(library(folder.path()));
        let audit = || {
            let library = Library::open(folder.path(), Options::default()).unwrap();
            library.audit(&CallContext::new()).unwrap()
        };
        let (records, findings) = audit();
        assert!(records > 2 && findings.is_empty(), "{findings:?}");
        shelf_catalog::suite::tamper(folder.path(), change);
        let (_, findings) = audit();
        assert!(findings.iter().any(|finding| finding.contains("journal")), "{change}: {findings:?}");
    }
}
