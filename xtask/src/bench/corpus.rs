//! Folder trees of made-up files: the same bytes on every machine, kept under `bench/work` between runs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Scale;
use super::random::Random;
use super::text::{Kind, Writer};
use super::words::Words;

/// Raised whenever a change here changes the bytes, so that kept corpora are made anew.
const EDITION: u32 = 2;

/// No file is smaller than this.
const SMALLEST: f64 = 300.0;

/// No file is larger than this.
const LARGEST: f64 = 200_000.0;

/// The spread of the sizes: the deviation of their logarithm.
const SPREAD: f64 = 1.0;

/// A tree to make.
pub struct Tree {
    /// The folder's name.
    pub name: &'static str,
    /// How many files it has.
    pub files: usize,
    /// How many bytes they have together.
    pub bytes: usize,
    /// What all choices follow from.
    pub seed: u64,
}

impl Tree {
    /// The tree that adding, searching and grepping are measured on.
    pub fn text(scale: Scale) -> Self {
        Self { name: "tree", files: scale.of(55_000), bytes: scale.of(275_000_000), seed: 0x5eed_0010 }
    }

    /// Makes the tree in `work` unless it is there already, and says where it is.
    pub fn ensure(&self, work: &Path, words: &Words) -> Result<PathBuf> {
        let description = format!("{} {} {}", self.files, self.bytes, self.seed);
        ensure(work, self.name, &description, |folder| self.make(folder, words))
    }

    fn make(&self, folder: &Path, words: &Words) -> Result<()> {
        let mut writer = Writer::new(words, self.seed);
        let folders = folders(&mut writer.random, words, self.files / 18 + 1);
        for name in &folders {
            fs::create_dir_all(folder.join(name))?;
        }
        for (serial, size) in self.sizes(&mut writer.random).into_iter().enumerate() {
            let (kind, extension) = kind(&mut writer.random);
            let first = words.name(&mut writer.random);
            let name = format!("{first}-{}-{serial}.{extension}", words.name(&mut writer.random));
            let place = folder.join(writer.random.pick(&folders)).join(name);
            fs::write(&place, writer.text(kind, size))
                .with_context(|| format!("cannot write {}", place.display()))?;
        }
        Ok(())
    }

    /// Log-normal sizes, scaled so that they add up to the wanted total.
    fn sizes(&self, random: &mut Random) -> Vec<usize> {
        let shape: Vec<f64> = (0..self.files).map(|_| (random.normal() * SPREAD).exp()).collect();
        let mut scale = self.bytes as f64 / self.files as f64;
        let clipped = |scale: f64| shape.iter().map(move |size| (size * scale).clamp(SMALLEST, LARGEST));
        for _ in 0..20 {
            scale *= self.bytes as f64 / clipped(scale).sum::<f64>();
        }
        clipped(scale).map(|size| size as usize).collect()
    }
}

/// Runs `make` on an empty folder `work/name` unless a stamp says that it ran to its end before.
pub fn ensure(
    work: &Path,
    name: &str,
    description: &str,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let folder = work.join(name);
    let stamp = work.join(format!("{name}.made"));
    let wanted = format!("edition {EDITION}: {description}\n");
    if folder.is_dir() && fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(folder);
    }
    println!("== making the corpus `{name}`");
    remove(&folder)?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    make(&folder)?;
    fs::write(stamp, wanted)?;
    Ok(folder)
}

/// Removes a folder with all in it; it need not be there.
pub fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// The files below a folder with their sizes, in the order of their paths.
pub fn files_below(folder: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(current) = waiting.pop() {
        for entry in fs::read_dir(&current).with_context(|| format!("cannot list {}", current.display()))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                waiting.push(entry.path());
            } else {
                files.push((entry.path(), entry.metadata()?.len()));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Reads everything once, so that every program finds it in memory.
pub fn warm(folder: &Path) -> Result<()> {
    for (path, _) in files_below(folder)? {
        io::copy(&mut File::open(path)?, &mut io::sink())?;
    }
    Ok(())
}

/// How many bytes the files below a folder have together.
pub fn bytes_below(folder: &Path) -> Result<u64> {
    Ok(files_below(folder)?.iter().map(|(_, size)| size).sum())
}

/// Folder paths that branch as in a real project: a new folder hangs on any earlier one.
fn folders(random: &mut Random, words: &Words, count: usize) -> Vec<String> {
    let mut folders: Vec<String> =
        ["docs", "src", "guides", "examples", "packages"].map(str::to_owned).to_vec();
    while folders.len() < count {
        let parent = random.pick(&folders).clone();
        if parent.split('/').count() < 6 {
            folders.push(format!("{parent}/{}", words.name(random)));
        }
    }
    folders
}

fn kind(random: &mut Random) -> (Kind, &'static str) {
    match random.below(10) {
        0..=4 => (Kind::Markdown, if random.percent(85) { "md" } else { "txt" }),
        5..=7 => (Kind::Braces, *random.pick(&["rs", "c", "js", "go"])),
        _ => (Kind::Indented, "py"),
    }
}

#[cfg(test)]
mod tests {
    use super::{LARGEST, Random, SMALLEST, Tree};

    #[test]
    fn sizes_add_up_and_stay_in_their_bounds() {
        let tree = Tree { name: "tree", files: 5_000, bytes: 25_000_000, seed: 1 };
        let sizes = tree.sizes(&mut Random::new(1));
        let total: usize = sizes.iter().sum();
        assert!(total.abs_diff(tree.bytes) < tree.bytes / 1_000, "{total}");
        assert!(sizes.iter().all(|size| (SMALLEST as usize..=LARGEST as usize).contains(size)));
    }
}
