//! The side chain: what was appended to a memory file, as hashes in the data directory, each row sealed over the one before.
//!
//! It is how an outside edit is found without a mark in the user's own lines, and how an idempotency key is recognised.
//! The engine's `FORMAT.md` gives its bytes. A chain is locked as long as it is open, before the memory file is.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::FlockOperation;
use shelf_base::{Digest, Moment};

use super::{lines, lock_file, make_folder};

/// How far a line has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It was about to be written; whether it was, the file tells.
    Planned,
    /// It was written by us.
    Written,
    /// It never came to be.
    Void,
    /// It was in the file already; somebody else wrote it.
    Seen,
}

/// A line of the memory file that the chain knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) state: State,
    pub(super) line: Digest,
    /// Where it began, and its bytes without the line's end.
    pub(super) start: usize,
    pub(super) length: usize,
    /// When it was appended or seen.
    pub(super) at: String,
    pub(super) key: Option<String>,
}

impl Record {
    /// Whether the line stands where it was put.
    pub(super) fn stands_in(&self, file: &[u8]) -> bool {
        let end = self.start.saturating_add(self.length);
        let ended = file.get(end).is_none_or(|byte| *byte == b'\n');
        ended && file.get(self.start..end).is_some_and(|line| Digest::of(line) == self.line)
    }
}

/// The chain of one memory file.
#[derive(Debug)]
pub(super) struct Chain {
    file: File,
    pub(super) records: Vec<Record>,
    /// Rows, from 1, that are not what was written there.
    pub(super) broken: Vec<u64>,
    seal: Digest,
    pending: String,
}

impl Chain {
    /// Opens and locks the chain for writing, making it when it is not there. A row that a stop has torn is cut off.
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        make_folder(path)?;
        let file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)?;
        lock_file(&file, FlockOperation::LockExclusive)?;
        let (chain, whole) = Self::load(file)?;
        if chain.file.metadata()?.len() != whole {
            chain.file.set_len(whole)?;
        }
        if whole == 0
            && let Some(folder) = path.parent()
        {
            // A new file is durable only with its name.
            File::open(folder)?.sync_all()?;
        }
        Ok(chain)
    }

    /// Opens the chain to look at it; `None` when there is none.
    pub(super) fn look(path: &Path) -> std::io::Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        lock_file(&file, FlockOperation::LockShared)?;
        Ok(Some(Self::load(file)?.0))
    }

    /// Reads all whole rows; also gives how many bytes they are.
    fn load(mut file: File) -> std::io::Result<(Self, u64)> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let text = String::from_utf8_lossy(&bytes[..whole]);
        let seal = Digest::new([0; 32]);
        let mut chain = Self { file, records: Vec::new(), broken: Vec::new(), seal, pending: String::new() };
        for (number, row) in (1..).zip(text.lines()) {
            if chain.take(row).is_none() {
                chain.broken.push(number);
            }
        }
        Ok((chain, whole as u64))
    }

    /// Takes in a row; `None` when its seal or its form is wrong.
    fn take(&mut self, row: &str) -> Option<()> {
        let (seal, fact) = row.split_once(' ')?;
        let (seal, expected) = (seal.parse().ok()?, seal_of(&self.seal, fact));
        self.seal = seal;
        self.apply(fact)?;
        (seal == expected).then_some(())
    }

    fn apply(&mut self, fact: &str) -> Option<()> {
        match fact {
            "done" => self.records.last_mut()?.state = State::Written,
            "void" => self.records.last_mut()?.state = State::Void,
            _ => self.records.push(parse(fact)?),
        }
        Some(())
    }

    fn push(&mut self, fact: &str) {
        self.seal = seal_of(&self.seal, fact);
        self.pending.push_str(&format!("{} {fact}\n", self.seal));
        // Our own words are always understood.
        let _ = self.apply(fact);
    }

    /// A plan without an end: the file tells what became of it.
    pub(super) fn settle(&mut self, file: &[u8]) {
        if let Some(last) = self.records.last().filter(|last| last.state == State::Planned) {
            self.push(if last.stands_in(file) { "done" } else { "void" });
        }
    }

    /// Takes note of lines that others have appended since, so that a later change of theirs is found too. Only when
    /// the last known line stands where it did: elsewhere it could not be told which lines are new.
    pub(super) fn adopt(&mut self, file: &[u8], at: Moment) {
        let from = match self.records.iter().rfind(|record| record.state != State::Void) {
            None => 0,
            Some(last) if last.stands_in(file) => last.start + last.length + 1,
            Some(_) => return,
        };
        let new: Vec<String> = lines(file.get(from..).unwrap_or_default())
            .map(|(_, start, line)| format!("seen {} {} {} {at}", Digest::of(line), from + start, line.len()))
            .collect();
        new.iter().for_each(|fact| self.push(fact));
    }

    /// A line is about to be written at `start`.
    pub(super) fn plan(&mut self, line: &str, start: usize, at: Moment, key: Option<&str>) {
        let key = key.map_or(String::new(), |key| format!(" {}", key.escape_default()));
        self.push(&format!("plan {} {start} {} {at}{key}", Digest::of(line.as_bytes()), line.len()));
    }

    /// The planned line has been written.
    pub(super) fn done(&mut self) {
        self.push("done");
    }

    /// Writes the new rows; with `sync` they are durable afterwards.
    pub(super) fn write(&mut self, sync: bool) -> std::io::Result<()> {
        self.file.write_all(std::mem::take(&mut self.pending).as_bytes())?;
        if sync { self.file.sync_data() } else { Ok(()) }
    }

    /// The lines that were written under a key.
    pub(super) fn with_key(&self, key: &str) -> impl Iterator<Item = Digest> {
        let key = key.escape_default().to_string();
        let records = self.records.iter().filter(|record| record.state == State::Written);
        records.filter(move |record| record.key.as_ref() == Some(&key)).map(|record| record.line)
    }
}

