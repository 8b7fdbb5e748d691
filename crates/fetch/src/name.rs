//! Names: of an address, and of a server's `Content-Disposition`.

use percent_encoding::percent_decode_str;
use url::Url;

/// Bytes of a name at most.
const NAME_BYTES: usize = 200;

/// The last part of an address, or its host.
pub fn of(url: &Url) -> String {
    let last = url.path_segments().and_then(|mut parts| parts.rfind(|part| !part.is_empty()));
    let decoded = last.map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned());
    let host = || url.host_str().unwrap_or("download").trim_matches(['[', ']']).replace(':', "_");
    decoded.and_then(|name| safe(&name)).unwrap_or_else(host)
}

/// A name without folders, signs that no name should have, and dots alone; `None` when nothing is left.
pub(crate) fn safe(name: &str) -> Option<String> {
    let mut plain: String = name
        .chars()
        .map(
            |sign| {
                if sign == '/' || sign == '\\' || sign.is_control() || is_silent(sign) { '_' } else { sign }
            },
        )
        .collect();
    if plain.len() > NAME_BYTES {
        let ending = plain.rfind('.').filter(|at| *at > 0 && plain.len() - at <= 16);
        let ending = ending.map_or_else(String::new, |at| plain.split_off(at));
        while plain.len() + ending.len() > NAME_BYTES {
            plain.pop();
        }
        plain.push_str(&ending);
    }
    let plain = plain.trim().to_owned();
    (!plain.is_empty() && plain.chars().any(|sign| !matches!(sign, '.' | '_' | ' '))).then_some(plain)
}

/// Signs that turn what follows around or are not seen.
const fn is_silent(sign: char) -> bool {
    matches!(
        sign,
        '\u{AD}'
            | '\u{61C}'
            | '\u{180E}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{2069}'
            | '\u{FEFF}'
            | '\u{E0000}'..='\u{E007F}'
    )
}

/// The name in a `Content-Disposition` header: `filename*` before `filename`.
pub(crate) fn disposed(header: &str) -> Option<String> {
    let (mut plain, mut extended) = (None, None);
    for part in parts(header) {
        let Some((key, value)) = part.split_once('=') else { continue };
        let value = value.trim();
        match key.trim().to_lowercase().as_str() {
            // Character set, language and text, with quotes between them.
            "filename*" => {
                let encoded = value.splitn(3, '\'').nth(2);
                let decoded =
                    encoded.map(|text| percent_decode_str(text.trim_matches('"')).decode_utf8_lossy());
                extended = decoded.and_then(|name| safe(&name));
            }
            "filename" => plain = safe(&unquoted(value)),
            _ => {}
        }
    }
    extended.or(plain)
}

/// The header's parts; a semicolon in quotes divides nothing.
fn parts(header: &str) -> Vec<&str> {
    let (mut parts, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, sign) in header.char_indices() {
        match sign {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ';' if !quoted => {
                parts.push(&header[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&header[start..]);
    parts
}

fn unquoted(value: &str) -> String {
    let Some(inside) = value.strip_prefix('"') else { return value.to_owned() };
    let inside = inside.strip_suffix('"').unwrap_or(inside);
    let mut output = String::new();
    let mut signs = inside.chars();
    while let Some(sign) = signs.next() {
        output.push(if sign == '\\' { signs.next().unwrap_or(sign) } else { sign });
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_addresses_are_safe() {
        let check = |url: &str, name: &str| assert_eq!(of(&Url::parse(url).unwrap()), name, "{url}");
        check("https://example.org/a/b/report.pdf?x=1#y", "report.pdf");
        check("https://example.org/a/r%C3%A9sum%C3%A9%20final.txt", "résumé final.txt");
        check("https://example.org/folder/", "folder");
        check("https://example.org/", "example.org");
        check("https://example.org", "example.org");
        check("https://example.org/..%2F..%2Fetc%2Fpasswd", ".._.._etc_passwd");
        check("https://example.org/%2e%2e", "example.org");
        check("https://example.org/a%00b%0Ac", "a_b_c");
        check("http://[2001:db8::1]/", "2001_db8__1");
        check("https://example.org/%E2%80%AEgpj.exe", "_gpj.exe");
        let long = of(&Url::parse(&format!("https://e.org/{}.pdf", "x".repeat(900))).unwrap());
        assert!(long.len() == 200 && long.ends_with("x.pdf"), "{long}");
    }

    #[test]
    fn headers_name_files() {
        let check =
            |header: &str, name: Option<&str>| assert_eq!(disposed(header).as_deref(), name, "{header}");
        check("attachment; filename=\"a; b.txt\"", Some("a; b.txt"));
        check("attachment; filename=plain.txt", Some("plain.txt"));
        check(
            "attachment; filename=\"fallback.txt\"; filename*=UTF-8''%e2%82%ac%20rates.txt",
            Some("€ rates.txt"),
        );
        check("attachment; filename=\"a\\\"b.txt\"", Some("a\"b.txt"));
        check("attachment; filename=\"../../x\"", Some(".._.._x"));
        check("inline", None);
        check("attachment; filename=\"\"", None);
        check("attachment; filename*=broken", None);
        check("attachment; filename*=broken; filename=good.txt", Some("good.txt"));
        check("attachment; filename=\"open.txt", Some("open.txt"));
    }
}
