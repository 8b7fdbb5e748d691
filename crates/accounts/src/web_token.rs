//! JSON web tokens, HS256 only.
//!
//! Implemented here because only one algorithm and seven claims are needed: sixty lines on top of the hash function,
//! which is a dependency anyway. A library would bring key formats and algorithms that must not be accepted here, and
//! attacks on such tokens exploit exactly that choice. The header must equal the only one that is ever written.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use shelf_base::{
    Moment,
    ids::{AccountId, SessionId},
};

/// The purpose of a token; a token for one purpose must not be accepted for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Use {
    Access,
    Refresh,
    /// A browser with a session.
    Console,
    /// A browser whose user has pasted a token.
    Token,
    /// A link that opens the console once.
    Link,
}

/// The claims of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub iss: String,
    pub sub: AccountId,
    pub sid: SessionId,
    pub jti: String,
    pub typ: Use,
    pub iat: i64,
    pub exp: i64,
}

const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
/// Maximum length of a token, in bytes; longer texts are not decoded.
const MOST: usize = 4_096;

fn seconds(moment: Moment) -> i64 {
    moment.micros().div_euclid(1_000_000)
}

impl Claims {
    pub(crate) fn new(
        account: AccountId,
        session: SessionId,
        usage: Use,
        id: String,
        from: Moment,
        until: Moment,
    ) -> Self {
        let (iat, exp) = (seconds(from), seconds(until));
        Self { iss: "shelfmark".into(), sub: account, sid: session, jti: id, typ: usage, iat, exp }
    }

    /// Signs the claims and returns the token.
    pub(crate) fn sign(&self, key: &[u8; 32]) -> Option<String> {
        let claims = serde_json::to_vec(self).ok()?;
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(HEADER), URL_SAFE_NO_PAD.encode(claims));
        let signature = mac(key, &signed)?.finalize().into_bytes();
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The claims of a token, if it was signed with this key for this use and has not expired.
    pub(crate) fn read(text: &str, key: &[u8; 32], usage: Use, now: Moment) -> Option<Self> {
        if text.len() > MOST {
            return None;
        }
        let (signed, signature) = text.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        // Compares in constant time.
        mac(key, signed)?.verify_slice(&signature).ok()?;
        let (header, claims) = signed.split_once('.')?;
        if URL_SAFE_NO_PAD.decode(header).ok()? != HEADER.as_bytes() {
            return None;
        }
        let claims: Self = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        let in_time = seconds(now) < claims.exp;
        (claims.typ == usage && claims.iss == "shelfmark" && in_time).then_some(claims)
    }
}

fn mac(key: &[u8; 32], text: &str) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(text.as_bytes());
    Some(mac)
}

/// Whether a text looks like a web token.
pub(crate) fn looks_like_one(text: &str) -> bool {
    text.starts_with("eyJ") && text.split('.').count() == 3
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn at(second: i64) -> Moment {
        Moment::from_micros(second * 1_000_000)
    }

    fn claims() -> Claims {
        Claims::new(AccountId::fresh(), SessionId::fresh(), Use::Access, "id".into(), at(100), at(200))
    }

    #[test]
    fn claims_can_be_read_until_they_expire() {
        let claims = claims();
        let text = claims.sign(&KEY).unwrap();
        assert!(looks_like_one(&text));
        assert_eq!(Claims::read(&text, &KEY, Use::Access, at(199)), Some(claims));
        assert_eq!(Claims::read(&text, &KEY, Use::Access, at(200)), None, "expired");
        assert_eq!(Claims::read(&text, &KEY, Use::Refresh, at(150)), None, "another use");
        assert_eq!(Claims::read(&text, &[8; 32], Use::Access, at(150)), None, "another key");
    }

    #[test]
    fn other_algorithms_are_rejected() {
        let body = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims()).unwrap());
        for header in [r#"{"alg":"none","typ":"JWT"}"#, r#"{"alg":"HS512","typ":"JWT"}"#, r#"{"typ":"JWT"}"#]
        {
            let signed = format!("{}.{body}", URL_SAFE_NO_PAD.encode(header));
            let signature = mac(&KEY, &signed).unwrap().finalize().into_bytes();
            let text = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
            assert_eq!(Claims::read(&text, &KEY, Use::Access, at(150)), None, "{header}");
            assert_eq!(Claims::read(&format!("{signed}."), &KEY, Use::Access, at(150)), None, "{header}");
        }
    }

    proptest! {
        #[test]
        fn a_changed_token_is_rejected(at_byte in 0_usize..400, bit in 0_u8..7) {
            let text = claims().sign(&KEY).unwrap();
            let mut bytes = text.clone().into_bytes();
            let place = at_byte % bytes.len();
            bytes[place] ^= 1 << bit;
            if let Ok(changed) = String::from_utf8(bytes) && changed != text {
                // The last character of base64 has unused bits; strict decoding rejects changes to those too.
                prop_assert_eq!(Claims::read(&changed, &KEY, Use::Access, at(150)), None);
            }
        }

        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
            let _ = Claims::read(&text, &KEY, Use::Access, at(150));
            let _ = looks_like_one(&text);
        }
    }
}
