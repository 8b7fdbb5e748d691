//! Versions of a folder's files: each reads as it was stored, and costs about what was changed.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use shelf_base::CallContext;
use shelf_engine::{
    AddReply, AddRequest, Caller, DeleteRequest, GetRequest, Library, Options, What, maintain::Retention,
};

const FILES: u32 = 60;

/// Text that does not compress well, of some 12 KB.
fn text(seed: u32) -> String {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    (0..180)
        .map(|line| {
            format!(
                "{line} {:08x} {:08x} {:08x} {:08x} {:08x} {:08x}\n",
                next(),
                next(),
                next(),
                next(),
                next(),
                next()
            )
        })
        .collect()
}

fn changed(text: &str, generation: u32) -> String {
    let at = text.len() / 3 * (generation as usize % 2 + 1);
    format!("{}something new in generation {generation}\n{}", &text[..at], &text[at..])
}

fn add(library: &Library, folder: &Path) -> AddReply {
    let request = AddRequest::new(What::Path(folder.to_owned()));
    let reply = library.add(&Caller::owner(), &request, &CallContext::new()).unwrap();
    assert!(reply.failed.is_empty(), "{:?}", reply.failed);
    reply
}

fn packed(data: &Path) -> u64 {
    packs(data).iter().map(|pack| fs::metadata(pack).unwrap().len()).sum()
}

fn read(library: &Library, hash: &str) -> Option<String> {
    let request = GetRequest { hash: Some(hash.to_owned()), include_content: true, ..GetRequest::default() };
    let got = library.get(&Caller::owner(), &request, &CallContext::new()).unwrap()?;
    Some(got.content.unwrap().text)
}

fn hash(text: &str) -> String {
    shelf_base::Digest::of(text.as_bytes()).to_string()
}

