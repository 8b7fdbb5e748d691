//! Asking the memory files: by field, by words, by time, the last so many.

use serde_json::{Map, Value};
use shelf_base::Moment;

use super::{MemoryFile, WorkspaceError, count, lines, parse, stamp};
use crate::Workspace;

/// What is asked for; entries must fulfil all of it.
#[derive(Clone, Debug, Default)]
pub struct MemoryQuery {
    /// Fields and the values they must have; a dot leads into an object.
    pub fields: Map<String, Value>,
    /// Text that the entry must hold somewhere, in any case of letters.
    pub contains: Option<String>,
    /// Not before.
    pub since: Option<Moment>,
    /// Before.
    pub until: Option<Moment>,
    /// Only the last so many.
    pub last: Option<usize>,
}

/// An entry that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryLine {
    /// Its line in the file, from 1.
    pub line: u64,
    /// The line as it stands there.
    pub text: String,
    /// The entry.
    pub entry: Map<String, Value>,
}

/// What was found in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryMatches {
    /// The last of what fits, oldest first.
    pub entries: Vec<MemoryLine>,
    /// How many fit.
    pub total: u64,
    /// Valid entries in the file.
    pub entry_count: u64,
    /// Lines that are no entries.
    pub invalid_lines: u64,
}

impl Workspace {
    /// Looks for entries of a memory file.
    pub fn query(&self, file: MemoryFile, query: &MemoryQuery) -> Result<MemoryMatches, WorkspaceError> {
        let bytes = self.memory_bytes(file)?;
        let (entry_count, invalid_lines) = count(&bytes);
        let mut entries: Vec<MemoryLine> = lines(&bytes)
            .filter_map(|(line, _, bytes)| {
                let entry = parse(bytes)?;
                let text = String::from_utf8_lossy(bytes).trim().to_owned();
                query.fits(&entry, &text).then_some(MemoryLine { line, text, entry })
            })
            .collect();
        let total = entries.len() as u64;
        let skip = query.last.map_or(0, |last| entries.len().saturating_sub(last));
        entries.drain(..skip);
        Ok(MemoryMatches { entries, total, entry_count, invalid_lines })
    }
}

impl MemoryQuery {
    fn fits(&self, entry: &Map<String, Value>, text: &str) -> bool {
        let wanted =
            |(path, wanted): (&String, &Value)| field(entry, path).is_some_and(|found| found == wanted);
        let holds = |words: &String| text.to_lowercase().contains(&words.to_lowercase());
        self.fields.iter().all(wanted) && self.contains.as_ref().is_none_or(holds) && self.in_time(entry)
    }

    fn in_time(&self, entry: &Map<String, Value>) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        let given = entry.get("timestamp").and_then(Value::as_str);
        given.and_then(stamp::moment).is_some_and(|moment| {
            self.since.is_none_or(|since| moment >= since) && self.until.is_none_or(|until| moment < until)
        })
    }
}

/// The value at a path of keys; a key that holds dots itself comes first.
fn field<'a>(entry: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    entry.get(path).or_else(|| {
        let (first, rest) = path.split_once('.')?;
        field(entry.get(first)?.as_object()?, rest)
    })
}
