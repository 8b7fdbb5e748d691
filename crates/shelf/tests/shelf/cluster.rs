//! One library on several machines: a catalog in PostgreSQL, packs and index segments in a bucket, and servers that have
//! nothing else in common. First in good weather, then with everything failing at random.
//!
//! The storm lasts half a minute; `TEST_STORM_SECONDS=600` makes a long one, as `cargo xtask test --full` does.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use shelf_base::{Digest, Moment};
use shelf_catalog::{
    Catalog, PackState, RetiredPack,
    postgres::{Address, PostgresCatalog},
};
use shelf_testkit::{Postgres, Proxy, S3Server, Weather};

use crate::{binary, http::Server, storm::Dice};

/// Clients of the storm.
const CLIENTS: usize = 16;
/// Machines.
const NODES: usize = 3;
/// A garbage collection that keeps nothing but what is there now.
const GC: [&str; 5] = ["gc", "--keep-last", "0", "--drop-labelled", "--yes"];
/// How servers are started.
const ARGUMENTS: [&str; 3] = ["--no-auth", "--admin-listen", "127.0.0.1:0"];
/// How long a call may take before the client gives up.
const PATIENCE: Duration = Duration::from_secs(150);

/// One machine: a data directory of its own, and the way to what is shared.
struct Node {
    library: PathBuf,
    variables: Vec<(&'static str, String)>,
    server: Mutex<Option<Arc<Server>>>,
}

impl Node {
    fn new(library: PathBuf, catalog: String, bucket: SocketAddr) -> Self {
        let mut variables = S3Server::environment(bucket).to_vec();
        variables.extend([
            ("SHELF_CATALOG", catalog),
            ("SHELF_OBJECTS", "s3://library/one".to_owned()),
            ("SHELF_CACHE", library.with_extension("cache").display().to_string()),
            // Deep vectors take long in a program that is not optimised, and are not what this is about.
            ("SHELF_EMBEDDING_DEEPEN", "off".to_owned()),
        ]);
        Self { library, variables, server: Mutex::default() }
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::new(binary())
            .arg("--data-dir")
            .arg(&self.library)
            .args(arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
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

    /// Starts its server; while what it needs is away, again and again.
    fn start(&self) {
        let variables: Vec<(&str, &str)> =
            self.variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let until = Instant::now() + PATIENCE;
        loop {
            match Server::try_start(&self.library, &ARGUMENTS, &variables) {
                Ok(server) => return *self.server.lock().unwrap() = Some(Arc::new(server)),
                Err(said) => assert!(Instant::now() < until, "{said}"),
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Ends its server as a power cut would.
    fn kill(&self) {
        let Some(server) = self.server.lock().unwrap().take() else { return };
        let _ = Command::new("kill").args(["-9", &server.child.id().to_string()]).status();
    }

    /// Calls a tool; `None` when there is no server, or it ended.
    fn call(&self, tool: &str, arguments: &Value) -> Option<(u16, Value)> {
        let server = self.server.lock().unwrap().clone()?;
        let mut stream = TcpStream::connect(&server.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let body = arguments.to_string();
        let head = format!(
            "POST /api/v1/tools/{tool} HTTP/1.1\r\nConnection: close\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
            server.address,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply).ok()?;
        let (head, body) = reply.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).ok()?))
    }

    /// Calls a tool that must succeed.
    fn good(&self, tool: &str, arguments: Value) -> Value {
        let (status, reply) = self.call(tool, &arguments).expect("an answer");
        assert_eq!(status, 200, "{tool} {arguments}: {reply}");
        reply
    }

    fn add(&self, written: &Written) {
        let reply = self.good("add", json!({ "name": written.name, "content": written.content() }));
        assert_eq!(reply["hash"], json!(written.hash()), "{reply}");
    }

    /// The document is here, byte by byte, and is found by its words and by a pattern.
    fn must_have(&self, written: &Written) {
        let reply = self.good("get", json!({ "name": written.name, "include_content": true }));
        written.must_be(&reply);
        let reply = self.good("search", json!({ "query": written.marker() }));
        assert!(reply.to_string().contains(&written.name), "search {} in {reply}", written.name);
        let reply = self.good("grep", json!({ "pattern": written.marker(), "files_with_matches": true }));
        assert!(reply.to_string().contains(&written.name), "grep {} in {reply}", written.name);
    }
}

/// A document that a client wrote.
#[derive(Clone, Debug)]
struct Written {
    name: String,
    client: usize,
    number: usize,
}

impl Written {
    fn new(client: usize, number: usize) -> Self {
        Self { name: format!("client{client}/{number}.txt"), client, number }
    }

    /// A word that no other document has.
    fn marker(&self) -> String {
        format!("mark{}of{}", self.number, self.client)
    }

    /// Some are small and lie in the catalog at first, some go to packs at once.
    fn content(&self) -> String {
        let mut dice = Dice((self.client * 7_919 + self.number) as u64 * 2 + 1);
        let length = if self.number % 8 == 3 { 200_000 } else { 200 };
        let mut text = format!("{}\n", self.marker());
        while text.len() < length {
            text.push_str(&format!("word{} ", dice.roll(30_000)));
        }
        text
    }

    fn hash(&self) -> String {
        Digest::of(self.content().as_bytes()).to_string()
    }

    fn must_be(&self, reply: &Value) {
        assert_eq!(reply["hash"], json!(self.hash()), "{}", self.name);
        let (content, shown) = (self.content(), reply["content"].as_str().expect("content"));
        assert!(content.starts_with(&shown[..shown.len().min(2_000)]), "{}: {shown}", self.name);
    }
}

/// What all machines share, with a network in between that can be made to fail.
struct Cluster {
    postgres: Mutex<Postgres>,
    database: Proxy,
    bucket: S3Server,
    objects: Proxy,
    nodes: Vec<Node>,
    folder: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Option<Self> {
        let mut postgres = Postgres::start()?;
        let (bucket, folder) = (S3Server::start(), tempfile::tempdir().unwrap());
        let (database, objects) = (Proxy::before(postgres.listen()), Proxy::before(bucket.address()));
        let mut cluster =
            Self { postgres: Mutex::new(postgres), database, bucket, objects, nodes: Vec::new(), folder };
        cluster.nodes = (0..NODES).map(|number| cluster.node(&format!("node{number}"))).collect();
        cluster.nodes.iter().for_each(Node::start);
        Some(cluster)
    }

    /// A machine with an empty disk.
    fn node(&self, name: &str) -> Node {
        let catalog = Postgres::address_through(self.database.address(), "cluster");
        Node::new(self.folder.path().join(name), catalog, self.objects.address())
    }

    fn clear(&self) {
        self.database.set(Weather::CLEAR);
        self.objects.set(Weather::CLEAR);
    }

    /// Published views in the order of their numbers: the fencing number of each, and how far it has followed the journal.
    fn views(&self) -> BTreeMap<u64, (u64, u64)> {
        let entries = fs::read_dir(self.bucket.file("one/index")).into_iter().flatten().flatten();
        let names = entries
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("view-")));
        let read = |path: PathBuf| -> Option<(u64, (u64, u64))> {
            let text = fs::read_to_string(path).ok()?;
            let view: Value = serde_json::from_str(text.split_once('\n')?.1).ok()?;
            let number = |value: &Value| value.as_u64();
            Some((
                number(&view["generation"])?,
                (number(&view["fence"])?, number(&view["index"]["sequence"])?),
            ))
        };
        names.filter_map(read).collect()
    }
}

/// Segments in the data directory of a machine that were made by another.
fn fetched_segments(library: &Path) -> usize {
    let names = fs::read_dir(library.join("index")).into_iter().flatten().flatten();
    names.filter(|entry| entry.file_name().len() == "segment-.seg".len() + 64).count()
}

fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(90);
    while !is_so() {
        assert!(Instant::now() < until, "{what} did not happen");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn three_machines_with_empty_disks_are_one_library() {
    let Some(cluster) = Cluster::start() else { return };
    let nodes = &cluster.nodes;
    let all: Vec<Written> = (0..8).map(|number| Written::new(0, number)).collect();
    for written in &all {
        nodes[written.number % NODES].add(written);
        // At once, on every machine.
        nodes.iter().for_each(|node| node.must_have(written));
    }
    let (status, _, body) =
        nodes[0].server.lock().unwrap().as_ref().unwrap().request("GET", "/readyz", &[], "");
    assert_eq!(status, 200, "{body}");
    // One is gone without a word, and so is its disk; the others go on.
    nodes[1].kill();
    let more: Vec<Written> = (8..12).map(|number| Written::new(0, number)).collect();
    more.iter().for_each(|written| nodes[2 * (written.number % 2)].add(written));
    fs::remove_dir_all(&nodes[1].library).unwrap();
    nodes[1].start();
    all.iter().chain(&more).for_each(|written| nodes[1].must_have(written));
    // What is deleted on one machine and collected on another is gone everywhere, and nothing else is.
    nodes[1].good("delete_by_name", json!({ "name": all[3].name }));
    nodes[2].ok(&GC);
    for node in nodes {
        let reply = node.good("get", json!({ "name": all[3].name }));
        assert_eq!(reply["found"], json!(false), "{reply}");
        all.iter().filter(|written| written.number != 3).for_each(|written| node.must_have(written));
    }
    collects_without_keeping_writers_out(&cluster, &all[3]);
    cluster.node("fresh").ok(&["check"]);
    nodes[0].ok(&["check"]);
    let doctor = nodes[0].ok(&["doctor"]);
    assert!(doctor.contains("postgres://") && doctor.contains("s3://library/one"), "{doctor}");
}

/// What nothing needs is marked first and deleted later; what is written again in between stays.
fn collects_without_keeping_writers_out(cluster: &Cluster, gone: &Written) {
    let [first, second, _] = &cluster.nodes[..] else { panic!("three nodes") };
    let address = Postgres::address_through(cluster.database.address(), "cluster");
    let catalog = PostgresCatalog::open(Address::parse(&address, None).unwrap()).unwrap();
    let marked = catalog.retired_packs().unwrap();
    let is_there = |pack: &RetiredPack| cluster.bucket.file(&format!("one/packs/{}", pack.name)).exists();
    assert!(!marked.is_empty() && marked.iter().all(is_there), "{marked:?}");
    // The same content again, on a node that knows the pack: it must not rely on what is going to be deleted.
    second.add(gone);
    // As if a garbage collection had come much later, and had been killed when it was about to delete.
    catalog.claim_packs(Moment::from_micros(i64::MAX)).unwrap();
    first.ok(&GC);
    first.ok(&["check"]);
    cluster.nodes.iter().for_each(|node| node.must_have(gone));
    let left = catalog.retired_packs().unwrap();
    assert!(left.iter().all(|pack| pack.state != PackState::Going), "something is half deleted: {left:?}");
    assert!(left.iter().filter(|pack| pack.state == PackState::Gone).all(|pack| !is_there(pack)), "{left:?}");
    let is_needed = |pack: &RetiredPack| is_there(pack) && !left.contains(pack);
    assert!(marked.iter().any(is_needed), "what was written again stays: {left:?}");
}

#[test]
fn a_machine_with_an_empty_disk_fetches_the_index() {
    let Some(cluster) = Cluster::start() else { return };
    let tree = crate::files(cluster.folder.path(), 1_200);
    fs::write(tree.join("birds.txt"), "the curlew calls over the marsh\n").unwrap();
    cluster.node("writer").ok(&["add", tree.to_str().unwrap()]);
    // Whoever holds the lease follows the journal although nobody asks it anything.
    eventually("publishing the index", || cluster.views().values().any(|(_, sequence)| *sequence > 1_000));
    let fresh = cluster.node("fresh");
    fresh.start();
    let found = fresh.good("search", json!({ "query": "curlew marsh" }));
    assert!(found.to_string().contains("birds.txt"), "{found}");
    let fetched = fetched_segments(&fresh.library);
    assert!(fetched > 0, "nothing was fetched");
    fresh.must_have_after(&Written::new(9, 1), &cluster.nodes[0]);

    // Damage on the way is noticed: the journal is indexed instead, and nobody hears of it.
    let index = cluster.bucket.file("one/index");
    for entry in fs::read_dir(&index).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("piece-") {
            let mut bytes = fs::read(entry.path()).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(entry.path(), bytes).unwrap();
        }
    }
    let other = cluster.node("other");
    other.start();
    let found = other.good("search", json!({ "query": "curlew marsh" }));
    assert!(found.to_string().contains("birds.txt"), "{found}");
    assert_eq!(fetched_segments(&other.library), 0, "a damaged piece was used");
    // And so is an index that is not there at all.
    fs::remove_dir_all(&index).unwrap();
    let last = cluster.node("last");
    last.start();
    let found = last.good("search", json!({ "query": "curlew marsh" }));
    assert!(found.to_string().contains("birds.txt"), "{found}");
    last.ok(&["check"]);
}

/// The names in the table of metrics of the page for operators.
fn documented_metrics() -> Vec<String> {
    let page = include_str!("../../../../docs/scale.md");
    let table = page.split_once("| metric | meaning |").expect("a table").1;
    let rows = table.lines().skip(1).skip_while(|line| !line.starts_with('|'));
    let cells = rows.take_while(|line| line.starts_with('|')).filter_map(|line| line.split('|').nth(1));
    let names = cells.flat_map(|cell| cell.split('`').filter(|word| word.starts_with("shelf_")));
    names.map(str::to_owned).collect()
}

#[test]
fn nodes_report_every_documented_metric() {
    let Some(cluster) = Cluster::start() else { return };
    // So much that whoever leads writes it out and publishes it.
    thread::scope(|scope| {
        for client in 0..8 {
            let node = &cluster.nodes[0];
            scope.spawn(move || {
                for number in 0..100 {
                    let name = format!("birds/{client}-{number}.txt");
                    node.good("add", json!({ "name": name, "content": format!("bird {client} {number}") }));
                }
            });
        }
    });
    // Reads and writes of packs, and searches, on every node.
    for (number, node) in cluster.nodes.iter().enumerate() {
        node.must_have_after(&Written::new(7, 3 + 8 * number), &cluster.nodes[(number + 1) % NODES]);
    }
    let said = || -> Vec<String> {
        let of = |node: &Node| node.server.lock().unwrap().as_ref().unwrap().metrics();
        cluster.nodes.iter().map(of).collect()
    };
    let lead = "shelf_lease_held{lease=\"index-lead\"} 1";
    let has = |said: &[String], text: &str| said.iter().filter(|said| said.contains(text)).count();
    eventually("publishing the index", || has(&said(), "\nshelf_index_published_sequence ") > 0);
    assert_eq!(has(&said(), lead), 1, "one node leads");
    let documented = documented_metrics();
    assert!(documented.len() > 12, "{documented:?}");
    // Some are set a moment after what they tell of.
    let is_reported = |all: &str| documented.iter().all(|name| all.contains(&format!("\n{name}")));
    let started = Instant::now();
    while !is_reported(&said().concat()) && started.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(100));
    }
    let all = said().concat();
    for name in &documented {
        assert!(all.contains(&format!("\n{name}")), "{name} is documented, but no node reports it:\n{all}");
        assert!(all.contains(&format!("# HELP {name} ")), "{name} is not explained");
    }
    // And the other way round: what nodes report of shared stores is documented.
    for line in all.lines().filter_map(|line| line.strip_prefix("# TYPE shelf_")) {
        let name = format!("shelf_{}", line.split(' ').next().unwrap_or_default());
        assert!(
            name.starts_with("shelf_tool_call") || documented.contains(&name),
            "{name} is not documented"
        );
    }
}

