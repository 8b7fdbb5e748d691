//! Damage on disk: noticed, named, and confined to what it touches.

use std::{fs, path::Path};

use shelf_base::{Call, Fault, Kind};
use shelf_engine::{AddRequest, Caller, GetRequest, House, Options, What};

fn content(seed: u32) -> Vec<u8> {
    (0..300_000_u32).map(|n| (n.wrapping_mul(seed * 2 + 1) >> 6) as u8).collect()
}

fn library(folder: &Path) -> House {
    let house = House::open(folder, Options::default()).unwrap();
    for number in 0..4 {
        let what = What::Content { name: format!("document-{number}"), bytes: content(number) };
        house.add(&Caller::owner(), &AddRequest::new(what), &Call::new()).unwrap();
    }
    house.fold_now().unwrap();
    house
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
    let house = House::open(folder.path(), Options::default()).unwrap();
    let report = house.check(&Call::new()).unwrap();
    let pack = packs[0].file_name().unwrap().to_str().unwrap();
    assert!(report.findings.iter().any(|finding| finding.place == pack), "{:?}", report.findings);
    let affected: Vec<&String> = report.findings.iter().flat_map(|finding| &finding.affects).collect();
    assert_eq!(affected.len(), 1, "{affected:?}");
    for number in 0..4 {
        let name = format!("document-{number}");
        let request = GetRequest { name: Some(name.clone()), include_content: true, ..GetRequest::default() };
        let got = house.get(&Caller::owner(), &request, &Call::new());
        if affected[0].starts_with(&name) {
            assert_eq!(got.unwrap_err().kind(), Kind::Corrupt);
        } else {
            assert!(got.unwrap().is_some());
        }
    }
    // Adding the same bytes again does not hide the damage, since the store believes it has the block; but a fresh
    // look after the broken pack is gone heals it.
    fs::remove_file(&packs[0]).unwrap();
    let house = House::open(folder.path(), Options::default()).unwrap();
    for number in 0..4 {
        let what = What::Content { name: format!("document-{number}"), bytes: content(number) };
        house.add(&Caller::owner(), &AddRequest::new(what), &Call::new()).unwrap();
    }
    assert!(
        house
            .check(&Call::new())
            .unwrap()
            .findings
            .iter()
            .all(|finding| !finding.place.starts_with("content"))
    );
}

#[test]
fn an_edited_journal_row_breaks_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    drop(library(folder.path()));
    assert!(
        House::open(folder.path(), Options::default())
            .unwrap()
            .check(&Call::new())
            .unwrap()
            .findings
            .is_empty()
    );
    let database =
        fs::read_dir(folder.path()).unwrap().any(|entry| entry.unwrap().file_name() == "catalog.db");
    assert!(database);
    shelf_catalog::suite::tamper_with_journal(folder.path(), 3);
    let house = House::open(folder.path(), Options::default()).unwrap();
    let report = house.check(&Call::new()).unwrap();
    assert!(report.findings.iter().any(|finding| finding.place == "journal row 3"), "{:?}", report.findings);
}
