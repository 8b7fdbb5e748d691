//! One connection to PostgreSQL: statements that are prepared once, values and cells in its binary form, and its errors in
//! the words of this crate.

use std::{cell::RefCell, collections::HashMap, error::Error as StdError};

use bytes::{BufMut, BytesMut};
use postgres::{
    Client, Row, Statement,
    error::SqlState,
    types::{FromSql, IsNull, ToSql, Type},
};

use super::address::told;
use crate::{
    Error, Result,
    error::{Engine, EngineError},
    sql::{Cell, Value},
};

/// Statements that a connection keeps ready.
const KEPT: usize = 256;

/// A connection, for one thread at a time.
pub(crate) struct Session {
    /// There until the session is dropped.
    client: RefCell<Option<Client>>,
    statements: RefCell<HashMap<String, Statement>>,
}

impl Session {
    pub(super) fn new(client: Client) -> Self {
        Self { client: RefCell::new(Some(client)), statements: RefCell::default() }
    }

    /// Whether the connection is known to be gone.
    pub(super) fn is_closed(&self) -> bool {
        self.client.borrow().as_ref().is_none_or(Client::is_closed)
    }

    /// A statement, parsed when it is not known yet.
    pub(crate) fn prepare(&self, sql: &str) -> Result<Statement> {
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(known.clone());
        }
        let text = translated(sql);
        let statement = self.run(|client| client.prepare(&text))?;
        let mut kept = self.statements.borrow_mut();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(crate) fn query(&self, statement: &Statement, values: &[Value<'_>]) -> Result<Vec<Row>> {
        let values = as_parameters(values);
        self.run(|client| client.query(statement, &values))
    }

    pub(crate) fn execute(&self, statement: &Statement, values: &[Value<'_>]) -> Result<usize> {
        let values = as_parameters(values);
        let touched = self.run(|client| client.execute(statement, &values))?;
        Ok(usize::try_from(touched).unwrap_or(usize::MAX))
    }

    /// Runs several statements without values.
    pub(crate) fn batch(&self, sql: &str) -> Result<()> {
        self.run(|client| client.batch_execute(sql))
    }

    fn run<T: Send>(
        &self,
        work: impl FnOnce(&mut Client) -> std::result::Result<T, postgres::Error> + Send,
    ) -> Result<T> {
        let mut client = self.client.borrow_mut();
        let client = client.as_mut().ok_or(Error::Closed)?;
        outside_runtimes(|| work(client)).map_err(failure)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let client = self.client.get_mut().take();
        outside_runtimes(|| drop(client));
    }
}

/// Runs work of the client, which has a runtime of its own and refuses to start it on a thread that belongs to another one: a
/// server that answers one caller reads on the thread that it listens on.
pub(super) fn outside_runtimes<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if tokio::runtime::Handle::try_current().is_err() {
        return work();
    }
    let ran = std::thread::scope(|scope| scope.spawn(work).join());
    ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn as_parameters<'v>(values: &'v [Value<'v>]) -> Vec<&'v (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// A statement in the spelling of PostgreSQL: `?` and `?1` are `$1`, SQLite's way to keep the order of a join is not needed,
/// and the place of a text in another is `strpos`.
fn translated(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len() + 16);
    let (mut is_quoted, mut last) = (false, 0);
    let mut characters = sql.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' => {
                is_quoted = !is_quoted;
                text.push(character);
            }
            '?' if !is_quoted => {
                let mut number = 0;
                while let Some(digit) = characters.peek().and_then(|next| next.to_digit(10)) {
                    number = number * 10 + digit;
                    characters.next();
                }
                let number = if number == 0 { last + 1 } else { number };
                last = last.max(number);
                text.push('$');
                text.push_str(&number.to_string());
            }
            _ => text.push(character),
        }
    }
    text.replace("CROSS JOIN", "JOIN").replace("INSTR(", "strpos(").replace("instr(", "strpos(")
}