impl Node {
    /// What another machine writes now is found here at once.
    fn must_have_after(&self, written: &Written, writer: &Node) {
        writer.add(written);
        self.must_have(written);
    }
}

/// What a client of the storm has done.
#[derive(Default)]
struct Done {
    written: Vec<Written>,
    answers: usize,
    refusals: BTreeMap<String, usize>,
}

/// Whether an answer is one that a caller may rely on; an error must say that the call can be repeated.
fn is_answer(done: &mut Done, tool: &str, status: u16, reply: &Value) -> bool {
    if status == 200 {
        done.answers += 1;
        return true;
    }
    let code = reply["error"]["code"].as_str().unwrap_or_default().to_owned();
    assert!(["busy", "timed_out", "rate_limited"].contains(&code.as_str()), "{tool}: {status} {reply}");
    *done.refusals.entry(code).or_default() += 1;
    false
}

fn client(cluster: &Cluster, number: usize, until: Instant) -> Done {
    let (mut done, mut dice, mut next) = (Done::default(), Dice(number as u64 * 1_013 + 7), 0);
    while Instant::now() < until {
        let node = &cluster.nodes[dice.roll(NODES)];
        let known = (!done.written.is_empty()).then(|| done.written[dice.roll(done.written.len())].clone());
        let Some(known) = known.filter(|_| dice.roll(10) >= 4) else {
            let fresh = Written::new(number, next);
            next += 1;
            let arguments = json!({ "name": fresh.name, "content": fresh.content() });
            match node.call("add", &arguments) {
                Some((status, reply)) if is_answer(&mut done, "add", status, &reply) => {
                    assert_eq!(reply["hash"], json!(fresh.hash()), "{reply}");
                    done.written.push(fresh);
                }
                Some(_) => {}
                None => thread::sleep(Duration::from_millis(50)),
            }
            continue;
        };
        let (tool, arguments) = match dice.roll(3) {
            0 => ("get", json!({ "name": known.name, "include_content": true })),
            1 => ("search", json!({ "query": known.marker() })),
            _ => ("grep", json!({ "pattern": known.marker(), "files_with_matches": true })),
        };
        match node.call(tool, &arguments) {
            Some((status, reply)) if is_answer(&mut done, tool, status, &reply) => {
                assert!(reply.to_string().contains(&known.name), "{tool} {}: {reply}", known.name);
                if tool == "get" {
                    known.must_be(&reply);
                }
            }
            Some(_) => {}
            None => thread::sleep(Duration::from_millis(50)),
        }
    }
    done
}

