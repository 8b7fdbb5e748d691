//! Where a page of hits ended: by the documents that were shown, not by how many there were. What changes between two
//! pages moves the others up and down; an unchanged document is neither skipped nor shown twice.

use std::{borrow::Cow, collections::BTreeSet};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use serde::{Deserialize, Serialize};

use super::question;
use crate::{Caller, Library, Result, SearchHit, SearchRequest, times::Bounds};

/// Numbers of documents that earlier pages have shown: sorted, each as the distance from the one before, in bytes of
/// seven bits.
#[derive(Default, Serialize, Deserialize)]
struct Bookmark {
    seen: String,
    bounds: Bounds,
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
        let bookmark = self.bookmark(caller, request)?;
        Ok(bookmark.map_or_else(BTreeSet::new, |bookmark| unpack(&bookmark.seen)))
    }

    fn bookmark(&self, caller: &Caller, request: &SearchRequest) -> Result<Option<Bookmark>> {
        let open = |cursor: &String| self.open_cursor(caller, &question(request), cursor);
        request.cursor.as_ref().map(open).transpose()
    }

    /// The request with the times that the first page was made with.
    pub(super) fn as_first_asked<'r>(
        &self,
        caller: &Caller,
        request: &'r SearchRequest,
    ) -> Result<Cow<'r, SearchRequest>> {
        let Some(bookmark) = self.bookmark(caller, request)? else { return Ok(Cow::Borrowed(request)) };
        let mut first = request.clone();
        bookmark.bounds.put_into(&mut first.filter);
        Ok(Cow::Owned(first))
    }

    /// The cursor of the page after one that has shown these hits.
    pub fn search_cursor(
        &self,
        caller: &Caller,
        request: &SearchRequest,
        shown: &[SearchHit],
    ) -> Result<String> {
        let first = self.as_first_asked(caller, request)?;
        let mut seen = self.seen(caller, request)?;
        seen.extend(shown.iter().map(|hit| hit.document.number));
        let bookmark = Bookmark { seen: pack(&seen), bounds: Bounds::of(&first.filter) };
        self.seal_cursor(caller, &question(request), &bookmark)
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
