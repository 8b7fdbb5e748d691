//! Copies of assets as files, for callers who reach no server: one for each content, bounded in size.

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use cap_std::{ambient_authority, fs::Dir};
use shelf_base::CallContext;
use shelf_catalog::Version;

use super::{Asset, links};
use crate::{Error, Library, Result};

/// Bytes of all copies together.
const ALL_COPIES: u64 = 1 << 30;
/// Bytes of copies that one list makes.
const OF_A_LIST: u64 = 64 << 20;

/// How much a call may still copy.
pub(super) struct Budget(u64);

impl Budget {
    /// One asset is always copied; of a list as much as fits. The rest is copied when it is asked for by name.
    pub(super) const fn of_call(assets: usize) -> Self {
        Self(if assets == 1 { u64::MAX } else { OF_A_LIST })
    }
}

/// The `file://` address of a path.
pub(super) fn file_url(path: &Path) -> String {
    format!("file://{}", links::encoded(&path.display().to_string()))
}

impl Library {
    fn exports(&self) -> PathBuf {
        self.folder().join("exports")
    }

    /// The address of an asset's copy, which is made when the budget allows.
    pub(super) fn exported(&self, asset: &Asset, budget: &mut Budget) -> Result<String> {
        let folder = self.exports().join(asset.hash.to_string());
        let file = folder.join(asset.name.rsplit('/').next().unwrap_or(&asset.name));
        if !file.exists() && asset.size <= budget.0 {
            budget.0 -= asset.size;
            self.make_room(asset.size);
            let failed = |error| Error::writing("exports", error);
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
            let place = Dir::open_ambient_dir(&folder, ambient_authority()).map_err(failed)?;
            let version = Version {
                number: 0,
                hash: asset.hash,
                size: asset.size,
                modified_at: asset.uploaded_at,
                indexed_at: asset.uploaded_at,
                mode: 0o600,
            };
            let name = file.file_name().map(Path::new).unwrap_or(Path::new("asset"));
            self.write_atomic(&place, name, &version, &CallContext::new(), "exports")?;
        }
        Ok(file_url(&std::path::absolute(&file).unwrap_or(file)))
    }

    /// Removes the oldest copies until there is room for another.
    fn make_room(&self, wanted: u64) {
        let mut copies: Vec<(SystemTime, u64, PathBuf)> = self.copies().collect();
        copies.sort();
        let mut total: u64 = copies.iter().map(|(_, size, _)| size).sum();
        for (_, size, folder) in copies {
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
