//! Bounds of times over several pages: what `7d` means on the first page, it means on all of them.

use serde::{Deserialize, Serialize};
use shelf_base::Moment;
use shelf_catalog::Filter;

/// The bounds of a filter, in nanoseconds, as a cursor carries them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bounds([Option<i64>; 6]);

impl Bounds {
    pub(crate) fn of(filter: &Filter) -> Self {
        let Filter { created, modified, indexed, .. } = filter;
        let bounds = [created.0, created.1, modified.0, modified.1, indexed.0, indexed.1];
        Self(bounds.map(|bound| bound.map(Moment::nanos)))
    }

    pub(crate) fn put_into(self, filter: &mut Filter) {
        let [a, b, c, d, e, f] = self.0.map(|bound| bound.map(Moment::from_nanos));
        (filter.created, filter.modified, filter.indexed) = ((a, b), (c, d), (e, f));
    }
}

/// A filter as its caller asked for it, for the question that a cursor belongs to: with the times as they were written,
/// since relative ones mean another moment at every call. Without any, the filter is taken as it is.
pub(crate) fn as_asked(filter: &Filter, times: &[Option<String>]) -> String {
    if times.is_empty() {
        return format!("{filter:?}");
    }
    let mut timeless = filter.clone();
    Bounds::default().put_into(&mut timeless);
    format!("{timeless:?} {times:?}")
}
