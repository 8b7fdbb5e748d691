//! Endpoint settings, validated once before anything is sent.
//!
//! Errors quote invalid settings and may end up in a log, so this module also masks secrets, even those that users put
//! into the wrong setting.

use std::time::Duration;

use shelf_base::Secret;
use ureq::http::{HeaderValue, Uri};

use crate::{Error, Result};

/// The settings of an [`Endpoint`](crate::Endpoint).
#[derive(Clone, Debug)]
pub struct EndpointSettings {
    /// The base URL, to which `/embeddings` is appended: `https://api.example.com/v1`.
    pub url: String,
    /// The model's name at the endpoint.
    pub model: String,
    /// The key, sent as a bearer token; an empty key counts as none.
    pub key: Option<Secret>,
    /// Maximum number of texts in one request; zero counts as one.
    pub batch: usize,
    /// Time limit of one request, including connecting and reading.
    pub timeout: Duration,
    /// Maximum number of attempts per request; zero counts as one.
    pub attempts: u32,
}

impl EndpointSettings {
    /// Settings that suit most servers: 64 texts per request, a timeout of one minute, four attempts, no key.
    pub fn new(url: impl Into<String>, model: impl Into<String>) -> Self {
        let (url, model) = (url.into(), model.into());
        Self { url, model, key: None, batch: 64, timeout: Duration::from_secs(60), attempts: 4 }
    }

    /// Validates the settings and converts them to what a request needs.
    pub(crate) fn check(&self) -> Result<Checked> {
        let (address, host) = self.address()?;
        if self.model.trim().is_empty() {
            let found = self.model.clone();
            return Err(Error::Setting { setting: "model", expected: "a non-empty name", found });
        }
        if self.timeout.is_zero() {
            return Err(Error::Setting { setting: "timeout", expected: "more than zero", found: "0".into() });
        }
        let key = self.key.as_ref().filter(|key| !key.reveal().is_empty());
        let authorization = key.map(authorization).transpose()?;
        Ok(Checked { address, host, authorization })
    }

    fn address(&self) -> Result<(Uri, String)> {
        let wrong = || Error::Setting {
            setting: "url",
            expected: "an http:// or https:// URL without user, query or fragment",
            found: self.shown_url(),
        };
        if self.url.contains(['?', '#', '@']) {
            return Err(wrong());
        }
        let address = format!("{}/embeddings", self.url.trim_end_matches('/'));
        let address: Uri = address.parse().map_err(|_| wrong())?;
        let host = address.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?.to_owned();
        match address.scheme_str() {
            Some("http" | "https") => Ok((address, host)),
            _ => Err(wrong()),
        }
    }

    /// The URL as an error may show it; the parts before `@` and after `?` may contain a password.
    fn shown_url(&self) -> String {
        let host = self.url.rsplit_once('@').map_or(self.url.as_str(), |(_, host)| host);
        self.without_key(host.split(['?', '#']).next().unwrap_or_default())
    }

    /// A text with the key masked wherever it occurs.
    pub(crate) fn without_key(&self, text: &str) -> String {
        match self.key.as_ref().map(Secret::reveal) {
            Some(key) if !key.is_empty() => text.replace(key, "***"),
            _ => text.to_owned(),
        }
    }
}

/// Validated settings.
pub(crate) struct Checked {
    pub(crate) address: Uri,
    pub(crate) host: String,
    pub(crate) authorization: Option<HeaderValue>,
}

fn authorization(key: &Secret) -> Result<HeaderValue> {
    let value = HeaderValue::from_str(&format!("Bearer {}", key.reveal()));
    let mut value = value.map_err(|_| Error::Setting {
        setting: "key",
        expected: "text that an HTTP header can contain",
        found: "***".into(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use shelf_base::{ErrorInfo, Kind};

    use super::*;
    use crate::{Embedder, Endpoint};

    #[test]
    fn invalid_settings_are_rejected_without_showing_secrets() {
        let urls = [
            "",
            "api.example.com/v1",
            "ftp://host/v1",
            "http://",
            "https://user:sk-secret@host/v1",
            "https://host/v1?key=sk-secret",
            "sk-secret",
            "http://ho st/",
        ];
        let key = || Some(Secret::new("sk-secret".into()));
        for url in urls {
            let error = Endpoint::new(EndpointSettings { key: key(), ..EndpointSettings::new(url, "small") });
            let error = error.unwrap_err();
            assert!(matches!(error, Error::Setting { setting: "url", .. }), "{url}");
            assert!(!format!("{error} {error:?}").contains("sk-secret"), "{error}");
            assert_eq!(error.kind(), Kind::Invalid);
        }
        let good = EndpointSettings::new("https://host:8443/v1", "small");
        let bad_key = EndpointSettings { key: Some(Secret::new("sk-secret\n".into())), ..good.clone() };
        let error = Endpoint::new(bad_key).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("sk-secret"));
        assert!(Endpoint::new(EndpointSettings { model: " ".into(), ..good.clone() }).is_err());
        assert!(Endpoint::new(EndpointSettings { timeout: Duration::ZERO, ..good.clone() }).is_err());
        let endpoint = Endpoint::new(EndpointSettings { key: key(), ..good }).unwrap();
        assert_eq!(endpoint.model(), "small@host");
        assert!(!format!("{endpoint:?}").contains("sk-secret"));
    }
}
