//! The packs of a backup, read where they lie in its file: a library stands on them while it is verified.

use std::{collections::BTreeMap, fs::File, io, ops::Bound, os::unix::fs::FileExt, path::Path};

use shelf_blocks::objects::{ByteRange, LIST_PAGE, Listed, Objects};

/// Packs inside a file. They can be read, not changed.
pub(super) struct Contents {
    file: File,
    /// Where each pack begins, and its length.
    packs: BTreeMap<String, (u64, u64)>,
}

impl Contents {
    pub(super) fn open(path: &Path, packs: BTreeMap<String, (u64, u64)>) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, packs })
    }

    fn place(&self, name: &str) -> io::Result<(u64, u64)> {
        self.packs.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Objects for Contents {
    fn put(&self, _: &str, _: &[&[u8]]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn read(&self, name: &str, ranges: &[ByteRange]) -> io::Result<Vec<Vec<u8>>> {
        let (start, length) = self.place(name)?;
        let read = |range: &ByteRange| {
            let is_inside = range.offset.checked_add(range.length as u64).is_some_and(|end| end <= length);
            if !is_inside {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut bytes = vec![0; range.length];
            self.file.read_exact_at(&mut bytes, start + range.offset)?;
            Ok(bytes)
        };
        ranges.iter().map(read).collect()
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        Ok(self.place(name)?.1)
    }

    fn list(&self, after: &str) -> io::Result<Vec<Listed>> {
        let rest = self.packs.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let listed = |(name, (_, size)): (&String, &(u64, u64))| Listed { name: name.clone(), size: *size };
        Ok(rest.map(listed).take(LIST_PAGE).collect())
    }

    fn delete(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sweep(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn describe(&self) -> String {
        "a backup".into()
    }
}
