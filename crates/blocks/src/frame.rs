//! Frames: a run of blocks compressed together.
//!
//! Neighbouring files of a tree resemble each other, so compressing them together stores markedly less than one by
//! one, and a frame stays small enough that reading one block of it costs a fraction of a millisecond.

use std::{cell::RefCell, io};

use zstd::bulk::{Compressor, Decompressor};

/// Raw bytes after which a frame is closed.
pub(crate) const TARGET: usize = 96 * 1_024;
/// The most raw bytes that a frame can hold: one block joins before the target is checked.
pub(crate) const RAW_MAX: usize = TARGET + crate::cut::MAX;

const LEVEL: i32 = 3;
const PROBE: usize = 8 * 1_024;

/// How the bytes of a frame are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Raw = 0,
    Zstd = 1,
}

impl Codec {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Raw),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Compresses frames, skipping what does not shrink.
pub(crate) struct Packer {
    zstd: Compressor<'static>,
}

impl Packer {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { zstd: Compressor::new(LEVEL)? })
    }

    pub(crate) fn pack(&mut self, raw: &[u8]) -> io::Result<(Codec, Vec<u8>)> {
        if raw.len() > 4 * PROBE && !self.shrinks(&raw[raw.len() / 2..][..PROBE])? {
            return Ok((Codec::Raw, raw.to_vec()));
        }
        let packed = self.zstd.compress(raw)?;
        if packed.len() < raw.len() { Ok((Codec::Zstd, packed)) } else { Ok((Codec::Raw, raw.to_vec())) }
    }

    fn shrinks(&mut self, sample: &[u8]) -> io::Result<bool> {
        self.zstd.set_compression_level(1)?;
        let packed = self.zstd.compress(sample)?;
        self.zstd.set_compression_level(LEVEL)?;
        Ok(packed.len() < sample.len() - sample.len() / 32)
    }
}

thread_local! {
    /// Making a compressor costs more than compressing a small block with it.
    static PACKER: RefCell<Option<Packer>> = const { RefCell::new(None) };
}

/// Compresses a single block, with this thread's own compressor.
pub(crate) fn pack_alone(raw: &[u8]) -> io::Result<(Codec, Vec<u8>)> {
    PACKER.with_borrow_mut(|kept| {
        let packer = match kept {
            Some(packer) => packer,
            None => kept.insert(Packer::new()?),
        };
        packer.pack(raw)
    })
}

thread_local! {
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Decompresses with this thread's own decompressor, for the same reason.
fn decompress(stored: &[u8], raw_length: usize) -> io::Result<Vec<u8>> {
    UNPACKER.with_borrow_mut(|kept| {
        let unpacker = match kept {
            Some(unpacker) => unpacker,
            None => kept.insert(Decompressor::new()?),
        };
        unpacker.decompress(stored, raw_length)
    })
}

/// Restores a frame; an error when the bytes do not give exactly `raw_length`.
pub(crate) fn unpack(codec: Codec, stored: Vec<u8>, raw_length: usize) -> Result<Vec<u8>, String> {
    let raw = match codec {
        Codec::Raw => stored,
        Codec::Zstd => decompress(&stored, raw_length).map_err(|error| error.to_string())?,
    };
    if raw.len() == raw_length {
        Ok(raw)
    } else {
        Err(format!("a frame holds {} bytes instead of {raw_length}", raw.len()))
    }
}
