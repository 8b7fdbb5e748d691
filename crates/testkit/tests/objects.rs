//! Object storage: one suite on every kind of it, and a network that fails.

use std::{
    fs,
    io::Write,
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use shelf_base::Secret;
use shelf_blocks::objects::{
    Bucket, BucketSettings, ByteRange, CacheFigures, Cached, Failure, Folder, Memory, Objects, suite,
};
use shelf_testkit::{Proxy, S3Server, Weather};

fn settings(address: SocketAddr) -> BucketSettings {
    BucketSettings {
        endpoint: Some(format!("http://{address}")),
        keys: Some((S3Server::KEY.into(), Secret::new(S3Server::SECRET.into()))),
        patience: Duration::from_secs(60),
        retries: Duration::from_secs(120),
        ..BucketSettings::new(S3Server::BUCKET, "some/library")
    }
}

fn bucket(address: SocketAddr) -> Bucket {
    Bucket::new(&settings(address)).unwrap()
}

/// Gives up soon.
fn hasty(address: SocketAddr) -> Bucket {
    let retries = Duration::from_millis(400);
    Bucket::new(&BucketSettings { retries, patience: Duration::from_secs(20), ..settings(address) }).unwrap()
}

fn range(offset: u64, length: usize) -> [ByteRange; 1] {
    [ByteRange { offset, length }]
}

#[test]
fn memory_behaves() {
    suite::run(&Memory::default());
}

#[test]
fn a_folder_behaves() {
    let folder = tempfile::tempdir().unwrap();
    suite::run(&Folder::new(folder.path().join("packs")));
}

#[test]
fn copies_behave() {
    let folder = tempfile::tempdir().unwrap();
    suite::run(&Cached::new(Arc::new(Memory::default()), folder.path().join("cache"), 8 << 20));
}

#[test]
fn a_bucket_behaves() {
    let server = S3Server::start();
    suite::run(&bucket(server.address()));
    assert!(server.file("some/library/packs/one.pack").is_file(), "the prefix precedes all names");
}

#[test]
fn copies_of_a_bucket_behave() {
    let (server, folder) = (S3Server::start(), tempfile::tempdir().unwrap());
    suite::run(&Cached::new(Arc::new(bucket(server.address())), folder.path().join("cache"), 64 << 20));
}

/// Another implementation, when one is configured: `TEST_S3=s3://bucket/prefix` with the usual variables.
#[test]
fn a_configured_store_behaves() {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let Some(address) = variable("TEST_S3") else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: set TEST_S3=s3://bucket/prefix to test another store");
        return;
    };
    let settings = BucketSettings {
        endpoint: variable("AWS_ENDPOINT_URL"),
        region: variable("AWS_REGION"),
        keys: variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY").map(Secret::new)),
        ..BucketSettings::parse(&address).expect("TEST_S3 is s3://bucket/prefix")
    };
    suite::run(&Bucket::new(&settings).unwrap());
}

#[test]
fn a_network_that_fails_costs_time_only() {
    let server = S3Server::start();
    let proxy = Proxy::before(server.address());
    let objects = bucket(proxy.address());
    proxy.set(Weather { delay: Duration::from_millis(1), dropped: 10, cut: 12, busy: 15, away: false });
    let content = |number: usize| vec![number as u8; 1 + number * 20_011 % 150_000];
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let objects = &objects;
            scope.spawn(move || {
                for number in (thread..24).step_by(4) {
                    objects.put(&format!("{number}.pack"), &[&content(number)]).unwrap();
                }
            });
        }
    });
    // In parts, too.
    let large = vec![7; 17 << 20];
    // An answer of many pieces would hardly ever get through whole if each of them could be cut.
    proxy.set(Weather { dropped: 10, busy: 15, ..Weather::CLEAR });
    objects.put("large.pack", &[&large]).unwrap();
    assert!(objects.read("large.pack", &range(0, large.len())).unwrap()[0] == large);
    proxy.set(Weather { dropped: 10, cut: 2, busy: 15, ..Weather::CLEAR });
    assert_eq!(objects.list("").unwrap().len(), 25);
    for number in 0..24 {
        let (name, content) = (format!("{number}.pack"), content(number));
        assert!(objects.read(&name, &range(0, content.len())).unwrap()[0] == content, "{name}");
    }
    (0..24).for_each(|number| objects.delete(&format!("{number}.pack")).unwrap());
    assert!(proxy.faults() > 20 && objects.failed_requests() > 20, "{} faults", proxy.faults());
    proxy.set(Weather::CLEAR);
    assert_eq!(objects.list("").unwrap().len(), 1);
}

/// How long that is, is a promise: a store that restarts is not waited for in vain.
#[test]
fn requests_are_repeated_for_as_long_as_promised() {
    let server = S3Server::start();
    let proxy = Proxy::before(server.address());
    let retries = Duration::from_secs(6);
    let objects = Bucket::new(&BucketSettings { retries, ..settings(proxy.address()) }).unwrap();
    proxy.set(Weather { busy: 100, ..Weather::CLEAR });
    let started = Instant::now();
    let error = objects.length("none.pack").unwrap_err();
    assert_eq!(Failure::of(&error), Some(Failure::Throttled), "{error}");
    assert!(started.elapsed() >= retries, "{:?}", started.elapsed());
    assert!(proxy.faults() < 200, "the pauses grow: {} requests", proxy.faults());
}

#[test]
fn a_bucket_without_keys_is_refused_at_once() {
    let settings = BucketSettings { without_role: true, ..BucketSettings::new("library", "one") };
    let error = Bucket::new(&settings).err().expect("an error");
    assert!(error.to_string().contains("no keys are set"), "{error}");
}

