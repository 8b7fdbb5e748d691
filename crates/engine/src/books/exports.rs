//! Copies of assets as files, for callers who reach no server: one for each content, bounded in size.

use std::{
    collections::BTreeSet,
    fs::{self, Metadata},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use cap_std::{ambient_authority, fs::Dir};
use shelf_base::{CallContext, Digest, Moment};
use shelf_catalog::Version;

use super::{Asset, links};
use crate::{Error, Library, Result};

/// Bytes of all copies together.
const ALL_COPIES: u64 = 1 << 30;
/// Bytes of copies that one list makes.
const OF_A_LIST: u64 = 64 << 20;

/// How much a call may still copy, and the copies that its reply names, which must not give way to others.
pub(super) struct Budget {
    bytes: u64,
    named: BTreeSet<Digest>,
}

impl Budget {
    /// One asset is always copied; of a list as much as fits.
    pub(super) fn of_call(assets: usize) -> Self {
        Self { bytes: if assets == 1 { u64::MAX } else { OF_A_LIST }, named: BTreeSet::new() }
    }

    /// Everything is copied from now on.
    pub(super) const fn lift(&mut self) {
        self.bytes = u64::MAX;
    }
}

/// The `file://` address of a path.
pub(super) fn file_url(path: &Path) -> String {
    format!("file://{}", links::encoded(&path.display().to_string()))
}

/// The modification time of a copy, made from its content, so that a copy that somebody has changed since is known.
fn time_of(hash: &Digest) -> Moment {
    /// 2001, and about sixteen years from then.
    const FROM: i64 = 1_000_000_000;
    const SECONDS: i64 = 1 << 29;
    let start =
        hash.as_bytes().iter().take(8).fold(0_i64, |number, byte| (number << 7) | i64::from(byte >> 1));
    Moment::from_micros((FROM + start % SECONDS) * 1_000_000)
}

/// Whether a file is a copy of this asset as it was written.
fn is_own(facts: &Metadata, asset: &Asset) -> bool {
    let written = u64::try_from(time_of(&asset.hash).micros()).unwrap_or_default();
    let written = SystemTime::UNIX_EPOCH + Duration::from_micros(written);
    facts.is_file() && facts.len() == asset.size && facts.modified().is_ok_and(|at| at == written)
}

impl Library {
    fn exports(&self) -> PathBuf {
        self.folder().join("exports")
    }

    /// The address of an asset's copy; `None` when there is none and the budget does not allow another.
    pub(super) fn exported(&self, asset: &Asset, budget: &mut Budget) -> Result<Option<String>> {
        let folder = self.exports().join(asset.hash.to_string());
        let file = folder.join(asset.name.rsplit('/').next().unwrap_or(&asset.name));
        budget.named.insert(asset.hash);
        let is_kept = fs::symlink_metadata(&file).is_ok_and(|facts| is_own(&facts, asset));
        if !is_kept {
            if asset.size > budget.bytes {
                return Ok(None);
            }
            budget.bytes -= asset.size;
            self.make_room(asset.size, &budget.named);
            let failed = |error| Error::writing("exports", error);
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
            let place = Dir::open_ambient_dir(&folder, ambient_authority()).map_err(failed)?;
            let version = Version {
                number: 0,
                hash: asset.hash,
                size: asset.size,
                modified_at: time_of(&asset.hash),
                indexed_at: asset.uploaded_at,
                mode: 0o600,
            };
            let name = file.file_name().map(Path::new).unwrap_or(Path::new("asset"));
            self.write_atomic(&place, name, &version, &CallContext::new(), "exports")?;
        }
        Ok(Some(file_url(&std::path::absolute(&file).unwrap_or(file))))
    }

    /// Removes the oldest copies, except for those that are named, until there is room for another.
    fn make_room(&self, wanted: u64, named: &BTreeSet<Digest>) {
        let is_named = |folder: &Path| {
            let name = folder.file_name().and_then(|name| name.to_str()?.parse().ok());
            name.is_some_and(|hash: Digest| named.contains(&hash))
        };
        let mut copies: Vec<(SystemTime, u64, PathBuf)> = self.copies().collect();
        copies.sort();
        let mut total: u64 = copies.iter().map(|(_, size, _)| size).sum();
        for (_, size, folder) in copies.into_iter().filter(|(_, _, folder)| !is_named(folder)) {
            if total.saturating_add(wanted) <= ALL_COPIES {
                return;
            }
            if fs::remove_dir_all(folder).is_ok() {
                total -= size;
            }
        }
    }

    fn copies(&self) -> impl Iterator<Item = (SystemTime, u64, PathBuf)> {
        let folders = fs::read_dir(self.exports()).into_iter().flatten().flatten();
        folders.filter_map(|folder| {
            let made = folder.metadata().ok()?.modified().ok()?;
            let files = fs::read_dir(folder.path()).ok()?.flatten();
            let size = files.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
            Some((made, size, folder.path()))
        })
    }

    /// Removes all copies: they are made again when somebody asks.
    pub(crate) fn clear_exports(&self) {
        let _ = fs::remove_dir_all(self.exports());
    }
}
