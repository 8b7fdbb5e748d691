//! Type detection from the first bytes and the name.

/// Number of bytes at the beginning that detection examines.
pub const SAMPLE: usize = 8 * 1_024;

/// The type of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// MIME type.
    pub mime: String,
    /// Whether the bytes are text.
    pub is_text: bool,
}

/// Text types that the general table of extensions lacks or defines otherwise (`.ts` is not a video here).
const TEXT_TYPES: &[(&str, &str)] = &[
    ("adoc", "text/asciidoc"),
    ("bash", "text/x-shellscript"),
    ("c", "text/x-c"),
    ("cc", "text/x-c++"),
    ("cfg", "text/plain"),
    ("conf", "text/plain"),
    ("cpp", "text/x-c++"),
    ("cs", "text/x-csharp"),
    ("go", "text/x-go"),
    ("h", "text/x-c"),
    ("hpp", "text/x-c++"),
    ("ini", "text/plain"),
    ("java", "text/x-java"),
    ("js", "text/javascript"),
    ("jsx", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("kt", "text/x-kotlin"),
    ("lock", "text/plain"),
    ("log", "text/plain"),
    ("lua", "text/x-lua"),
    ("md", "text/markdown"),
    ("mdx", "text/markdown"),
    ("mjs", "text/javascript"),
    ("php", "text/x-php"),
    ("pl", "text/x-perl"),
    ("proto", "text/x-protobuf"),
    ("py", "text/x-python"),
    ("rb", "text/x-ruby"),
    ("rs", "text/x-rust"),
    ("rst", "text/x-rst"),
    ("rtf", "application/rtf"),
    ("scala", "text/x-scala"),
    ("sh", "text/x-shellscript"),
    ("sql", "text/x-sql"),
    ("swift", "text/x-swift"),
    ("tex", "text/x-tex"),
    ("toml", "application/toml"),
    ("ts", "text/x-typescript"),
    ("tsx", "text/x-typescript"),
    ("txt", "text/plain"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
];

/// Extensions of pictures and recordings, in no form of which they are text.
const MEDIA_EXTENSIONS: &[&str] = &[
    "aac", "avi", "avif", "bmp", "flac", "gif", "heic", "jpeg", "jpg", "m4a", "m4v", "mkv", "mov", "mp3",
    "mp4", "ogg", "opus", "png", "tif", "tiff", "wav", "webm", "webp",
];

/// The extension of a path, lowercase and with its dot; empty when it has none.
pub fn extension_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rfind('.') {
        Some(dot) if dot > 0 && dot + 1 < name.len() => name[dot..].to_lowercase(),
        _ => String::new(),
    }
}

/// Detects the type of a document from its first bytes and its path.
pub fn detect(path: &str, sample: &[u8]) -> Detected {
    let sample = &sample[..sample.len().min(SAMPLE)];
    let extension = extension_of(path);
    let extension = extension.trim_start_matches('.');
    // Words tell nothing of a form, so that a picture or recording is what its name says: a placeholder, for example.
    if is_text(sample) && !MEDIA_EXTENSIONS.contains(&extension) {
        return Detected { mime: text_type(extension, sample), is_text: true };
    }
    let by_content = infer::get(sample).map(|found| found.mime_type().to_owned());
    let mime = match by_content {
        // Office files look like plain archives; their extension is more specific.
        Some(mime) if mime != "application/zip" => mime,
        found => guess(extension).or(found).unwrap_or_else(|| "application/octet-stream".into()),
    };
    Detected { mime, is_text: false }
}

fn text_type(extension: &str, sample: &[u8]) -> String {
    if let Some((_, mime)) = TEXT_TYPES.iter().find(|(known, _)| *known == extension) {
        return (*mime).into();
    }
    match guess(extension) {
        Some(mime) if is_textual(&mime) => mime,
        _ if sample.trim_ascii_start().to_ascii_lowercase().starts_with(b"<!doctype html") => {
            "text/html".into()
        }
        _ => "text/plain".into(),
    }
}

fn guess(extension: &str) -> Option<String> {
    mime_guess::from_ext(extension).first().map(|mime| mime.essence_str().to_owned())
}

fn is_textual(mime: &str) -> bool {
    mime.starts_with("text/")
        || mime.ends_with("+xml")
        || mime.ends_with("+json")
        || matches!(
            mime,
            "application/json" | "application/xml" | "application/javascript" | "application/x-sh"
        )
}

/// Whether a sample is text. Valid Unicode without zero bytes is text, even when it begins like a known binary format:
/// many of those begin with plain letters (`BM`, `MZ`, `ID3`), and so do notes. Text in older encodings has hardly any
/// control characters.
fn is_text(sample: &[u8]) -> bool {
    if sample.starts_with(&[0xFF, 0xFE]) || sample.starts_with(&[0xFE, 0xFF]) {
        return infer::get(sample).is_none();
    }
    let is_pdf = sample.strip_prefix(b"%PDF-").and_then(|rest| rest.first()).is_some_and(u8::is_ascii_digit);
    if is_pdf || sample.contains(&0) {
        return false;
    }
    match std::str::from_utf8(sample) {
        Ok(_) => !has_controls(sample, UNICODE_CONTROLS),
        // The end of the sample may split a character.
        Err(error) if error.error_len().is_none() => !has_controls(sample, UNICODE_CONTROLS),
        // Older encodings, and Unicode with a few broken bytes.
        Err(_) => {
            !has_controls(sample, OTHER_CONTROLS)
                && infer::get(sample).is_none_or(|found| is_textual(found.mime_type()))
        }
    }
}

/// One byte of so many may be a control character in valid Unicode, which is hardly ever anything but text.
const UNICODE_CONTROLS: usize = 10;
/// One byte of so many may be a control character in anything else.
const OTHER_CONTROLS: usize = 50;

/// Random bytes have almost ten percent control characters; text has next to none, apart from those that terminals, printers
/// and DOS use in it: bell, overstrike, white space, the end of a file, and escape; and those that separate the fields of
/// data in Unicode.
fn has_controls(sample: &[u8], one_of: usize) -> bool {
    let separates = |byte: u8| one_of == UNICODE_CONTROLS && (0x1C..=0x1F).contains(&byte);
    let control =
        |byte: &&u8| **byte < 32 && !matches!(**byte, 0x07..=0x0D | 0x1A | 0x1B) && !separates(**byte);
    sample.iter().filter(control).count() * one_of > sample.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, bytes: &[u8], mime: &str, is_text: bool) {
        assert_eq!(detect(path, bytes), Detected { mime: mime.into(), is_text }, "{path}");
    }

    #[test]
    fn content_takes_precedence_over_the_name() {
        check("a.rs", b"fn main() {}", "text/x-rust", true);
        check("a.ts", b"const x = 1;", "text/x-typescript", true);
        check("README.md", b"# Hi", "text/markdown", true);
        check("data.json", b"{}", "application/json", true);
        check("LICENSE", b"Apache", "text/plain", true);
        check("empty", b"", "text/plain", true);
        check("notes.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png", false);
        check("x.bin", &[0, 1, 2, 3], "application/octet-stream", false);
        check("caf\u{e9}.txt", b"caf\xe9 au lait, s'il vous pla\xeet", "text/plain", true);
        check("car.txt", b"BMW sells cars", "text/plain", true);
        check("money.txt", b"MZM (or Money Zero Maturity) is a measure", "text/plain", true);
        check("notes.rtf", b"{\\rtf1\\ansi Hello}", "application/rtf", true);
        check("thesis.pdf", b"%PDF-1.4\n1 0 obj\n<< >>", "application/pdf", false);
        let broken = [&"данные hello world\n".repeat(30).into_bytes()[..], b"\xff\nzebrafish\n"].concat();
        check("c.txt", &broken, "text/plain", true);
        let koi8: Vec<u8> =
            (0..400).map(|at| if at % 7 == 0 { b' ' } else { 0xC0 + at as u8 % 32 }).collect();
        check("koi8.txt", &koi8, "text/plain", true);
        for text in [&b"needle\x0bvt\x0cff\x85nel\n"[..], b"needle \x07 caf\xe9\n", b"needle caf\xe9\r\n\x1a"]
        {
            check("older.txt", text, "text/plain", true);
        }
        check("page.1", &b"N\x08NA\x08AM\x08ME\x08E needle \xe9\n".repeat(20), "text/plain", true);
        check("bell.txt", b"ding\x07\x07\x07 zebrafish", "text/plain", true);
        check("small.bin", &[0x1F, 0x8B, 8, 4, 1, 2, 3, 0xF1, 9, 7, 5], "application/gzip", false);
        check("v.mp4", &[1; 100], "video/mp4", false);
        check("v", &[1; 100], "application/octet-stream", false);
        let pptx = "application/vnd.openxmlformats-officedocument.presentationml.presentation";
        check("s.pptx", b"PK\x03\x04xxxx", pptx, false);
        check("rows.txt", b"a\x1fb\x1fc\x1e", "text/plain", true);
        check("log.txt", b"\x01\x1b[1m\x02needle and more words of a prompt\x0e", "text/plain", true);
        check("a.PNG", b"fake data", "image/png", false);
        check("a.mkv", b"", "video/x-matroska", false);
        check("a.mts", b"const x = 1;", "text/plain", true);
        check("thesis.pdf", b"not a thesis", "text/plain", true);
        check("page", b"<!DOCTYPE html><html></html>", "text/html", true);
        check("b.txt", "é".repeat(SAMPLE).as_bytes(), "text/plain", true);
    }

    #[test]
    fn extensions_are_lowercase_and_dotted() {
        assert_eq!(extension_of("/a/b/Photo.JPG"), ".jpg");
        assert_eq!(extension_of(".bashrc"), "");
        assert_eq!(extension_of("a.tar.gz"), ".gz");
        assert_eq!(extension_of("dir.d/name"), "");
        assert_eq!(extension_of("name."), "");
    }
}
