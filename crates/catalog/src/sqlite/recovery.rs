//! The recovery copy: everything of the catalog that cannot be made again, in one compressed file beside the packs, and
//! the way back from it. `FORMAT.md` gives the bytes.
//!
//! Packs without a catalog are bytes without names. The copy is behind the catalog by what was written since it was
//! made; it says up to which sequence number it goes, and it is the second witness of how far the journal had come.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, ErrorCode, params, params_from_iter};
use shelf_base::{Digest, Moment};
use zstd::zstd_safe::CParameter;

use super::{SqliteCatalog, columns, connect, schema, writer};
use crate::{
    Actor, BlocksOf, Error, Operation, Record, Result,
    sql::{self, Turn, read, upkeep},
};

const MAGIC: &[u8; 8] = b"SHELFRC2";
/// A copy whose tables are in an SQLite database, as earlier programs wrote it.
const MAGIC_DATABASE: &[u8; 8] = b"SHELFRC1";
/// A note without a copy behind it: how far the journal of a database that is backed up elsewhere had come.
const MAGIC_ALONE: &[u8; 8] = b"SHELFRN1";
const HEADER: usize = 8 + 4 + 8 + 32;
/// Matches are looked for this far back: a hash stands in several tables.
const WINDOW_LOG: u32 = 24;
const LEVEL: i32 = 3;
/// Matches are remembered in tables of so many entries, as a power of two; those of the level itself are too small for them.
const SEEN_LOG: u32 = 20;

/// The tables that are copied, with their columns where not all are. Seals are left out: they follow from the rows. The
/// blocks of accounts follow from the manifests.
const TABLES: &[(&str, &str)] = &[
    ("secrets", "*"),
    ("accounts", "*"),
    ("collections", "*"),
    ("tokens", "*"),
    ("sessions", "*"),
    ("blobs", "*"),
    ("documents", "*"),
    ("versions", "*"),
    ("tags", "*"),
    ("maps", "*"),
    ("loose_blocks", "*"),
    ("snapshots", "*"),
    ("buried", "*"),
    ("journal", JOURNAL),
];
const JOURNAL: &str =
    "sequence, at, account, token, operation, collection, document, path, previous, new, state";

/// SQLite's table of the highest numbers, which are not given again.
const COUNTERS: &str = "sqlite_sequence";
/// The length of a page of the database.
const PAGE: u64 = 4_096;
/// Journal records that are sealed at once.
const SEALED_AT_ONCE: usize = 1_000;

/// What a copy says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyNote {
    /// The schema of its tables.
    pub schema: u32,
    /// The last journal record that it holds.
    pub sequence: u64,
    /// That record's seal.
    pub seal: Digest,
}

impl CopyNote {
    /// Reads the head of a copy; `None` when there is no file.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        match File::open(path) {
            Ok(file) => Self::of(file).map(|(note, ..)| Some(note)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::Files(error)),
        }
    }

    /// The note, how the tables follow it, and the file behind it.
    fn of(mut file: File) -> Result<(Self, Form, File)> {
        let mut head = [0; HEADER];
        file.read_exact(&mut head).map_err(|_| unreadable())?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        let seal = Digest::from_slice(&head[20..]).ok_or_else(unreadable)?;
        let note = Self { schema: (number(8) & 0xFFFF_FFFF) as u32, sequence: number(12), seal };
        let form = match &head[..8] {
            magic if magic == MAGIC => Form::Columns,
            magic if magic == MAGIC_DATABASE => Form::Database,
            magic if magic == MAGIC_ALONE => Form::Nothing,
            _ => return Err(unreadable()),
        };
        Ok((note, form, file))
    }

    /// Writes the note without a copy, replacing what is there when the new one is durable: the second witness of how far
    /// a journal had come whose database lies elsewhere.
    pub(crate) fn write_alone(&self, target: &Path) -> Result<()> {
        let (scratch, mut file) = Scratch::beside(target, ".part")?;
        file.write_all(&self.encode(MAGIC_ALONE)).and_then(|()| file.sync_all()).map_err(Error::Files)?;
        put_in_place(&scratch, target)
    }

    fn encode(&self, magic: &[u8; 8]) -> Vec<u8> {
        let mut head = Vec::with_capacity(HEADER);
        head.extend_from_slice(magic);
        head.extend_from_slice(&self.schema.to_le_bytes());
        head.extend_from_slice(&self.sequence.to_le_bytes());
        head.extend_from_slice(self.seal.as_bytes());
        head
    }
}

/// What follows the head of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Columns,
    Database,
    Nothing,
}

fn unreadable() -> Error {
    Error::Unreadable("the recovery copy")
}

