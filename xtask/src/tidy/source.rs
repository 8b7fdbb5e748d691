//! Rules for Rust files: they open with a `//!` comment, stay short, contain no unfinished work, and only the catalog
//! contains SQL.

use super::Finding;
use super::files::SourceFile;

/// The maximum number of lines; a longer file probably has more than one purpose.
const LONGEST: usize = 600;

/// Macros that mark unfinished work.
const LEFTOVERS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// The beginnings of SQL statements.
const STATEMENTS: [&str; 4] = ["SELECT ", "INSERT INTO", "DELETE FROM", "CREATE TABLE"];

/// Where SQL is allowed.
const SQL_FOLDERS: [&str; 2] = ["crates/catalog/", "xtask/"];

/// Checks one file; files other than Rust always pass.
pub fn check(file: &SourceFile) -> Vec<Finding> {
    if !file.has_extension("rs") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if file.is_below("src") && !file.text.starts_with("//!") {
        findings.push(Finding::new(
            &file.path,
            1,
            "does not start with a `//!` comment that says why it exists",
        ));
    }
    let length = file.text.lines().count();
    if length > LONGEST && !file.is_below("tests") {
        findings.push(Finding::new(
            &file.path,
            LONGEST + 1,
            format!("{length} lines; the limit is {LONGEST}"),
        ));
    }
    for (number, line) in (1..).zip(file.text.lines()) {
        let code = without_comment(line);
        findings.extend(
            line_objections(file, code).into_iter().map(|what| Finding::new(&file.path, number, what)),
        );
    }
    findings
}

fn line_objections(file: &SourceFile, code: &str) -> Vec<String> {
    let mut objections = Vec::new();
    if file.is_below("src") {
        let left = LEFTOVERS.iter().filter(|name| calls_macro(code, name));
        objections.extend(left.map(|name| format!("unfinished code: {name}!")));
    }
    if !SQL_FOLDERS.iter().any(|folder| file.path.starts_with(folder))
        && let Some(statement) = STATEMENTS.iter().find(|statement| code.contains(*statement))
    {
        objections.push(format!("`{}` outside crates/catalog, the only place for SQL", statement.trim()));
    }
    objections
}

fn calls_macro(code: &str, name: &str) -> bool {
    code.match_indices(&format!("{name}!")).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    })
}

/// The line up to a comment; `//` after a colon is assumed to be part of a URL.
fn without_comment(line: &str) -> &str {
    let start = line.match_indices("//").map(|(at, _)| at).find(|at| !line[..*at].ends_with(':'));
    start.map_or(line, |at| &line[..at])
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, SourceFile, check};

    fn count(path: &str, text: &str) -> usize {
        check(&SourceFile { path: path.to_owned(), text: text.to_owned() }).len()
    }

    #[test]
    fn a_plain_file_passes() {
        assert_eq!(count("crates/base/src/a.rs", "//! Why.\nfn a() {} // a todo! in words\n"), 0);
        assert_eq!(count("crates/base/README.md", "no rust"), 0);
    }

    #[test]
    fn each_rule_finds_its_case() {
        assert_eq!(count("crates/base/src/a.rs", "fn a() {}\n"), 1);
        assert_eq!(count("crates/base/src/a.rs", &format!("//! Why.\nfn a() {{ {}!() }}\n", "todo")), 1);
        assert_eq!(count("crates/engine/src/a.rs", &format!("//! Why.\nlet a = \"{} 1\";\n", "SELECT")), 1);
        assert_eq!(count("crates/catalog/src/a.rs", &format!("//! Why.\nlet a = \"{} 1\";\n", "SELECT")), 0);
        let long = format!("//! Why.\n{}", "\n".repeat(LONGEST));
        assert_eq!(count("crates/base/src/a.rs", &long), 1);
        assert_eq!(count("crates/base/tests/a.rs", &long), 0);
    }
}
