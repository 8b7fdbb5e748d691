//! A transaction that writes, and the records that it appends to the journal.

use std::{borrow::Cow, cell::RefCell};

use shelf_base::Digest;

use super::{Connection, Value, params, read};
use crate::{Actor, Operation, Record, Result};

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
                insert(self.connection, std::slice::from_ref(&record))
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

    /// Gives the records that wait their places and moves the end of the journal: the last thing that a transaction beside
    /// others does. The journal's end is left alone when nothing was recorded.
    pub(crate) fn close(&self) -> Result<()> {
        if self.end.borrow().is_none() && self.waiting.borrow().is_empty() {
            return Ok(());
        }
        let (sequence, seal) = self.settle()?;
        self.connection
            .prepare_cached("UPDATE journal_head SET sequence = ?1, seal = ?2")?
            .execute(params![sequence, seal.as_bytes()])?;
        Ok(())
    }

    fn settle(&self) -> Result<(u64, Digest)> {
        let mut known = self.end.borrow_mut();
        if let Some(end) = *known {
            return Ok(end);
        }
        let mut end = read::lock_journal(self.connection)?;
        let mut records = self.waiting.borrow_mut();
        records.iter_mut().for_each(|record| place(record, &mut end));
        let mut rest = &records[..];
        while let Some(count) = BATCHES.iter().find(|count| **count <= rest.len()) {
            let (now, later) = rest.split_at(*count);
            insert(self.connection, now)?;
            rest = later;
        }
        *known = Some(end);
        Ok(end)
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

fn insert(connection: Connection<'_>, records: &[Record]) -> Result<()> {
    let values: Vec<Value<'_>> = records.iter().flat_map(cells).collect();
    let sql = match records.len() {
        1 => Cow::Borrowed(INSERT_ONE),
        count => {
            let row = format!(", ({})", ["?"; COLUMNS].join(", "));
            Cow::Owned(format!("{INSERT_ONE}{}", row.repeat(count - 1)))
        }
    };
    connection.prepare_cached(&sql)?.execute(&values)?;
    Ok(())
}

fn cells(record: &Record) -> [Value<'_>; COLUMNS] {
    let number = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    [
        number(record.sequence),
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
