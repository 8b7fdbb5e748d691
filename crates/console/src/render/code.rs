//! Code with line numbers and highlighting. The words, strings, numbers and comments of a language are found with one
//! small scanner that knows how each language writes them; that is enough to read by, and never slow or wrong about what
//! the text itself is.

use std::ops::RangeInclusive;

use maud::{Markup, html};

use crate::words;

/// How a language writes what the scanner looks for.
struct Language {
    line_comment: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    quotes: &'static [char],
    words: &'static [&'static str],
}

const C_LIKE: &[&str] = &[
    "abstract",
    "as",
    "async",
    "await",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "crate",
    "debugger",
    "default",
    "defer",
    "delete",
    "do",
    "double",
    "dyn",
    "else",
    "enum",
    "export",
    "extends",
    "extern",
    "false",
    "final",
    "finally",
    "float",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "go",
    "goto",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "instanceof",
    "int",
    "interface",
    "let",
    "long",
    "loop",
    "map",
    "match",
    "mod",
    "move",
    "mut",
    "namespace",
    "new",
    "nil",
    "null",
    "of",
    "override",
    "package",
    "private",
    "protected",
    "pub",
    "public",
    "range",
    "readonly",
    "ref",
    "return",
    "select",
    "self",
    "Self",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "super",
    "switch",
    "template",
    "this",
    "throw",
    "throws",
    "trait",
    "true",
    "try",
    "type",
    "typedef",
    "typeof",
    "undefined",
    "union",
    "unsafe",
    "unsigned",
    "use",
    "using",
    "var",
    "virtual",
    "void",
    "volatile",
    "where",
    "while",
    "yield",
];
const SCRIPT: &[&str] = &[
    "and", "as", "assert", "async", "await", "begin", "break", "case", "class", "continue", "def", "del",
    "do", "done", "elif", "else", "elsif", "end", "ensure", "esac", "except", "export", "False", "false",
    "fi", "finally", "for", "from", "function", "global", "if", "import", "in", "is", "lambda", "local",
    "match", "module", "nil", "None", "not", "null", "or", "pass", "raise", "require", "rescue", "return",
    "self", "then", "True", "true", "try", "unless", "until", "when", "while", "with", "yield",
];
const SQL: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "INSERT",
    "INTO",
    "VALUES",
    "UPDATE",
    "SET",
    "DELETE",
    "CREATE",
    "TABLE",
    "INDEX",
    "DROP",
    "ALTER",
    "JOIN",
    "LEFT",
    "RIGHT",
    "INNER",
    "OUTER",
    "ON",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "PRIMARY",
    "KEY",
    "REFERENCES",
    "UNIQUE",
    "GROUP",
    "BY",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "AS",
    "IN",
    "IS",
    "WITH",
    "UNION",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "DISTINCT",
    "BEGIN",
    "COMMIT",
];

fn language(mime: &str, path: &str) -> Option<Language> {
    let extension =
        path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, extension)| extension);
    let c_like = Language {
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: &['"', '\'', '`'],
        words: C_LIKE,
    };
    let script = Language { line_comment: &["#"], block_comment: None, quotes: &['"', '\''], words: SCRIPT };
    match extension.to_ascii_lowercase().as_str() {
        // A single quote is a lifetime as often as it is a character.
        "rs" => Some(Language { quotes: &['"'], ..c_like }),
        "c" | "h" | "cc" | "cpp" | "hpp" | "cs" | "go" | "java" | "js" | "mjs" | "jsx" | "ts" | "tsx"
        | "kt" | "swift" | "scala" | "php" | "css" | "scss" | "proto" | "dart" | "zig" => Some(c_like),
        "py" | "rb" | "sh" | "bash" | "zsh" | "fish" | "toml" | "yaml" | "yml" | "mk" | "pl" | "r"
        | "ini" | "conf" | "dockerfile" | "nix" | "jl" => Some(script),
        "sql" => Some(Language {
            line_comment: &["--"],
            block_comment: Some(("/*", "*/")),
            quotes: &['\'', '"'],
            words: SQL,
        }),
        "lua" | "hs" => Some(Language { line_comment: &["--"], ..script }),
        "html" | "htm" | "xml" | "svg" => Some(Language {
            line_comment: &[],
            block_comment: Some(("<!--", "-->")),
            quotes: &['"'],
            words: &[],
        }),
        "json" | "jsonl" => Some(Language { line_comment: &[], block_comment: None, ..script }),
        _ if mime.starts_with("text/x-") => Some(c_like),
        _ => None,
    }
}

