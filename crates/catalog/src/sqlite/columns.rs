//! Rows of tables as a stream of columns: what the recovery copy consists of. `FORMAT.md` gives the bytes.
//!
//! Values of one column stand together, because they are alike: numbers that follow each other take a byte, and a hash that
//! several tables have stands in the same company in each of them, so that compression finds all of it at once.

use std::io::{self, Read, Write};

use rusqlite::{
    Connection, Row,
    types::{Value, ValueRef},
};

use crate::Result;

/// A part has at most so many rows, and no more rows once its texts and blobs have so many bytes.
const ROWS: usize = 8_192;
const BYTES: usize = 4 << 20;
/// Bounds for a reader, which are those of SQLite as it is compiled here.
const MOST_COLUMNS: u64 = 2_000;
const LONGEST_NAME: u64 = 255;
const LONGEST_VALUE: u64 = 1_000_000_000;

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;
const BLOB: u8 = 4;

/// The values of one column of a part.
#[derive(Default)]
struct Column {
    kinds: Vec<u8>,
    /// Integers as differences from the one before, reals as their bits.
    numbers: Vec<u8>,
    last: i64,
    lengths: Vec<u8>,
    bytes: Vec<u8>,
}

impl Column {
    fn push(&mut self, value: ValueRef<'_>) {
        let (kind, bytes) = match value {
            ValueRef::Null => (NULL, None),
            ValueRef::Integer(integer) => {
                push_number(&mut self.numbers, zigzag(integer.wrapping_sub(self.last)));
                self.last = integer;
                (INTEGER, None)
            }
            ValueRef::Real(real) => {
                self.numbers.extend_from_slice(&real.to_bits().to_le_bytes());
                (REAL, None)
            }
            ValueRef::Text(text) => (TEXT, Some(text)),
            ValueRef::Blob(blob) => (BLOB, Some(blob)),
        };
        self.kinds.push(kind);
        if let Some(bytes) = bytes {
            push_number(&mut self.lengths, bytes.len() as u64);
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn write(&self, target: &mut impl Write) -> io::Result<()> {
        for part in [&self.kinds, &self.numbers, &self.lengths, &self.bytes] {
            target.write_all(part)?;
        }
        Ok(())
    }

    fn read(source: &mut impl Read, rows: usize) -> io::Result<Vec<Value>> {
        let kinds = read_bytes(source, rows as u64)?;
        let mut last = 0_i64;
        let mut values = Vec::with_capacity(rows);
        for kind in &kinds {
            values.push(match *kind {
                INTEGER => {
                    last = last.wrapping_add(unzigzag(read_number(source)?));
                    Value::Integer(last)
                }
                REAL => {
                    let mut bits = [0; 8];
                    source.read_exact(&mut bits)?;
                    Value::Real(f64::from_bits(u64::from_le_bytes(bits)))
                }
                // What it is comes below, when all lengths are known.
                NULL | TEXT | BLOB => Value::Null,
                _ => return Err(unknown()),
            });
        }
        let long = |kind: u8| kind == TEXT || kind == BLOB;
        let count = kinds.iter().filter(|kind| long(**kind)).count();
        let lengths = (0..count).map(|_| read_number(source)).collect::<io::Result<Vec<_>>>()?;
        let places = kinds.iter().zip(&mut values).filter(|(kind, _)| long(**kind));
        for ((kind, value), length) in places.zip(lengths) {
            if length > LONGEST_VALUE {
                return Err(unknown());
            }
            let bytes = read_bytes(source, length)?;
            *value = match *kind {
                // SQLite takes any bytes for a text; one that is none must not cost the rest of the library.
                TEXT => Value::Text(match String::from_utf8(bytes) {
                    Ok(text) => text,
                    Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
                }),
                _ => Value::Blob(bytes),
            };
        }
        Ok(values)
    }
}

/// Writes all rows that a query gives as rows of a table.
pub(super) fn write(
    connection: &Connection,
    table: &str,
    query: &str,
    target: &mut impl Write,
) -> Result<()> {
    let mut query = connection.prepare(query)?;
    let names: Vec<String> = query.column_names().map(str::to_owned).collect();
    let mut rows = query.query([])?;
    loop {
        let mut columns: Vec<Column> = names.iter().map(|_| Column::default()).collect();
        let is_last = fill(&mut columns, &mut rows)?;
        write_part(table, &names, &columns, target).map_err(crate::Error::Files)?;
        if is_last {
            return Ok(());
        }
    }
}

/// Takes the rows of one part; whether they were the last ones.
fn fill(columns: &mut [Column], rows: &mut rusqlite::Rows<'_>) -> Result<bool> {
    let (mut count, mut bytes) = (0, 0);
    while count < ROWS && bytes < BYTES {
        let Some(row) = rows.next()? else { return Ok(true) };
        bytes += push_row(columns, row)?;
        count += 1;
    }
    Ok(false)
}

fn push_row(columns: &mut [Column], row: &Row<'_>) -> Result<usize> {
    let mut length = 0;
    for (at, column) in columns.iter_mut().enumerate() {
        let before = column.bytes.len();
        column.push(row.get_ref(at)?);
        length += column.bytes.len() - before;
    }
    Ok(length)
}

fn write_part(table: &str, names: &[String], columns: &[Column], target: &mut impl Write) -> io::Result<()> {
    let rows = columns.first().map_or(0, |column| column.kinds.len());
    let mut head = Vec::new();
    push_name(&mut head, table);
    push_number(&mut head, names.len() as u64);
    names.iter().for_each(|name| push_name(&mut head, name));
    push_number(&mut head, rows as u64);
    target.write_all(&head)?;
    columns.iter().try_for_each(|column| column.write(target))
}

/// Ends the stream: what follows is not read.
pub(super) fn write_end(target: &mut impl Write) -> io::Result<()> {
    target.write_all(&[0])
}

/// Rows of a table, column by column.
pub(super) struct Part {
    pub table: String,
    pub names: Vec<String>,
    pub rows: usize,
    pub columns: Vec<Vec<Value>>,
}

/// The next rows, or `None` at the end of the stream.
pub(super) fn read(source: &mut impl Read) -> io::Result<Option<Part>> {
    let table = read_name(source)?;
    if table.is_empty() {
        return Ok(None);
    }
    let count = read_number(source)?;
    if count > MOST_COLUMNS {
        return Err(unknown());
    }
    let names = (0..count).map(|_| read_name(source)).collect::<io::Result<Vec<_>>>()?;
    let rows = usize::try_from(read_number(source)?).ok().filter(|rows| *rows <= ROWS).ok_or_else(unknown)?;
    let columns = names.iter().map(|_| Column::read(source, rows)).collect::<io::Result<Vec<_>>>()?;
    Ok(Some(Part { table, names, rows, columns }))
}

fn unknown() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

const fn unzigzag(number: u64) -> i64 {
    ((number >> 1) as i64) ^ -((number & 1) as i64)
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_number(source: &mut impl Read) -> io::Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        source.read_exact(&mut byte)?;
        number |= u64::from(byte[0] & 0x7F) << shift;
        if byte[0] & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(unknown())
}

fn push_name(bytes: &mut Vec<u8>, name: &str) {
    push_number(bytes, name.len() as u64);
    bytes.extend_from_slice(name.as_bytes());
}

fn read_name(source: &mut impl Read) -> io::Result<String> {
    let length = read_number(source)?;
    if length > LONGEST_NAME {
        return Err(unknown());
    }
    String::from_utf8(read_bytes(source, length)?).map_err(|_| unknown())
}

/// Memory grows with what is there, not with what a damaged length says.
fn read_bytes(source: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.by_ref().take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::Integer),
            any::<f64>().prop_filter("SQLite has no NaN", |real| !real.is_nan()).prop_map(Value::Real),
            any::<String>().prop_map(Value::Text),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Blob),
        ]
    }

    proptest! {
        #[test]
        fn rows_come_back(rows in prop::collection::vec([value(), value()], 0..50), noise: Vec<u8>) {
            let connection = Connection::open_in_memory().unwrap();
            connection.execute_batch("CREATE TABLE t (a, b)").unwrap();
            for row in &rows {
                connection.execute("INSERT INTO t VALUES (?1, ?2)", rusqlite::params_from_iter(row)).unwrap();
            }
            let mut bytes = Vec::new();
            write(&connection, "t", "SELECT a, b FROM t ORDER BY rowid", &mut bytes).unwrap();
            write_end(&mut bytes).unwrap();
            let mut source = bytes.as_slice();
            let part = read(&mut source).unwrap().unwrap();
            prop_assert_eq!((part.table.as_str(), part.names.as_slice()), ("t", &["a".to_owned(), "b".into()][..]));
            let read_rows: Vec<[Value; 2]> = (0..part.rows)
                .map(|row| [part.columns[0][row].clone(), part.columns[1][row].clone()]).collect();
            prop_assert_eq!(read_rows, rows);
            prop_assert!(read(&mut source).unwrap().is_none() && source.is_empty());
            // Damage is an error or other values, never a panic.
            for (at, byte) in noise.into_iter().enumerate() {
                let place = (at * 31 + byte as usize) % bytes.len();
                bytes[place] ^= byte;
                let _ = read(&mut bytes.as_slice());
            }
        }
    }

    #[test]
    fn many_rows_are_several_parts() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (a)").unwrap();
        let mut insert = connection.prepare("INSERT INTO t VALUES (?1)").unwrap();
        (0..ROWS as i64 + 10).for_each(|number| {
            insert.execute([number]).unwrap();
        });
        let mut bytes = Vec::new();
        write(&connection, "t", "SELECT a FROM t ORDER BY rowid", &mut bytes).unwrap();
        // Numbers that follow each other take a byte, and a byte says what they are.
        assert!(bytes.len() < 2 * (ROWS + 10) + 40);
        let mut source = bytes.as_slice();
        let first = read(&mut source).unwrap().unwrap();
        let second = read(&mut source).unwrap().unwrap();
        assert_eq!((first.rows, second.rows, source), (ROWS, 10, &[][..]));
        assert_eq!(second.columns[0][9], Value::Integer(ROWS as i64 + 9));
    }
}
