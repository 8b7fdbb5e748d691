//! Control characters that come from documents: on a terminal they could move the cursor, change the title, or type for
//! the user. There they are shown instead of sent.

/// The colours that this program uses itself; nothing else that begins with an escape is sent to a terminal.
const OWN: &[&str] = &[
    "\u{1b}[0m",
    "\u{1b}[m",
    "\u{1b}[1m",
    "\u{1b}[2m",
    "\u{1b}[31m",
    "\u{1b}[32m",
    "\u{1b}[33m",
    "\u{1b}[35m",
    "\u{1b}[36m",
    "\u{1b}[1;31m",
    "\u{1b}[1m\u{1b}[31m",
    "\u{1b}[01;31m",
];

/// The text with control characters shown, except line breaks, tabs and the program's own colours.
pub(super) fn harmless(text: &str) -> String {
    shown(text, OWN)
}

/// The text with all control characters shown, except line breaks and tabs.
pub(super) fn plain(text: &str) -> String {
    shown(text, &[])
}

fn shown(text: &str, allowed: &[&str]) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let length = match allowed.iter().find(|own| rest.starts_with(**own)) {
            Some(own) => {
                kept.push_str(own);
                own.len()
            }
            None => {
                push(sign, rest, &mut kept);
                sign.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    kept
}

fn push(sign: char, rest: &str, kept: &mut String) {
    match sign {
        '\n' | '\t' => kept.push(sign),
        '\r' if rest.starts_with("\r\n") => {}
        '\u{7f}' => kept.push_str("^?"),
        '\0'..='\u{1f}' => {
            kept.push('^');
            kept.push(char::from(b'@' + sign as u8));
        }
        '\u{80}'..='\u{9f}' => kept.push('\u{fffd}'),
        _ => kept.push(sign),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_documents_are_shown_and_colours_of_the_program_stay() {
        assert_eq!(harmless("a\tb\r\nc\rd"), "a\tb\nc^Md");
        assert_eq!(harmless("\u{1b}[31mred\u{1b}[0m"), "\u{1b}[31mred\u{1b}[0m");
        assert_eq!(harmless("\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m"), "^[]0;title^G^[[2J\u{fffd}31m");
        assert_eq!(plain("\u{1b}[31mred\u{7f}"), "^[[31mred^?");
        assert_eq!(harmless("grün 日本"), "grün 日本");
    }
}
