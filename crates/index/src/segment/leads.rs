//! The leads of passages: words that count as theirs although they stand elsewhere. They are kept so that a passage can
//! be read by another model exactly as it was indexed.

use tantivy::directory::OwnedBytes;

use crate::{Error, Result};

/// Bytes of a number: an entry has two, where a lead begins and where it ends.
const ENTRY: usize = 4;

/// Collects leads in the order of their passages.
#[derive(Default)]
pub(super) struct LeadsBuilder {
    text: Vec<u8>,
    /// For each passage: where its lead begins and ends.
    places: Vec<(u32, u32)>,
}

impl LeadsBuilder {
    pub(super) fn add(&mut self, lead: &str) {
        // Neighbours often have the same one.
        let last = self
            .places
            .last()
            .copied()
            .filter(|(start, end)| self.text[*start as usize..*end as usize] == *lead.as_bytes());
        self.places.push(last.unwrap_or_else(|| {
            let start = self.text.len() as u32;
            self.text.extend_from_slice(lead.as_bytes());
            (start, self.text.len() as u32)
        }));
    }

    pub(super) fn finish(self) -> [(&'static str, Vec<u8>); 2] {
        let places =
            self.places.iter().flat_map(|(start, end)| [start.to_le_bytes(), end.to_le_bytes()].concat());
        [("leads", self.text), ("leads.places", places.collect())]
    }
}

/// The leads of a segment.
pub(super) struct Leads {
    text: OwnedBytes,
    places: OwnedBytes,
}

impl Leads {
    pub(super) fn open(text: OwnedBytes, places: OwnedBytes, passages: usize) -> Result<Self> {
        if places.len() == 2 * ENTRY * passages {
            Ok(Self { text, places })
        } else {
            Err(Error::damaged("leads", "their number does not match the number of passages"))
        }
    }

    pub(super) fn of(&self, passage: usize) -> &str {
        let entry = &self.places[passage * 2 * ENTRY..][..2 * ENTRY];
        let number = |at: usize| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
        let bytes = self.text.get(number(0) as usize..number(ENTRY) as usize).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads_are_read_back() {
        let mut builder = LeadsBuilder::default();
        let leads = ["", "Title", "Title", "Title\nInstall", "", "é"];
        leads.iter().for_each(|lead| builder.add(lead));
        let [(_, text), (_, places)] = builder.finish();
        assert_eq!(text.len(), "TitleTitle\nInstallé".len());
        let opened = Leads::open(OwnedBytes::new(text.clone()), OwnedBytes::new(places.clone()), 6).unwrap();
        assert_eq!((0..6).map(|at| opened.of(at)).collect::<Vec<_>>(), leads);
        assert!(Leads::open(OwnedBytes::new(text), OwnedBytes::new(places), 5).is_err());
    }
}
