//! Tags in the front matter of a page: a few lines of YAML or TOML before its text.

use super::Found;

/// Lines of front matter that are looked at.
const LINES: usize = 400;
/// Keys that give tags.
const KEYS: [&str; 4] = ["tags", "tag", "keywords", "categories"];

/// Reads the front matter, if there is any.
pub(super) fn read(text: &str, found: &mut Found) {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.lines();
    let Some(fence @ ("---" | "+++")) = lines.next().map(str::trim_end) else { return };
    let lines: Vec<&str> = lines.take(LINES).collect();
    let Some(end) = lines.iter().position(|line| line.trim_end() == fence) else { return };
    let mut in_list = false;
    for line in &lines[..end] {
        let trimmed = line.trim();
        if in_list && let Some(item) = trimmed.strip_prefix("- ") {
            found.tag(item);
            continue;
        }
        in_list = false;
        let is_outer = !line.starts_with([' ', '\t']);
        let Some((key, value)) = trimmed.split_once([':', '=']).filter(|_| is_outer) else { continue };
        if !KEYS.contains(&key.trim().to_ascii_lowercase().as_str()) {
            continue;
        }
        let value = value.trim();
        in_list = value.is_empty();
        let inner = value.strip_prefix('[').map(|inner| inner.trim_end_matches(']'));
        inner.unwrap_or(value).split(',').for_each(|tag| found.tag(tag));
    }
}
