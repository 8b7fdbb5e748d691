//! The address of a database: what libpq takes, and a few words of our own.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use tokio_postgres::{Config, config::SslMode};

use crate::{Error, Result};

/// Connections of one process that may be open at once.
const CONNECTIONS: usize = 16;
/// The port of a database whose address names none.
const USUAL_PORT: u16 = 5432;
/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// After so long without an answer a connection counts as cut.
const SILENCE: Duration = Duration::from_secs(20);

/// Where a catalog lies: `postgres://user@host:port/database`, with the parameters of libpq and these:
///
/// - `schema`: the schema that holds the tables; `shelf` unless it is given
/// - `connections`: how many connections one process may open; 16 unless it is given
/// - `sslrootcert`: a file with the certificates that the server's is checked against, instead of those of public authorities
#[derive(Clone)]
pub struct Address {
    pub(super) config: Config,
    pub(super) schema: String,
    pub(super) connections: usize,
    pub(super) root_certificates: Option<PathBuf>,
}

impl fmt::Debug for Address {
    /// The address without its password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown())
    }
}

fn refused(what: impl Into<String>) -> Error {
    Error::Refused {
        what: what.into(),
        hint: "write it as postgres://USER@HOST/DATABASE; a password can stand in PGPASSWORD".into(),
    }
}

impl Address {
    /// Whether a setting is the address of such a database.
    pub fn is_one(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Reads an address. `password` is used when the address has none.
    pub fn parse(text: &str, password: Option<&str>) -> Result<Self> {
        if !Self::is_one(text) {
            return Err(refused("its address does not begin with postgres://"));
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let mut schema = "shelf".to_owned();
        let mut connections = CONNECTIONS;
        let mut root_certificates = None;
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("schema", name)) => schema = checked_schema(name)?,
                Some(("connections", count)) => {
                    connections = count
                        .parse()
                        .ok()
                        .filter(|count| (2..=1_000).contains(count))
                        .ok_or_else(|| refused("connections in its address must be 2 to 1000"))?;
                }
                Some(("sslrootcert", path)) => root_certificates = Some(PathBuf::from(unescaped(path)?)),
                // Certificates are always checked, so the strict modes of libpq ask for no more than the plain one.
                Some(("sslmode", "verify-ca" | "verify-full")) => rest.push("sslmode=require"),
                _ => rest.push(pair),
            }
        }
        let plain = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let mut config = Config::from_str(&plain).map_err(|error| refused(told(&error)))?;
        if let (None, Some(password)) = (config.get_password(), password) {
            config.password(password);
        }
        if root_certificates.is_some() && config.get_ssl_mode() == SslMode::Prefer {
            config.ssl_mode(SslMode::Require);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        config.keepalives_idle(SILENCE / 2).keepalives_interval(SILENCE / 4).keepalives_retries(2);
        config.tcp_user_timeout(SILENCE).application_name("shelf");
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(refused("its address names no host"));
        }
        Ok(Self { config, schema, connections, root_certificates })
    }

    /// The address as it may be shown: without user and password, and without a port that is the usual one.
    pub fn shown(&self) -> String {
        use tokio_postgres::config::Host;
        let name = |host: &Host| match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]"),
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        let ports = self.config.get_ports();
        // One port is that of all hosts.
        let port = |at: usize| ports.get(at).or_else(|| ports.first()).filter(|port| **port != USUAL_PORT);
        let hosts = self.config.get_hosts().iter().enumerate();
        let hosts: Vec<String> = hosts
            .map(|(at, host)| port(at).map_or_else(|| name(host), |port| format!("{}:{port}", name(host))))
            .collect();
        let database = self.config.get_dbname().unwrap_or_default();
        format!("postgres://{}/{database} (schema {})", hosts.join(","), self.schema)
    }
}

/// What an error of the client says, with what is below it: no such text holds a password.
pub(super) fn told(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Names are put into statements as they are, so they must be plain.
fn checked_schema(name: &str) -> Result<String> {
    let is_plain = !name.is_empty()
        && name.len() <= 63
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !name.as_bytes()[0].is_ascii_digit();
    if is_plain && !name.starts_with("pg_") {
        Ok(name.to_owned())
    } else {
        Err(refused("the schema in its address must be lowercase letters, digits and underscores"))
    }
}

fn unescaped(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(
            byte.ok_or_else(|| refused("a percent sign in its address is not followed by two digits"))?,
        );
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| refused("a parameter of its address is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_words_are_taken_out() {
        let text = "postgres://me:secret@db/books?schema=own&sslmode=verify-full&connections=4&sslrootcert=%2Fca.pem";
        let address = Address::parse(text, None).unwrap();
        assert_eq!((address.schema.as_str(), address.connections), ("own", 4));
        assert_eq!(address.root_certificates.as_deref(), Some(std::path::Path::new("/ca.pem")));
        assert_eq!(address.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(address.shown(), "postgres://db/books (schema own)");
        assert!(!format!("{address:?}").contains("secret"));
    }

    #[test]
    fn an_address_is_shown_with_its_ports() {
        for (text, shown) in [
            ("postgres://me:secret@db:5432/books", "postgres://db/books (schema shelf)"),
            ("postgres://db:6543/books", "postgres://db:6543/books (schema shelf)"),
            ("postgres://one:1,two:5432/books", "postgres://one:1,two/books (schema shelf)"),
            ("postgres://[::1]:7/books", "postgres://[::1]:7/books (schema shelf)"),
            ("postgres://me@db/books?password=secret", "postgres://db/books (schema shelf)"),
        ] {
            assert_eq!(Address::parse(text, None).unwrap().shown(), shown, "{text}");
        }
    }

    #[test]
    fn a_password_may_come_from_elsewhere() {
        let address = Address::parse("postgres://me@db/books", Some("other")).unwrap();
        assert_eq!(address.config.get_password(), Some(&b"other"[..]));
        let address = Address::parse("postgres://me:own@db/books", Some("other")).unwrap();
        assert_eq!(address.config.get_password(), Some(&b"own"[..]));
    }

    #[test]
    fn what_cannot_be_an_address_is_refused() {
        for text in [
            "mysql://db/books",
            "postgres://db/books?schema=Robert'); DROP",
            "postgres://db/books?connections=0",
            "postgres://db/books?unknown=1",
            "postgres:///books",
        ] {
            let error = Address::parse(text, None).unwrap_err();
            assert!(matches!(error, Error::Refused { .. }), "{text}: {error}");
        }
    }
}
