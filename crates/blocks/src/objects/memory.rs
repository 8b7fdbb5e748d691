//! Objects in memory, for tests and temporary libraries.

use std::{collections::BTreeMap, io, sync::Arc};

use parking_lot::RwLock;

use super::{Object, Objects};

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

    fn read(&self, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let objects = self.0.read();
        let bytes = objects.get(name).ok_or_else(|| absent(name))?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(length);
        bytes.get(start..end).map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Object + '_>> {
        Ok(Box::new(self.0.read().get(name).ok_or_else(|| absent(name))?.clone()))
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        self.0.read().get(name).map(|bytes| bytes.len() as u64).ok_or_else(|| absent(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.read().keys().cloned().collect())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.0.write().remove(name);
        Ok(())
    }

    fn sweep(&self) -> io::Result<u64> {
        Ok(0)
    }
}
