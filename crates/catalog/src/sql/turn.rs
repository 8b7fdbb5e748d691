//! A transaction that writes, and the records that it appends to the journal.

use std::{borrow::Cow, cell::RefCell};

use shelf_base::Digest;

use super::{Connection, OwnedValue, Value, read};
use crate::{Actor, Operation, Record, Result, postgres::Last};

/// A transaction under way.
///
/// Where one writes at a time, each record goes to its place at once. Where several do, records wait for the end of the
/// transaction: only there is it decided who comes next, so that nobody holds the end of the journal for longer than it
/// takes to write the records down.
pub(crate) struct Turn<'a> {
    pub connection: Connection<'a>,
    /// The last record and its seal, once they are known to stay the last for as long as this transaction takes.
    end: RefCell<Option<(u64, Digest)>>,
    /// Records that were made before the end was known.
    waiting: RefCell<Vec<Record>>,
}

/// Where a transaction stood, to go back to.
pub(crate) struct Mark {
    end: Option<(u64, Digest)>,
    waiting: usize,
}

/// Records that one statement inserts: as many as there are, in batches of these sizes.
const BATCHES: [usize; 3] = [64, 8, 1];
const COLUMNS: usize = 12;
/// Records that are sent together with a commit, at most.
const AT_THE_END: usize = 64;

const INSERT_ONE: &str =
    "INSERT INTO journal (sequence, at, account, token, operation, collection, document, path, previous, new, state, seal)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

impl<'a> Turn<'a> {
    /// A transaction that has the journal for itself, after the record with this number and seal.
    pub(crate) const fn alone(connection: Connection<'a>, end: (u64, Digest)) -> Self {
        Self { connection, end: RefCell::new(Some(end)), waiting: RefCell::new(Vec::new()) }
    }

    /// A transaction beside others.
    pub(crate) const fn beside_others(connection: Connection<'a>) -> Self {
        Self { connection, end: RefCell::new(None), waiting: RefCell::new(Vec::new()) }
    }

    /// Appends a record; its sequence and seal are filled in here.
    pub(crate) fn record(&self, mut record: Record) -> Result<()> {
        match &mut *self.end.borrow_mut() {
            Some(end) => {
                place(&mut record, end);
                insert(self.connection, &record)
            }
            None => {
                self.waiting.borrow_mut().push(record);
                Ok(())
            }
        }
    }

    /// The number that the next record will have. A transaction beside others that has to know it takes the end of the
    /// journal for itself from here on.
    pub(crate) fn next_sequence(&self) -> Result<u64> {
        Ok(self.settle()?.0 + 1)
    }

    /// Gives the records that wait their places; what is left to be done before the commit of a transaction beside others,
    /// which then has the end of the journal for itself. Nothing is when nothing was recorded.
    pub(crate) fn close(&self) -> Result<Vec<Last>> {
        let mut known = self.end.borrow_mut();
        let mut waiting = self.waiting.borrow_mut();
        let (end, mut last) = match *known {
            Some(end) => (end, Vec::new()),
            None if waiting.is_empty() => return Ok(Vec::new()),
            None => {
                let mut end = read::lock_journal(self.connection)?;
                let last = self.write_down(&mut waiting, &mut end, AT_THE_END)?;
                (end, last)
            }
        };
        *known = Some(end);
        let values = vec![OwnedValue::from(number(end.0)), end.1.as_bytes().to_vec().into()];
        last.push(("UPDATE journal_head SET sequence = ?1, seal = ?2".to_owned(), values));
        Ok(last)
    }

    /// Takes the end of the journal for this transaction, and writes down what was recorded before.
    fn settle(&self) -> Result<(u64, Digest)> {
        let mut known = self.end.borrow_mut();
        if let Some(end) = *known {
            return Ok(end);
        }
        let mut end = read::lock_journal(self.connection)?;
        self.write_down(&mut self.waiting.borrow_mut(), &mut end, 0)?;
        *known = Some(end);
        Ok(end)
    }

