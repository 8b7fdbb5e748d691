//! The size on disk of each part of the index, read from the tables at the end of its segment files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::corpus;

const MAGIC: &[u8] = b"SHELFSEG";
/// The supported version of segment files.
const VERSION: [u8; 4] = 1_u32.to_le_bytes();
/// Length of the table, its hash, version, magic.
const FOOTER: usize = 8 + 32 + 4 + 8;
/// Offset, length and hash of a part, which follow its name.
const ROW: usize = 8 + 8 + 32;

/// The name of the remaining bytes: everything that is not part of a known segment.
pub const OTHER: &str = "other";

/// The name of what the graph is made of. It is not needed for searching and has a target of its own.
pub const FACTS: &str = "facts of the graph";

/// The sizes of an index.
pub struct Sizes {
    /// The total size of all files in bytes.
    pub total: u64,
    /// The number of segment files.
    pub segments: usize,
    /// Bytes by kind of part.
    pub parts: BTreeMap<String, u64>,
}

/// The sizes of the index in a library's folder.
pub fn sizes(data: &Path) -> Result<Sizes> {
    let mut sizes = Sizes { total: 0, segments: 0, parts: BTreeMap::new() };
    for (path, size) in corpus::files_below(&data.join("index"))? {
        sizes.total += size;
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut left = size;
        if let Some(rows) = table(&bytes) {
            sizes.segments += 1;
            for (name, length) in rows {
                *sizes.parts.entry(kind(&name)).or_default() += length;
                left = left.saturating_sub(length);
            }
        }
        *sizes.parts.entry(OTHER.to_owned()).or_default() += left;
    }
    Ok(sizes)
}

/// The kind of a part: `words/a` and `words/b` are both `words`; `vector.codes` is `vector`.
fn kind(name: &str) -> String {
    let end = name.find(['/', '.']).unwrap_or(name.len());
    match &name[..end] {
        kind @ ("words" | "vector" | "trigrams" | "texts" | "stems") => kind.to_owned(),
        "facts" | "mentions" => FACTS.to_owned(),
        _ => "documents, passages and paths".to_owned(),
    }
}

/// The names and lengths of a segment's parts; `None` if the file is not a segment of the supported version.
fn table(bytes: &[u8]) -> Option<Vec<(String, u64)>> {
    let (body, footer) = bytes.split_at_checked(bytes.len().checked_sub(FOOTER)?)?;
    if !footer.ends_with(MAGIC) || footer[40..44] != VERSION {
        return None;
    }
    let length = u64::from_le_bytes(footer[..8].try_into().ok()?);
    let mut rest = &body[body.len().checked_sub(usize::try_from(length).ok()?)?..];
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let (name_length, after) = rest.split_first_chunk::<2>()?;
        let (name, after) = after.split_at_checked(u16::from_le_bytes(*name_length) as usize)?;
        let (row, after) = after.split_at_checked(ROW)?;
        let size = u64::from_le_bytes(row[8..16].try_into().ok()?);
        rows.push((String::from_utf8(name.to_vec()).ok()?, size));
        rest = after;
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::{MAGIC, VERSION, kind, table};

    fn row(name: &str, size: u64) -> Vec<u8> {
        let length = (name.len() as u16).to_le_bytes();
        [&length[..], name.as_bytes(), &[0; 8], &size.to_le_bytes(), &[0; 32]].concat()
    }

    #[test]
    fn a_table_is_read_and_anything_else_is_not() {
        let rows = [row("words/a.term", 7), row("texts", 9)].concat();
        let length = (rows.len() as u64).to_le_bytes();
        let file = [b"parts", &rows[..], &length, &[0; 32], &VERSION, MAGIC].concat();
        assert_eq!(table(&file), Some(vec![("words/a.term".to_owned(), 7), ("texts".to_owned(), 9)]));
        assert_eq!(table(&file[1..file.len() - 1]), None);
        assert_eq!(table(b"short"), None);
    }

    #[test]
    fn parts_of_a_kind_belong_together() {
        assert_eq!((kind("words/meta.json"), kind("vector.codes")), ("words".into(), "vector".into()));
        assert_eq!(kind("numbers"), kind("paths"));
    }
}
