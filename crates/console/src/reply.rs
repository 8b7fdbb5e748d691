//! What the console answers.

use maud::Markup;
use serde_json::Value;

/// An answer: a page, data, or where to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Content type.
    pub mime: &'static str,
    /// Where to go instead.
    pub location: Option<String>,
    /// The name under which a browser saves it.
    pub file_name: Option<String>,
    /// For how long a browser may keep it; by default not at all.
    pub cache: Option<&'static str>,
    /// The content.
    pub body: Vec<u8>,
}

impl Reply {
    /// A page or a part of one.
    pub(crate) fn html(status: u16, markup: Markup) -> Self {
        let body = markup.into_string().into_bytes();
        Self { status, mime: "text/html; charset=utf-8", location: None, file_name: None, cache: None, body }
    }

    /// Data.
    pub(crate) fn json(status: u16, value: &Value) -> Self {
        let body = serde_json::to_vec(value).unwrap_or_default();
        Self { status, mime: "application/json", location: None, file_name: None, cache: None, body }
    }

    /// An image of exactly this content, which the browser may keep for itself.
    pub(crate) fn image(mime: &'static str, body: Vec<u8>) -> Self {
        let cache = Some("private, max-age=86400");
        Self { status: 200, mime, location: None, file_name: None, cache, body }
    }

    /// To another page, which is asked for with GET.
    pub fn to(location: impl Into<String>) -> Self {
        let location = Some(location.into());
        Self {
            status: 303,
            mime: "text/plain; charset=utf-8",
            location,
            file_name: None,
            cache: None,
            body: Vec::new(),
        }
    }
}
