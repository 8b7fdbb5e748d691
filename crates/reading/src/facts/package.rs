//! The name that a manifest gives to its package: `Cargo.toml`, `package.json`, `go.mod`.

/// Bytes of a manifest that are looked at.
const MOST_BYTES: usize = 256 << 10;

/// The name of the package that a file declares; `None` when it is no manifest.
pub(super) fn name(path: &str, text: &str) -> Option<String> {
    let text = super::beginning(text, MOST_BYTES);
    let name = match path.rsplit('/').next().unwrap_or(path) {
        "Cargo.toml" => of_cargo(text)?,
        "package.json" => of_json(text)?,
        "go.mod" => text.lines().find_map(|line| line.trim().strip_prefix("module "))?,
        _ => return None,
    };
    let name = name.trim().trim_matches(['"', '\'']);
    (!name.is_empty() && name.len() <= super::LONGEST_NAME).then(|| name.to_owned())
}

/// `name = "…"` in the section `[package]`.
fn of_cargo(text: &str) -> Option<&str> {
    let mut in_package = false;
    text.lines().map(str::trim).find_map(|line| {
        if line.starts_with('[') {
            in_package = line == "[package]";
        }
        let (key, value) = line.split_once('=').filter(|_| in_package)?;
        (key.trim() == "name").then_some(value)
    })
}

/// The first `"name": "…"` of the outermost object.
fn of_json(text: &str) -> Option<&str> {
    let (mut depth, mut rest) = (0usize, text);
    loop {
        let at = rest.find(['{', '}', '[', ']', '"'])?;
        let (mark, after) = (rest.as_bytes()[at], &rest[at + 1..]);
        match mark {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {
                let end = after.find('"')?;
                let (word, behind) = (&after[..end], &after[end + 1..]);
                let value = behind.trim_start().strip_prefix(':').map(str::trim_start);
                if depth == 1
                    && word == "name"
                    && let Some(value) = value
                {
                    return value.strip_prefix('"').and_then(|value| value.split('"').next());
                }
                rest = behind;
                continue;
            }
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn manifests_name_their_packages() {
        let cargo = "[workspace]\nname = \"no\"\n[package]\nversion = \"1\"\nname = \"shelf-index\"\n";
        assert_eq!(name("a/Cargo.toml", cargo).as_deref(), Some("shelf-index"));
        let json = "{\"author\": {\"name\": \"no\"}, \"name\": \"@org/lib\"}";
        assert_eq!(name("package.json", json).as_deref(), Some("@org/lib"));
        assert_eq!(name("go.mod", "module example.org/lib\n\ngo 1.22\n").as_deref(), Some("example.org/lib"));
        assert_eq!(name("a.toml", cargo), None);
        assert_eq!(name("package.json", "[{{{\"name"), None);
    }
}
