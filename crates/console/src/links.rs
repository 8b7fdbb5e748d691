//! Addresses of pages.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A text as one part of a path or as a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

/// A path whose slashes stay.
pub(crate) fn encoded_path(path: &str) -> String {
    path.split('/').map(encoded).collect::<Vec<_>>().join("/")
}

/// The page of a document.
pub(crate) fn document(id: &str) -> String {
    format!("/d/{}", encoded(id))
}

/// The page of a document at some lines.
pub(crate) fn lines(id: &str, first: u64, last: u64) -> String {
    if first == 0 { document(id) } else { format!("/d/{}?lines={first}-{last}#L{first}", encoded(id)) }
}

/// The page of a document at some lines, with a region of a page marked.
pub(crate) fn region(id: &str, (first, last): (u64, u64), region: &str) -> String {
    if region.is_empty() || first == 0 {
        return lines(id, first, last);
    }
    format!("/d/{}?lines={first}-{last}&box={}#L{first}", encoded(id), encoded(region))
}

/// The bytes of a document.
pub(crate) fn raw(id: &str, hash: Option<&str>) -> String {
    let version = hash.map_or_else(String::new, |hash| format!("?version={}", encoded(hash)));
    format!("/raw/{}{version}", encoded(id))
}

/// The page of a collection, or of a folder of it.
pub(crate) fn collection(name: &str, folder: &str) -> String {
    let folder = if folder.is_empty() { String::new() } else { format!("?folder={}", encoded(folder)) };
    format!("/c/{}{folder}", encoded(name))
}

/// A path with a query; empty values are left out.
pub(crate) fn with(path: &str, pairs: &[(&str, &str)]) -> String {
    let parts: Vec<String> = pairs
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    if parts.is_empty() { path.to_owned() } else { format!("{path}?{}", parts.join("&")) }
}

/// An address that a tool gave, as seen from a page: the server may have another name for the browser than for the tool.
pub(crate) fn local<'a>(url: &'a str, base_url: &str) -> &'a str {
    url.strip_prefix(base_url).filter(|path| path.starts_with('/')).unwrap_or(url)
}

/// A path of this console to go to after signing in; anything else becomes the start page.
pub(crate) fn own(path: Option<&str>) -> &str {
    let is_own = |path: &str| {
        path.starts_with('/')
            && !path.starts_with("//")
            && !path.contains('\\')
            && path.bytes().all(|byte| (0x20..0x7f).contains(&byte))
    };
    path.filter(|path| is_own(path)).unwrap_or("/")
}

/// A relative path, seen from the folder of a document.
pub(crate) fn joined(document: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stay_on_this_server() {
        assert_eq!(own(Some("/search?q=a")), "/search?q=a");
        for wrong in
            ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "/a\nb", ""]
        {
            assert_eq!(own(Some(wrong)), "/", "{wrong}");
        }
        assert_eq!(with("/search", &[("q", "a b&c"), ("tag", "")]), "/search?q=a%20b%26c");
        assert_eq!(lines("x", 3, 9), "/d/x?lines=3-9#L3");
        assert_eq!(collection("my notes", "a/b/"), "/c/my%20notes?folder=a%2Fb%2F");
    }

    #[test]
    fn links_are_seen_from_their_document() {
        assert_eq!(joined("a/b/c.md", "d.md"), "a/b/d.md");
        assert_eq!(joined("a/b/c.md", "../d.md"), "a/d.md");
        assert_eq!(joined("c.md", "./x/d.md"), "x/d.md");
        assert_eq!(joined("c.md", "../../../etc/passwd"), "etc/passwd");
        assert_eq!(joined("/home/u/c.md", "d.md"), "/home/u/d.md");
    }
}
