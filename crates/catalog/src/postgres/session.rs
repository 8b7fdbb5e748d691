//! One connection to PostgreSQL: statements that are prepared once, values and cells in its binary form, and its errors in
//! the words of this crate.

use std::{
    cell::{Cell as Kept, RefCell},
    collections::HashMap,
    error::Error as StdError,
    time::Duration,
};

use bytes::{BufMut, BytesMut};
use futures_util::future::{join, join_all};
use tokio_postgres::{
    Client, Row, Statement,
    error::SqlState,
    types::{FromSql, IsNull, ToSql, Type},
};

use super::{
    address::told,
    wire::{Wire, WireError},
};
use crate::{
    Error, Result,
    error::{Engine, EngineError},
    sql::{Cell, OwnedValue, Value},
};

/// Statements that a connection keeps ready.
const KEPT: usize = 256;
/// How long an answer is waited for: the server gives up before that, so a connection without an answer is cut.
const PATIENCE: Duration = Duration::from_secs(100);

type Told<T> = std::result::Result<T, tokio_postgres::Error>;

/// A connection, for one thread at a time.
pub(crate) struct Session {
    ends: RefCell<Ends>,
    statements: RefCell<HashMap<String, Statement>>,
    /// Commands that go out before the next statement, without a way to the server of their own.
    ahead: RefCell<String>,
    /// Whether the server has been told that what comes may take as long as it likes.
    is_slow: Kept<bool>,
}

/// Both ends of a connection's inside.
struct Ends {
    /// There until the session is dropped.
    client: Option<Client>,
    wire: Wire,
}

/// A statement that ends a transaction, and its values.
pub(crate) type Last = (String, Vec<OwnedValue>);

impl Session {
    pub(super) fn new(wire: Wire, client: Client) -> Self {
        Self {
            ends: RefCell::new(Ends { client: Some(client), wire }),
            statements: RefCell::default(),
            ahead: RefCell::default(),
            is_slow: Kept::new(false),
        }
    }

    /// Whether the connection is known to be gone.
    pub(super) fn is_closed(&self) -> bool {
        self.ends.borrow_mut().wire.is_closed()
    }

    /// What comes until [`Session::reset`] may take as long as it likes.
    pub(super) fn is_slow(&self) {
        self.is_slow.set(true);
    }

    /// Makes the session as it was when it was new.
    pub(super) fn reset(&self) {
        self.ahead.borrow_mut().clear();
        self.is_slow.set(false);
    }

    /// A statement, parsed when it is not known yet.
    pub(crate) fn prepare(&self, sql: &str) -> Result<Statement> {
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(known.clone());
        }
        let text = translated(sql);
        let statement = self.run(async |client| client.prepare(&text).await)?;
        let mut kept = self.statements.borrow_mut();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(crate) fn query(&self, statement: &Statement, values: &[Value<'_>]) -> Result<Vec<Row>> {
        let values = as_parameters(values);
        self.run(async |client| client.query(statement, &values).await)
    }

    pub(crate) fn execute(&self, statement: &Statement, values: &[Value<'_>]) -> Result<usize> {
        let values = as_parameters(values);
        let touched = self.run(async |client| client.execute(statement, &values).await)?;
        Ok(usize::try_from(touched).unwrap_or(usize::MAX))
    }

    /// Runs several statements without values.
    pub(crate) fn batch(&self, sql: &str) -> Result<()> {
        self.run(async |client| client.batch_execute(sql).await)
    }

    /// Has commands sent together with the next statement, which fails if one of them does.
    pub(super) fn ahead(&self, sql: &str) {
        let mut ahead = self.ahead.borrow_mut();
        if !ahead.is_empty() {
            ahead.push_str("; ");
        }
        ahead.push_str(sql);
    }

    /// Sends a command and does not wait for the answer: it can only fail with the connection, which the next one notices.
    pub(super) fn send(&self, sql: &str) {
        let mut ends = self.ends.borrow_mut();
        let Ends { client: Some(client), wire } = &mut *ends else { return };
        let mut sent = std::pin::pin!(client.batch_execute(sql));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let _ = sent.as_mut().poll(&mut context);
        wire.nudge();
    }

    /// Sends the last statements of a transaction and the command that ends it, and waits for all of them at once. A server
    /// that refuses one of the statements undoes the transaction instead.
    pub(super) fn end(&self, last: &[Last], command: &str) -> Result<()> {
        // A value that cannot be sent would be left out while the command goes out.
        let is_nul = |value: &OwnedValue| matches!(value, OwnedValue::Text(text) if text.contains('\0'));
        if last.iter().any(|(_, values)| values.iter().any(is_nul)) {
            return Err(Error::Nul);
        }
        let statements = last.iter().map(|(sql, _)| self.prepare(sql)).collect::<Result<Vec<_>>>()?;
        let values: Vec<Vec<Value<'_>>> = last
            .iter()
            .map(|(_, values)| values.iter().map(crate::sql::AsValue::as_value).collect())
            .collect();
        let values: Vec<_> = values.iter().map(|values| as_parameters(values)).collect();
        self.run(async |client| {
            let statements = statements.iter().zip(&values);
            let executed = join_all(statements.map(|(statement, values)| client.execute(statement, values)));
            let (executed, ended) = join(executed, client.batch_execute(command)).await;
            executed.into_iter().collect::<Told<Vec<_>>>()?;
            ended
        })
    }

    fn run<T>(&self, work: impl AsyncFnOnce(&Client) -> Told<T>) -> Result<T> {
        let mut ends = self.ends.borrow_mut();
        let Ends { client: Some(client), wire } = &mut *ends else { return Err(Error::Closed) };
        let ahead = self.ahead.take();
        let patience = (!self.is_slow.get()).then_some(PATIENCE);
        let answer = if ahead.is_empty() {
            wire.wait_for(work(client), patience)
        } else {
            // The first is sent first; a failure of it makes the other one fail, and says why.
            let both = async { Ok(join(client.batch_execute(&ahead), work(client)).await) };
            match wire.wait_for(both, patience) {
                Ok((Err(error), Err(_))) => Err(error.into()),
                Ok((Ok(()), answer)) => answer.map_err(Into::into),
                // A transaction that could not begin, and a statement that was run without one.
                Ok((Err(error), Ok(_))) => {
                    return Err(Error::Away { reason: told(&error), is_unsure: true });
                }
                Err(error) => Err(error),
            }
        };
        answer.map_err(failure)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let ends = self.ends.get_mut();
        drop(ends.client.take());
        ends.wire.close();
    }
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

type Converted<T> = std::result::Result<T, Box<dyn StdError + Sync + Send>>;

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Converted<IsNull> {
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

    tokio_postgres::types::to_sql_checked!();
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
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Converted<Self> {
        Ok(match *kind {
            Type::INT8 => Self::Integer(i64::from_be_bytes(raw.try_into()?)),
            Type::INT4 => Self::Integer(i32::from_be_bytes(raw.try_into()?).into()),
            Type::BOOL => Self::Integer(i64::from(raw.first() == Some(&1))),
            Type::BYTEA => Self::Blob(raw),
            Type::TEXT | Type::VARCHAR | Type::JSON | Type::NAME | Type::UNKNOWN => Self::Text(raw),
            _ => return Err(format!("a cell of type {kind}").into()),
        })
    }

    fn from_sql_null(_: &Type) -> Converted<Self> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// An error of the connection in the words of this crate.
pub(super) fn failure(error: WireError) -> Error {
    let error = match error {
        WireError::Protocol(error) => error,
        WireError::Network(reason) => return Error::Away { reason, is_unsure: false },
    };
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
