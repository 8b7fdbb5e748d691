//! Paths and the targets of links, as text.

use percent_encoding::percent_decode_str;
use shelf_base::Address;
use shelf_reading::facts::LinkKind;

/// Names of files that stand for their folder.
const MAIN_FILES: [&str; 8] = ["mod", "lib", "main", "index", "readme", "--init--", "-index", "package"];

/// The folder of a path, without its last slash.
pub(super) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The last part of a path.
pub(super) fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The last part of a name of any language: `a::b`, `a.b`, `a/b`.
pub(super) fn last_name(name: &str) -> &str {
    name.rsplit([':', '.', '/', '\\']).next().unwrap_or(name)
}

/// The name of a file without its extension.
pub(super) fn stem(path: &str) -> &str {
    let name = last(path);
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && extension.len() <= 9 && !extension.contains(' ') => {
            stem
        }
        _ => name,
    }
}

/// A name as it is compared: without regard to case and to how words are joined.
pub(super) fn fold(name: &str) -> String {
    let joined = |letter: char| if matches!(letter, ' ' | '_') { '-' } else { letter };
    name.trim().chars().flat_map(char::to_lowercase).map(joined).collect()
}

/// The folded names that a file answers to: its own, and that of its folder when it stands for it.
pub(super) fn stems(path: &str) -> Vec<String> {
    let own = fold(stem(path));
    let mut stems = Vec::new();
    if MAIN_FILES.contains(&own.as_str()) {
        let folder = folder(path);
        stems.push(fold(last(folder)));
        if last(folder) == "src" {
            stems.push(fold(last(self::folder(folder))));
        }
    }
    stems.push(own);
    stems.retain(|stem| !stem.is_empty());
    stems
}

/// A path relative to a folder, with `.` and `..` taken out; `None` when it leads above the beginning.
pub(super) fn join(folder: &str, path: &str) -> Option<String> {
    let whole =
        if folder.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") };
    let is_absolute = whole.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    Some(if is_absolute { format!("/{joined}") } else { joined })
}

/// How many folders two paths have in common.
pub(super) fn common_folders(one: &str, other: &str) -> usize {
    folder(one).split('/').zip(folder(other).split('/')).take_while(|(one, other)| one == other).count()
}

/// The folders around a path, the nearest first, the outermost (empty) last.
pub(super) fn folders_around(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        let (folder, _) = rest?.rsplit_once('/').unwrap_or(("", ""));
        rest = (!folder.is_empty()).then_some(folder);
        Some(folder)
    })
    .take(64)
}

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// An address of another site, or a mail address.
    Outside,
    /// A document of the library, by its path (decoded; empty for the document itself) and a place in it.
    Inside {
        /// The path.
        path: String,
        /// The anchor; empty for none.
        anchor: String,
    },
}

impl Target {
    /// Reads the target of a link.
    pub(super) fn of(target: &str, kind: LinkKind) -> Self {
        let target = target.trim();
        let target = target.strip_prefix("file://").unwrap_or(target);
        let scheme = target.split_once(':').map(|(scheme, _)| scheme);
        let is_scheme = |scheme: &str| {
            scheme.len() >= 2
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
        };
        if target.starts_with("//") || (kind != LinkKind::Wiki && scheme.is_some_and(is_scheme)) {
            return Self::Outside;
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = if kind == LinkKind::Wiki { path } else { path.split('?').next().unwrap_or(path) };
        Self::Inside { path: decoded(path), anchor: decoded(anchor) }
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), |text| text.into_owned())
}

/// The resource that a citation address names.
pub(super) fn resource_of(address: &str) -> Option<String> {
    address.parse::<Address>().ok().map(|address| address.resource().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_and_cannot_lead_above_the_beginning() {
        assert_eq!(join("/a/b", "../c/./d.md").as_deref(), Some("/a/c/d.md"));
        assert_eq!(join("a", "b.md").as_deref(), Some("a/b.md"));
        assert_eq!(join("a", "../../b.md"), None);
        assert_eq!(join("a/b", "/x.md").as_deref(), Some("/x.md"));
        assert_eq!(folders_around("/a/b/c.md").collect::<Vec<_>>(), ["/a/b", "/a", ""]);
        assert_eq!(folders_around("c.md").collect::<Vec<_>>(), [""]);
    }

    #[test]
    fn targets_are_decoded_and_those_of_other_sites_recognised() {
        let inside = |path: &str, anchor: &str| Target::Inside { path: path.into(), anchor: anchor.into() };
        assert_eq!(Target::of("a%20b.md?x=1#c%20d", LinkKind::Inline), inside("a b.md", "c d"));
        assert_eq!(Target::of("#top", LinkKind::Inline), inside("", "top"));
        assert_eq!(Target::of("https://example.org/a.md", LinkKind::Inline), Target::Outside);
        assert_eq!(Target::of("mailto:a@example.org", LinkKind::Inline), Target::Outside);
        assert_eq!(Target::of("Page: one?", LinkKind::Wiki), inside("Page: one?", ""));
    }

    #[test]
    fn a_main_file_answers_to_its_folder() {
        assert_eq!(stems("a/Index_View/mod.rs"), ["index-view", "mod"]);
        assert_eq!(stems("crates/index/src/lib.rs"), ["src", "index", "lib"]);
        assert_eq!(stems("a/x.tar.gz"), ["x.tar"]);
        assert_eq!(stems("pkg/__init__.py"), ["pkg", "--init--"]);
    }
}
