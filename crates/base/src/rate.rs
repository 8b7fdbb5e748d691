//! How often something may happen: the one rate limit of the program.
//!
//! No stretch of its length ever has more than is allowed, which a limit on guesses at passwords has to promise. A bucket
//! that fills at a steady rate, as crates for this offer, lets nearly twice as many through in its first stretch.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    time::Duration,
};

use parking_lot::Mutex;

/// With so many keys, those that say nothing any more are dropped, so that a stream of new ones takes no memory.
const TIDY_ABOVE: usize = 10_000;

/// Counts what passes in a sliding stretch of time, for each key by itself.
#[derive(Debug)]
pub struct RateWindow<K> {
    length: Duration,
    state: Mutex<State<K>>,
}

#[derive(Debug)]
struct State<K> {
    /// When each key was let through, within the last stretch, the oldest first.
    passed: HashMap<K, VecDeque<Duration>>,
    /// Keys that make the next look through all of them worthwhile.
    tidy_at: usize,
}

impl<K: Eq + Hash> RateWindow<K> {
    /// A limit over stretches of this length.
    pub fn new(length: Duration) -> Self {
        Self { length, state: Mutex::new(State { passed: HashMap::new(), tidy_at: TIDY_ABOVE }) }
    }

    /// Lets the key through if fewer than `most` have passed, or says after how many seconds it may come again. 0 is no
    /// limit. `now` counts from any fixed moment.
    pub fn take(&self, key: K, most: u32, now: Duration) -> Result<(), u64> {
        if most == 0 {
            return Ok(());
        }
        // A time that lies ahead is of a clock that has been set back since.
        let counts = |time: &Duration| now.checked_sub(*time).is_some_and(|ago| ago < self.length);
        let mut state = self.state.lock();
        if state.passed.len() >= state.tidy_at {
            state.passed.retain(|_, times| times.back().is_some_and(counts));
            state.tidy_at = TIDY_ABOVE.max(2 * state.passed.len());
        }
        let times = state.passed.entry(key).or_default();
        while times.front().is_some_and(|time| !counts(time)) {
            times.pop_front();
        }
        match times.front() {
            Some(oldest) if times.len() >= most as usize => {
                let wait = self.length.saturating_sub(now.saturating_sub(*oldest));
                Err(wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1))
            }
            _ => {
                times.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn no_minute_has_more_than_is_allowed() {
        let window = RateWindow::new(MINUTE);
        let at = |half: u64| Duration::from_millis(500 * half);
        let passed: Vec<u64> = (0..400).filter(|half| window.take("key", 10, at(*half)).is_ok()).collect();
        assert_eq!(passed[..11], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 120]);
        let within = |from: u64| passed.iter().filter(|other| (from..from + 120).contains(other)).count();
        assert!(passed.iter().all(|from| within(*from) <= 10));
        assert_eq!(window.take("key", 10, at(362)), Err(59));
        assert_eq!(window.take("other", 10, at(362)), Ok(()));
        assert!((0..100).all(|_| window.take("key", 0, at(362)).is_ok()), "0 is no limit");
    }

    #[test]
    fn keys_that_say_nothing_are_dropped() {
        let window = RateWindow::new(MINUTE);
        for number in 0..3 * TIDY_ABOVE as u64 {
            window.take(number, 1, Duration::from_millis(20 * number)).unwrap();
        }
        assert!(window.state.lock().passed.len() <= 2 * TIDY_ABOVE);
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out() {
        let window = RateWindow::new(MINUTE);
        assert!(window.take("key", 1, Duration::from_secs(90_000)).is_ok());
        assert!(window.take("key", 1, Duration::from_secs(90_001)).is_err());
        assert!(window.take("key", 1, Duration::from_secs(10)).is_ok());
        assert_eq!(window.take("key", 1, Duration::from_secs(10)), Err(60));
    }
}