/// Whether a document of this kind reads as code.
pub(crate) fn is_code(mime: &str, path: &str) -> bool {
    language(mime, path).is_some()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Plain,
    Comment,
    Text,
    Number,
    Word,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Comment => "c",
            Self::Text => "s",
            Self::Number => "n",
            Self::Word => "k",
        }
    }
}

/// Lines longer than this are not looked into: they are data, not code.
const LONGEST: usize = 2_000;
/// Bytes of a line that are shown: browsers draw nothing of lines that are much longer.
const SHOWN: usize = 100_000;

/// The beginning of a line that is shown, and whether that is not all of it.
fn shown(line: &str) -> (&str, bool) {
    let end = line.floor_char_boundary(SHOWN);
    (&line[..end], end < line.len())
}

/// The first word of what is said of a block of code, as the ending of a file.
fn ending(word: &str) -> String {
    let word = word.split([' ', ',', '{']).next().unwrap_or_default().to_ascii_lowercase();
    let known = match word.as_str() {
        "rust" => "rs",
        "python" | "python3" => "py",
        "javascript" | "node" => "js",
        "typescript" => "ts",
        "shell" | "console" | "sh-session" => "sh",
        "c++" | "cxx" => "cpp",
        "c#" | "csharp" => "cs",
        "golang" => "go",
        "ruby" => "rb",
        "perl" => "pl",
        "kotlin" => "kt",
        "haskell" => "hs",
        "make" | "makefile" => "mk",
        "julia" => "jl",
        other => other,
    };
    known.to_owned()
}

/// Whether a block of code that is said to be of a language gets colours.
pub(crate) fn knows(word: &str) -> bool {
    language("", &format!("x.{}", ending(word))).is_some()
}

/// A block of code without line numbers.
pub(crate) fn block(text: &str, word: &str) -> Markup {
    let language = language("", &format!("x.{}", ending(word)));
    let mut open_comment = false;
    html! { @for line in text.lines() { (coloured(&parts_of(line, language.as_ref(), &mut open_comment))) "\n" } }
}

fn parts_of<'a>(
    line: &'a str,
    language: Option<&Language>,
    open_comment: &mut bool,
) -> Vec<(Class, &'a str)> {
    match language {
        Some(language) if line.len() <= LONGEST => scan(line, language, open_comment),
        _ => vec![(Class::Plain, line)],
    }
}

fn coloured(parts: &[(Class, &str)]) -> Markup {
    html! {
        @for (class, part) in parts {
            @if *class == Class::Plain { (words::plain(part)) }
            @else { span class=(class.name()) { (words::plain(part)) } }
        }
    }
}

/// Numbered lines; those of `marked` stand out.
pub(crate) fn lines(
    text: &str,
    first: u64,
    (mime, path): (&str, &str),
    marked: Option<&RangeInclusive<u64>>,
) -> Markup {
    let language = language(mime, path);
    let mut open_comment = false;
    // Prose has a paragraph on a line; tables and code are read by columns.
    let is_prose = language.is_none() && !matches!(mime, "text/csv" | "text/tab-separated-values");
    html! {
        div.code.wrapped[is_prose] role="region" aria-label="Source text" tabindex="0" {
            @for (number, line) in (first..).zip(text.lines()) {
                @let (start, is_cut) = shown(line);
                div.line.marked[marked.is_some_and(|marked| marked.contains(&number))] id={ "L" (number) } {
                    a.number href={ "#L" (number) } data-line=(number) { (number) }
                    code { (coloured(&parts_of(start, language.as_ref(), &mut open_comment)))
                        @if is_cut { span.note { " … The line is longer, " (words::bytes(line.len() as u64)) "; the file itself has all of it." } } }
                }
            }
        }
    }
}