#[test]
fn a_changed_line_of_each_file_stores_little_and_every_version_reads_as_it_was() {
    let (data, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let library = Library::open(data.path(), Options::default()).unwrap();
    let mut texts: Vec<String> = (0..FILES).map(text).collect();
    let mut all = texts.clone();
    let write = |texts: &[String]| {
        for (number, text) in texts.iter().enumerate() {
            fs::write(files.path().join(format!("{number}.txt")), text).unwrap();
        }
    };
    write(&texts);
    let first = add(&library, files.path());
    let before = packed(data.path());
    for generation in 1..=3 {
        texts = texts.iter().map(|text| changed(text, generation)).collect();
        all.extend(texts.iter().cloned());
        write(&texts);
        let reply = add(&library, files.path());
        assert_eq!((reply.files_updated, reply.files_added), (u64::from(FILES), u64::from(FILES)));
        assert!(reply.bytes_stored < first.bytes_stored / 50, "{} bytes are new", reply.bytes_stored);
    }
    let grown = packed(data.path()) - before;
    assert!(grown < before / 10, "three generations took {grown} bytes after {before}");
    assert!(all.iter().all(|text| read(&library, &hash(text)).as_ref() == Some(text)));
    assert!(library.check(&CallContext::new()).unwrap().findings.is_empty());
    // A version goes on when nothing but it needs the blocks that it was made of.
    let keep = Retention { keep_last: Some(1), ..Retention::default() };
    library.gc(&keep, Duration::from_secs(5), &CallContext::new()).unwrap();
    let names = (10..FILES).map(|number| files.path().join(format!("{number}.txt")).display().to_string());
    let request = DeleteRequest { names: names.collect(), ..DeleteRequest::default() };
    library.delete(&Caller::owner(), &request, &CallContext::new()).unwrap();
    (10..FILES).for_each(|number| fs::remove_file(files.path().join(format!("{number}.txt"))).unwrap());
    add(&library, files.path());
    library.gc(&keep, Duration::from_secs(5), &CallContext::new()).unwrap();
    assert!(packed(data.path()) < before, "the deleted documents are gone");
    drop(library);
    let library = Library::open(data.path(), Options::default()).unwrap();
    assert!(library.check(&CallContext::new()).unwrap().findings.is_empty());
    assert!(texts[..10].iter().all(|text| read(&library, &hash(text)).as_ref() == Some(text)));
}

/// Damages the packs that are there now and were not there `before`.
fn damage_packs(data: &Path, before: &[PathBuf]) {
    for pack in packs(data).into_iter().filter(|pack| !before.contains(pack)) {
        let mut bytes = fs::read(&pack).unwrap();
        bytes[2_000] ^= 1;
        fs::write(&pack, bytes).unwrap();
    }
}

fn packs(data: &Path) -> Vec<PathBuf> {
    fs::read_dir(data.join("packs")).unwrap().map(|pack| pack.unwrap().path()).collect()
}

#[test]
fn a_content_that_another_document_has_keeps_its_own_blocks() {
    let (data, one, other) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let library = Library::open(data.path(), Options::default()).unwrap();
    let shared = changed(&text(1), 1);
    fs::write(one.path().join("one.txt"), &shared).unwrap();
    add(&library, one.path());
    let before = packs(data.path());
    fs::write(other.path().join("other.txt"), text(1)).unwrap();
    add(&library, other.path());
    fs::write(other.path().join("other.txt"), &shared).unwrap();
    add(&library, other.path());
    drop(library);
    damage_packs(data.path(), &before);
    let library = Library::open(data.path(), Options::default()).unwrap();
    assert_eq!(
        read(&library, &hash(&shared)),
        Some(shared),
        "what the other document was before is not needed"
    );
}

#[test]
fn a_touched_version_stores_nothing() {
    let (data, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let library = Library::open(data.path(), Options::default()).unwrap();
    let file = files.path().join("file.txt");
    for generation in 0..3 {
        let text = if generation == 0 { text(1) } else { changed(&text(1), 1) };
        fs::write(&file, &text).unwrap();
        let before = if generation == 2 { packed(data.path()) } else { 0 };
        let reply = add(&library, files.path());
        if generation == 2 {
            assert_eq!((packed(data.path()), reply.bytes_stored), (before, 0));
        }
        assert_eq!(read(&library, &hash(&text)), Some(text));
    }
}

#[test]
fn what_an_earlier_version_cannot_give_is_stored_again() {
    let (data, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = files.path().join("file.txt");
    fs::write(&file, text(1)).unwrap();
    add(&Library::open(data.path(), Options::default()).unwrap(), files.path());
    damage_packs(data.path(), &[]);
    let new = changed(&text(1), 1);
    fs::write(&file, &new).unwrap();
    let library = Library::open(data.path(), Options::default()).unwrap();
    add(&library, files.path());
    assert_eq!(read(&library, &hash(&new)), Some(new));
}

#[test]
fn snapshots_of_a_large_folder_store_the_entries_that_changed() {
    let (data, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let library = Library::open(data.path(), Options::default()).unwrap();
    for number in 0..3_000 {
        fs::write(files.path().join(format!("{number}.txt")), format!("the text {number}")).unwrap();
    }
    add(&library, files.path());
    let before = packed(data.path());
    for number in [7, 70, 700] {
        fs::write(files.path().join(format!("{number}.txt")), "changed").unwrap();
    }
    fs::remove_file(files.path().join("1000.txt")).unwrap();
    fs::write(files.path().join("new.txt"), "new").unwrap();
    let second = add(&library, files.path());
    let grown = packed(data.path()) - before;
    assert!(grown < 4_000, "a snapshot with five changes took {grown} bytes after {before}");
    let (caller, call) = (Caller::owner(), CallContext::new());
    let listed = |library: &Library| {
        let snapshots = library.snapshots_after(&caller, None, None, 10).unwrap();
        snapshots.iter().map(|found| library.listing(found, &call).unwrap().entries.len()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&library), [3_000, 3_000]);
    let keep = Retention { keep_last: Some(1), ..Retention::default() };
    library.gc(&keep, Duration::from_secs(5), &call).unwrap();
    drop(library);
    let library = Library::open(data.path(), Options::default()).unwrap();
    assert_eq!(listed(&library), [3_000]);
    let left = library.snapshots_after(&caller, None, None, 10).unwrap().remove(0);
    let listing = library.listing(&left, &call).unwrap();
    assert_eq!((left.at, listing.merkle_root()), (second.snapshot, second.hash));
    assert!(library.check(&call).unwrap().findings.is_empty());
}
