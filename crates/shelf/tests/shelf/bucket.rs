//! A library whose packs are in a bucket: every command, a network that fails, moving there and back.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};
use shelf_testkit::{Proxy, S3Server, Weather};

use crate::{binary, files, http::Server, storm::Dice};

/// A library, and the way to its bucket.
struct Place {
    library: PathBuf,
    variables: Vec<(&'static str, String)>,
}

impl Place {
    fn new(library: PathBuf, address: SocketAddr, objects: Option<&str>) -> Self {
        let mut variables = S3Server::environment(address).to_vec();
        variables.extend(objects.map(|objects| ("SHELF_OBJECTS", objects.to_owned())));
        Self { library, variables }
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::new(binary())
            .arg("--data-dir")
            .arg(&self.library)
            .args(arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env_remove("SHELF_TOKEN")
            .output()
            .expect("the program runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {out}{err}");
        out
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[arguments, &["--json"]].concat())).unwrap()
    }

    fn server(&self, more: &[&str]) -> Server {
        let variables: Vec<(&str, &str)> =
            self.variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Server::start_with(&self.library, more, &variables)
    }
}

const OBJECTS: &str = "s3://library/one";

/// Bytes that do not compress, and that nobody indexes.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut dice = Dice(seed * 2 + 1);
    (0..length).map(|_| dice.roll(256) as u8).collect()
}

fn packs_in(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".pack"));
    names.sort();
    names
}

/// A folder of files with one that takes a pack or two.
fn tree(folder: &Path) -> PathBuf {
    let tree = files(folder, 40);
    fs::write(tree.join("large.bin"), noise(1, 900_000)).unwrap();
    fs::write(tree.join("birds.txt"), "the curlew calls\n").unwrap();
    tree
}

/// On a busy machine the bucket may be slow to answer.
fn becomes_ready(server: &Server) -> bool {
    (0..100).any(|_| {
        let is_ready = server.request("GET", "/readyz", &[], "").0 == 200;
        if !is_ready {
            std::thread::sleep(Duration::from_millis(200));
        }
        is_ready
    })
}

#[test]
fn everything_works_with_packs_in_a_bucket() {
    let (server, folder) = (S3Server::start(), tempfile::tempdir().unwrap());
    let place = Place::new(folder.path().join("library"), server.address(), Some(OBJECTS));
    let tree = tree(folder.path());
    place.ok(&["add", tree.to_str().unwrap(), "--label", "first"]);
    let bucket = server.file("one/packs");
    assert!(!packs_in(&bucket).is_empty(), "packs are in the bucket");
    assert_eq!(packs_in(&place.library.join("packs")), [""; 0], "and not in the folder");
    let hits = place.json(&["search", "curlew calls"]);
    assert!(hits["results"][0]["path"].as_str().unwrap().ends_with("birds.txt"), "{hits}");
    let copy = folder.path().join("copy");
    place.ok(&["get", "large.bin", "-o", copy.to_str().unwrap()]);
    assert!(fs::read(&copy).unwrap() == fs::read(tree.join("large.bin")).unwrap());
    // Without a setting the library knows where its packs are; with another, nothing begins there.
    let plain = Place::new(place.library.clone(), server.address(), None);
    fs::remove_dir_all(place.library.join("cache")).unwrap();
    plain.ok(&["get", "large.bin", "-o", copy.to_str().unwrap(), "--overwrite"]);
    assert!(fs::read(&copy).unwrap() == fs::read(tree.join("large.bin")).unwrap());
    for other in ["s3://library/two", "folder"] {
        let elsewhere = Place::new(place.library.clone(), server.address(), Some(other));
        let (code, _, err) = elsewhere.run(&["list"]);
        assert!(
            code == 3 && err.contains("are in s3://library/one") && err.contains("shelf migrate"),
            "{err}"
        );
    }
    // Another library may not share it.
    let second = Place::new(folder.path().join("second"), server.address(), Some(OBJECTS));
    let (code, _, err) = second.run(&["add", tree.to_str().unwrap()]);
    assert!(code != 0 && (err.contains("catalog") || err.contains("another library")), "{code} {err}");

    place.ok(&["delete", "large.bin"]);
    place.ok(&["add", tree.join("05").to_str().unwrap()]);
    place.ok(&["gc", "--keep-last", "0", "--drop-labelled", "--yes"]);
    place.ok(&["check"]);
    place.ok(&["doctor"]);
    let after: u64 =
        packs_in(&bucket).iter().map(|name| fs::metadata(bucket.join(name)).unwrap().len()).sum();
    assert!(after < 300_000, "garbage collection frees the bucket: {after}");
    let listed = place.ok(&["list", "--paths"]);
    assert!(listed.lines().count() == 41 && !listed.contains("large"), "{listed}");
    let status = place.json(&["status", "--detailed"]);
    assert!(status.to_string().contains("packs"), "{status}");
}

