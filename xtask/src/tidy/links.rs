//! Checks that links between our own pages resolve: moving a page breaks them silently.

use std::path::Path;

use super::Finding;
use super::files::SourceFile;

/// Checks the relative links of one Markdown file, except in code.
pub fn check(file: &SourceFile, root: &Path) -> Vec<Finding> {
    if !file.has_extension("md") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(file.text.lines()) {
        if is_fence(line) {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in targets(&without_code(line)) {
            if !resolves(&target, &file.path, root) {
                findings.push(Finding::new(
                    &file.path,
                    number,
                    format!("link to `{target}`, which does not exist"),
                ));
            }
        }
    }
    findings
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// The line without inline code.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The targets of inline links and reference definitions in the line.
fn targets(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("](") {
        let rest = &line[at + 2..];
        if let Some(end) = rest.find(')') {
            found.push(destination(&rest[..end]));
        }
    }
    if line.starts_with('[')
        && let Some((_, rest)) = line.split_once("]: ")
    {
        found.push(destination(rest));
    }
    found
}

/// The link destination without a title and angle brackets.
fn destination(text: &str) -> String {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        return inner.0.to_owned();
    }
    text.split_whitespace().next().unwrap_or_default().to_owned()
}

fn resolves(target: &str, path: &str, root: &Path) -> bool {
    let is_outside = target.contains("://") || target.starts_with("mailto:") || target.starts_with('#');
    if is_outside {
        return true;
    }
    let place = target.split(['#', '?']).next().unwrap_or_default().replace("%20", " ");
    if place.is_empty() {
        return false;
    }
    match place.strip_prefix('/') {
        Some(from_root) => root.join(from_root).exists(),
        None => root.join(path).parent().is_some_and(|folder| folder.join(&place).exists()),
    }
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, check, targets};
    use crate::places;

    #[test]
    fn inline_links_and_definitions_are_read() {
        assert_eq!(targets("see [a](b.md#c) and ![d](<e f.png> \"g\")"), ["b.md#c", "e f.png"]);
        assert_eq!(targets("[name]: other.md \"title\""), ["other.md"]);
    }

    #[test]
    fn only_relative_links_outside_code_are_checked() {
        let text =
            "[a](Cargo.toml) [b](https://shelfmark.example) `[c](no)`\n```\n[d](no)\n```\n[e](gone.md)\n";
        let file = SourceFile { path: "README.md".to_owned(), text: text.to_owned() };
        let findings = check(&file, &places::root());
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [5]);
    }
}
