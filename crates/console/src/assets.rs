//! The style sheet, the script and the picture of the console.

use std::sync::LazyLock;

use shelf_base::Digest;

/// A file of the console: its type and content.
pub fn asset(name: &str) -> Option<(&'static str, &'static [u8])> {
    match name {
        "console.css" => Some(("text/css; charset=utf-8", include_bytes!("../assets/console.css"))),
        "console.js" => Some(("text/javascript; charset=utf-8", include_bytes!("../assets/console.js"))),
        "graph.js" => Some(("text/javascript; charset=utf-8", include_bytes!("../assets/graph.js"))),
        "mark.svg" => Some(("image/svg+xml", include_bytes!("../assets/mark.svg"))),
        _ => None,
    }
}

/// A text that changes when an asset does, so that browsers may keep what they have until then.
pub(crate) fn stamp() -> &'static str {
    static STAMP: LazyLock<String> = LazyLock::new(|| {
        let all = ["console.css", "console.js", "graph.js", "mark.svg"];
        let bytes: Vec<u8> =
            all.iter().filter_map(|name| asset(name)).flat_map(|(_, bytes)| bytes.to_vec()).collect();
        Digest::of(&bytes).to_string().chars().take(12).collect()
    });
    &STAMP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_and_scripts_stay_small_and_fetch_nothing_from_elsewhere() {
        let names = ["console.css", "console.js", "graph.js"];
        let whole: usize = names.iter().map(|name| asset(name).unwrap().1.len()).sum();
        assert!(whole <= 120_000, "{whole}");
        for name in names {
            let text = std::str::from_utf8(asset(name).unwrap().1).unwrap();
            for foreign in ["http://", "https://", "@import", "eval("] {
                let found = text.replace("http://www.w3.org/2000/svg", "");
                assert!(!found.contains(foreign), "{name} holds {foreign}");
            }
        }
        assert!(asset("../secret").is_none());
    }
}
