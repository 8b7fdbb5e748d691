//! Sums that a download must have.

use std::{fmt, io::Read};

use md5::Md5;
use sha2::{Sha256, Sha512};
use shelf_base::{CallContext, hex};

use crate::{Error, Result};

/// A sum: its kind and its digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    kind: Kind,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sha256,
    Sha512,
    Md5,
    Blake3,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Sha256, Self::Sha512, Self::Md5, Self::Blake3];

    const fn word(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
            Self::Md5 => "md5",
            Self::Blake3 => "blake3",
        }
    }

    const fn length(self) -> usize {
        match self {
            Self::Sha256 | Self::Blake3 => 32,
            Self::Sha512 => 64,
            Self::Md5 => 16,
        }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.kind.word(), hex::encode(&self.bytes))
    }
}

impl Sum {
    /// Reads `kind:digits`.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(
                "checksum",
                "must be sha256:…, sha512:…, md5:… or blake3:… with all its hexadecimal digits",
            )
        };
        let (word, digits) = text.trim().split_once(':').ok_or_else(wrong)?;
        let word = word.trim().to_lowercase().replace('-', "");
        let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word).ok_or_else(wrong)?;
        let bytes = hex::decode(&digits.trim().to_lowercase()).ok_or_else(wrong)?;
        if bytes.len() == kind.length() { Ok(Self { kind, bytes }) } else { Err(wrong()) }
    }

    /// The sum of the same kind that a content has.
    pub fn of(&self, content: impl Read, call: &CallContext) -> Result<Self> {
        let bytes = match self.kind {
            Kind::Sha256 => digest::<Sha256>(content, call)?,
            Kind::Sha512 => digest::<Sha512>(content, call)?,
            Kind::Md5 => digest::<Md5>(content, call)?,
            Kind::Blake3 => {
                let mut hasher = blake3::Hasher::new();
                each(content, call, |piece| {
                    hasher.update(piece);
                })?;
                hasher.finalize().as_bytes().to_vec()
            }
        };
        Ok(Self { kind: self.kind, bytes })
    }
}

fn digest<D: sha2::Digest>(content: impl Read, call: &CallContext) -> Result<Vec<u8>> {
    let mut digest = D::new();
    each(content, call, |piece| digest.update(piece))?;
    Ok(digest.finalize().to_vec())
}

fn each(mut content: impl Read, call: &CallContext, mut take: impl FnMut(&[u8])) -> Result<()> {
    let mut buffer = vec![0; 1 << 18];
    loop {
        call.check()?;
        let read = content.read(&mut buffer).map_err(|error| Error::reading("the download", error))?;
        if read == 0 {
            return Ok(());
        }
        take(&buffer[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_and_made() {
        // RFC 1321, FIPS 180-4 and the BLAKE3 test vectors' own "abc".
        let known = [
            "md5:900150983cd24fb0d6963f7d28e17f72",
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "SHA-512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd\
             454d4423643ce80e2a9ac94fa54ca49f",
            "blake3:6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
        ];
        for text in known {
            let sum = Sum::parse(text).unwrap();
            assert_eq!(sum.of(&b"abc"[..], &CallContext::new()).unwrap(), sum, "{text}");
            assert_ne!(sum.of(&b"abd"[..], &CallContext::new()).unwrap(), sum, "{text}");
        }
        for wrong in ["", "sha256", "sha256:", "sha256:ab", "sha1:00", "md5:zz0150983cd24fb0d6963f7d28e17f72"]
        {
            assert!(Sum::parse(wrong).is_err(), "{wrong}");
        }
    }
}
