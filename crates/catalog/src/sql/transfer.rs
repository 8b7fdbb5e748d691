//! A catalog copied from one database to another, row by row, in one transaction of each.
//!
//! Nobody writes to either meanwhile. The copy has the same row numbers, so that indexes stay valid, and the same journal,
//! whose chain is verified where it has arrived. Since the copy is one transaction, it is there whole or not at all, and an
//! attempt that was broken off is simply repeated.

use shelf_base::Digest;

use super::{Backend, Cell, Connection, Value, params, read, rows::collect};
use crate::{Error, Record, Result};

/// Rows that are read at once.
const PAGE: usize = 512;
/// Rows that one statement inserts, when there are so many.
const TOGETHER: usize = 32;

/// A table: its columns, the first of which are its key.
struct Table {
    name: &'static str,
    columns: &'static [&'static str],
    /// How many columns the key has.
    key: usize,
    /// Whether its rows get numbers from the database.
    is_numbered: bool,
}

const fn table(name: &'static str, key: usize, columns: &'static [&'static str]) -> Table {
    Table { name, columns, key, is_numbered: false }
}

const fn numbered(name: &'static str, columns: &'static [&'static str]) -> Table {
    Table { name, columns, key: 1, is_numbered: true }
}

/// Everything that makes up a catalog, parents before children. Fencing numbers belong to the locks of a database.
const TABLES: &[Table] = &[
    table("secrets", 1, &["name", "value"]),
    numbered(
        "accounts",
        &[
            "id",
            "uuid",
            "username",
            "email",
            "password",
            "is_superuser",
            "is_active",
            "created_at",
            "deleted_at",
            "documents_numbered",
        ],
    ),
    numbered(
        "collections",
        &[
            "id",
            "uuid",
            "account",
            "name",
            "kind",
            "created_at",
            "model",
            "title",
            "status",
            "is_public",
            "deleted_at",
        ],
    ),
    numbered(
        "tokens",
        &[
            "id",
            "uuid",
            "account",
            "collection",
            "label",
            "hash",
            "scopes",
            "created_at",
            "expires_at",
            "revoked_at",
            "lifetime",
            "last_used_at",
        ],
    ),
    numbered("sessions", &["id", "uuid", "account", "refresh", "created_at", "expires_at"]),
    numbered("blobs", &["id", "hash", "size", "manifest"]),
    numbered(
        "documents",
        &[
            "id",
            "uuid",
            "collection",
            "path",
            "title",
            "resource_id",
            "extension",
            "mime",
            "is_text",
            "blob",
            "size",
            "version",
            "modified_at",
            "indexed_at",
            "created_at",
            "checked_at",
            "mode",
            "stat",
            "tags",
            "metadata",
            "deleted_at",
            "document_type",
            "account_number",
        ],
    ),
    table("versions", 2, &["document", "number", "blob", "modified_at", "indexed_at", "mode"]),
    table("tags", 2, &["tag", "document"]),
    table("maps", 2, &["document", "number", "source", "origin", "map", "created_at"]),
    table("account_blocks", 2, &["account", "block"]),
    table("loose_blocks", 1, &["id", "bytes"]),
    table(
        "snapshots",
        1,
        &[
            "at",
            "collection",
            "label",
            "root",
            "listing",
            "merkle",
            "files",
            "bytes",
            "git_commit",
            "git_branch",
            "entries",
        ],
    ),
    table(
        "journal",
        1,
        &[
            "sequence",
            "at",
            "account",
            "token",
            "operation",
            "collection",
            "document",
            "path",
            "previous",
            "new",
            "state",
            "seal",
        ],
    ),
    table("buried", 1, &["number", "sequence"]),
    table("used_uploads", 1, &["id", "expires_at"]),
];

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    /// Rows of all tables.
    pub rows: u64,
    /// The last journal record; the chain of all was verified.
    pub sequence: u64,
}

/// What is told while rows are copied: how many there were so far, and how many there are; `false` to give up.
pub(crate) type Progress<'a> = &'a dyn Fn(u64, u64) -> bool;

/// Copies a catalog. The target must be empty, or a copy from an earlier attempt, which is replaced. When all of it has
/// arrived, `switch` is called before anybody may write to the source again, and only then does the target take writes.
pub(crate) fn transfer(
    source: &impl Backend,
    target: &impl Backend,
    progress: Progress<'_>,
    switch: &dyn Fn() -> Result<()>,
) -> Result<Transferred> {
    source.alone(|from| {
        let copied = target.alone(|to| copy(from.connection, to.connection, progress))?;
        // From here on a database that others still know takes no writes.
        if let Connection::Postgres(_) = from.connection {
            from.connection.execute("DELETE FROM journal_head", params![])?;
        }
        switch()?;
        target.alone(|to| take_writes(to.connection))?;
        Ok(copied)
    })
}

/// Lets a database take writes, after the last record of its journal.
fn take_writes(connection: Connection<'_>) -> Result<()> {
    let Connection::Postgres(_) = connection else { return Ok(()) };
    let (sequence, seal) = read::journal_end(connection)?;
    connection.execute("DELETE FROM journal_head", params![])?;
    connection.execute(
        "INSERT INTO journal_head (sequence, seal) VALUES (?1, ?2)",
        params![sequence, seal.as_bytes()],
    )?;
    Ok(())
}

/// Copies all rows, within transactions of both.
pub(crate) fn copy(from: Connection<'_>, to: Connection<'_>, progress: Progress<'_>) -> Result<Transferred> {
    let end = read::journal_end(from)?;
    must_be_replaceable(from, to)?;
    for table in TABLES.iter().rev() {
        to.execute(&format!("DELETE FROM {}", table.name), params![])?;
    }
    let total = TABLES.iter().map(|table| count(from, table)).sum::<Result<u64>>()?;
    let mut rows = 0;
    for table in TABLES {
        rows += copy_table(table, from, to, &|done| progress(rows + done, total))?;
        let (there, here) = (count(to, table)?, count(from, table)?);
        if there != here {
            return Err(Error::Transfer(format!("{there} of {here} rows of {} arrived", table.name)));
        }
    }
    TABLES.iter().filter(|table| table.is_numbered).try_for_each(|table| go_on_numbering(table, from, to))?;
    if let Connection::Postgres(_) = to {
        // A copy that nobody has switched to is left without it: it takes no writes, and may be replaced.
        to.execute("DELETE FROM journal_head", params![])?;
    }
    if verified_end(to)? != end {
        return Err(Error::Transfer(
            "the journal that arrived does not end like the one that was sent".into(),
        ));
    }
    Ok(Transferred { rows, sequence: end.0 })
}

/// Refuses a target that is in use, or has records that the source does not: somebody's work would be lost.
fn must_be_replaceable(from: Connection<'_>, to: Connection<'_>) -> Result<()> {
    let (sequence, seal) = read::journal_end(to)?;
    let is_in_use = match to {
        Connection::Sqlite(_) => true,
        Connection::Postgres(_) => {
            to.query_row("SELECT COUNT(*) FROM journal_head", params![], |row| Ok(row.get::<u64>(0)? > 0))?
        }
    };
    let mut find = from.prepare_cached("SELECT 1 FROM journal WHERE sequence = ?1 AND seal = ?2")?;
    let is_copy = find.exists(params![sequence, seal.as_bytes()])?;
    if sequence == 0 || (is_copy && !is_in_use) {
        return Ok(());
    }
    Err(Error::Transfer(format!(
        "there is another library at the new place, with {sequence} journal records"
    )))
}

fn count(connection: Connection<'_>, table: &Table) -> Result<u64> {
    connection.query_row(&format!("SELECT COUNT(*) FROM {}", table.name), params![], |row| row.get(0))
}

/// A cell that outlives its row.
enum Kept {
    Null,
    Integer(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl Kept {
    fn of(cell: Cell<'_>) -> Result<Self> {
        Ok(match cell {
            Cell::Null => Self::Null,
            Cell::Integer(number) => Self::Integer(number),
            Cell::Text(_) => Self::Text(cell.text().ok_or(Error::Unreadable("a text"))?.to_owned()),
            Cell::Blob(bytes) => Self::Blob(bytes.to_vec()),
        })
    }

    fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Integer(number) => Value::Integer(*number),
            Self::Text(text) => Value::Text(text),
            Self::Blob(bytes) => Value::Blob(bytes),
        }
    }
}

/// Copies the rows of a table in the order of its key; how many there were.
fn copy_table(
    table: &Table,
    from: Connection<'_>,
    to: Connection<'_>,
    progress: &dyn Fn(u64) -> bool,
) -> Result<u64> {
    let (columns, key) = (table.columns.join(", "), table.columns[..table.key].join(", "));
    let places = vec!["?"; table.key].join(", ");
    let select = |condition: &str| {
        format!("SELECT {columns} FROM {} {condition} ORDER BY {key} LIMIT {PAGE}", table.name)
    };
    let (first, next) = (select(""), select(&format!("WHERE ({key}) > ({places})")));
    let insert = |rows: usize| {
        let row = format!("({})", vec!["?"; table.columns.len()].join(", "));
        format!("INSERT INTO {} ({columns}) VALUES {}", table.name, vec![row; rows].join(", "))
    };
    let (together, single) = (insert(TOGETHER), insert(1));
    let mut done = 0;
    let mut last: Option<Vec<Kept>> = None;
    loop {
        let page = {
            let after: Vec<Value<'_>> = last.iter().flatten().take(table.key).map(Kept::value).collect();
            let mut query = from.prepare_cached(if last.is_some() { &next } else { &first })?;
            collect(query.query(&after)?, |row| {
                (0..row.cells()).map(|at| Kept::of(row.cell(at)?)).collect::<Result<Vec<_>>>()
            })?
        };
        for rows in page.chunks(TOGETHER) {
            let values: Vec<Value<'_>> = rows.iter().flatten().map(Kept::value).collect();
            if rows.len() == TOGETHER {
                to.prepare_cached(&together)?.execute(&values)?;
                continue;
            }
            for row in values.chunks(table.columns.len()) {
                to.prepare_cached(&single)?.execute(row)?;
            }
        }
        done += page.len() as u64;
        if !progress(done) {
            return Err(Error::Transfer("it was stopped".into()));
        }
        let is_last = page.len() < PAGE;
        last = page.into_iter().last();
        if is_last {
            return Ok(done);
        }
    }
}

/// New rows get numbers that no row has had: an index may still know those of rows that are gone.
fn go_on_numbering(table: &Table, from: Connection<'_>, to: Connection<'_>) -> Result<()> {
    let name = table.name;
    let sequence = format!("CAST(pg_get_serial_sequence('{name}', 'id') AS REGCLASS)");
    let used = match from {
        // SQLite counts only where numbers must not come back.
        Connection::Sqlite(_) => format!(
            "SELECT MAX(COALESCE((SELECT MAX(id) FROM {name}), 0),
                        COALESCE((SELECT seq FROM sqlite_sequence WHERE name = '{name}'), 0))"
        ),
        Connection::Postgres(_) => format!(
            "SELECT GREATEST(COALESCE((SELECT MAX(id) FROM {name}), 0),
                             COALESCE(pg_sequence_last_value({sequence}), 0))"
        ),
    };
    let used: i64 = from.query_row(&used, params![], |row| row.get(0))?;
    match to {
        Connection::Sqlite(_) => {
            let update = format!("UPDATE sqlite_sequence SET seq = ?1 WHERE name = '{name}'");
            let insert = format!("INSERT INTO sqlite_sequence (name, seq) VALUES ('{name}', ?1)");
            if name == "documents" && to.execute(&update, params![used])? == 0 {
                to.execute(&insert, params![used])?;
            }
        }
        Connection::Postgres(_) if used > 0 => {
            to.query_row(&format!("SELECT setval({sequence}, ?1)"), params![used], |row| row.get::<i64>(0))?;
        }
        Connection::Postgres(_) => {}
    }
    Ok(())
}

/// Verifies the chain of a journal; its last record.
fn verified_end(connection: Connection<'_>) -> Result<(u64, Digest)> {
    let mut end = (0, Record::genesis());
    loop {
        let records = read::journal(connection, end.0, PAGE)?;
        if records.is_empty() {
            return Ok(end);
        }
        for record in records {
            if record.sequence != end.0 + 1 || record.seal != record.expected_seal(&end.1) {
                return Err(Error::Transfer(format!(
                    "journal record {} does not follow the one before",
                    record.sequence
                )));
            }
            end = (record.sequence, record.seal);
        }
    }
}
