//! Where the packs of a library are that several machines use: all of them find them at one place, whatever their settings
//! say, and nobody writes where the others do not look.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use shelf_testkit::{Postgres, S3Server};

use crate::{binary, http::Server, storm::Dice};

/// One machine: a data directory of its own, and settings.
struct Machine {
    library: PathBuf,
    variables: Vec<(&'static str, String)>,
}

/// What the machines of a test share.
struct Shared {
    postgres: Postgres,
    bucket: S3Server,
    folder: tempfile::TempDir,
}

impl Shared {
    fn start() -> Option<Self> {
        let postgres = Postgres::start()?;
        Some(Self { postgres, bucket: S3Server::start(), folder: tempfile::tempdir().unwrap() })
    }

    /// A machine whose setting says that the packs are at `objects`, or says nothing.
    fn machine(&self, name: &str, objects: Option<&str>) -> Machine {
        let mut variables = S3Server::environment(self.bucket.address()).to_vec();
        variables.push(("SHELF_CATALOG", self.postgres.address("places")));
        variables.extend(objects.map(|objects| ("SHELF_OBJECTS", objects.to_owned())));
        Machine { library: self.folder.path().join(name), variables }
    }

    /// A file that goes to a pack at once.
    fn file(&self, number: u64) -> PathBuf {
        let path = self.folder.path().join(format!("{number}.bin"));
        let mut dice = Dice(number * 2 + 1);
        fs::write(&path, (0..300_000).map(|_| dice.roll(256) as u8).collect::<Vec<u8>>()).unwrap();
        path
    }

