//! A PostgreSQL server for one test: in a temporary folder, on a socket in it, as a user without privileges.

use std::{
    env, fs,
    io::{self, Write},
    net::{SocketAddr, TcpListener},
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The user that the server runs as when the test runs as root, which PostgreSQL refuses.
const NOBODY: u32 = 65_534;
/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that ends with the test.
pub struct Postgres {
    folder: tempfile::TempDir,
    programs: PathBuf,
    server: Option<Child>,
    settings: Vec<String>,
}

impl Postgres {
    /// Starts a server; `None`, with a line on stderr, when there is none on this machine.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            let test = thread::current().name().unwrap_or("a test").to_owned();
            let _ = writeln!(io::stderr(), "SKIPPED: {test} needs PostgreSQL (package postgresql)");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        if is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("the folder's owner");
        }
        let mut postgres = Self { folder, programs, server: None, settings: Vec::new() };
        let data = postgres.data();
        let made = postgres
            .command("initdb")
            .args([
                "--auth=trust",
                "--username=shelf",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
                "-D",
            ])
            .arg(&data)
            .output()
            .expect("initdb");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        postgres.go();
        Some(postgres)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let own = self.programs.join(program);
        let mut command = Command::new(if own.exists() { own } else { program.into() });
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Starts the server, after [`stop`](Self::stop) or [`kill`](Self::kill).
    pub fn go(&mut self) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.folder.path().join("log"));
        let log = log.expect("a log");
        let server = self
            .command("postgres")
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(self.folder.path())
            .args(["-c", "listen_addresses=", "-c", "max_connections=120", "-c", "shared_buffers=32MB"])
            .args(self.settings.iter().flat_map(|setting| ["-c", setting]))
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("postgres");
        self.server = Some(server);
        let until = Instant::now() + PATIENCE;
        while !self.answers() {
            assert!(Instant::now() < until, "the server does not answer:\n{}", self.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn answers(&self) -> bool {
        let mut ask = self.command("pg_isready");
        ask.arg("--quiet").arg("-h").arg(self.folder.path());
        ask.args(self.port());
        ask.status().is_ok_and(|status| status.success())
    }

    /// How programs are told its port when it is not the usual one.
    fn port(&self) -> impl Iterator<Item = &str> {
        let given = self.settings.iter().filter_map(|setting| setting.strip_prefix("port="));
        given.flat_map(|port| ["-p", port])
    }

    /// The id of the server's first process, which is the parent of all others; `None` while it is stopped.
    pub fn process(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    /// What the server has said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Stops the server in good order: those who are connected are told.
    pub fn stop(&mut self) {
        self.end("fast");
    }

    /// Stops the server as a power cut would.
    pub fn kill(&mut self) {
        self.end("immediate");
    }

    fn end(&mut self, mode: &str) {
        let Some(mut server) = self.server.take() else { return };
        let mut stop = self.command("pg_ctl");
        stop.args(["stop", "--wait", "--mode", mode, "-D"]).arg(self.data()).stdout(Stdio::null());
        let _ = stop.stderr(Stdio::null()).status();
        let _ = server.wait();
    }

    /// Starts the server again so that it also listens on loopback, with TLS and a certificate of its own authority; its address
    /// there, and the file with the certificate. `None` when there is no program to make one.
    pub fn with_tls(&mut self, schema: &str) -> Option<(String, PathBuf)> {
        let made = self
            .command("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
            .args([
                "-addext",
                "subjectAltName=DNS:localhost",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
                "-keyout",
                "server.key",
                "-out",
                "server.crt",
            ])
            .output();
        if !made.is_ok_and(|made| made.status.success()) {
            let _ = writeln!(io::stderr(), "SKIPPED: TLS of PostgreSQL needs openssl");
            return None;
        }
        let port = free_address().port();
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        self.settings = vec![
            "listen_addresses=localhost".into(),
            format!("port={port}"),
            "ssl=on".into(),
            format!("ssl_key_file={}", file("server.key")),
            format!("ssl_cert_file={}", file("server.crt")),
        ];
        let certificate = self.folder.path().join("server.crt");
        self.stop();
        self.go();
        Some((format!("postgres://shelf@localhost:{port}/postgres?schema={schema}"), certificate))
    }

    /// Starts the server again so that it also listens on loopback, where a proxy can stand before it; where that is.
    pub fn listen(&mut self) -> SocketAddr {
        let address = free_address();
        self.settings = vec!["listen_addresses=127.0.0.1".into(), format!("port={}", address.port())];
        self.stop();
        self.go();
        address
    }

    /// The address of its database by way of a proxy.
    pub fn address_through(proxy: SocketAddr, schema: &str) -> String {
        format!("postgres://shelf@127.0.0.1:{}/postgres?schema={schema}&sslmode=disable", proxy.port())
    }

    /// The address of its database, with a schema of its own for each library.
    pub fn address(&self, schema: &str) -> String {
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://shelf@{socket}/postgres?schema={schema}")
    }

    /// Runs SQL behind everybody's back; what it printed.
    pub fn sql(&self, schema: &str, sql: &str) -> String {
        let mut psql = self.command("psql");
        psql.arg("-h").arg(self.folder.path()).args([
            "-U",
            "shelf",
            "-d",
            "postgres",
            "-v",
            "ON_ERROR_STOP=1",
        ]);
        psql.args(["-q", "-A", "-t", "-c", &format!("SET search_path TO {schema}"), "-c", sql]);
        psql.args(self.port());
        let ran = psql.output().expect("psql");
        assert!(ran.status.success(), "{sql}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port")
}

fn is_root() -> bool {
    // The owner of what this process makes is who it runs as.
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// The folder of the server's programs: in the path, or where Debian puts them.
fn programs() -> Option<PathBuf> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let in_path = env::split_paths(&paths).filter_map(|folder| {
        let program = fs::canonicalize(folder.join("initdb")).ok()?;
        program.parent().map(Path::to_owned)
    });
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let of_debian = versions.map(|version| version.path().join("bin"));
    in_path
        .chain(of_debian)
        .find(|folder| ["initdb", "postgres", "pg_ctl"].iter().all(|name| folder.join(name).exists()))
}
