//! Patterns over paths, with one meaning everywhere.
//!
//! `*.md` fits any file of that name in any folder; `src/*.rs` fits at the beginning of a path or behind any folder;
//! `src/` fits everything in folders of that name; `*` and `?` never cross `/`, `**` does; a pattern that begins with
//! `/` stands for the whole path.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use shelf_base::bounds;

use crate::{Error, Result};

/// A compiled list of patterns, of which one must fit.
pub(crate) struct Patterns {
    set: GlobSet,
}

impl Patterns {
    /// Compiles patterns that name files.
    pub(crate) fn new(field: &str, patterns: &[String]) -> Result<Self> {
        Self::compile(field, patterns, false)
    }

    /// Compiles patterns that also take everything inside a folder they name, as ignore files do.
    pub(crate) fn with_folders(field: &str, patterns: &[String]) -> Result<Self> {
        Self::compile(field, patterns, true)
    }

    pub(crate) fn fits(&self, path: &str) -> bool {
        self.set.is_match(path)
    }

    fn compile(field: &str, patterns: &[String], folders: bool) -> Result<Self> {
        if patterns.len() > bounds::GLOBS_PER_CALL {
            let limit = format!("{} patterns", bounds::GLOBS_PER_CALL);
            return Err(Error::TooLarge { what: field.to_owned(), limit });
        }
        let mut builder = GlobSetBuilder::new();
        for pattern in patterns {
            for form in forms(field, pattern, folders)? {
                let glob = GlobBuilder::new(&form).literal_separator(true).empty_alternates(true).build();
                builder.add(glob.map_err(|error| {
                    Error::invalid(field, format!("'{pattern}' is no pattern: {}", error.kind()))
                })?);
            }
        }
        let set = builder
            .build()
            .map_err(|error| Error::invalid(field, format!("is too large: {}", error.kind())))?;
        Ok(Self { set })
    }
}

fn forms(field: &str, pattern: &str, folders: bool) -> Result<Vec<String>> {
    if pattern.is_empty() || pattern.len() > bounds::GLOB_BYTES {
        return Err(Error::invalid(field, format!("needs patterns of 1 to {} bytes", bounds::GLOB_BYTES)));
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let mut forms = if let Some(folder) = pattern.strip_suffix('/') {
        vec![format!("{folder}/**")]
    } else if folders {
        vec![pattern.to_owned(), format!("{pattern}/**")]
    } else {
        vec![pattern.to_owned()]
    };
    if !pattern.starts_with('/') && !pattern.starts_with("**") {
        let inner: Vec<String> = forms.iter().map(|form| format!("**/{form}")).collect();
        forms.extend(inner);
    }
    Ok(forms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        Patterns::new("pattern", &[pattern.to_owned()]).unwrap().fits(path)
    }

    #[test]
    fn patterns_mean_what_the_module_says() {
        assert!(fits("*.md", "/home/u/notes/a.md"));
        assert!(!fits("*.md", "/home/u/a.md/b.txt"));
        assert!(fits("src/*.rs", "src/a.rs"));
        assert!(fits("src/*.rs", "/w/src/a.rs"));
        assert!(!fits("src/*.rs", "/w/src/deep/a.rs"));
        assert!(fits("src/", "/w/src/deep/a.rs"));
        assert!(!fits("src/", "/w/xsrc/a.rs"));
        assert!(fits("src/**", "src/deep/a.rs"));
        assert!(fits("src/**/*.py", "/tmp/x/src/many/a.py"));
        assert!(fits("src/many/d01/**/*.py", "/tmp/x/src/many/d01/f.py"));
        assert!(fits("src/many/d01/**/*.py", "/tmp/x/src/many/d01/e/f.py"));
        assert!(fits("/w/*.rs", "/w/a.rs"));
        assert!(!fits("/w/*.rs", "/x/w/a.rs"));
        assert!(fits("{a,b}.txt", "b.txt"));
        assert!(fits("[a-c]?.txt", "bz.txt"));
        assert!(fits("*", ".hidden"));
        assert!(fits("**", "/any/where"));
        assert!(Patterns::new("pattern", &["[".into()]).is_err());
        assert!(
            Patterns::with_folders("exclude", &["node_modules".into()])
                .unwrap()
                .fits("a/node_modules/b/c.js")
        );
    }
}
