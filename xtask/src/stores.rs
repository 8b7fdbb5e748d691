//! PostgreSQL and an S3 server on this machine, for tasks that need a library on shared stores.
//!
//! Both are those of the test kit, taken from its files: as a dependency, it would have the whole engine compiled before any
//! task could run.

#[path = "../../crates/testkit/src/postgres.rs"]
#[allow(dead_code, reason = "tests use all of it")]
mod postgres;
#[path = "../../crates/testkit/src/s3.rs"]
#[allow(dead_code, reason = "tests use all of it")]
mod s3;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};
use postgres::Postgres;
use s3::S3Server;

use crate::arguments::Arguments;
use crate::{needs, step};

/// `cargo xtask stores`: runs a command whose tests find the stores, for as long as it takes.
pub fn run(arguments: Arguments) -> Result<()> {
    let command = arguments.take_command();
    let Some((program, rest)) = command.split_first() else {
        bail!("name a command, for example `cargo xtask stores cargo nextest run --release -p shelf-tools`");
    };
    let Some(stores) = Stores::start() else {
        bail!("PostgreSQL is not installed. Install: postgresql");
    };
    step::run(
        &format!("running {program} with PostgreSQL and an S3 server"),
        "See its output above.",
        Command::new(program)
            .args(rest)
            .envs(stores.test_variables().iter().map(|(name, value)| (name, value))),
    )
}

/// Both servers; they end when this is dropped, and what they hold goes with them.
pub struct Stores {
    postgres: Postgres,
    database: SocketAddr,
    bucket: S3Server,
}

impl Stores {
    /// Starts both; `None` when PostgreSQL is not installed.
    pub fn start() -> Option<Self> {
        if !needs::has_postgresql() {
            return None;
        }
        let mut postgres = Postgres::start()?;
        let database = postgres.listen();
        Some(Self { postgres, database, bucket: S3Server::start() })
    }

    /// The variables that lead a program to the library of this name: a schema of the database, and a prefix of the bucket.
    pub fn variables(&self, library: &str) -> Vec<(&'static str, String)> {
        let mut variables = self.keys();
        variables.push(("SHELF_CATALOG", Postgres::address_through(self.database, library)));
        variables.push(("SHELF_OBJECTS", format!("s3://{}/{library}", S3Server::BUCKET)));
        variables
    }

    /// The variables that lead tests here; each of their libraries chooses a schema and a prefix of its own.
    pub fn test_variables(&self) -> Vec<(&'static str, String)> {
        let address = format!("postgres://shelf@127.0.0.1:{}/postgres?sslmode=disable", self.database.port());
        let mut variables = self.keys();
        variables.push(("TEST_CATALOG", address));
        variables.push(("TEST_OBJECTS", format!("s3://{}", S3Server::BUCKET)));
        variables
    }

    /// How the bucket is reached.
    fn keys(&self) -> Vec<(&'static str, String)> {
        S3Server::environment(self.bucket.address()).to_vec()
    }

    /// The folder in which objects of a library lie: `packs` or `index`.
    pub fn objects(&self, library: &str, folder: &str) -> PathBuf {
        self.bucket.file(&format!("{library}/{folder}"))
    }

    /// What a query prints that is run in the schema of a library.
    pub fn sql(&self, library: &str, query: &str) -> String {
        self.postgres.sql(library, query)
    }

    /// The id of the database server's first process.
    pub fn database_process(&self) -> Option<u32> {
        self.postgres.process()
    }
}
