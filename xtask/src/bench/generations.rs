//! A tree that changes slightly from day to day: the typical case for deduplication.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Scale;
use super::corpus::{self, Tree};
use super::text::{Kind, Writer};
use super::words::Words;

/// The number of generations stored in succession.
pub const COUNT: usize = 5;

/// The total size of the small files; with the large files, a generation has a fifth of 769 MB.
const SMALL_BYTES: usize = 105_800_000;

/// The number of small files.
const SMALL_FILES: usize = 21_000;

/// The number of large files.
const LARGE_FILES: usize = 3;

/// The size of each large file in bytes.
const LARGE_BYTES: usize = 16_000_000;

const SEED: u64 = 0x5eed_0002;

/// The first generation, from which the others are derived.
pub struct Generations<'words> {
    base: PathBuf,
    words: &'words Words,
}

impl<'words> Generations<'words> {
    /// Creates the first generation unless it exists.
    pub fn ensure(work: &Path, words: &'words Words, scale: Scale) -> Result<Self> {
        let small = Tree {
            name: "generations-small",
            files: scale.of(SMALL_FILES),
            bytes: scale.of(SMALL_BYTES),
            seed: SEED,
        };
        let small_folder = small.ensure(work, words)?;
        let large = scale.of(LARGE_BYTES);
        let description = format!("{} {} {LARGE_FILES} {large} {SEED}", small.files, small.bytes);
        let base = corpus::ensure(work, "generations", &description, |folder| {
            copy(&small_folder, folder)?;
            make_large(folder, words, large)
        })?;
        Ok(Self { base, words })
    }

    /// Updates the working folder from generation `number - 1` to `number`, counting from one.
    pub fn sync(&self, working: &Path, number: usize) -> Result<()> {
        if number == 1 {
            corpus::remove(working)?;
            return copy(&self.base, working);
        }
        let mut writer = Writer::new(self.words, SEED + number as u64);
        let share = 0.02 + 0.03 * writer.random.unit();
        for (path, size) in corpus::files_below(working)? {
            if is_large(&path) {
                let addition = writer.prose(1_000);
                insert(&path, size as usize / 2, &addition)?;
            } else if writer.random.unit() < share {
                let place = writer.random.below(size as usize + 1);
                let length = writer.random.between(40, 400);
                let addition = writer.prose(length);
                insert(&path, place, &addition)?;
            }
        }
        Ok(())
    }
}

fn is_large(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("large"))
}

fn make_large(folder: &Path, words: &Words, size: usize) -> Result<()> {
    let mut writer = Writer::new(words, SEED);
    fs::create_dir_all(folder.join("large"))?;
    for number in 1..=LARGE_FILES {
        let text = writer.text(Kind::Markdown, size);
        fs::write(folder.join("large").join(format!("handbook-{number}.txt")), text)?;
    }
    Ok(())
}

fn insert(path: &Path, place: usize, addition: &str) -> Result<()> {
    let mut bytes = fs::read(path)?;
    bytes.splice(place..place, addition.bytes());
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for (path, _) in corpus::files_below(from)? {
        let place = to.join(path.strip_prefix(from)?);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(&path, &place).with_context(|| format!("cannot write {}", place.display()))?;
    }
    Ok(())
}
