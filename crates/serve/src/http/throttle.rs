//! How often an address may register or log in, and how often a token may call.
//!
//! Calls by `governor`: a bucket for each token that fills at the allowed rate. A full bucket lets nearly twice the
//! allowed number through in its first minute, which is of no importance for calls; guesses at passwords are counted
//! exactly instead, each with its time. What says nothing any more is dropped now and then, so that a stream of new
//! addresses takes no memory.

use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use axum::response::Response;
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    state::keyed::HashMapStateStore,
};
use http::header;
use parking_lot::Mutex;
use shelf_base::Kind;
use shelf_engine::Pass;

use super::rest;

/// The limits of an HTTP server; 0 means none.
#[derive(Clone, Copy, Debug, Default)]
pub struct HttpLimits {
    /// Accounts that one address may register in an hour.
    pub register_per_hour: u32,
    /// Logins that one address may try in a minute.
    pub login_per_minute: u32,
    /// Refreshes that one address may try in a minute.
    pub refresh_per_minute: u32,
    /// Calls that one token may make in a minute.
    pub calls_per_minute: u32,
}

/// After so many questions, or with so many keys, those that say nothing are dropped.
const TIDY_EVERY: u32 = 10_000;

type Limiter = RateLimiter<String, HashMapStateStore<String>, DefaultClock>;

/// One limit with a bucket for each key.
struct Buckets {
    limiter: Option<Limiter>,
    asked: AtomicU32,
}

impl Buckets {
    fn new(quota: Option<Quota>) -> Self {
        Self { limiter: quota.map(RateLimiter::hashmap), asked: AtomicU32::new(0) }
    }

    /// Takes one from the key's bucket, or says in how many seconds there will be one.
    fn take(&self, key: String) -> Result<(), u64> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        if self.asked.fetch_add(1, Ordering::Relaxed) % TIDY_EVERY == TIDY_EVERY - 1 {
            limiter.retain_recent();
        }
        limiter.check_key(&key).map_err(|not_until| {
            let wait = not_until.wait_time_from(DefaultClock::default().now());
            wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
        })
    }
}

/// One limit that no stretch of its length exceeds.
struct Window {
    /// 0 for no limit.
    most: usize,
    length: Duration,
    /// When each key was let through, within the last stretch.
    passed: Mutex<HashMap<String, VecDeque<Instant>>>,
}

impl Window {
    fn new(most: u32, length: Duration) -> Self {
        Self { most: most as usize, length, passed: Mutex::default() }
    }

    /// Lets the key through, or says after how many seconds it will be.
    fn take(&self, key: String, now: Instant) -> Result<(), u64> {
        if self.most == 0 {
            return Ok(());
        }
        let is_past = |time: &Instant| now.duration_since(*time) >= self.length;
        let mut passed = self.passed.lock();
        if passed.len() >= TIDY_EVERY as usize && !passed.contains_key(&key) {
            passed.retain(|_, times| times.back().is_some_and(|time| !is_past(time)));
        }
        let times = passed.entry(key).or_default();
        while times.front().is_some_and(is_past) {
            times.pop_front();
        }
        match times.front() {
            Some(oldest) if times.len() >= self.most => {
                Err((self.length - now.duration_since(*oldest)).as_secs_f64().ceil().max(1.0) as u64)
            }
            _ => {
                times.push_back(now);
                Ok(())
            }
        }
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// All limits of a server.
pub(crate) struct Throttle {
    register: Window,
    login: Window,
    refresh: Window,
    calls: Buckets,
}

impl Throttle {
    pub(super) fn new(limits: HttpLimits) -> Self {
        let minutes = |most| NonZeroU32::new(most).map(Quota::per_minute);
        Self {
            register: Window::new(limits.register_per_hour, HOUR),
            login: Window::new(limits.login_per_minute, MINUTE),
            refresh: Window::new(limits.refresh_per_minute, MINUTE),
            calls: Buckets::new(minutes(limits.calls_per_minute)),
        }
    }

    pub(super) fn register(&self, address: IpAddr) -> Result<(), u64> {
        self.register.take(key_of(address), Instant::now())
    }

    pub(super) fn login(&self, address: IpAddr) -> Result<(), u64> {
        self.login.take(key_of(address), Instant::now())
    }

    pub(super) fn refresh(&self, address: IpAddr) -> Result<(), u64> {
        self.refresh.take(key_of(address), Instant::now())
    }

    pub(super) fn call(&self, pass: &Pass) -> Result<(), u64> {
        match (pass.token(), pass.session()) {
            (Some(token), _) => self.calls.take(token.to_string()),
            (None, Some(session)) => self.calls.take(session.to_string()),
            // The owner without a token is at the machine itself.
            (None, None) => Ok(()),
        }
    }
}

fn key_of(address: IpAddr) -> String {
    network_of(address).to_string()
}

/// What counts as one address: whoever has one IPv6 address has a whole network of them.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

/// The answer when a bucket is empty.
pub(super) fn refuse(what: &str, seconds: u64) -> Response {
    let message = format!("{what}; try again in {seconds} s");
    let mut response = rest::error(Kind::RateLimited, &message, &[]);
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_minute_has_more_than_is_allowed() {
        let window = Window::new(10, MINUTE);
        let start = Instant::now();
        let passed: Vec<u64> = (0..400)
            .filter(|half| window.take("key".into(), start + Duration::from_millis(500 * half)).is_ok())
            .collect();
        assert_eq!(passed[..11], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 120]);
        assert!(
            passed
                .iter()
                .all(|at| passed.iter().filter(|other| (*at..at + 120).contains(other)).count() <= 10)
        );
        assert_eq!(window.take("key".into(), start + Duration::from_secs(181)), Err(59));
    }

    #[test]
    fn keys_that_say_nothing_are_dropped() {
        let window = Window::new(1, MINUTE);
        let start = Instant::now();
        for number in 0..3 * u64::from(TIDY_EVERY) {
            window.take(number.to_string(), start + Duration::from_millis(20 * number)).unwrap();
        }
        assert!(window.passed.lock().len() <= 2 * TIDY_EVERY as usize);
    }

    #[test]
    fn each_address_has_its_own_bucket() {
        let throttle = Throttle::new(HttpLimits { login_per_minute: 2, ..HttpLimits::default() });
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(throttle.login(address("192.0.2.1")).is_ok() && throttle.login(address("192.0.2.1")).is_ok());
        let wait = throttle.login(address("::ffff:192.0.2.1")).unwrap_err();
        assert!((59..=60).contains(&wait), "{wait}");
        assert!(throttle.login(address("192.0.2.2")).is_ok());
        assert!(
            throttle.login(address("2001:db8::1")).is_ok() && throttle.login(address("2001:db8::2")).is_ok()
        );
        assert!(throttle.login(address("2001:db8::3")).is_err(), "one network");
        assert!((0..100).all(|_| throttle.register(address("192.0.2.1")).is_ok()), "0 is no limit");
    }
}