type Told<T> = std::result::Result<T, Box<dyn StdError + Sync + Send>>;

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Told<IsNull> {
        match (self, kind) {
            (Self::Null, _) => return Ok(IsNull::Yes),
            (Self::Integer(number), &Type::INT8) => out.put_i64(*number),
            (Self::Integer(number), &Type::INT4) => out.put_i32(i32::try_from(*number)?),
            (Self::Integer(number), &Type::BOOL) => out.put_u8(u8::from(*number != 0)),
            (Self::Bool(is_true), &Type::BOOL) => out.put_u8(u8::from(*is_true)),
            (Self::Text(text), &Type::TEXT | &Type::VARCHAR | &Type::JSON | &Type::UNKNOWN) => {
                if text.contains('\0') {
                    return Err(Box::new(NulInText));
                }
                out.put_slice(text.as_bytes());
            }
            (Self::Blob(bytes), &Type::BYTEA) => out.put_slice(bytes),
            (Self::Numbers(numbers), &Type::INT8_ARRAY) => return numbers.to_sql(kind, out),
            (Self::Keys(keys), &Type::BYTEA_ARRAY) => {
                let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
                return keys.to_sql(kind, out);
            }
            (Self::Ids(ids), &Type::BYTEA_ARRAY) => {
                let ids: Vec<&[u8]> = ids.iter().map(|id| &id[..]).collect();
                return ids.to_sql(kind, out);
            }
            (Self::Texts(texts), &Type::TEXT_ARRAY) => {
                if texts.iter().any(|text| text.contains('\0')) {
                    return Err(Box::new(NulInText));
                }
                return texts.to_sql(kind, out);
            }
            (Self::Blobs(blobs), &Type::BYTEA_ARRAY) => return blobs.to_sql(kind, out),
            (value, kind) => return Err(format!("{value:?} for a column of type {kind}").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    postgres::types::to_sql_checked!();
}

/// PostgreSQL keeps no NUL in text.
#[derive(Debug)]
struct NulInText;

impl std::fmt::Display for NulInText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a NUL in text")
    }
}

impl StdError for NulInText {}

impl<'a> FromSql<'a> for Cell<'a> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Told<Self> {
        Ok(match *kind {
            Type::INT8 => Self::Integer(i64::from_be_bytes(raw.try_into()?)),
            Type::INT4 => Self::Integer(i32::from_be_bytes(raw.try_into()?).into()),
            Type::BOOL => Self::Integer(i64::from(raw.first() == Some(&1))),
            Type::BYTEA => Self::Blob(raw),
            Type::TEXT | Type::VARCHAR | Type::JSON | Type::NAME | Type::UNKNOWN => Self::Text(raw),
            _ => return Err(format!("a cell of type {kind}").into()),
        })
    }

    fn from_sql_null(_: &Type) -> Told<Self> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// An error of the client in the words of this crate.
pub(super) fn failure(error: postgres::Error) -> Error {
    if StdError::source(&error).is_some_and(|source| source.is::<NulInText>()) {
        return Error::Nul;
    }
    let Some(told_by_server) = error.as_db_error() else {
        let is_cut =
            error.is_closed() || StdError::source(&error).is_some_and(|source| source.is::<std::io::Error>());
        return if is_cut {
            Error::Away { reason: told(&error), is_unsure: false }
        } else {
            Error::Engine(EngineError(Engine::Postgres(error)))
        };
    };
    let code = told_by_server.code();
    match code {
        // The server ends, crashes, or is not ready yet; or it has too many guests.
        &SqlState::ADMIN_SHUTDOWN
        | &SqlState::CRASH_SHUTDOWN
        | &SqlState::CANNOT_CONNECT_NOW
        | &SqlState::TOO_MANY_CONNECTIONS
        | &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => {
            Error::Away { reason: told_by_server.message().to_owned(), is_unsure: false }
        }
        code if code.code().starts_with("08") => {
            Error::Away { reason: told_by_server.message().to_owned(), is_unsure: false }
        }
        // A lock or a statement took longer than it may.
        &SqlState::LOCK_NOT_AVAILABLE | &SqlState::QUERY_CANCELED => Error::Busy,
        &SqlState::READ_ONLY_SQL_TRANSACTION => Error::ReadOnly,
        _ => Error::Engine(EngineError(Engine::Postgres(error))),
    }
}

/// The SQL state of an error, if the server told one.
pub(super) fn state(error: &Error) -> Option<&SqlState> {
    let Error::Engine(EngineError(Engine::Postgres(error))) = error else { return None };
    error.code()
}

/// Whether the same work can succeed when it is done again: somebody else was faster, in a way that the work's own checks
/// will see.
pub(super) fn is_collision(error: &Error) -> bool {
    matches!(
        state(error),
        Some(
            &SqlState::T_R_SERIALIZATION_FAILURE
                | &SqlState::T_R_DEADLOCK_DETECTED
                | &SqlState::UNIQUE_VIOLATION
        )
    )
}

/// Whether the connection is of no use any more.
pub(super) const fn is_away(error: &Error) -> bool {
    matches!(error, Error::Away { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_translated() {
        for (sqlite, postgres) in [
            ("a = ?1 AND b = ?2 AND c = ?1", "a = $1 AND b = $2 AND c = $1"),
            ("a = ? AND b = ?", "a = $1 AND b = $2"),
            ("a = ?2 AND b = ?", "a = $2 AND b = $3"),
            ("a = '?' AND b = ?", "a = '?' AND b = $1"),
            ("x CROSS JOIN y ON INSTR(a, b) > 0", "x JOIN y ON strpos(a, b) > 0"),
        ] {
            assert_eq!(translated(sqlite), postgres);
        }
    }
}