/// Everything that can fail does, one thing or several at a time.
fn storm(cluster: &Cluster, until: Instant) -> usize {
    let (mut dice, mut kills) = (Dice(4_711), 0);
    // The sky is never clear for long.
    let bad = |delay: Duration| {
        cluster.objects.set(Weather { delay, dropped: 5, cut: 3, busy: 20, away: false });
        cluster.database.set(Weather { delay, dropped: 5, cut: 1, busy: 0, away: false });
    };
    bad(Duration::from_millis(2));
    while Instant::now() < until {
        let pause = Duration::from_millis(200 + dice.roll(1_500) as u64);
        let delay = Duration::from_millis(dice.roll(8) as u64);
        match dice.roll(7) {
            0 | 1 => {
                let node = &cluster.nodes[dice.roll(NODES)];
                node.kill();
                thread::sleep(pause / 4);
                node.start();
                kills += 1;
            }
            2 => {
                let mut postgres = cluster.postgres.lock().unwrap();
                if dice.roll(2) == 0 {
                    postgres.kill()
                } else {
                    postgres.stop()
                }
                thread::sleep(pause / 4);
                postgres.go();
            }
            3 | 4 => bad(delay),
            5 => cluster.clear(),
            _ => {
                let proxy = if dice.roll(2) == 0 { &cluster.objects } else { &cluster.database };
                proxy.set(Weather { away: true, ..Weather::CLEAR });
                thread::sleep(pause / 2);
                bad(delay);
            }
        }
        thread::sleep(pause);
    }
    cluster.clear();
    kills
}