#[test]
fn failures_are_told_apart() {
    let server = S3Server::start();
    let proxy = Proxy::before(server.address());
    let objects = hasty(proxy.address());
    objects.put("here.pack", &[b"here"]).unwrap();
    let failure = |objects: &dyn Objects| {
        let failures = [
            objects.read("here.pack", &range(0, 4)).map(drop),
            objects.length("here.pack").map(drop),
            objects.list("").map(drop),
            objects.put("new.pack", &[b"new"]),
        ];
        let first = Failure::of(failures[0].as_ref().unwrap_err());
        for failed in &failures {
            let error = failed.as_ref().unwrap_err();
            assert_eq!(Failure::of(error), first, "{error}");
        }
        (first.unwrap(), failures[0].as_ref().unwrap_err().to_string())
    };
    let gone = objects.read("none.pack", &range(0, 1)).unwrap_err();
    assert_eq!(Failure::of(&gone), Some(Failure::Gone));
    proxy.set(Weather { busy: 100, ..Weather::CLEAR });
    let (found, text) = failure(&objects);
    assert!(found == Failure::Throttled && text.contains("503"), "{found:?} {text}");
    proxy.set(Weather { away: true, ..Weather::CLEAR });
    assert_eq!(failure(&objects).0, Failure::Away);
    proxy.set(Weather::CLEAR);
    assert_eq!(objects.read("here.pack", &range(0, 4)).unwrap()[0], b"here", "it comes back by itself");
    let keys = Some((S3Server::KEY.to_owned(), Secret::new("another".into())));
    let stranger = Bucket::new(&BucketSettings { keys, ..settings(server.address()) }).unwrap();
    let (found, text) = failure(&stranger);
    assert!(found == Failure::Denied && !text.contains("another"), "{found:?} {text}");
    let nowhere = BucketSettings { bucket: "nowhere".into(), ..settings(server.address()) };
    let error = Bucket::new(&nowhere).unwrap().list("").unwrap_err();
    assert!(
        Failure::of(&error) == Some(Failure::Denied) && error.to_string().contains("no such bucket"),
        "{error}"
    );
}

/// Puts some objects into a memory, and gives a cache over it that has seen none of them.
fn cached(folder: &Path, bound: u64) -> (Memory, Cached) {
    let memory = Memory::default();
    for number in 0..6_u8 {
        memory.put(&format!("{number}.pack"), &[&vec![number; 300_000]]).unwrap();
    }
    (memory.clone(), Cached::new(Arc::new(memory), folder, bound))
}

fn bytes_in(folder: &Path) -> u64 {
    let objects = fs::read_dir(folder).unwrap().map(|object| object.unwrap().path());
    let files = objects.flat_map(|object| fs::read_dir(object).unwrap());
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn copies_survive_a_restart_and_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, cache) = cached(folder.path(), 8 << 20);
    let read = |cache: &Cached, name: &str| cache.read(name, &range(270_000, 10)).unwrap().remove(0);
    assert_eq!(read(&cache, "3.pack"), [3; 10]);
    assert_eq!(read(&cache, "3.pack"), [3; 10]);
    assert_eq!(cache.figures(), CacheFigures { hits: 1, misses: 1, damaged: 0 });
    // Another process, or the same one later.
    let cache = Cached::new(Arc::new(memory.clone()), folder.path(), 8 << 20);
    assert_eq!(read(&cache, "3.pack"), [3; 10]);
    assert_eq!(cache.figures(), CacheFigures { hits: 1, misses: 0, damaged: 0 });
    let copy = folder.path().join("3.pack/1");
    let mut bytes = fs::read(&copy).unwrap();
    bytes[9_000] ^= 1;
    fs::write(&copy, &bytes).unwrap();
    assert_eq!(read(&cache, "3.pack"), [3; 10]);
    assert_eq!(cache.figures(), CacheFigures { hits: 1, misses: 1, damaged: 1 });
    fs::write(&copy, &bytes[..100]).unwrap();
    assert_eq!(read(&cache, "3.pack"), [3; 10]);
    assert_eq!(cache.figures().damaged, 2);
    assert_eq!(read(&cache, "3.pack"), [3; 10]);
    assert_eq!(cache.figures(), CacheFigures { hits: 2, misses: 2, damaged: 2 });
    // What is gone from the store is gone here, once the store was asked; and what is distrusted is fetched.
    memory.tamper("3.pack", |bytes| bytes.fill(9));
    assert_eq!(read(&cache, "3.pack"), [3; 10]);
    assert!(cache.distrust("3.pack"));
    assert_eq!(read(&cache, "3.pack"), [9; 10]);
    memory.delete("3.pack").unwrap();
    assert!(cache.length("3.pack").is_err());
    assert!(cache.read("3.pack", &range(0, 1)).is_err() && !copy.exists());
}

#[test]
fn what_was_used_least_recently_goes_first() {
    let folder = tempfile::tempdir().unwrap();
    // Each object takes a chunk of 262,144 bytes and a rest.
    let (_, cache) = cached(folder.path(), 1_300_000);
    let read = |number: u8| {
        let found = cache.read(&format!("{number}.pack"), &range(0, 300_000)).unwrap();
        assert!(found[0] == vec![number; 300_000]);
        std::thread::sleep(Duration::from_millis(15));
    };
    (0..4).for_each(read);
    read(0);
    (4..6).for_each(read);
    assert!(bytes_in(folder.path()) <= 1_300_000, "{}", bytes_in(folder.path()));
    let before = cache.figures();
    read(0);
    read(5);
    assert_eq!(cache.figures().misses, before.misses, "what was used again is still here");
    read(1);
    assert!(cache.figures().misses > before.misses, "what was not used has gone");
}
