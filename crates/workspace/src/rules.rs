//! Which paths of a workspace may be read. What is denied is denied whatever else allows it, in any case of letters.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::{Result, WorkspaceError};

/// What the contract allows.
const ALLOWED: [&str; 5] = ["paths/**", "docs/**", ".claude/memory/**", "templates/**", "examples/**"];
/// Files beside `.env` that hold no secrets by their purpose.
const SAMPLES: [&str; 3] = [".env.example", ".env.sample", ".env.template"];

/// The rules of one workspace.
pub(super) struct Rules {
    allowed: GlobSet,
    /// The globs beyond the contract's.
    pub(super) also: Vec<String>,
    /// The folders before the first sign that stands for something else, one for each glob.
    roots: Vec<String>,
}

fn invalid(error: &globset::Error) -> WorkspaceError {
    WorkspaceError::Invalid(format!("workspace.read {error}"))
}

impl Rules {
    pub(super) fn new(also: &[String]) -> Result<Self> {
        let mut builder = GlobSetBuilder::new();
        let mut roots = Vec::new();
        for glob in ALLOWED.iter().copied().chain(also.iter().map(String::as_str)) {
            let built = GlobBuilder::new(glob).literal_separator(true).build();
            builder.add(built.map_err(|error| invalid(&error))?);
            let plain = glob.split('/').take_while(|part| !part.contains(['*', '?', '[', '{', '\\']));
            roots.push(plain.collect::<Vec<_>>().join("/"));
        }
        let allowed = builder.build().map_err(|error| invalid(&error))?;
        Ok(Self { allowed, also: also.to_vec(), roots })
    }

    /// Whether a relative path without `.` and `..` may be read.
    pub(super) fn allow(&self, path: &str) -> bool {
        self.allowed.is_match(path) && !path.split('/').any(is_denied)
    }
}

impl Rules {
    /// Whether a folder may hold, at any depth, something that may be read.
    pub(super) fn may_hold(&self, folder: &str) -> bool {
        let below = |inner: &str, outer: &str| {
            outer.is_empty()
                || inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.roots.iter().any(|root| below(folder, root) || below(root, folder))
    }
}

/// Whether a file or folder of this name is closed, with everything beneath it.
pub(super) fn is_denied(name: &str) -> bool {
    let name = name.to_lowercase();
    // `secrets…` is the contract's; `secret` alone or before a sign is ours. `secretary` is neither.
    let secret = name
        .strip_prefix("secret")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['s', '.', '-', '_']));
    if secret || name == ".git" || name == ".env" || name.ends_with(".key") {
        return true;
    }
    if name.ends_with(".md") || SAMPLES.contains(&name.as_str()) {
        return false;
    }
    name.starts_with(".env")
        || name.starts_with("credential")
        || name.starts_with("id_rsa")
        || name.ends_with(".pem")
        || name.ends_with(".p12")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_names_are_closed_in_any_case() {
        for closed in [
            ".git",
            ".GIT",
            ".env",
            ".Env",
            ".env.local",
            "secrets",
            "Secrets.txt",
            "secretsauce",
            "secret",
            "secret.md",
            "SECRET-plan.txt",
            "secret_key",
            "server.key",
            "a.KEY",
            "credentials.json",
            "Credential",
            "x.pem",
            "x.P12",
            "id_rsa",
            "id_rsa.pub",
        ] {
            assert!(is_denied(closed), "{closed}");
        }
        for open in [
            "secretary.md",
            "secretary",
            "secretion.txt",
            "keys.txt",
            "keyboard",
            ".env.example",
            ".ENV.sample",
            "environment.md",
            "credentials.md",
            "gitignore",
            "readme.md",
            "monkey",
        ] {
            assert!(!is_denied(open), "{open}");
        }
    }

    #[test]
    fn only_folders_with_something_open_are_walked() {
        let rules = Rules::new(&["notes/*.txt".into(), "src/lib/[ab].rs".into()]).unwrap();
        for walked in
            ["docs", "docs/deep", ".claude", ".claude/memory", "notes", "src", "src/lib", "src/lib/x"]
        {
            assert!(rules.may_hold(walked), "{walked}");
        }
        for closed in ["target", "docsx", ".claude/other", "src/bin", "node_modules/docs"] {
            assert!(!rules.may_hold(closed), "{closed}");
        }
        assert!(Rules::new(&["**/*.md".into()]).unwrap().may_hold("anything"));
    }

    #[test]
    fn only_the_contract_folders_are_open() {
        let rules = Rules::new(&["notes/*.txt".into()]).unwrap();
        for open in
            ["docs/a.md", "docs/deep/er/b.txt", ".claude/memory/progress_log.jsonl", "notes/a.txt", "paths/x"]
        {
            assert!(rules.allow(open), "{open}");
        }
        for closed in [
            "a.md",
            "docsx/a.md",
            "src/main.rs",
            ".claude/settings.json",
            "docs/.git/config",
            "notes/a/b.txt",
            "docs",
        ] {
            assert!(!rules.allow(closed), "{closed}");
        }
    }
}