fn storm_seconds() -> u64 {
    std::env::var("TEST_STORM_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30)
}

#[test]
fn three_machines_lose_nothing_in_a_storm() {
    let Some(cluster) = Cluster::start() else { return };
    let until = Instant::now() + Duration::from_secs(storm_seconds());
    let (kills, done) = thread::scope(|scope| {
        let cluster = &cluster;
        let storm = scope.spawn(move || storm(cluster, until));
        let clients: Vec<_> =
            (0..CLIENTS).map(|number| scope.spawn(move || client(cluster, number, until))).collect();
        let done: Vec<Done> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        (storm.join().unwrap(), done)
    });
    let written: Vec<&Written> = done.iter().flat_map(|done| &done.written).collect();
    let answers: usize = done.iter().map(|done| done.answers).sum();
    let refusals: usize = done.iter().flat_map(|done| done.refusals.values()).sum();
    let faults = cluster.objects.faults() + cluster.database.faults();
    let _ = writeln!(
        std::io::stderr(),
        "storm: {answers} answers, {} writes, {refusals} refusals, {kills} kills, {faults} faults",
        written.len()
    );
    assert!(written.len() > CLIENTS && kills > 0, "nothing happened");
    cluster.nodes.iter().for_each(Node::start);
    // Every write that was acknowledged is there, on every machine.
    for (at, written) in written.iter().enumerate() {
        let node = &cluster.nodes[at % NODES];
        written.must_be(&node.good("get", json!({ "name": written.name, "include_content": true })));
    }
    let step = written.len().div_ceil(20);
    for written in written.iter().step_by(step) {
        cluster.nodes.iter().for_each(|node| node.must_have(written));
    }
    cluster.node("fresh").ok(&["check"]);
    // Nobody published under a lease that another had taken since: fencing numbers never fall.
    let fences: Vec<u64> = cluster.views().values().map(|(fence, _)| *fence).collect();
    assert!(fences.is_sorted(), "{fences:?}");
}
