//! Power loss and full disks: what was acknowledged is there afterwards, whole.

use std::{path::Path, sync::Arc};

use shelf_base::{CallContext, Digest, ErrorInfo, Kind, SystemClock};
use shelf_blocks::objects::{Folder, forgetful::Forgetful};
use shelf_engine::{AddRequest, Caller, GetRequest, Library, Options, What};

fn open(folder: &Path, disk: &Forgetful) -> Library {
    let packs = Arc::new(Folder::on(disk.clone(), "/simulated/packs"));
    Library::with(folder, packs, Arc::new(SystemClock), Options::default()).unwrap()
}

/// Bytes that do not compress, different for every seed.
fn content(seed: u32, length: u32) -> Vec<u8> {
    let mut state = u64::from(seed) * 2 + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn add(library: &Library, name: &str, bytes: &[u8]) -> Result<Digest, shelf_engine::Error> {
    let what = What::Content { name: name.to_owned(), bytes: bytes.to_vec() };
    Ok(library.add(&Caller::owner(), &AddRequest::new(what), &CallContext::new())?.hash)
}

fn reads(library: &Library, hash: &Digest) -> bool {
    let request = GetRequest { hash: Some(hash.to_string()), include_content: true, ..GetRequest::default() };
    library.get(&Caller::owner(), &request, &CallContext::new()).unwrap().is_some()
}

#[test]
fn acknowledged_adds_survive_a_power_cut_at_any_point() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Forgetful::default();
    let mut acknowledged = Vec::new();
    for round in 0..12 {
        let library = open(folder.path(), &disk);
        for number in 0..4 {
            let size = if number % 2 == 0 { 2_000 } else { 400_000 };
            let bytes = content(round * 10 + number, size);
            acknowledged.push(add(&library, &format!("{round}/{number}"), &bytes).unwrap());
        }
        if round % 3 == 0 {
            library.fold_now().unwrap();
        }
        disk.cut_power();
        let after = open(folder.path(), &disk);
        assert!(acknowledged.iter().all(|hash| reads(&after, hash)), "round {round}");
    }
    let report = open(folder.path(), &disk).check(&CallContext::new()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn a_folder_survives_too() {
    let source = tempfile::tempdir().unwrap();
    for number in 0..50 {
        std::fs::write(source.path().join(format!("f{number}")), content(number, 5_000)).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = Forgetful::default();
    let library = open(folder.path(), &disk);
    let request = AddRequest::new(What::Path(source.path().to_owned()));
    let added = library.add(&Caller::owner(), &request, &CallContext::new()).unwrap();
    assert_eq!(added.files_added, 50);
    disk.cut_power();
    let report = open(folder.path(), &disk).check(&CallContext::new()).unwrap();
    assert!(report.findings.is_empty() && report.blobs >= 50, "{report:?}");
}

#[test]
fn a_full_disk_is_said_and_nothing_is_half_done() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Forgetful::default();
    let library = open(folder.path(), &disk);
    let kept = add(&library, "kept", &content(1, 300_000)).unwrap();
    disk.limit(Some(10_000));
    let error = add(&library, "too much", &content(2, 3_000_000)).unwrap_err();
    assert_eq!(error.kind(), Kind::StorageFull);
    assert!(error.hints().iter().any(|hint| hint.contains("free some disk space")), "{error}");
    assert!(reads(&library, &kept));
    let report = library.check(&CallContext::new()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    disk.limit(None);
    assert!(add(&library, "too much", &content(2, 3_000_000)).is_ok());
}