    /// Puts records after the end and writes them down, but for the last ones, of which it is told how that is done.
    fn write_down(&self, records: &mut [Record], end: &mut (u64, Digest), left: usize) -> Result<Vec<Last>> {
        records.iter_mut().for_each(|record| place(record, end));
        let mut rest = &records[..];
        let mut last = Vec::new();
        while let Some(count) = BATCHES.iter().find(|count| **count <= rest.len()) {
            let (now, later) = rest.split_at(*count);
            if rest.len() > left {
                let values: Vec<Value<'_>> = now.iter().flat_map(cells).collect();
                self.connection.prepare_cached(&inserting(now.len()))?.execute(&values)?;
            } else {
                let values = now.iter().flat_map(cells).map(owned).collect();
                last.push((inserting(now.len()).into_owned(), values));
            }
            rest = later;
        }
        Ok(last)
    }

    /// The last record, once the records of this transaction have their places.
    pub(crate) fn end(&self) -> Option<(u64, Digest)> {
        *self.end.borrow()
    }

    /// Where the transaction stands.
    pub(crate) fn mark(&self) -> Mark {
        Mark { end: *self.end.borrow(), waiting: self.waiting.borrow().len() }
    }

    /// Goes back to a mark, together with a savepoint of the database.
    pub(crate) fn go_back(&self, mark: &Mark) {
        *self.end.borrow_mut() = mark.end;
        self.waiting.borrow_mut().truncate(mark.waiting);
    }

    /// The fields of a record that are the same for all of a call's records.
    pub(crate) fn blank(actor: &Actor, at: shelf_base::Moment, operation: Operation) -> Record {
        Record {
            sequence: 0,
            at,
            account: actor.account,
            token: actor.token.clone(),
            operation,
            collection: None,
            document: None,
            path: String::new(),
            previous: None,
            new: None,
            state: None,
            seal: Record::genesis(),
        }
    }
}

/// Puts a record after the end, which it becomes.
fn place(record: &mut Record, end: &mut (u64, Digest)) {
    record.sequence = end.0 + 1;
    record.seal = record.expected_seal(&end.1);
    *end = (record.sequence, record.seal);
}

fn insert(connection: Connection<'_>, record: &Record) -> Result<()> {
    connection.prepare_cached(&inserting(1))?.execute(&cells(record)).map(drop)
}

/// The statement that inserts so many records.
fn inserting(count: usize) -> Cow<'static, str> {
    if count == 1 {
        return Cow::Borrowed(INSERT_ONE);
    }
    let row = format!(", ({})", ["?"; COLUMNS].join(", "));
    Cow::Owned(format!("{INSERT_ONE}{}", row.repeat(count - 1)))
}

/// A cell of a record for a statement that runs later. Records have no lists.
fn owned(cell: Value<'_>) -> OwnedValue {
    match cell {
        Value::Integer(number) => number.into(),
        Value::Text(text) => text.into(),
        Value::Blob(bytes) => bytes.to_vec().into(),
        _ => OwnedValue::Null,
    }
}

/// A sequence number as it is stored.
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn cells(record: &Record) -> [Value<'_>; COLUMNS] {
    [
        Value::Integer(number(record.sequence)),
        Value::Integer(record.at.micros()),
        Value::Blob(record.account.as_bytes()),
        record.token.as_deref().map_or(Value::Null, Value::Text),
        Value::Text(record.operation.word()),
        record.collection.as_ref().map_or(Value::Null, |id| Value::Blob(id.as_bytes())),
        record.document.as_ref().map_or(Value::Null, |id| Value::Blob(id.as_bytes())),
        Value::Text(&record.path),
        record.previous.as_ref().map_or(Value::Null, |hash| Value::Blob(hash.as_bytes())),
        record.new.as_ref().map_or(Value::Null, |hash| Value::Blob(hash.as_bytes())),
        record.state.as_ref().map_or(Value::Null, |hash| Value::Blob(hash.as_bytes())),
        Value::Blob(record.seal.as_bytes()),
    ]
}
