//! Figures and times as people read them.

use shelf_base::Moment;

/// Bytes with a unit, to three digits.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
    if count < 1_000 {
        return format!("{count} B");
    }
    let mut value = count as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 999.5 {
            break;
        }
        value /= 1_000.0;
        unit = next;
    }
    if value < 9.95 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// A whole number with thin spaces between thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A time as a day and a minute, which are those of UTC: `2026-01-31 14:05 UTC`.
pub(crate) fn time(text: &str) -> String {
    let (day, rest) = text.split_once('T').unwrap_or((text, ""));
    let minute: String = rest.chars().take(5).collect();
    if minute.is_empty() { day.to_owned() } else { format!("{day} {minute} UTC") }
}

/// How long ago a time was.
pub(crate) fn ago(text: &str, now: Moment) -> String {
    let Ok(then) = text.parse::<Moment>() else { return time(text) };
    let seconds = (now.micros() - then.micros()) / 1_000_000;
    match seconds {
        ..=-60 => time(text),
        -59..=9 => "just now".to_owned(),
        10..=59 => format!("{seconds} s ago"),
        60..=3_599 => format!("{} min ago", seconds / 60),
        3_600..=86_399 => format!("{} h ago", seconds / 3_600),
        86_400..=604_799 => counted((seconds / 86_400) as u64, "day", "days") + " ago",
        _ => time(text),
    }
}

/// The first digits of a hash.
pub(crate) fn short(hash: &str) -> &str {
    hash.get(..10).unwrap_or(hash)
}

/// A text that ends before it becomes too long to show.
pub(crate) fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A text without characters that turn the direction of what stands around it.
pub(crate) fn plain(text: &str) -> String {
    let turns = |sign: char| matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    text.chars()
        .map(|sign| {
            if turns(sign) || (sign.is_control() && sign != '\n' && sign != '\t') { '\u{fffd}' } else { sign }
        })
        .collect()
}

/// What a type of content is called.
pub(crate) fn kind(mime: &str) -> String {
    let known = match mime {
        "text/markdown" => "Markdown",
        "text/plain" => "Text",
        "text/html" => "HTML",
        "text/csv" => "CSV table",
        "text/tab-separated-values" => "TSV table",
        "application/json" => "JSON",
        "application/pdf" => "PDF",
        "application/zip" => "ZIP archive",
        "application/octet-stream" => "Binary",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "Word document",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "Spreadsheet",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => "Presentation",
        "application/epub+zip" => "EPUB book",
        "image/svg+xml" => "SVG image",
        "text/javascript" | "application/javascript" => "JavaScript",
        "text/x-typescript" => "TypeScript",
        "text/x-shellscript" | "application/x-sh" => "Shell script",
        "text/x-csharp" => "C#",
        "text/x-rst" => "reStructuredText",
        "text/asciidoc" => "AsciiDoc",
        "text/x-tex" => "TeX",
        "text/x-sql" => "SQL",
        "text/x-php" => "PHP",
        "text/css" => "CSS",
        "application/rtf" => "RTF",
        "application/xml" | "text/xml" => "XML",
        "application/yaml" => "YAML",
        "application/toml" => "TOML",
        "application/jsonl" => "JSON lines",
        "application/gzip" => "GZIP archive",
        _ => "",
    };
    if !known.is_empty() {
        return known.to_owned();
    }
    let (family, rest) = mime.split_once('/').unwrap_or((mime, ""));
    match family {
        "image" | "audio" | "video" => format!("{} {family}", plainly(rest).to_uppercase()),
        "text" => capital(plainly(rest)),
        _ => mime.to_owned(),
    }
}

/// A message as a sentence: with a capital letter, if it begins with a word.
pub(crate) fn sentence(message: &str) -> String {
    let is_word =
        message.split(' ').next().is_some_and(|word| word.chars().all(|sign| sign.is_ascii_lowercase()));
    if is_word { capital(&plain(message)) } else { plain(message) }
}

/// A word with a capital letter.
fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A type without the mark of those that nobody registered.
fn plainly(word: &str) -> &str {
    word.strip_prefix("x-").unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_honest() {
        for (number, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 KB"),
            (12_345, "12 KB"),
            (999_600, "1.0 MB"),
            (5_000_000_000, "5.0 GB"),
        ] {
            assert_eq!(bytes(number), text);
        }
        assert_eq!((count(7), count(1_234_567)), ("7".into(), "1\u{202f}234\u{202f}567".into()));
        assert_eq!(counted(1, "file", "files"), "1 file");
        assert_eq!(time("2026-01-31T14:05:09Z"), "2026-01-31 14:05 UTC");
        let now: Moment = "2026-01-31T14:05:09Z".parse().unwrap();
        assert_eq!(ago("2026-01-31T14:03:09Z", now), "2 min ago");
        assert_eq!(ago("2026-01-29T14:03:09Z", now), "2 days ago");
        assert_eq!(ago("2025-01-29T14:03:09Z", now), "2025-01-29 14:03 UTC");
        assert_eq!(ago("nonsense", now), "nonsense");
    }

    #[test]
    fn direction_marks_cannot_turn_a_name_around() {
        assert_eq!(plain("a\u{202e}gpj.exe"), "a\u{fffd}gpj.exe");
        assert_eq!(clipped("äöü", 2), "äö…");
        assert_eq!(
            (sentence("no document 'x'"), sentence("file_hash is wrong")),
            ("No document 'x'".into(), "file_hash is wrong".into())
        );
        assert_eq!(
            (kind("text/x-rust"), kind("audio/x-wav"), kind("text/markdown")),
            ("Rust".into(), "WAV audio".into(), "Markdown".into())
        );
    }
}