fn scan<'a>(line: &'a str, language: &Language, open_comment: &mut bool) -> Vec<(Class, &'a str)> {
    let mut parts: Vec<(Class, &'a str)> = Vec::new();
    let mut rest = line;
    if *open_comment {
        let end = language.block_comment.map_or("", |(_, end)| end);
        match rest.find(end) {
            Some(at) => {
                let (comment, left) = rest.split_at(at + end.len());
                parts.push((Class::Comment, comment));
                rest = left;
                *open_comment = false;
            }
            None => return vec![(Class::Comment, line)],
        }
    }
    while let Some(sign) = rest.chars().next() {
        let (class, length) = next(rest, sign, language, open_comment);
        let (part, left) = rest.split_at(length);
        match parts.last_mut() {
            // Neighbours of the same kind stand together in `line`.
            Some((Class::Plain, last)) if class == Class::Plain => {
                let start = last.as_ptr() as usize - line.as_ptr() as usize;
                *last = &line[start..start + last.len() + part.len()];
            }
            _ => parts.push((class, part)),
        }
        rest = left;
    }
    parts
}

/// The kind and the length of what comes next.
fn next(rest: &str, sign: char, language: &Language, open_comment: &mut bool) -> (Class, usize) {
    if language.line_comment.iter().any(|start| rest.starts_with(start)) {
        return (Class::Comment, rest.len());
    }
    if let Some((start, end)) = language.block_comment.filter(|(start, _)| rest.starts_with(start)) {
        return match rest[start.len()..].find(end) {
            Some(at) => (Class::Comment, start.len() + at + end.len()),
            None => {
                *open_comment = true;
                (Class::Comment, rest.len())
            }
        };
    }
    if language.quotes.contains(&sign) {
        return (Class::Text, quoted(rest, sign));
    }
    if sign.is_ascii_digit() {
        let end = rest.find(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '.' || sign == '_'));
        return (Class::Number, end.unwrap_or(rest.len()));
    }
    if sign.is_alphabetic() || sign == '_' {
        let end = rest.find(|sign: char| !(sign.is_alphanumeric() || sign == '_')).unwrap_or(rest.len());
        let is_word = language.words.contains(&&rest[..end]);
        return (if is_word { Class::Word } else { Class::Plain }, end);
    }
    (Class::Plain, sign.len_utf8())
}

/// The length of a quoted text, to its end or to the end of the line.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, sign) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if sign == '\\' {
            escaped = true;
        } else if sign == quote {
            return at + sign.len_utf8();
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> String {
        lines(text, 1, ("text/x-rust", "a.rs"), Some(&(2..=2))).into_string()
    }

    #[test]
    fn words_texts_numbers_and_comments_are_told_apart() {
        let html = rust("let x = \"a // b\"; // 12\nreturn 12;\n/* one\ntwo */ let y;");
        assert!(html.contains("<span class=\"k\">let</span>"), "{html}");
        assert!(html.contains("<span class=\"s\">&quot;a // b&quot;</span>"), "{html}");
        assert!(html.contains("<span class=\"c\">// 12</span>"), "{html}");
        assert!(html.contains("<span class=\"n\">12</span>"), "{html}");
        assert!(html.contains("<span class=\"c\">two */</span>"), "{html}");
        assert!(
            html.contains("class=\"line marked\" id=\"L2\"") && html.contains("class=\"line\" id=\"L1\""),
            "{html}"
        );
    }

    #[test]
    fn prose_is_wrapped_and_enormous_lines_are_cut() {
        let page = |mime: &str, path: &str, text: &str| lines(text, 1, (mime, path), None).into_string();
        assert!(page("text/plain", "a.txt", "x").contains("class=\"code wrapped\""));
        assert!(page("text/x-rust", "a.rs", "x").contains("class=\"code\""));
        assert!(page("text/csv", "a.csv", "x").contains("class=\"code\""));
        let cut = page("text/plain", "a.txt", &"é".repeat(1_000_000));
        assert!(cut.len() < 120_000 && cut.contains("The line is longer, 2.0 MB"), "{}", cut.len());
    }

    #[test]
    fn hostile_lines_are_only_text() {
        let html = rust("\"<script>alert(1)</script>\" <img onerror=x> \u{202e}\n// </code><script>");
        assert!(!html.contains("<script") && !html.contains("<img") && !html.contains('\u{202e}'), "{html}");
        let whole = "x".repeat(50_000);
        assert!(rust(&whole).contains(&whole));
        for odd in ["\"", "'", "/*", "`\\", "ä\"ö", "0x", "\\"] {
            assert!(!rust(odd).is_empty());
        }
    }
}
