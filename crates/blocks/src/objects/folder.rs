//! Objects stored as files in one folder.

use std::{
    io,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{ByteRange, Disk, LIST_PAGE, Listed, Objects, RealDisk};

const UNFINISHED: &str = ".part";

/// A folder of objects. A file gets its final name only after its bytes have been synced, and the name is made durable
/// before [`Objects::put`] returns.
pub struct Folder<D = RealDisk> {
    path: PathBuf,
    disk: D,
    counter: AtomicU64,
}

impl Folder<RealDisk> {
    /// Uses `path` on the local file system; the folder is created when first needed.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::on(RealDisk, path)
    }
}

impl<D: Disk> Folder<D> {
    /// Uses `path` on `disk`.
    pub fn on(disk: D, path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), disk, counter: AtomicU64::new(0) }
    }

    fn unfinished_path(&self, name: &str) -> PathBuf {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        self.path.join(format!("{name}.{}-{number}{UNFINISHED}", process::id()))
    }

    fn write(&self, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
        let mut file = self.disk.create(path)?;
        for part in parts {
            file.write(part)?;
        }
        file.sync()
    }

    /// Whether the file exists and contains exactly these bytes.
    fn holds(&self, path: &Path, parts: &[&[u8]]) -> bool {
        let length: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let mut offset = 0;
        self.disk.length(path).is_ok_and(|found| found == length)
            && parts.iter().all(|part| {
                let found = self.disk.read(path, offset, part.len());
                offset += part.len() as u64;
                found.is_ok_and(|found| found == **part)
            })
    }

    fn prepare(&self) -> io::Result<()> {
        self.disk.create_folder(&self.path)?;
        // The folder's own directory entry must be durable too.
        self.path.parent().map_or(Ok(()), |parent| self.disk.sync_folder(parent))
    }
}

impl<D: Disk> Objects for Folder<D> {
    fn put(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let path = self.path.join(name);
        if self.holds(&path, parts) {
            // Another process may have just renamed it and not yet synced the folder.
            return self.disk.sync_folder(&self.path);
        }
        let unfinished = self.unfinished_path(name);
        let written = match self.write(&unfinished, parts) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.prepare()?;
                self.write(&unfinished, parts)
            }
            other => other,
        };
        let finished = written.and_then(|()| self.disk.rename(&unfinished, &path));
        if let Err(error) = finished {
            let _ = self.disk.remove(&unfinished);
            return Err(error);
        }
        self.disk.sync_folder(&self.path)
    }

    fn read(&self, name: &str, ranges: &[ByteRange]) -> io::Result<Vec<Vec<u8>>> {
        let path = self.path.join(name);
        if let [one] = ranges {
            return Ok(vec![self.disk.read(&path, one.offset, one.length)?]);
        }
        let file = self.disk.open(&path)?;
        let read = |range: &ByteRange| {
            let mut bytes = vec![0; range.length];
            file.read_at(range.offset, &mut bytes)?;
            Ok(bytes)
        };
        ranges.iter().map(read).collect()
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        self.disk.length(&self.path.join(name))
    }

    fn list(&self, after: &str) -> io::Result<Vec<Listed>> {
        let mut names = self.disk.list(&self.path)?;
        names.retain(|name| !name.ends_with(UNFINISHED) && name.as_str() > after);
        names.sort_unstable();
        let mut page = Vec::with_capacity(names.len().min(LIST_PAGE));
        for name in names {
            match self.disk.length(&self.path.join(&name)) {
                Ok(size) => page.push(Listed { name, size }),
                // It has been deleted since the folder was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            if page.len() == LIST_PAGE {
                break;
            }
        }
        Ok(page)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        match self.disk.remove(&self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn sweep(&self) -> io::Result<u64> {
        let mut freed = 0;
        for name in self.disk.list(&self.path)?.iter().filter(|name| name.ends_with(UNFINISHED)) {
            let path = self.path.join(name);
            freed += self.disk.length(&path).unwrap_or(0);
            self.disk.remove(&path)?;
        }
        Ok(freed)
    }

    fn describe(&self) -> String {
        self.path.display().to_string()
    }
}
