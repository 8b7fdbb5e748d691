//! A connection to a database as the queries of this crate see it: statements with numbered values, rows with numbered
//! cells. The queries are written in the SQL that SQLite and PostgreSQL share; where the two differ, the query says so with
//! [`Connection::pick`].

use super::value::{self, Cell, FromCell, Value};
use crate::{Error, Result, postgres::Session};

/// A connection that somebody else owns.
#[derive(Clone, Copy)]
pub(crate) enum Connection<'c> {
    Sqlite(&'c rusqlite::Connection),
    Postgres(&'c Session),
}

impl<'c> Connection<'c> {
    /// The spelling of this database.
    pub(crate) const fn pick<T: Copy>(self, sqlite: T, postgres: T) -> T {
        match self {
            Self::Sqlite(_) => sqlite,
            Self::Postgres(_) => postgres,
        }
    }

    /// A condition: the column is one of a list of [`Value::Numbers`].
    pub(crate) fn among(self, column: &str) -> String {
        match self {
            Self::Sqlite(_) => format!("{column} IN (SELECT value FROM json_each(?))"),
            Self::Postgres(_) => format!("{column} = ANY (CAST(? AS BIGINT[]))"),
        }
    }

    /// Tables of a query that looks up a list of [`Value::Keys`], one by one.
    pub(crate) fn keyed(self, table: &str, name: &str, column: &str) -> String {
        match self {
            Self::Sqlite(_) => format!(
                "json_each(?1) wanted CROSS JOIN {table} {name} ON {name}.{column} = unhex(wanted.value)"
            ),
            Self::Postgres(_) => {
                format!(
                    "unnest(CAST(?1 AS BYTEA[])) AS wanted (key) JOIN {table} {name} ON {name}.{column} = wanted.key"
                )
            }
        }
    }

    /// A statement that is parsed once for a connection.
    pub(crate) fn prepare_cached(self, sql: &str) -> Result<Statement<'c>> {
        Ok(match self {
            Self::Sqlite(connection) => Statement::Sqlite(connection.prepare_cached(sql)?),
            Self::Postgres(session) => Statement::Postgres { session, statement: session.prepare(sql)? },
        })
    }

    /// Runs a statement; how many rows it touched.
    pub(crate) fn execute(self, sql: &str, values: &[Value<'_>]) -> Result<usize> {
        match self {
            // A statement that is run seldom is not kept.
            Self::Sqlite(connection) => {
                Ok(connection.execute(sql, rusqlite::params_from_iter(values.iter()))?)
            }
            Self::Postgres(_) => self.prepare_cached(sql)?.execute(values),
        }
    }

    /// Inserts a row; the number that it got.
    pub(crate) fn insert(self, sql: &str, values: &[Value<'_>]) -> Result<i64> {
        match self {
            Self::Sqlite(connection) => {
                connection.prepare_cached(sql)?.execute(rusqlite::params_from_iter(values.iter()))?;
                Ok(connection.last_insert_rowid())
            }
            Self::Postgres(_) => self.query_row(&format!("{sql} RETURNING id"), values, |row| row.get(0)),
        }
    }

    /// The only row of a query.
    pub(crate) fn query_row<T>(
        self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.prepare_cached(sql)?.query_row(values, read)
    }

    /// Runs several statements without values.
    pub(crate) fn execute_batch(self, sql: &str) -> Result<()> {
        match self {
            Self::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            Self::Postgres(session) => session.batch(sql),
        }
    }
}

/// A statement that is ready to run.
pub(crate) enum Statement<'c> {
    Sqlite(rusqlite::CachedStatement<'c>),
    Postgres { session: &'c Session, statement: tokio_postgres::Statement },
}

impl Statement<'_> {
    pub(crate) fn query(&mut self, values: &[Value<'_>]) -> Result<Rows<'_>> {
        Ok(match self {
            Self::Sqlite(statement) => {
                Rows::Sqlite(statement.query(rusqlite::params_from_iter(values.iter()))?)
            }
            Self::Postgres { session, statement } => {
                Rows::Postgres { rest: session.query(statement, values)?.into_iter(), current: None }
            }
        })
    }

    pub(crate) fn execute(&mut self, values: &[Value<'_>]) -> Result<usize> {
        match self {
            Self::Sqlite(statement) => Ok(statement.execute(rusqlite::params_from_iter(values.iter()))?),
            Self::Postgres { session, statement } => session.execute(statement, values),
        }
    }

    pub(crate) fn exists(&mut self, values: &[Value<'_>]) -> Result<bool> {
        Ok(self.query(values)?.next()?.is_some())
    }

    /// The first row, if there is one.
    pub(crate) fn first<T>(
        &mut self,
        values: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.query(values)?.next()?.map(|row| read(&row)).transpose()
    }

    /// The first row, which must be there.
    pub(crate) fn query_row<T>(
        &mut self,
        values: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.first(values, read)?.ok_or(Error::Unreadable("a row that must be there"))
    }
}

/// The rows of a query.
pub(crate) enum Rows<'s> {
    Sqlite(rusqlite::Rows<'s>),
    Postgres { rest: std::vec::IntoIter<tokio_postgres::Row>, current: Option<tokio_postgres::Row> },
}

impl Rows<'_> {
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>> {
        Ok(match self {
            Self::Sqlite(rows) => rows.next()?.map(Row::Sqlite),
            Self::Postgres { rest, current } => {
                *current = rest.next();
                current.as_ref().map(Row::Postgres)
            }
        })
    }
}

/// A row, for as long as it is looked at.
#[derive(Clone, Copy)]
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

impl<'r> Row<'r> {
    /// A cell as it is.
    pub(crate) fn cell(&self, at: usize) -> Result<Cell<'r>> {
        match self {
            Self::Sqlite(row) => {
                use rusqlite::types::ValueRef;
                Ok(match row.get_ref(at)? {
                    ValueRef::Null => Cell::Null,
                    ValueRef::Integer(number) => Cell::Integer(number),
                    ValueRef::Text(text) => Cell::Text(text),
                    ValueRef::Blob(bytes) => Cell::Blob(bytes),
                    ValueRef::Real(_) => return Err(Error::Unreadable("a number")),
                })
            }
            Self::Postgres(row) => row.try_get(at).map_err(|_| Error::Unreadable("a row")),
        }
    }

    /// A cell as a value.
    pub(crate) fn get<T: FromCell>(&self, at: usize) -> Result<T> {
        value::read(self.cell(at)?)
    }

    /// How many cells there are.
    pub(crate) fn cells(&self) -> usize {
        match self {
            Self::Sqlite(row) => row.as_ref().column_count(),
            Self::Postgres(row) => row.len(),
        }
    }
}
