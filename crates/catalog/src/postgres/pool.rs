//! The connections of a process: made when they are needed, kept while they work, never more than a limit.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer};
use tokio_postgres::error::SqlState;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    address::{Address, told},
    session::{Session, failure, state},
    wire::{Wire, WireError},
};
use crate::{Error, Result};

/// How long a call waits for a connection that others use.
const WAIT: Duration = Duration::from_secs(30);
/// Connections that stay when there is little to do.
const KEPT_WHEN_IDLE: usize = 1;

/// The settings of every connection: nothing waits without end, and a process that stalls in the middle of a transaction
/// does not make all others wait with it, nor does a machine that is gone keep its locks.
const SETTINGS: &str = "SET statement_timeout = '60s'; SET lock_timeout = '30s';
    SET idle_in_transaction_session_timeout = '60s'; SET default_transaction_isolation = 'read committed';
    SET synchronous_commit = on; SET client_min_messages = warning; SET timezone = 'UTC';
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 2;
    SET tcp_user_timeout = 20000;";

/// The connections of a process to one database.
pub(super) struct Pool {
    address: Address,
    tls: MakeRustlsConnect,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Session>,
    open: usize,
}

/// A connection that goes back when it is dropped.
pub(super) struct Lent<'p> {
    pool: &'p Pool,
    session: Option<Session>,
}

impl Pool {
    pub(super) fn new(address: Address) -> Result<Self> {
        let tls = MakeRustlsConnect::new(client_config(&address)?);
        Ok(Self { address, tls, state: Mutex::default(), freed: Condvar::new() })
    }

    pub(super) const fn address(&self) -> &Address {
        &self.address
    }

    /// A connection: one that is idle, or another.
    pub(super) fn take(&self) -> Result<Lent<'_>> {
        let until = Instant::now() + WAIT;
        let mut state = self.state.lock();
        loop {
            if let Some(session) = state.idle.pop() {
                if session.is_closed() {
                    state.open -= 1;
                    drop(state);
                    drop(session);
                    state = self.state.lock();
                    continue;
                }
                return Ok(Lent { pool: self, session: Some(session) });
            }
            if state.open < self.address.connections {
                state.open += 1;
                drop(state);
                // Counted from here on, and not any more if it cannot be made.
                let mut lent = Lent { pool: self, session: None };
                lent.session = Some(self.connect()?);
                return Ok(lent);
            }
            if self.freed.wait_until(&mut state, until).timed_out() {
                return Err(Error::Busy);
            }
        }
    }

    /// A connection that nobody else counts or uses.
    pub(super) fn connect(&self) -> Result<Session> {
        let made = Wire::connect(&self.address.config, &self.tls);
        let (wire, client) = made.map_err(|error| refusal(error, &self.address))?;
        let session = Session::new(wire, client);
        session.ahead(SETTINGS.trim_end_matches(';'));
        session.batch(&format!("SET search_path TO {}", self.address.schema))?;
        Ok(session)
    }

    /// Closes the connections that nobody uses: the database was away, or nobody will ask for a while.
    pub(super) fn close_idle(&self, kept: usize) {
        let mut state = self.state.lock();
        let kept = kept.min(state.idle.len());
        let closed = state.idle.split_off(kept);
        state.open -= closed.len();
        drop(state);
        drop(closed);
    }

    pub(super) fn release_memory(&self) {
        self.close_idle(KEPT_WHEN_IDLE);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close_idle(0);
    }
}

impl Lent<'_> {
    /// The connection itself.
    pub(super) fn session(&self) -> Result<&Session> {
        self.session.as_ref().ok_or(Error::Closed)
    }

    /// Closes the connection instead of giving it back: it may be in the middle of something.
    pub(super) fn discard(mut self) {
        drop(self.session.take());
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        match self.session.take() {
            Some(session) if !std::thread::panicking() => {
                session.reset();
                state.idle.push(session);
            }
            broken => {
                state.open -= 1;
                drop(state);
                drop(broken);
            }
        }
        self.pool.freed.notify_one();
    }
}

/// Why a connection could not be made, and what to do.
fn refusal(error: WireError, address: &Address) -> Error {
    let reason = match &error {
        WireError::Protocol(error) => told(error),
        WireError::Network(reason) => reason.clone(),
    };
    let refused = |hint: &str| Error::Refused { what: reason.clone(), hint: hint.to_owned() };
    if address.config.get_password().is_none() && reason.contains("password missing") {
        return refused("the database asks for a password: set the environment variable PGPASSWORD");
    }
    let failed = failure(error);
    match state(&failed) {
        Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
            return refused(
                "check user and password of the catalog's address; a password can stand in PGPASSWORD",
            );
        }
        Some(&SqlState::UNDEFINED_DATABASE) => {
            return refused("make the database first: createdb DATABASE, or CREATE DATABASE in psql");
        }
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            return refused("let the user connect: GRANT CONNECT ON DATABASE ... TO ...");
        }
        _ => {}
    }
    let is_distrust = reason.contains("certificate") || reason.contains("does not support TLS");
    if reason.contains("TLS") && is_distrust {
        return refused(
            "give the certificate of its authority (sslrootcert=FILE), or say sslmode=disable for a network that you trust",
        );
    }
    Error::Away { reason, is_unsure: false }
}

fn client_config(address: &Address) -> Result<ClientConfig> {
    let roots = match &address.root_certificates {
        None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
        Some(path) => {
            let unusable = |why: String| Error::Refused {
                what: format!("the certificates in {}: {why}", path.display()),
                hint: "sslrootcert must name a file with certificates in PEM form".into(),
            };
            let text = fs::read(path).map_err(|error| unusable(error.to_string()))?;
            let mut roots = RootCertStore::empty();
            use rustls::pki_types::pem::PemObject;
            for certificate in CertificateDer::pem_slice_iter(&text) {
                let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
                roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(unusable("there are none".into()));
            }
            roots
        }
    };
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Refused { what: error.to_string(), hint: String::new() })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
