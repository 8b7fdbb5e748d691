//! What is said when the command line cannot be understood.

use std::io::Write;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use serde_json::json;
use shelf_base::Kind;

/// Flags that are known only to be refused, so they are proposed to nobody.
const REFUSED: &[&str] = &[
    "--pcre2",
    "--extended-regexp",
    "--multiline",
    "--replace",
    "--search-zip",
    "--file",
    "--hidden",
    "--no-ignore",
];

/// Ends the program with a message, as one JSON document if the user wants those.
pub(super) fn exit(mut error: Error) -> ! {
    let is_refused = |flag: &String| REFUSED.contains(&flag.split([' ', '=']).next().unwrap_or(flag));
    let is_bad = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(flag)) => is_refused(flag),
        Some(ContextValue::Strings(flags)) => flags.iter().any(is_refused),
        _ => false,
    };
    if is_bad {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Suggested);
    }
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let wants_json = std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json");
    if is_help || !wants_json {
        error.exit();
    }
    let text = error.render().to_string();
    let (message, hints) = in_parts(&text);
    let row = Kind::Invalid.row();
    let whole = json!({ "error": { "code": row.code, "message": message, "hints": hints } });
    let _ = writeln!(std::io::stderr(), "{whole}");
    std::process::exit(error.exit_code());
}

/// The first paragraph, and what is proposed after it.
fn in_parts(text: &str) -> (String, Vec<String>) {
    let mut paragraphs = text.split("\n\n");
    let words = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = words(paragraphs.next().unwrap_or_default());
    let message = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
    let hints = paragraphs.map(words).filter(|hint| !hint.is_empty());
    (message, hints.map(|hint| hint.trim_start_matches("tip: ").to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_and_its_hints_are_told_apart() {
        let text = "error: unexpected argument '--jso' found\n\n  tip: a similar argument exists: '--json'\n\nUsage: shelf\n";
        let (message, hints) = in_parts(text);
        assert_eq!(message, "unexpected argument '--jso' found");
        assert_eq!(hints, ["a similar argument exists: '--json'", "Usage: shelf"]);
    }
}
