//! Errors of the console outside its pages: a page for people, and for programs the JSON that every other route answers with.

use axum::{extract::Request, response::Response};
use http::{HeaderMap, header};
use shelf_base::Kind;
use shelf_console::Door;

use super::{console, rest};

/// Who hears about an error: a person in front of a browser, or a program.
pub(super) struct Reader {
    person: Option<shelf_console::Request>,
}

impl Reader {
    /// Whoever sent a request.
    pub(super) fn of(request: &Request) -> Self {
        let asked = console::console_request(request);
        let is_part = asked.query("part").is_some();
        Self { person: (wants_page(request.headers()) && !is_part).then_some(asked) }
    }

    /// Whether it is a person.
    pub(super) const fn is_person(&self) -> bool {
        self.person.is_some()
    }

    /// An error in the reader's form.
    pub(super) fn refuse(&self, kind: Kind, sentence: &str) -> Response {
        match &self.person {
            Some(asked) if kind == Kind::Unauthenticated => {
                console::finished(shelf_console::sign_in(asked, kind.row().status, &Door::default()))
            }
            Some(asked) => console::finished(shelf_console::refused(asked, kind, sentence)),
            None => rest::error(kind, sentence, &[]),
        }
    }
}

/// An error in the form of whoever sent a request.
pub(super) fn refuse(request: &Request, kind: Kind, sentence: &str) -> Response {
    Reader::of(request).refuse(kind, sentence)
}

/// The answer to who comes too often.
pub(super) fn too_often(request: &Request, what: &str, seconds: u64) -> Response {
    let mut response = refuse(request, Kind::RateLimited, &format!("{what}; try again in {seconds} s"));
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

/// Whether a request names pages among the types that it takes, as browsers do when somebody goes to an address.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|types| types.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|kind| kind.trim().split(';').next() == Some("text/html"))
}