/// The seal of a row: over the seal before it and its own text.
fn seal_of(before: &Digest, fact: &str) -> Digest {
    Digest::of(&[before.as_bytes(), fact.as_bytes()].concat())
}

fn parse(fact: &str) -> Option<Record> {
    let mut fields = fact.splitn(6, ' ');
    let state = match fields.next()? {
        "plan" => State::Planned,
        "seen" => State::Seen,
        _ => return None,
    };
    Some(Record {
        state,
        line: fields.next()?.parse().ok()?,
        start: fields.next()?.parse().ok()?,
        length: fields.next()?.parse().ok()?,
        at: fields.next()?.to_owned(),
        key: fields.next().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Moment {
        Moment::from_micros(1_767_794_400_000_000)
    }

    #[test]
    fn rows_are_read_as_they_were_written_and_a_torn_one_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory/x.chain");
        let mut chain = Chain::open(&path).unwrap();
        chain.adopt(b"{\"a\":1}\n\n{\"b\":2}", at());
        chain.plan("{\"c\":3}", 17, at(), Some("my key\n"));
        chain.done();
        chain.write(true).unwrap();
        let records = chain.records.clone();
        drop(chain);
        assert_eq!(records.iter().map(|record| record.start).collect::<Vec<_>>(), [0, 9, 17]);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], b"0123 pl"].concat()).unwrap();
        let again = Chain::open(&path).unwrap();
        assert_eq!((&again.records, again.broken.len()), (&records, 0));
        assert_eq!(again.with_key("my key\n").count(), 1);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn a_changed_row_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.chain");
        let mut chain = Chain::open(&path).unwrap();
        for number in 0..3 {
            chain.plan(&format!("{{\"a\":{number}}}"), number * 8, at(), None);
            chain.done();
        }
        chain.write(false).unwrap();
        drop(chain);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replacen(" 8 7 ", " 9 7 ", 1)).unwrap();
        assert_eq!(Chain::look(&path).unwrap().unwrap().broken, [3]);
        // A row that was taken out is missed by the one after it.
        let without: Vec<&str> =
            text.lines().enumerate().filter(|(at, _)| *at != 2).map(|(_, row)| row).collect();
        std::fs::write(&path, without.join("\n") + "\n").unwrap();
        assert_eq!(Chain::look(&path).unwrap().unwrap().broken, [3]);
    }

    #[test]
    fn a_plan_is_settled_by_what_the_file_holds() {
        let folder = tempfile::tempdir().unwrap();
        for (file, state) in [("{\"a\":1}\n", State::Written), ("{\"a\"", State::Void), ("", State::Void)] {
            let mut chain = Chain::open(&folder.path().join(format!("{}.chain", file.len()))).unwrap();
            chain.plan("{\"a\":1}", 0, at(), None);
            chain.settle(file.as_bytes());
            assert_eq!(chain.records[0].state, state, "{file}");
        }
    }
}
