//! A request as the console sees it.

use percent_encoding::percent_decode_str;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A page.
    Get,
    /// A change.
    Post,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Page or change.
    pub method: Method,
    /// The path, decoded, without its first slash, by segments.
    pub segments: Vec<String>,
    /// The path as it was sent, with its query.
    pub address: String,
    query: Vec<(String, String)>,
    form: Vec<(String, String)>,
    /// The body, when it is not a form.
    pub body: Vec<u8>,
    /// The address of the server, such as `http://127.0.0.1:7433`.
    pub base_url: String,
    /// The theme that the browser asks for: light, dark or neither.
    pub theme: Option<&'static str>,
}

impl Request {
    /// A request for a path with a query.
    pub fn new(method: Method, path: &str, query: Option<&str>, base_url: String) -> Self {
        let segments = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
        let address = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        let query = query.map_or_else(Vec::new, pairs);
        Self { method, segments, address, query, form: Vec::new(), body: Vec::new(), base_url, theme: None }
    }

    /// The same with the fields of a form.
    #[must_use]
    pub fn with_form(mut self, body: &[u8]) -> Self {
        self.form = std::str::from_utf8(body).map_or_else(|_| Vec::new(), pairs);
        self
    }

    /// The same with the theme that a cookie names.
    #[must_use]
    pub fn with_theme(mut self, word: Option<&str>) -> Self {
        self.theme = match word {
            Some("light") => Some("light"),
            Some("dark") => Some("dark"),
            _ => None,
        };
        self
    }

    /// A value of the query that is not empty.
    pub fn query(&self, name: &str) -> Option<&str> {
        value(&self.query, name)
    }

    /// All values of the query with this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.query.iter().filter(move |(known, value)| known == name && !value.is_empty()).map(|(_, v)| &**v)
    }

    /// A field of the form that is not empty.
    pub fn field(&self, name: &str) -> Option<&str> {
        value(&self.form, name)
    }

    /// All fields of the form with this name.
    pub fn fields<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.form.iter().filter(move |(known, value)| known == name && !value.is_empty()).map(|(_, v)| &**v)
    }

    /// All fields of the form with this name, empty ones too.
    pub fn every<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.form.iter().filter(move |(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Where to go after signing in: a page of this server that the form names, else the first page.
    pub fn own_next(&self) -> &str {
        crate::links::own(self.field("next"))
    }

    /// The path by segments, as texts.
    pub(crate) fn path(&self) -> Vec<&str> {
        self.segments.iter().map(String::as_str).collect()
    }
}

fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The pairs of a query or of an encoded form.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
    };
    text.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_queries_and_forms_are_decoded_once() {
        let request =
            Request::new(Method::Get, "/c/my%20notes/a%2Fb", Some("q=a+b%2Bc&tag=x&tag=y&z="), String::new())
                .with_form(b"name=%C3%A4&empty=");
        assert_eq!(request.path(), ["c", "my notes", "a/b"]);
        assert_eq!((request.query("q"), request.query("z")), (Some("a b+c"), None));
        assert_eq!(request.all("tag").collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!((request.field("name"), request.field("empty")), (Some("ä"), None));
        assert_eq!(request.with_theme(Some("\"><script>")).theme, None);
    }
}
