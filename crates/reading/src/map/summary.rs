//! Summaries: the first sentences of a section.

/// Characters of a summary, about.
const CHARS: usize = 240;
/// Bytes of a section that are looked at.
const LOOKED_AT: usize = 2_000;

/// The first sentences of a text, in one line.
pub(super) fn of(text: &str) -> Option<String> {
    let text = &text[..text.floor_char_boundary(LOOKED_AT)];
    let mut words = String::new();
    let mut in_fence = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            in_fence = !in_fence;
            continue;
        }
        if in_fence || line.is_empty() || is_ornament(line) {
            continue;
        }
        let line = line.trim_start_matches(['>', '|', '*', '-', '+', '#', '\\', ' ']);
        for word in line.split_whitespace() {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
        }
        if words.len() > 2 * CHARS {
            break;
        }
    }
    let words = words.trim();
    (!words.is_empty()).then(|| cut(words))
}

fn is_ornament(line: &str) -> bool {
    !line.chars().any(char::is_alphanumeric)
}

/// Whole sentences if one ends early enough, otherwise whole words.
fn cut(text: &str) -> String {
    if text.chars().count() <= CHARS {
        return text.to_owned();
    }
    let end = text.char_indices().nth(CHARS).map_or(text.len(), |(at, _)| at);
    let start = &text[..end];
    let sentence = start
        .char_indices()
        .filter(|(at, each)| {
            matches!(each, '.' | '!' | '?' | '。') && text[at + each.len_utf8()..].starts_with([' ', '\n'])
        })
        .map(|(at, each)| at + each.len_utf8())
        .next_back()
        .or_else(|| start.rfind('。').map(|at| at + '。'.len_utf8()));
    match sentence.filter(|end| *end > 40) {
        Some(end) => start[..end].to_owned(),
        None => {
            let word = start.rfind(' ').unwrap_or(start.len());
            format!("{} …", start[..word].trim_end_matches([',', ';', ' ']))
        }
    }
}
