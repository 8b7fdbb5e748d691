//! `cargo xtask docs`: the reference pages come out of the program itself, so they cannot say what it does not do.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::scratch::Scratch;
use crate::{places, step};

/// Page path below the folder, and its bytes.
type Pages = BTreeMap<PathBuf, Vec<u8>>;

/// Renders the pages, or with `--check` only compares them; then builds the API documentation.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let check = arguments.take_flag("--check");
    arguments.finish()?;
    let shelf = places::built_shelf()?;
    let scratch = Scratch::new("docs")?;
    let rendered = render(&shelf, &scratch.path().join("reference"))?;
    let folder = places::root().join("docs").join("reference");
    let kept = if folder.is_dir() { read_pages(&folder)? } else { Pages::new() };
    let stale = differences(&rendered, &kept);
    if check {
        refuse_stale(&stale)?;
    } else {
        write_pages(&folder, &rendered, &kept)?;
        println!("docs: {} pages in docs/reference, {} changed", rendered.len(), stale.len());
    }
    api_documentation()
}

fn render(shelf: &Path, folder: &Path) -> Result<Pages> {
    step::run(
        "rendering the reference pages",
        "Correct `shelf docs`, the hidden command that renders them.",
        Command::new(shelf).args(["docs", "--output"]).arg(folder),
    )?;
    let pages = read_pages(folder)?;
    if pages.is_empty() {
        bail!("`shelf docs` rendered no page; correct the hidden command `docs`");
    }
    Ok(pages)
}

/// One line for each page that is missing, differs or is no longer rendered.
fn differences(rendered: &Pages, kept: &Pages) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, bytes) in rendered {
        match kept.get(path) {
            None => lines.push(format!("{} is missing", path.display())),
            Some(old) if old != bytes => lines.push(format!("{} differs", path.display())),
            Some(_) => {}
        }
    }
    let gone = kept.keys().filter(|path| !rendered.contains_key(*path));
    lines.extend(gone.map(|path| format!("{} is no longer rendered", path.display())));
    lines
}

fn refuse_stale(stale: &[String]) -> Result<()> {
    if stale.is_empty() {
        println!("docs: docs/reference is up to date");
        return Ok(());
    }
    for line in stale {
        println!("docs/reference/{line}");
    }
    bail!("{} pages are stale; run `cargo xtask docs` and keep the result", stale.len())
}

fn write_pages(folder: &Path, rendered: &Pages, kept: &Pages) -> Result<()> {
    for path in kept.keys().filter(|path| !rendered.contains_key(*path)) {
        fs::remove_file(folder.join(path)).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    for (path, bytes) in rendered {
        let place = folder.join(path);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        }
        fs::write(&place, bytes).with_context(|| format!("cannot write {}", place.display()))?;
    }
    Ok(())
}

fn read_pages(folder: &Path) -> Result<Pages> {
    let mut pages = Pages::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(current) = waiting.pop() {
        let entries = fs::read_dir(&current).with_context(|| format!("cannot list {}", current.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                pages.insert(path.strip_prefix(folder)?.to_path_buf(), bytes);
            }
        }
    }
    Ok(pages)
}

fn api_documentation() -> Result<()> {
    step::run(
        "building the API documentation",
        "Correct the doc comments named above.",
        step::cargo()
            .args(["doc", "--no-deps", "--workspace", "--release"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

#[cfg(test)]
mod tests {
    use super::{Pages, differences};

    #[test]
    fn every_kind_of_difference_is_named() {
        let rendered = Pages::from([("a.md".into(), b"1".to_vec()), ("b.md".into(), b"2".to_vec())]);
        let kept = Pages::from([("b.md".into(), b"3".to_vec()), ("c.md".into(), b"4".to_vec())]);
        let lines = differences(&rendered, &kept);
        assert_eq!(lines, ["a.md is missing", "b.md differs", "c.md is no longer rendered"]);
        assert!(differences(&rendered, &rendered).is_empty());
    }
}
