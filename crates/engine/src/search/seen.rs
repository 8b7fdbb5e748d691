//! Where a page of hits ended: by the documents that were shown, not by how many there were. What changes between two
//! pages moves the others up and down; an unchanged document is neither skipped nor shown twice.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use serde::{Deserialize, Serialize};

use super::question;
use crate::{Caller, Library, Result, SearchHit, SearchRequest};

/// Numbers of documents that earlier pages have shown: sorted, each as the distance from the one before, in bytes of
/// seven bits.
#[derive(Default, Serialize, Deserialize)]
struct Bookmark {
    seen: String,
}

fn pack(numbers: &BTreeSet<i64>) -> String {
    let (mut bytes, mut last) = (Vec::new(), 0);
    for number in numbers {
        let mut distance = number.abs_diff(last);
        while distance >= 0x80 {
            bytes.push(distance as u8 | 0x80);
            distance >>= 7;
        }
        bytes.push(distance as u8);
        last = *number;
    }
    STANDARD_NO_PAD.encode(bytes)
}

fn unpack(text: &str) -> BTreeSet<i64> {
    let (mut numbers, mut last) = (BTreeSet::new(), 0_i64);
    let (mut distance, mut shift) = (0_u64, 0);
    for byte in STANDARD_NO_PAD.decode(text).unwrap_or_default() {
        distance |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
        shift += 7;
        if byte & 0x80 == 0 {
            last = last.wrapping_add(distance as i64);
            numbers.insert(last);
            (distance, shift) = (0, 0);
        }
    }
    numbers
}

impl Library {
    /// The documents that pages before this one have shown.
    pub(super) fn seen(&self, caller: &Caller, request: &SearchRequest) -> Result<BTreeSet<i64>> {
        match &request.cursor {
            Some(cursor) => {
                let bookmark: Bookmark = self.open_cursor(caller, &question(request), cursor)?;
                Ok(unpack(&bookmark.seen))
            }
            None => Ok(BTreeSet::new()),
        }
    }

    /// The cursor of the page after one that has shown these hits.
    pub fn search_cursor(
        &self,
        caller: &Caller,
        request: &SearchRequest,
        shown: &[SearchHit],
    ) -> Result<String> {
        let mut seen = self.seen(caller, request)?;
        seen.extend(shown.iter().map(|hit| hit.document.number));
        self.seal_cursor(caller, &question(request), &Bookmark { seen: pack(&seen) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers: BTreeSet<u32>) {
            let numbers: BTreeSet<i64> = numbers.into_iter().map(i64::from).collect();
            prop_assert_eq!(unpack(&pack(&numbers)), numbers);
        }
    }
}
