//! Values that go into statements, and cells that come out of rows, the same for every database.

use shelf_base::hex;

use crate::{Error, Result};

/// A value of a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Integer(i64),
    Bool(bool),
    Text(&'a str),
    Blob(&'a [u8]),
    /// A list of row numbers, for [`Connection::among`](super::Connection::among).
    Numbers(&'a [i64]),
    /// A list of hashes, for [`Connection::keyed`](super::Connection::keyed).
    Keys(&'a [[u8; 32]]),
    /// A list of ids.
    Ids(&'a [[u8; 16]]),
    /// A list of texts.
    Texts(&'a [&'a str]),
    /// A list of byte strings.
    Blobs(&'a [&'a [u8]]),
}

/// A value that is kept with a condition until its statement runs.
#[derive(Clone, Debug)]
pub(crate) enum OwnedValue {
    Null,
    Integer(i64),
    Bool(bool),
    Text(String),
    Blob(Vec<u8>),
    Numbers(Vec<i64>),
}

/// What can be a value of a statement.
pub(crate) trait AsValue {
    fn as_value(&self) -> Value<'_>;
}

/// The values of a statement, in order.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::sql::AsValue::as_value(&$value)),*][..]
    };
}
pub(crate) use params;

impl<T: AsValue + ?Sized> AsValue for &T {
    fn as_value(&self) -> Value<'_> {
        (**self).as_value()
    }
}

impl<T: AsValue> AsValue for Option<T> {
    fn as_value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, AsValue::as_value)
    }
}

macro_rules! integers {
    ($($kind:ty),*) => {$(
        impl AsValue for $kind {
            fn as_value(&self) -> Value<'_> {
                // What does not fit is larger than anything that can be stored or counted.
                Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        }
        impl FromCell for $kind {
            fn from_cell(cell: Cell<'_>) -> Option<Self> {
                if let Cell::Integer(number) = cell { number.try_into().ok() } else { None }
            }
        }
    )*};
}
integers!(i64, u64, u32, u8, usize);

impl AsValue for bool {
    fn as_value(&self) -> Value<'_> {
        Value::Bool(*self)
    }
}

impl AsValue for str {
    fn as_value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl AsValue for String {
    fn as_value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl AsValue for [u8] {
    fn as_value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl AsValue for Vec<u8> {
    fn as_value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl<const N: usize> AsValue for [u8; N] {
    fn as_value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl AsValue for [i64] {
    fn as_value(&self) -> Value<'_> {
        Value::Numbers(self)
    }
}

impl AsValue for [[u8; 32]] {
    fn as_value(&self) -> Value<'_> {
        Value::Keys(self)
    }
}

impl AsValue for [[u8; 16]] {
    fn as_value(&self) -> Value<'_> {
        Value::Ids(self)
    }
}

impl AsValue for [&str] {
    fn as_value(&self) -> Value<'_> {
        Value::Texts(self)
    }
}

impl AsValue for [&[u8]] {
    fn as_value(&self) -> Value<'_> {
        Value::Blobs(self)
    }
}

impl AsValue for OwnedValue {
    fn as_value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Integer(number) => Value::Integer(*number),
            Self::Bool(is_true) => Value::Bool(*is_true),
            Self::Text(text) => Value::Text(text),
            Self::Blob(bytes) => Value::Blob(bytes),
            Self::Numbers(numbers) => Value::Numbers(numbers),
        }
    }
}

macro_rules! owned {
    ($($kind:ty => $variant:ident),*) => {$(
        impl From<$kind> for OwnedValue {
            fn from(value: $kind) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}
owned!(i64 => Integer, bool => Bool, String => Text, &str => Text, Vec<u8> => Blob, Vec<i64> => Numbers);

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        use rusqlite::types::{ToSqlOutput, Value as Owned, ValueRef};
        Ok(match self {
            Self::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Self::Integer(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Self::Bool(is_true) => ToSqlOutput::Borrowed(ValueRef::Integer(i64::from(*is_true))),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Blob(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            // SQLite takes a list as JSON.
            Self::Numbers(numbers) => ToSqlOutput::Owned(Owned::Text(list(numbers.iter()))),
            Self::Keys(keys) => ToSqlOutput::Owned(Owned::Text(list(keys.iter().map(|key| quoted(key))))),
            Self::Ids(ids) => ToSqlOutput::Owned(Owned::Text(list(ids.iter().map(|id| quoted(id))))),
            Self::Texts(texts) => {
                let texts = texts.iter().map(|text| serde_json::Value::from(*text));
                ToSqlOutput::Owned(Owned::Text(list(texts)))
            }
            Self::Blobs(blobs) => {
                ToSqlOutput::Owned(Owned::Text(list(blobs.iter().map(|blob| quoted(blob)))))
            }
        })
    }
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", hex::encode(bytes))
}

fn list(items: impl Iterator<Item = impl ToString>) -> String {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    format!("[{}]", items.join(","))
}

/// A cell of a row. Truth values are integers, as in SQLite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell<'a> {
    Null,
    Integer(i64),
    Text(&'a [u8]),
    Blob(&'a [u8]),
}

impl<'a> Cell<'a> {
    /// The bytes of a cell that has some; none otherwise.
    pub(crate) const fn blob(self) -> &'a [u8] {
        match self {
            Self::Blob(bytes) => bytes,
            _ => &[],
        }
    }

    /// The text of a cell, if it is one.
    pub(crate) fn text(self) -> Option<&'a str> {
        if let Self::Text(bytes) = self { std::str::from_utf8(bytes).ok() } else { None }
    }
}

/// What can be read from a cell.
pub(crate) trait FromCell: Sized {
    /// The value; `None` when the cell holds something else.
    fn from_cell(cell: Cell<'_>) -> Option<Self>;
}

impl FromCell for bool {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Integer(number) = cell { Some(number != 0) } else { None }
    }
}

impl FromCell for String {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        cell.text().map(str::to_owned)
    }
}

impl FromCell for Vec<u8> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Blob(bytes) = cell { Some(bytes.to_vec()) } else { None }
    }
}

impl<T: FromCell> FromCell for Option<T> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if cell == Cell::Null { Some(None) } else { T::from_cell(cell).map(Some) }
    }
}

pub(super) fn read<T: FromCell>(cell: Cell<'_>) -> Result<T> {
    T::from_cell(cell).ok_or(Error::Unreadable("a row"))
}