/// A file for the owner's eyes that is removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn beside(path: &Path, suffix: &str) -> Result<(Self, File)> {
        let name = format!("{}.{}{suffix}", path.display(), std::process::id());
        let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&name);
        Ok((Self(name.into()), file.map_err(Error::Files)?))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn put_in_place(scratch: &Scratch, target: &Path) -> Result<()> {
    fs::rename(&scratch.0, target).map_err(Error::Files)?;
    let folder = target.parent().unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::Files)
}

impl SqliteCatalog {
    /// Writes a copy of the catalog as it is now to `target`, replacing it when the new one is durable.
    pub(super) fn write_copy(&self, target: &Path) -> Result<CopyNote> {
        let (packed, mut file) = Scratch::beside(target, ".part")?;
        let note = copy_tables(&self.path, &mut file)?;
        file.sync_all().map_err(Error::Files)?;
        put_in_place(&packed, target)?;
        Ok(note)
    }

    /// Makes a catalog in `folder` from a copy. The journal goes on after the copy's last record with one that says so.
    /// `make_way` is called when the new one is ready: it sets aside what stands in its place.
    pub fn rebuild(
        folder: &Path,
        copy: &Path,
        now: Moment,
        blocks_of: BlocksOf,
        make_way: impl FnOnce() -> io::Result<()>,
    ) -> Result<CopyNote> {
        let _turn = writer::take_turn(&folder.join("catalog.lock"))?;
        let target = folder.join("catalog.db");
        let (note, form, packed) = CopyNote::of(File::open(copy).map_err(Error::Files)?)?;
        if note.schema > schema::KNOWN {
            return Err(Error::TooNew { found: note.schema, known: schema::KNOWN });
        }
        let (plain, mut file) = Scratch::beside(&target, ".copy.part")?;
        let tables = match form {
            Form::Columns => Tables::Columns(BufReader::new(decoder(packed).map_err(broken)?)),
            Form::Database => {
                io::copy(&mut decoder(packed).map_err(broken)?, &mut file).map_err(broken)?;
                Tables::Database(&plain.0)
            }
            Form::Nothing => return Err(unreadable()),
        };
        let (fresh, _) = Scratch::beside(&target, ".new.part")?;
        fill(&fresh.0, tables, &note, now, blocks_of)?;
        make_way().and_then(|()| fs::rename(&fresh.0, &target)).map_err(Error::Files)?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::Files)?;
        Ok(note)
    }
}

/// All tables in one transaction: the copy is of one moment.
fn copy_tables(catalog: &Path, target: &mut File) -> Result<CopyNote> {
    let connection = connect(catalog)?;
    let transaction = connection.unchecked_transaction()?;
    let (sequence, seal) = read::journal_end(sql::Connection::Sqlite(&transaction))?;
    let note = CopyNote { schema: schema::version(&transaction)?, sequence, seal };
    target.write_all(&note.encode(MAGIC)).map_err(Error::Files)?;
    let mut encoder = encoder(&transaction, target)?;
    for (table, columns) in TABLES {
        let query = format!("SELECT {columns} FROM {table} ORDER BY 1");
        columns::write(&transaction, table, &query, &mut encoder)?;
    }
    columns::write(&transaction, COUNTERS, "SELECT name, seq FROM sqlite_sequence", &mut encoder)?;
    columns::write_end(&mut encoder).and_then(|()| encoder.finish()).map_err(Error::Files)?;
    Ok(note)
}

/// The database's length is about what will be compressed: the tables for a small one are small.
fn encoder<'f>(
    connection: &Connection,
    target: &'f mut File,
) -> Result<zstd::Encoder<'static, &'f mut File>> {
    let pages: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let seen = (pages * PAGE).max(2).ilog2().clamp(10, SEEN_LOG);
    let make = || -> io::Result<_> {
        let mut encoder = zstd::Encoder::new(target, LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.window_log(WINDOW_LOG)?;
        encoder.set_parameter(CParameter::HashLog(seen))?;
        encoder.set_parameter(CParameter::ChainLog(seen))?;
        Ok(encoder)
    };
    make().map_err(Error::Files)
}

fn decoder(packed: File) -> io::Result<zstd::Decoder<'static, BufReader<File>>> {
    let mut decoder = zstd::Decoder::new(packed)?;
    decoder.window_log_max(WINDOW_LOG)?;
    Ok(decoder)
}

/// A full disk is said; anything else is a copy that cannot be read.
fn broken(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Files(error),
        _ => unreadable(),
    }
}

/// The same for rows that do not fit their table.
fn unfit(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory) => error.into(),
        _ => unreadable(),
    }
}

