//! Which machines may be asked.
//!
//! The name is looked up once for each connection, and what was found is both judged and connected to; a name that means
//! another machine a moment later changes nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ureq::{
    Error,
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::NextTimeout,
    },
};

/// The text by which a refusal is known again.
pub(crate) const REFUSED: &str = "address is not of the public internet";

/// Looks names up and leaves out machines that may not be asked.
#[derive(Debug)]
pub(crate) struct AddressPolicy {
    names: DefaultResolver,
    all: bool,
}

impl AddressPolicy {
    /// With `all` every machine may be asked.
    pub(crate) fn new(all: bool) -> Self {
        Self { names: DefaultResolver::default(), all }
    }
}

impl Resolver for AddressPolicy {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let found = self.names.resolve(uri, config, timeout).map_err(|error| match error {
            // The system says in words of its own that it knows no such name.
            Error::Io(_) => Error::HostNotFound,
            other => other,
        })?;
        let mut kept = self.empty();
        for address in found.iter().filter(|address| self.all || is_public(address)) {
            kept.push(*address);
        }
        if kept.is_empty() {
            return Err(Error::Io(std::io::Error::new(std::io::ErrorKind::PermissionDenied, REFUSED)));
        }
        Ok(kept)
    }
}

fn is_public(address: &SocketAddr) -> bool {
    match address.ip().to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// By the registry of special addresses of IPv4.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, _, _)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18..=19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    );
    !is_special
}

/// Only what is given out to the world; not what holds an address of IPv4 or is for books and tests.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let is_given_out = first & 0xE000 == 0x2000;
    let is_special = (first == 0x2001 && (second < 0x0200 || second == 0x0DB8))
        || first == 0x2002
        || (first == 0x3FFF && second < 0x1000);
    is_given_out && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        let check = |text: &str| is_public(&SocketAddr::new(text.parse().unwrap(), 80));
        for public in ["8.8.8.8", "93.184.216.34", "100.128.0.1", "172.32.0.1", "2606:4700::1111", "2a00::1"]
        {
            assert!(check(public), "{public}");
        }
        for private in [
            "127.0.0.1",
            "127.255.0.9",
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
        ] {
            assert!(!check(private), "{private}");
        }
    }
}