#[test]
fn damage_in_the_bucket_is_found_and_mended() {
    let (server, folder) = (S3Server::start(), tempfile::tempdir().unwrap());
    let place = Place::new(folder.path().join("library"), server.address(), Some(OBJECTS));
    let tree = tree(folder.path());
    place.ok(&["add", tree.to_str().unwrap()]);
    let bucket = server.file("one/packs");
    let pack = bucket.join(&packs_in(&bucket)[0]);
    let mut bytes = fs::read(&pack).unwrap();
    bytes[5_000] ^= 1;
    fs::write(&pack, bytes).unwrap();
    // The copies on this machine are whole; the check asks the bucket all the same.
    let (code, out, err) = place.run(&["check"]);
    assert!(code == 9 && out.contains(".pack"), "{code} {out}{err}");
    place.run(&["check", "--repair"]);
    place.ok(&["add", tree.to_str().unwrap()]);
    place.ok(&["check"]);
}

#[test]
fn a_network_that_fails_loses_nothing_and_says_so() {
    let (server, folder) = (S3Server::start(), tempfile::tempdir().unwrap());
    let proxy = Proxy::before(server.address());
    let place = Place::new(folder.path().join("library"), proxy.address(), Some(OBJECTS));
    let tree = tree(folder.path());
    proxy.set(Weather { delay: Duration::from_millis(1), dropped: 8, cut: 4, busy: 15, away: false });
    place.ok(&["add", tree.to_str().unwrap()]);
    // A few requests may all get through.
    let fails = |_| {
        place.ok(&["check"]);
        proxy.faults() > 0
    };
    assert!(proxy.faults() > 0 || (0..50).any(fails));
    proxy.set(Weather::CLEAR);
    place.ok(&["check"]);

    let running = place.server(&["--no-auth"]);
    assert!(becomes_ready(&running));
    proxy.set(Weather { away: true, ..Weather::CLEAR });
    let (code, _, body) = running.request("GET", "/readyz", &[], "");
    assert!(code == 503 && body.contains("objects") && body.contains("does not answer"), "{code} {body}");
    let (code, out, err) = place.run(&["doctor"]);
    assert!(
        code != 0 && out.contains("BAD  objects") && out.contains("AWS_ENDPOINT_URL"),
        "{code} {out}{err}"
    );
    proxy.set(Weather::CLEAR);
    assert!(becomes_ready(&running), "it comes back by itself");
}

#[test]
fn wrong_keys_and_settings_are_explained() {
    let (server, folder) = (S3Server::start(), tempfile::tempdir().unwrap());
    let file = folder.path().join("file");
    fs::write(&file, noise(4, 300_000)).unwrap();
    let mut place = Place::new(folder.path().join("library"), server.address(), Some(OBJECTS));
    place.variables.retain(|(name, _)| *name != "AWS_SECRET_ACCESS_KEY");
    place.variables.push(("AWS_SECRET_ACCESS_KEY", "not the secret".into()));
    let (code, _, err) = place.run(&["add", file.to_str().unwrap()]);
    assert!(code == 6 && err.contains("refuses") && err.contains("AWS_SECRET_ACCESS_KEY"), "{code} {err}");
    assert!(!err.contains("not the secret"), "{err}");
    let typo = Place::new(folder.path().join("library"), server.address(), Some("s3:/library"));
    let (code, _, err) = typo.run(&["add", file.to_str().unwrap()]);
    assert!(code == 2 && err.contains("SHELF_OBJECTS") && err.contains("s3://bucket/prefix"), "{code} {err}");
}

