//! The recovery copy: everything of the catalog that cannot be made again, in one compressed file beside the packs, and
//! the way back from it. `FORMAT.md` gives the bytes.
//!
//! Packs without a catalog are bytes without names. The copy is behind the catalog by what was written since it was
//! made; it says up to which sequence number it goes, and it is the second witness of how far the journal had come.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, params};
use shelf_base::{Digest, Moment};
use zstd::zstd_safe::CParameter;

use super::{SqliteCatalog, connect, schema, writer};
use crate::{
    Actor, BlocksOf, Error, Operation, Record, Result,
    sql::{self, Turn, read, upkeep},
};

const MAGIC: &[u8; 8] = b"SHELFRC1";
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
            Ok(file) => Self::of(file).map(|(note, _)| Some(note)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::Files(error)),
        }
    }

    /// The note, and the file behind it.
    fn of(mut file: File) -> Result<(Self, File)> {
        let mut head = [0; HEADER];
        file.read_exact(&mut head).map_err(|_| unreadable())?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        let seal = Digest::from_slice(&head[20..]).ok_or_else(unreadable)?;
        let note = Self { schema: (number(8) & 0xFFFF_FFFF) as u32, sequence: number(12), seal };
        let is_known = head[..8] == *MAGIC || head[..8] == *MAGIC_ALONE;
        if is_known { Ok((note, file)) } else { Err(unreadable()) }
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
        let (plain, _) = Scratch::beside(target, ".db.part")?;
        let note = copy_tables(&self.path, &plain.0)?;
        let (packed, file) = Scratch::beside(target, ".part")?;
        compress(&plain.0, &file, &note).and_then(|()| file.sync_all()).map_err(Error::Files)?;
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
        let (note, packed) = CopyNote::of(File::open(copy).map_err(Error::Files)?)?;
        if note.schema > schema::KNOWN {
            return Err(Error::TooNew { found: note.schema, known: schema::KNOWN });
        }
        let (plain, mut file) = Scratch::beside(&target, ".copy.part")?;
        decompress(packed, &mut file).map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Files(error),
            _ => unreadable(),
        })?;
        let (fresh, _) = Scratch::beside(&target, ".new.part")?;
        fill(&fresh.0, &plain.0, &note, now, blocks_of)?;
        make_way().and_then(|()| fs::rename(&fresh.0, &target)).map_err(Error::Files)?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::Files)?;
        Ok(note)
    }
}

fn attach(connection: &Connection, path: &Path) -> Result<()> {
    connection.execute("ATTACH DATABASE ?1 AS copy", [path.display().to_string()])?;
    connection.execute_batch("PRAGMA copy.synchronous = off; PRAGMA copy.journal_mode = off;")?;
    Ok(())
}

/// All tables in one transaction: the copy is of one moment.
fn copy_tables(catalog: &Path, plain: &Path) -> Result<CopyNote> {
    let connection = connect(catalog)?;
    attach(&connection, plain)?;
    let transaction = connection.unchecked_transaction()?;
    let (sequence, seal) = read::journal_end(sql::Connection::Sqlite(&transaction))?;
    for (table, columns) in TABLES {
        transaction
            .execute_batch(&format!("CREATE TABLE copy.{table} AS SELECT {columns} FROM main.{table}"))?;
    }
    transaction.execute_batch("CREATE TABLE copy.counters AS SELECT name, seq FROM main.sqlite_sequence")?;
    let schema = schema::version(&transaction)?;
    transaction.commit()?;
    Ok(CopyNote { schema, sequence, seal })
}

fn compress(plain: &Path, target: &File, note: &CopyNote) -> io::Result<()> {
    let mut target = target;
    target.write_all(&note.encode(MAGIC))?;
    let mut encoder = zstd::Encoder::new(target, LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.window_log(WINDOW_LOG)?;
    encoder.set_parameter(CParameter::HashLog(SEEN_LOG))?;
    encoder.set_parameter(CParameter::ChainLog(SEEN_LOG))?;
    let mut plain = File::open(plain)?;
    // Tables for a small catalog are small.
    encoder.set_pledged_src_size(Some(plain.metadata()?.len()))?;
    io::copy(&mut plain, &mut encoder)?;
    encoder.finish().map(drop)
}

fn decompress(packed: File, plain: &mut File) -> io::Result<()> {
    let mut decoder = zstd::Decoder::new(packed)?;
    decoder.window_log_max(WINDOW_LOG)?;
    io::copy(&mut decoder, plain)?;
    plain.sync_all()
}

fn fill(fresh: &Path, plain: &Path, note: &CopyNote, now: Moment, blocks_of: BlocksOf) -> Result<()> {
    let mut connection = Connection::open(fresh)?;
    connection
        .execute_batch("PRAGMA synchronous = off; PRAGMA journal_mode = off; PRAGMA foreign_keys = off;")?;
    schema::walk_to(&mut connection, note.schema)?;
    attach(&connection, plain)?;
    {
        let transaction = connection.unchecked_transaction()?;
        transaction.execute_batch("DELETE FROM accounts")?;
        for (table, columns) in TABLES.iter().filter(|(table, _)| *table != "journal") {
            if !is_in_copy(&transaction, table)? {
                continue;
            }
            transaction
                .execute_batch(&format!("INSERT INTO main.{table} SELECT {columns} FROM copy.{table}"))?;
        }
        transaction.execute_batch(
            "DELETE FROM main.sqlite_sequence; INSERT INTO main.sqlite_sequence SELECT name, seq FROM copy.counters",
        )?;
        let seal = seal_again(&transaction)?;
        if seal != note.seal {
            return Err(unreadable());
        }
        transaction.commit()?;
    }
    connection.execute_batch("DETACH copy")?;
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

/// Whether a copy has a table: one that was made by an older version has fewer.
fn is_in_copy(connection: &Connection, table: &str) -> Result<bool> {
    let sql = "SELECT COUNT(*) FROM copy.sqlite_master WHERE type = 'table' AND name = ?1";
    Ok(connection.query_row(sql, [table], |row| row.get::<_, i64>(0))? > 0)
}

/// Copies the journal row by row and seals it anew; the last seal tells whether every row is what it was.
fn seal_again(connection: &Connection) -> Result<Digest> {
    let mut query =
        connection.prepare(&format!("SELECT {JOURNAL}, zeroblob(32) FROM copy.journal ORDER BY sequence"))?;
    let mut insert = connection.prepare(
        "INSERT INTO main.journal (sequence, at, account, token, operation, collection, document, path, previous, new,
             state, seal) SELECT *, ?2 FROM copy.journal WHERE sequence = ?1",
    )?;
    connection.execute_batch("CREATE UNIQUE INDEX copy.journal_by_sequence ON journal (sequence)")?;
    let mut seal = Record::genesis();
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let record = read::record(&sql::Row::Sqlite(row))?;
        seal = record.expected_seal(&seal);
        insert.execute(params![record.sequence, seal.as_bytes()])?;
    }
    Ok(seal)
}
