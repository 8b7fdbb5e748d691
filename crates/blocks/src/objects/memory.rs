//! Objects in memory, for tests and temporary libraries.

use std::{collections::BTreeMap, io, ops::Bound, sync::Arc};

use parking_lot::RwLock;

use super::{ByteRange, LIST_PAGE, Listed, Objects};

/// A map of objects; clones share it.
#[derive(Clone, Default)]
pub struct Memory(Arc<RwLock<BTreeMap<String, Vec<u8>>>>);

impl Memory {
    /// Modifies the bytes of an object, to test whether readers detect it.
    pub fn tamper(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(bytes) = self.0.write().get_mut(name) {
            change(bytes);
        }
    }
}

fn absent(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no object {name}"))
}

impl Objects for Memory {
    fn put(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        self.0.write().insert(name.to_owned(), parts.concat());
        Ok(())
    }

    fn put_new(&self, name: &str, parts: &[&[u8]]) -> io::Result<bool> {
        let mut objects = self.0.write();
        let is_new = !objects.contains_key(name);
        if is_new {
            objects.insert(name.to_owned(), parts.concat());
        }
        Ok(is_new)
    }

    fn read(&self, name: &str, ranges: &[ByteRange]) -> io::Result<Vec<Vec<u8>>> {
        let objects = self.0.read();
        let object = objects.get(name).ok_or_else(|| absent(name))?;
        let read = |range: &ByteRange| {
            let start = usize::try_from(range.offset).unwrap_or(usize::MAX);
            let found = object.get(start..start.saturating_add(range.length));
            found.map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        };
        ranges.iter().map(read).collect()
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        self.0.read().get(name).map(|bytes| bytes.len() as u64).ok_or_else(|| absent(name))
    }

    fn list(&self, after: &str) -> io::Result<Vec<Listed>> {
        let objects = self.0.read();
        let rest = objects.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let listed =
            |(name, bytes): (&String, &Vec<u8>)| Listed { name: name.clone(), size: bytes.len() as u64 };
        Ok(rest.map(listed).take(LIST_PAGE).collect())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.0.write().remove(name);
        Ok(())
    }

    fn sweep(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn describe(&self) -> String {
        "memory".into()
    }
}
