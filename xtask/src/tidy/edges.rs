//! Which crates may depend on which.

use super::Finding;
use super::files::SourceFile;

/// Each crate folder, and the crates it may depend on.
const ALLOWED: [(&str, &[&str]); 13] = [
    ("base", &[]),
    ("blocks", &["base"]),
    ("catalog", &["base"]),
    ("index", &["base"]),
    ("embed", &["base"]),
    ("reading", &["base"]),
    ("workspace", &["base"]),
    ("fetch", &["base"]),
    ("accounts", &["base", "catalog"]),
    ("engine", &["base", "blocks", "catalog", "index", "embed", "reading", "workspace", "fetch", "accounts"]),
    ("tools", &["base", "engine"]),
    ("console", &["base", "tools"]),
    ("serve", &["base", "engine", "tools", "console"]),
];

/// Crate folders that may depend on every other crate.
const FREE: [&str; 2] = ["shelf", "testkit"];

/// External crates that only one crate may depend on.
const CONFINED: [(&str, &str); 4] =
    [("rmcp", "serve"), ("axum", "serve"), ("rusqlite", "catalog"), ("tokio-postgres", "catalog")];

/// The crate that may only be a dev-dependency.
const TESTS_ONLY: &str = "shelf-testkit";

/// A line of a manifest that declares a dependency.
struct Edge {
    line: usize,
    name: String,
    for_tests: bool,
}

/// Checks every manifest below `crates` against the table.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let Some(folder) = crate_folder(&file.path) else { continue };
        if !FREE.contains(&folder) && allowed_for(folder).is_none() {
            findings.push(Finding::new(&file.path, 1, "has no row in the table in xtask/src/tidy/edges.rs"));
        }
        for edge in edges(&file.text) {
            if let Some(what) = objection(folder, &edge) {
                findings.push(Finding::new(&file.path, edge.line, what));
            }
        }
    }
    findings
}

fn crate_folder(path: &str) -> Option<&str> {
    let folder = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!folder.contains('/')).then_some(folder)
}

fn allowed_for(folder: &str) -> Option<&'static [&'static str]> {
    ALLOWED.iter().find(|(name, _)| *name == folder).map(|(_, allowed)| *allowed)
}

/// Why this dependency is not allowed; dev-dependencies always are.
fn objection(folder: &str, edge: &Edge) -> Option<String> {
    if edge.for_tests {
        return None;
    }
    if edge.name == TESTS_ONLY {
        return Some(format!("{TESTS_ONLY} is for tests: move it to [dev-dependencies]"));
    }
    if let Some((name, owner)) = CONFINED.iter().find(|(name, owner)| *name == edge.name && *owner != folder)
    {
        return Some(format!("only crates/{owner} may depend on {name}"));
    }
    let wanted = edge.name.strip_prefix("shelf-")?;
    let allowed = allowed_for(folder)?;
    (!allowed.contains(&wanted)).then(|| {
        let may = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
        format!("crates/{folder} must not depend on {} (allowed: {may})", edge.name)
    })
}

/// Reads the dependency sections of a manifest; supports as much TOML as our manifests use.
fn edges(manifest: &str) -> Vec<Edge> {
    let mut found = Vec::new();
    let mut section = String::new();
    for (number, line) in (1..).zip(manifest.lines()) {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            header.clone_into(&mut section);
            if let Some((table, name)) = header.rsplit_once('.').filter(|(table, _)| is_table(table)) {
                found.push(Edge { line: number, name: unquoted(name), for_tests: for_tests(table) });
                section.clear();
            }
        } else if is_table(&section) && !line.is_empty() && !line.starts_with('#') {
            let end = line.find(['.', '=', ' ']).unwrap_or(line.len());
            let name = unquoted(&line[..end]);
            found.push(Edge { line: number, name, for_tests: for_tests(&section) });
        }
    }
    found
}

fn is_table(section: &str) -> bool {
    let last = section.rsplit('.').next().unwrap_or(section);
    matches!(last, "dependencies" | "dev-dependencies" | "build-dependencies")
}

fn for_tests(section: &str) -> bool {
    section.ends_with("dev-dependencies")
}

fn unquoted(name: &str) -> String {
    name.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, check};

    fn findings(folder: &str, manifest: &str) -> Vec<String> {
        let path = format!("crates/{folder}/Cargo.toml");
        let file = SourceFile { path, text: manifest.to_owned() };
        check(&[file]).into_iter().map(|finding| format!("{}: {}", finding.line, finding.what)).collect()
    }

    #[test]
    fn edges_of_the_table_pass() {
        assert!(findings("tools", "[dependencies]\nshelf-base.workspace = true\nserde = \"1\"\n").is_empty());
        assert!(findings("base", "[dev-dependencies]\nshelf-testkit.workspace = true\n").is_empty());
        assert!(findings("shelf", "[dependencies]\nshelf-blocks.workspace = true\n").is_empty());
    }

    #[test]
    fn edges_outside_the_table_are_named_with_their_line() {
        let found = findings("base", "[dependencies]\n# why\nshelf-engine = { path = \"x\" }\n");
        assert_eq!(found, ["3: crates/base must not depend on shelf-engine (allowed: none)"]);
        assert_eq!(findings("tools", "[dependencies.rmcp]\nversion = \"3\"\n").len(), 1);
        assert_eq!(findings("shelf", "[dependencies]\nrusqlite.workspace = true\n").len(), 1);
        assert_eq!(findings("serve", "[dependencies]\nshelf-testkit.workspace = true\n").len(), 1);
        assert_eq!(findings("attic", "[package]\n").len(), 1);
    }
}
