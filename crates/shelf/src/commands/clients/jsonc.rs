//! Settings files with comments and trailing commas, as some clients write them: made into plain JSON, for reading only.

/// The text without comments and without commas before a closing bracket.
pub(super) fn plain(text: &str) -> String {
    without_trailing_commas(&without_comments(text))
}

fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match (sign, signs.peek()) {
            ('"', _) => {
                kept.push(sign);
                copy_string(&mut signs, &mut kept);
            }
            ('/', Some('/')) => while signs.next_if(|next| *next != '\n').is_some() {},
            ('/', Some('*')) => {
                signs.next();
                let mut last = ' ';
                for next in signs.by_ref() {
                    if last == '*' && next == '/' {
                        break;
                    }
                    last = next;
                }
                kept.push(' ');
            }
            _ => kept.push(sign),
        }
    }
    kept
}

fn without_trailing_commas(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '"' => {
                kept.push(sign);
                copy_string(&mut signs, &mut kept);
            }
            ',' => {
                let mut space = String::new();
                while let Some(blank) = signs.next_if(|next| next.is_whitespace()) {
                    space.push(blank);
                }
                if !matches!(signs.peek(), Some('}' | ']')) {
                    kept.push(',');
                }
                kept.push_str(&space);
            }
            _ => kept.push(sign),
        }
    }
    kept
}

/// Copies the rest of a string with its closing quote.
fn copy_string(signs: &mut impl Iterator<Item = char>, kept: &mut String) {
    let mut is_escaped = false;
    for sign in signs {
        kept.push(sign);
        match sign {
            '"' if !is_escaped => return,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_go_and_strings_stay() {
        let check = |text: &str, expected: serde_json::Value| {
            assert_eq!(serde_json::from_str::<serde_json::Value>(&plain(text)).unwrap(), expected, "{text}");
        };
        check(
            "// first\n{\"a\": 1, /* two\n lines */ \"b\": [1, 2, ], }\n",
            serde_json::json!({"a": 1, "b": [1, 2]}),
        );
        check(
            "{\"url\": \"http://x/*y*/\", \"q\": \"\\\"// ,}\" // end\n}",
            serde_json::json!({"url": "http://x/*y*/", "q": "\"// ,}"}),
        );
        check("{\"a\": {}, // c\n}", serde_json::json!({"a": {}}));
    }
}
