//! Comparing the memory files with their side chains: what was changed, removed, moved or added from outside.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::Path;

use shelf_base::Digest;

use super::{
    MemoryFile, WorkspaceError,
    chain::{Chain, Record, State},
    count, lines, parse,
};
use crate::Workspace;

/// How a memory file differs from what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFault {
    /// A known line is not as it was written.
    Changed,
    /// A known line is gone.
    Removed,
    /// A known line stands elsewhere among the others.
    Moved,
    /// The side chain itself is not as it was written.
    Chain,
    /// Somebody else added the line; hooks and hands may.
    Added,
    /// The line is no entry; it is passed over.
    Broken,
}

impl MemoryFault {
    /// Whether something that was written is no longer so, rather than something being there beside it.
    pub const fn is_edit(self) -> bool {
        matches!(self, Self::Changed | Self::Removed | Self::Moved | Self::Chain)
    }

    /// One word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Moved => "moved",
            Self::Chain => "chain",
            Self::Added => "added",
            Self::Broken => "broken",
        }
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFinding {
    /// What sort.
    pub fault: MemoryFault,
    /// The line of the file, from 1; for a line that is gone, where it should be. `None` for the chain.
    pub line: Option<u64>,
    /// What does not fit.
    pub what: String,
}

/// What a comparison looked at and found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryReport {
    /// The file.
    pub file: &'static str,
    /// Valid entries in it.
    pub entry_count: u64,
    /// Lines that are no entries.
    pub invalid_lines: u64,
    /// Lines that the side chain knows.
    pub known: u64,
    /// All differences, by line.
    pub findings: Vec<MemoryFinding>,
}

impl Workspace {
    /// Compares every memory file with its side chain in the folder `chains`. Changes nothing.
    pub fn check_memory(&self, chains: &Path) -> Result<Vec<MemoryReport>, WorkspaceError> {
        MemoryFile::ALL
            .into_iter()
            .map(|file| {
                // The chain is locked first, as a writer does, so that both are of one moment.
                let chain = Chain::look(&self.chain_path(chains, file))?;
                let bytes = self.memory_bytes(file)?;
                Ok(compare(file, chain.as_ref(), &bytes))
            })
            .collect()
    }
}

fn compare(file: MemoryFile, chain: Option<&Chain>, bytes: &[u8]) -> MemoryReport {
    let (entry_count, invalid_lines) = count(bytes);
    let known: Vec<&Record> = chain.into_iter().flat_map(|chain| expected(chain, bytes)).collect();
    let mut findings = against_known(&known, bytes);
    for (number, _, _) in lines(bytes).filter(|(_, _, line)| parse(line).is_none()) {
        let what = "is no JSON object; it stays as it is and is not counted".to_owned();
        findings.push(MemoryFinding { fault: MemoryFault::Broken, line: Some(number), what });
    }
    findings.sort_by_key(|finding| finding.line);
    for row in chain.into_iter().flat_map(|chain| &chain.broken) {
        let what = format!("row {row} of the side chain does not fit the row before it");
        findings.push(MemoryFinding { fault: MemoryFault::Chain, line: None, what });
    }
    MemoryReport { file: file.name(), entry_count, invalid_lines, known: known.len() as u64, findings }
}

/// The lines that should be in the file. A plan whose end is not known counts when its line is there.
fn expected<'a>(chain: &'a Chain, bytes: &[u8]) -> impl Iterator<Item = &'a Record> {
    chain.records.iter().filter(move |record| match record.state {
        State::Written | State::Seen => true,
        State::Planned => record.stands_in(bytes),
        State::Void => false,
    })
}

/// Equal lines are paired in their order; of the pairs the longest run that kept its order is taken as in place. A line
/// that is missing was changed when a line of somebody else stands in its place, and is gone otherwise.
fn against_known(known: &[&Record], bytes: &[u8]) -> Vec<MemoryFinding> {
    let numbers: Vec<u64> = lines(bytes).map(|(number, _, _)| number).collect();
    let mut places: HashMap<Digest, VecDeque<u64>> = HashMap::new();
    for (number, _, line) in lines(bytes) {
        places.entry(Digest::of(line)).or_default().push_back(number);
    }
    let found: Vec<Option<u64>> =
        known.iter().map(|record| places.get_mut(&record.line).and_then(VecDeque::pop_front)).collect();
    let mut foreign: BTreeSet<u64> = places.into_values().flatten().collect();
    let mut findings = Vec::new();
    let mut last = 0;
    for ((record, place), stays) in known.iter().zip(&found).zip(longest_rising(&found)) {
        let (fault, line) = match place {
            Some(place) if stays => {
                last = *place;
                // A line of somebody else stays one, however long it has been known.
                if record.state == State::Seen {
                    findings.push(added(*place));
                }
                continue;
            }
            Some(place) => (MemoryFault::Moved, *place),
            None => {
                let next = numbers.get(numbers.partition_point(|number| *number <= last)).copied();
                match next.filter(|next| foreign.remove(next)) {
                    Some(next) => {
                        last = next;
                        (MemoryFault::Changed, next)
                    }
                    None => (MemoryFault::Removed, last + 1),
                }
            }
        };
        findings.push(MemoryFinding { fault, line: Some(line), what: sentence(record, fault) });
    }
    findings.extend(foreign.into_iter().map(added));
    findings
}

fn added(line: u64) -> MemoryFinding {
    let what = "was not appended through this library".to_owned();
    MemoryFinding { fault: MemoryFault::Added, line: Some(line), what }
}

fn sentence(record: &Record, fault: MemoryFault) -> String {
    let verb = if record.state == State::Seen { "first seen" } else { "appended" };
    let end = match fault {
        MemoryFault::Changed => "was changed since",
        MemoryFault::Moved => "stood elsewhere among the lines",
        _ => "is gone from here",
    };
    format!("({verb} {}) {end}", record.at)
}

/// For each value whether it belongs to the longest rising run; `None` never does.
fn longest_rising(values: &[Option<u64>]) -> Vec<bool> {
    // ends[n] is where the best run of n + 1 values ends; before[i] is what comes before i in its best run.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; values.len()];
    for (at, value) in values.iter().enumerate().filter(|(_, value)| value.is_some()) {
        let length = ends.partition_point(|end| values[*end] < *value);
        before[at] = length.checked_sub(1).map(|shorter| ends[shorter]);
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut chosen = vec![false; values.len()];
    let mut at = ends.last().copied();
    while let Some(place) = at {
        chosen[place] = true;
        at = before[place];
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rising_run_stays() {
        let rising = |values: &[u64]| {
            let values: Vec<Option<u64>> =
                values.iter().map(|value| (*value > 0).then_some(*value)).collect();
            let kept = longest_rising(&values);
            values
                .iter()
                .zip(kept)
                .filter(|(_, kept)| *kept)
                .filter_map(|(value, _)| *value)
                .collect::<Vec<_>>()
        };
        assert_eq!(rising(&[1, 2, 3]), [1, 2, 3]);
        assert_eq!(rising(&[9, 1, 2, 3]), [1, 2, 3]);
        assert_eq!(rising(&[1, 0, 5, 2, 3, 0, 4]), [1, 2, 3, 4]);
        assert_eq!(rising(&[3, 2, 1]).len(), 1);
        assert!(rising(&[]).is_empty());
    }
}
