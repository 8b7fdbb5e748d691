//! Appending to the memory files: one whole line at a time, whoever else appends, and durable before it is told.

use std::{
    collections::HashSet,
    io::{Read, Seek, SeekFrom, Write},
    os::fd::AsFd,
    path::PathBuf,
};

use cap_std::fs::OpenOptions;
use rustix::fs::{FlockOperation, flock};
use serde_json::{Map, Value};
use shelf_base::Digest;

use super::{Workspace, WorkspaceError, secrets};
use crate::{Caller, House};

/// Where the files are.
const FOLDER: &str = ".claude/memory";
/// Bytes of an entry as compact JSON.
const ENTRY_BYTES: usize = 10_240;

/// A file that may be appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFile {
    /// Progress events.
    Progress,
    /// Decision records.
    Decisions,
}

impl MemoryFile {
    /// The file that a name means.
    pub fn named(name: &str) -> Result<Self, WorkspaceError> {
        let refused = |why| Err(WorkspaceError::WriteNotAllowed { file: name.to_owned(), why });
        match name {
            "progress_log.jsonl" => Ok(Self::Progress),
            "decisions.jsonl" => Ok(Self::Decisions),
            "learner_profile.json" => refused("it must be edited manually"),
            "best_practices.md" => refused("use the add-best-practice command"),
            _ => refused("only progress_log.jsonl and decisions.jsonl take entries"),
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Progress => "progress_log.jsonl",
            Self::Decisions => "decisions.jsonl",
        }
    }
}

/// What an append came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Valid entries in the file now.
    pub entry_count: u64,
    /// Lines that are no entries; they stay as they are.
    pub invalid_lines: u64,
    /// Whether the entry was there already, under the same key.
    pub was_there: bool,
}

impl House {
    /// Appends an entry to a memory file of the workspace.
    pub fn write_memory_entry(
        &self,
        caller: &Caller,
        file: MemoryFile,
        entry: &Map<String, Value>,
        key: Option<&str>,
    ) -> Result<Appended, WorkspaceError> {
        let why = "write access is required";
        caller
            .must_write()
            .map_err(|_| WorkspaceError::WriteNotAllowed { file: file.name().to_owned(), why })?;
        let workspace = self.workspace()?;
        let root = Digest::of(workspace.root.as_os_str().as_encoded_bytes());
        let keys = self.folder().join("memory").join(format!("{root}-{}.keys", file.name()));
        workspace.append(file, entry, key.map(|key| Keys { path: keys, key }))
    }
}

impl Workspace {
    fn append(
        &self,
        file: MemoryFile,
        entry: &Map<String, Value>,
        keys: Option<Keys<'_>>,
    ) -> Result<Appended, WorkspaceError> {
        let line = line_of(entry)?;
        self.folder.create_dir_all(FOLDER)?;
        let folder = self.folder.open_dir(FOLDER)?;
        if folder.symlink_metadata(file.name()).is_ok_and(|facts| !facts.is_file()) {
            let why = "it is not a regular file";
            return Err(WorkspaceError::WriteNotAllowed { file: file.name().to_owned(), why });
        }
        let mut options = OpenOptions::new();
        let mut open =
            folder.open_with(file.name(), options.create(true).read(true).append(true))?.into_std();
        flock(open.as_fd(), FlockOperation::LockExclusive).map_err(std::io::Error::from)?;
        let mut before = Vec::new();
        open.seek(SeekFrom::Start(0))?;
        open.read_to_end(&mut before)?;
        let (valid, invalid_lines) = count(&before);
        if let Some(keys) = keys
            && keys.find_or_note(&line, &before)?
        {
            return Ok(Appended { entry_count: valid, invalid_lines, was_there: true });
        }
        // A line that was never ended must not swallow this one.
        let mut bytes =
            if before.last().is_some_and(|last| *last != b'\n') { vec![b'\n'] } else { Vec::new() };
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        open.write_all(&bytes)?;
        open.sync_data()?;
        Ok(Appended { entry_count: valid + 1, invalid_lines, was_there: false })
    }
}

/// Bytes of a key at most.
const KEY_BYTES: usize = 200;

/// The keys under which entries of one file were appended. Used only while the file is locked.
struct Keys<'a> {
    path: PathBuf,
    key: &'a str,
}