/// The tables of a copy.
enum Tables<'p> {
    Columns(BufReader<zstd::Decoder<'static, BufReader<File>>>),
    /// The path of an SQLite database.
    Database(&'p Path),
}

fn fill(fresh: &Path, tables: Tables<'_>, note: &CopyNote, now: Moment, blocks_of: BlocksOf) -> Result<()> {
    let mut connection = Connection::open(fresh)?;
    connection
        .execute_batch("PRAGMA synchronous = off; PRAGMA journal_mode = off; PRAGMA foreign_keys = off;")?;
    schema::walk_to(&mut connection, note.schema)?;
    let is_attached = if let Tables::Database(plain) = &tables {
        connection.execute("ATTACH DATABASE ?1 AS copy", [plain.display().to_string()])?;
        true
    } else {
        false
    };
    {
        let transaction = connection.unchecked_transaction()?;
        transaction.execute_batch("DELETE FROM accounts")?;
        match tables {
            Tables::Columns(mut source) => fill_from_columns(&transaction, &mut source)?,
            Tables::Database(_) => fill_from_database(&transaction)?,
        }
        if seal_again(&transaction)? != (note.sequence, note.seal) {
            return Err(unreadable());
        }
        transaction.commit()?;
    }
    if is_attached {
        connection.execute_batch("DETACH copy")?;
    }
    schema::migrate(&mut connection)?;
    writer::append(&connection, |turn| {
        let mut record = Turn::blank(&Actor::local(), now, Operation::Recover);
        record.path = format!("rebuilt from the recovery copy at {}", note.sequence);
        turn.record(record)?;
        upkeep::rebuild_account_blocks(turn.connection, blocks_of)
    })?;
    drop(connection);
    File::open(fresh).and_then(|file| file.sync_all()).map_err(Error::Files)
}

fn fill_from_columns(connection: &Connection, source: &mut impl Read) -> Result<()> {
    while let Some(part) = columns::read(source).map_err(broken)? {
        let is_known = part.table == COUNTERS || TABLES.iter().any(|(table, _)| *table == part.table);
        let is_name = |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_known || part.names.is_empty() || !part.names.iter().all(is_name) {
            return Err(unreadable());
        }
        if part.table == COUNTERS {
            forget_counters(connection)?;
        }
        let (unsealed, seal) = if part.table == "journal" { (", seal", ", zeroblob(32)") } else { ("", "") };
        let marks = vec!["?"; part.names.len()].join(", ");
        let names = part.names.join(", ");
        let sql = format!("INSERT INTO {} ({names}{unsealed}) VALUES ({marks}{seal})", part.table);
        let mut insert = connection.prepare(&sql).map_err(unfit)?;
        for row in 0..part.rows {
            let values = part.columns.iter().map(|column| &column[row]);
            insert.execute(params_from_iter(values)).map_err(unfit)?;
        }
    }
    // The checksum stands behind the last table.
    io::copy(source, &mut io::sink()).map(drop).map_err(broken)
}

fn fill_from_database(connection: &Connection) -> Result<()> {
    for (table, columns) in TABLES {
        if !is_in_copy(connection, table)? {
            continue;
        }
        let sql = if *table == "journal" {
            format!(
                "INSERT INTO main.journal ({columns}, seal) SELECT {columns}, zeroblob(32) FROM copy.journal"
            )
        } else {
            format!("INSERT INTO main.{table} SELECT {columns} FROM copy.{table}")
        };
        connection.execute_batch(&sql)?;
    }
    forget_counters(connection)?;
    connection.execute_batch("INSERT INTO main.sqlite_sequence SELECT name, seq FROM copy.counters")?;
    Ok(())
}

/// Inserting rows has counted them; what was deleted before the copy counts as well.
fn forget_counters(connection: &Connection) -> Result<()> {
    Ok(connection.execute_batch("DELETE FROM main.sqlite_sequence")?)
}

/// Whether a copy has a table: one that was made by an older version has fewer.
fn is_in_copy(connection: &Connection, table: &str) -> Result<bool> {
    let sql = "SELECT COUNT(*) FROM copy.sqlite_master WHERE type = 'table' AND name = ?1";
    Ok(connection.query_row(sql, [table], |row| row.get::<_, i64>(0))? > 0)
}

/// Seals the journal row by row. Its last number and seal tell whether every row is what it was.
fn seal_again(connection: &Connection) -> Result<(u64, Digest)> {
    let mut update = connection.prepare("UPDATE main.journal SET seal = ?2 WHERE sequence = ?1")?;
    let (mut seal, mut last) = (Record::genesis(), 0);
    loop {
        let records = read::journal(sql::Connection::Sqlite(connection), last, SEALED_AT_ONCE)?;
        for record in &records {
            seal = record.expected_seal(&seal);
            update.execute(params![record.sequence, seal.as_bytes()])?;
            last = record.sequence;
        }
        if records.len() < SEALED_AT_ONCE {
            return Ok((last, seal));
        }
    }
}
