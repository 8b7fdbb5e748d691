//! Rules for all text files: no tabs and no trailing whitespace.

use super::Finding;
use super::files::SourceFile;

/// Checks one file line by line.
pub fn check(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.split('\n')) {
        if line.contains('\t') {
            findings.push(Finding::new(&file.path, number, "has a tab; use spaces"));
        }
        if line.ends_with([' ', '\t', '\r']) {
            findings.push(Finding::new(&file.path, number, "has trailing whitespace"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, check};

    #[test]
    fn tabs_and_trailing_spaces_are_found() {
        let text = format!("fine\nends \nhas{}tab\n", '\u{9}');
        let findings = check(&SourceFile { path: "a.md".to_owned(), text });
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2, 3]);
    }
}
