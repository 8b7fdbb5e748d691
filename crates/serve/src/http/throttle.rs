//! How often an address may register or log in, and how often a token may call.

use std::{
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

use axum::response::Response;
use http::header;
use shelf_base::{Kind, RateWindow};
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

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// All limits of a server.
pub(crate) struct Throttle {
    limits: HttpLimits,
    started: Instant,
    register: RateWindow<IpAddr>,
    login: RateWindow<IpAddr>,
    refresh: RateWindow<IpAddr>,
    calls: RateWindow<String>,
}

impl Throttle {
    pub(super) fn new(limits: HttpLimits) -> Self {
        Self {
            limits,
            started: Instant::now(),
            register: RateWindow::new(HOUR),
            login: RateWindow::new(MINUTE),
            refresh: RateWindow::new(MINUTE),
            calls: RateWindow::new(MINUTE),
        }
    }

    pub(super) fn register(&self, address: IpAddr) -> Result<(), u64> {
        self.register.take(network_of(address), self.limits.register_per_hour, self.started.elapsed())
    }

    pub(super) fn login(&self, address: IpAddr) -> Result<(), u64> {
        self.login.take(network_of(address), self.limits.login_per_minute, self.started.elapsed())
    }

    pub(super) fn refresh(&self, address: IpAddr) -> Result<(), u64> {
        self.refresh.take(network_of(address), self.limits.refresh_per_minute, self.started.elapsed())
    }

    pub(super) fn call(&self, pass: &Pass) -> Result<(), u64> {
        let key = match (pass.token(), pass.session()) {
            (Some(token), _) => token.to_string(),
            (None, Some(session)) => session.to_string(),
            // The owner without a token is at the machine itself.
            (None, None) => return Ok(()),
        };
        self.calls.take(key, self.limits.calls_per_minute, self.started.elapsed())
    }
}

/// What counts as one address: whoever has one IPv6 address has a whole network of them.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

/// The answer to who comes too often.
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
    fn each_address_is_counted_by_itself() {
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