    fn packs(&self, prefix: &str) -> usize {
        let found =
            fs::read_dir(self.bucket.file(&format!("{prefix}/packs"))).into_iter().flatten().flatten();
        found.filter(|entry| entry.file_name().to_string_lossy().ends_with(".pack")).count()
    }
}

impl Machine {
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::new(binary())
            .arg("--data-dir")
            .arg(&self.library)
            .args(arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("AWS_EC2_METADATA_DISABLED", "true")
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

    fn add(&self, file: &Path) {
        self.ok(&["add", file.to_str().unwrap()]);
    }

    fn refused(&self, arguments: &[&str], what: &str) {
        let (code, out, err) = self.run(arguments);
        assert!(code != 0 && err.contains(what), "{arguments:?}: {code} {out}{err}");
    }

    fn server(&self) -> Server {
        let variables: Vec<(&str, &str)> =
            self.variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Server::start_with(&self.library, &["--no-auth"], &variables)
    }
}

#[test]
fn a_machine_that_looks_elsewhere_is_refused_before_it_writes() {
    let Some(shared) = Shared::start() else { return };
    let first = shared.machine("first", Some("s3://library/one"));
    first.add(&shared.file(1));
    let typo = shared.machine("typo", Some("s3://library/typo"));
    let file = shared.file(2);
    typo.refused(&["add", file.to_str().unwrap()], "are in s3://library/one, not in s3://library/typo");
    assert!(!shared.bucket.file("typo").exists(), "nothing was written");
    // Without a setting the catalog says it; whoever names the right place may join as well.
    for (name, objects) in [("second", None), ("third", Some("s3://library/one"))] {
        let machine = shared.machine(name, objects);
        machine.add(&file);
        machine.ok(&["check"]);
    }
    // The same settings, but another store: what is there is not this library.
    let elsewhere = S3Server::start();
    let mut lost = shared.machine("lost", Some("s3://library/one"));
    lost.variables.extend(S3Server::environment(elsewhere.address()));
    lost.refused(&["list"], "holds nothing of this library");
    let mut keyless = shared.machine("keyless", None);
    keyless.variables.retain(|(name, _)| !name.starts_with("AWS_ACCESS"));
    keyless.refused(&["list"], "AWS_ACCESS_KEY_ID");
    first.ok(&["check"]);
}

#[test]
fn all_machines_hear_that_packs_were_moved() {
    let Some(shared) = Shared::start() else { return };
    let (a, b) = (shared.machine("a", None), shared.machine("b", Some("s3://library/one")));
    b.add(&shared.file(1));
    a.ok(&["list"]);
    let running = b.server();
    let add = |name: &str| running.tool("", "add", &json!({ "name": name, "content": "text" }));
    assert_eq!(add("before").0, 200);
    a.ok(&["migrate", "--to", "s3://library/two"]);
    let (status, reply) = add("after");
    let said = reply.to_string();
    assert!(
        status != 200 && said.contains("moved to s3://library/two") && said.contains("restart"),
        "{said}"
    );
    let (status, _, body) = running.request("GET", "/readyz", &[], "");
    assert!(status == 503 && body.contains("packs of this library have been moved"), "{status} {body}");
    drop(running);
    // A setting that names the old place is refused; without one the machine follows.
    b.refused(&["add", shared.file(2).to_str().unwrap()], "are in s3://library/two");
    shared.machine("new", Some("s3://library/one")).refused(&["list"], "are in s3://library/two");
    let b = shared.machine("b", None);
    b.add(&shared.file(2));
    b.ok(&["check"]);
    let left = shared.packs("one");
    assert!(left > 0 && shared.packs("two") > left, "the old packs stay, and new ones are at the new place");
    let owner = fs::read_to_string(shared.bucket.file("one/packs/library.id")).unwrap();
    assert!(owner.starts_with("moved ") && owner.contains("s3://library/two"), "{owner}");
    // And back, with nothing left behind.
    b.ok(&["migrate", "--to", "s3://library/one", "--delete-old"]);
    let index = fs::read_dir(shared.bucket.file("two/index")).into_iter().flatten().count();
    assert_eq!(
        (shared.packs("two"), shared.bucket.file("two/packs/library.id").exists(), index),
        (0, false, 0)
    );
    a.add(&shared.file(3));
    a.ok(&["check"]);
    // A folder is that of one machine.
    a.ok(&["migrate", "--to", "folder"]);
    b.refused(&["list"], "into the folder of a machine");
    a.ok(&["check"]);
    // A catalog that comes back into a file knows it, too.
    a.ok(&["migrate", "--to", "s3://library/three"]);
    let b = shared.machine("b", Some("s3://library/three"));
    b.ok(&["migrate", "--to", "sqlite"]);
    let mut alone = shared.machine("b", None);
    alone.variables.retain(|(name, _)| *name != "SHELF_CATALOG");
    assert_eq!(alone.ok(&["list", "--paths"]).lines().count(), 4);
    alone.ok(&["check"]);
}

/// What a garbage collection says it has deleted is gone, and what it has marked stays marked.
#[test]
fn garbage_is_marked_once_and_reported_as_it_is() {
    let Some(shared) = Shared::start() else { return };
    let machine = shared.machine("a", Some("s3://library/one"));
    for (name, files) in [("a", 100..140), ("b", 200..240)] {
        let folder = shared.folder.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        for number in files {
            fs::rename(shared.file(number), folder.join(format!("{number}.bin"))).unwrap();
        }
        machine.add(&folder);
    }
    let folder = shared.folder.path().join("a");
    machine.ok(&["delete", "-g", "**/a/*.bin"]);
    machine.ok(&["gc", "--keep-last", "1"]);
    (100..109).for_each(|number| machine.add(&folder.join(format!("{number}.bin"))));
    let gc = || machine.json(&["gc", "--keep-last", "1"]);
    let (first, packs) = (gc(), shared.packs("one"));
    assert!(first["packs_deleted"] == json!([]) && first["freed_bytes"] == json!(0), "{first}");
    let second = gc();
    assert_eq!(second["packs_marked"], first["packs_marked"], "{first} {second}");
    assert_eq!((&second["packs_deleted"], &second["packs_rewritten"]), (&json!([]), &json!([])), "{second}");
    assert_eq!(shared.packs("one"), packs, "nothing is copied again");
    machine.ok(&["check"]);
}