impl Keys<'_> {
    /// Whether this key has brought its line into the file already. If not, the key is noted first: a stop before the
    /// line is written leaves a key without a line, and the next call writes it.
    fn find_or_note(&self, line: &str, file: &[u8]) -> Result<bool, WorkspaceError> {
        if self.key.trim().is_empty() || self.key.len() > KEY_BYTES {
            let text = format!("idempotency_key must have 1 to {KEY_BYTES} bytes");
            return Err(WorkspaceError::Invalid(text));
        }
        let noted = std::fs::read_to_string(&self.path).unwrap_or_default();
        let hash = Digest::of(line.as_bytes()).to_string();
        let lines: HashSet<String> =
            file.split(|byte| *byte == b'\n').map(|line| Digest::of(line).to_string()).collect();
        let known = noted
            .lines()
            .filter_map(|row| row.split_once(' '))
            .filter(|(_, key)| *key == self.key.escape_default().to_string());
        for (known, _) in known {
            if lines.contains(known) {
                return if known == hash {
                    Ok(true)
                } else {
                    Err(WorkspaceError::Invalid("idempotency_key was used for another entry".into()))
                };
            }
        }
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut notes = std::fs::OpenOptions::new().create(true).append(true).open(&self.path)?;
        let start = if noted.is_empty() || noted.ends_with('\n') { "" } else { "\n" };
        notes.write_all(format!("{start}{hash} {}\n", self.key.escape_default()).as_bytes())?;
        notes.sync_data()?;
        Ok(false)
    }
}

/// The line of an entry that fulfils the contract.
fn line_of(entry: &Map<String, Value>) -> Result<String, WorkspaceError> {
    let invalid = |text: &str| WorkspaceError::Invalid(text.to_owned());
    let timestamp =
        entry.get("timestamp").ok_or_else(|| invalid("entry must include 'timestamp' (ISO 8601)"))?;
    if !timestamp.as_str().is_some_and(is_date_time) {
        return Err(invalid(
            "entry.timestamp must be an ISO 8601 date and time such as 2026-01-07T14:00:00Z",
        ));
    }
    let says = |key: &str| {
        entry.get(key).is_some_and(|value| match value {
            Value::Null => false,
            Value::String(text) => !text.trim().is_empty(),
            _ => true,
        })
    };
    if !says("event") && !says("decision") {
        return Err(invalid("entry must include a non-empty 'event' or 'decision'"));
    }
    if let Some(field) = secrets::find(entry) {
        return Err(WorkspaceError::Invalid(format!("{field} looks like a secret; leave it out")));
    }
    let line = serde_json::to_string(entry).map_err(|error| WorkspaceError::Invalid(error.to_string()))?;
    if line.len() > ENTRY_BYTES {
        return Err(WorkspaceError::EntryTooLarge { bytes: line.len(), limit: ENTRY_BYTES });
    }
    Ok(line)
}

/// A date and a time of ISO 8601, zone optional.
fn is_date_time(text: &str) -> bool {
    let text = text.trim();
    let zoned = text.ends_with(['Z', 'z']) || text.get(10..).is_some_and(|time| time.contains(['+', '-']));
    let full = if zoned { text.to_owned() } else { format!("{text}Z") };
    let has_time = text.get(10..11).is_some_and(|sign| sign == "T" || sign == "t" || sign == " ");
    has_time && shelf_base::Moment::parse(&full, shelf_base::Moment::default()).is_ok()
}

/// Entries and other lines of a file.
fn count(bytes: &[u8]) -> (u64, u64) {
    let (mut valid, mut invalid) = (0, 0);
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        match serde_json::from_slice::<Map<String, Value>>(line) {
            Ok(_) => valid += 1,
            Err(_) => invalid += 1,
        }
    }
    (valid, invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_dates_with_times() {
        for fine in [
            "2026-01-07T14:00:00Z",
            "2026-01-07T14:00:00",
            "2026-01-07T14:00:00.25+02:00",
            "2026-01-07T14:00:00-05:00",
        ] {
            assert!(is_date_time(fine), "{fine}");
        }
        for wrong in ["2026-01-07", "yesterday", "7d", "", "14:00", "2026-13-07T14:00:00Z", "1767794400"] {
            assert!(!is_date_time(wrong), "{wrong}");
        }
    }
}
