//! How often tools are called, how long calls take and how many fail: the last hour of this process, by minute.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use shelf_base::Moment;

/// Minutes that are kept.
pub(crate) const MINUTES: i64 = 60;
const MINUTE_MICROS: i64 = 60_000_000;

/// One minute of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Minute {
    /// The minute, counted from 1970.
    pub minute: i64,
    /// Calls that ended in it.
    pub calls: u64,
    /// Those of them that failed.
    pub errors: u64,
    /// How long they took in all.
    pub total: Duration,
    /// How long the slowest took.
    pub longest: Duration,
}

/// The calls of the last hour.
#[derive(Debug, Default)]
pub(crate) struct Meter(Mutex<BTreeMap<&'static str, VecDeque<Minute>>>);

/// The minute that a time is in.
pub(crate) const fn minute_of(now: Moment) -> i64 {
    now.micros().div_euclid(MINUTE_MICROS)
}

impl Meter {
    /// Counts a call that has ended.
    pub(crate) fn note(&self, tool: &'static str, took: Duration, has_failed: bool, now: Moment) {
        let minute = minute_of(now);
        let mut tools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let minutes = tools.entry(tool).or_default();
        while minutes.front().is_some_and(|oldest| oldest.minute <= minute - MINUTES) {
            minutes.pop_front();
        }
        if minutes.back().is_none_or(|newest| newest.minute < minute) {
            minutes.push_back(Minute { minute, ..Minute::default() });
        }
        // A clock that was set back adds to the newest minute there is.
        if let Some(newest) = minutes.back_mut() {
            newest.calls += 1;
            newest.errors += u64::from(has_failed);
            newest.total += took;
            newest.longest = newest.longest.max(took);
        }
    }

    /// The minutes of each tool that was called in the last hour, oldest first.
    pub(crate) fn read(&self, now: Moment) -> Vec<(&'static str, Vec<Minute>)> {
        let oldest = minute_of(now) - MINUTES;
        let tools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = |minutes: &VecDeque<Minute>| {
            minutes.iter().filter(|one| one.minute > oldest).copied().collect::<Vec<_>>()
        };
        tools
            .iter()
            .map(|(tool, minutes)| (*tool, recent(minutes)))
            .filter(|(_, minutes)| !minutes.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept_by_minutes() {
        let meter = Meter::default();
        let at = |minute: i64| Moment::from_micros(minute * MINUTE_MICROS + 7);
        let took = Duration::from_millis;
        meter.note("search", took(5), false, at(100));
        meter.note("search", took(9), true, at(100));
        meter.note("get", took(1), false, at(120));
        let found = meter.read(at(130));
        assert_eq!(found.iter().map(|(tool, _)| *tool).collect::<Vec<_>>(), ["get", "search"]);
        let searches = found[1].1[0];
        assert_eq!((searches.calls, searches.errors, searches.total), (2, 1, took(14)));
        assert_eq!((searches.longest, searches.minute), (took(9), 100));
        assert_eq!(meter.read(at(161)).len(), 1);
        meter.note("get", took(1), false, at(500));
        assert_eq!(
            meter.read(at(500)),
            [("get", vec![Minute { minute: 500, calls: 1, errors: 0, total: took(1), longest: took(1) }])]
        );
    }
}