#[test]
fn packs_move_to_a_bucket_and_back() {
    let (server, folder) = (S3Server::start(), tempfile::tempdir().unwrap());
    let place = Place::new(folder.path().join("library"), server.address(), None);
    let tree = tree(folder.path());
    place.ok(&["add", tree.to_str().unwrap(), "--label", "first"]);
    place.ok(&["call", "add", &json!({ "name": "note", "content": "the avocet wades" }).to_string()]);
    let (listed, local) = (place.ok(&["list", "--json"]), packs_in(&place.library.join("packs")));
    // An attempt that was broken off left a whole pack, and half of another under its name.
    let bucket = server.file("one/packs");
    fs::create_dir_all(&bucket).unwrap();
    let half = fs::read(place.library.join("packs").join(&local[0])).unwrap();
    fs::write(bucket.join(&local[0]), &half[..half.len() / 2]).unwrap();
    let moved = place.json(&["migrate", "--to", OBJECTS]);
    assert_eq!(
        (&moved["packs"], &moved["from"], &moved["to"]),
        (&json!(local.len()), &json!("folder"), &json!(OBJECTS))
    );
    assert_eq!(packs_in(&bucket), local);
    assert_eq!(packs_in(&place.library.join("packs")), local, "the old packs stay unless they are to go");
    fs::remove_dir_all(place.library.join("packs")).unwrap();
    assert_eq!(place.ok(&["list", "--json"]), listed);
    place.ok(&["check"]);
    let (code, _, err) = place.run(&["migrate", "--to", OBJECTS]);
    assert!(code == 5 && err.contains("already"), "{code} {err}");
    // A backup does not care where the packs are.
    let backup = folder.path().join("backup.shelf");
    place.ok(&["backup", backup.to_str().unwrap()]);
    let restored = Place::new(folder.path().join("restored"), server.address(), Some("s3://library/three"));
    restored.ok(&["restore-library", backup.to_str().unwrap()]);
    assert_eq!(restored.ok(&["list", "--json"]), listed);
    restored.ok(&["check"]);
    assert_eq!(packs_in(&server.file("three/packs")), local);

    place.ok(&["migrate", "--to", "folder", "--delete-old"]);
    assert_eq!(packs_in(&bucket), [""; 0]);
    assert_eq!(packs_in(&place.library.join("packs")), local);
    place.ok(&["check"]);
    place.ok(&["add", tree.join("03").to_str().unwrap()]);
    let (code, _, err) = place.run(&["migrate", "--to", "ftp://db/shelf"]);
    assert!(code == 2 && err.contains("s3://bucket/prefix"), "{code} {err}");
}

/// A server that has the library open goes on reading, and does not write to packs that nobody looks at any more.
#[test]
fn a_server_notices_that_packs_were_moved() {
    let (server, folder) = (S3Server::start(), tempfile::tempdir().unwrap());
    let place = Place::new(folder.path().join("library"), server.address(), None);
    place.ok(&["add", tree(folder.path()).to_str().unwrap()]);
    let running = place.server(&["--no-auth"]);
    let add = |name: &str| {
        let body = json!({ "name": name, "content": "text" }).to_string();
        let headers = [("Content-Type", "application/json")];
        running.request("POST", "/api/v1/tools/add", &headers, &body)
    };
    let (code, _, body) = add("before");
    assert_eq!(code, 200, "{body}");
    place.ok(&["migrate", "--to", OBJECTS]);
    let (code, _, body) = add("after");
    assert!(
        code != 200 && body.contains("have been moved to s3://library/one") && body.contains("restart"),
        "{body}"
    );
    let listed = place.ok(&["list", "--paths"]);
    assert!(listed.contains("before") && !listed.contains("after"), "{listed}");
    place.ok(&["check"]);
}
