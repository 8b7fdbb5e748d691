//! Frames: runs of blocks that are compressed together.
//!
//! Reading a document means decompressing the frames that contain it, so a frame holds a single document where
//! possible: a pattern search reads thousands of documents from across a library and would otherwise decompress their
//! neighbours as well. Large frames compress well because neighbours share content; here that content is in the pack's
//! [`dictionary`] instead. Documents larger than a frame span several.
//!
//! [`dictionary`]: crate::dictionary

use std::{cell::RefCell, io, sync::Arc};

use zstd::{
    bulk::Compressor,
    zstd_safe::{CParameter, DCtx},
};

use crate::dictionary::Dictionary;

/// Raw bytes after which a frame is closed.
pub(crate) const TARGET: usize = 96 * 1_024;
/// The maximum number of raw bytes in a frame: a block is added before the target is checked.
pub(crate) const RAW_MAX: usize = TARGET + crate::cut::MAX;
/// Raw bytes after which a frame is closed at the end of a document. Measured on 4,000 documents of 5 KB on average:
/// with less than 1 KiB the frames take 1 % more space, with 4 KiB a document takes a third longer to read.
pub(crate) const DOCUMENT: usize = 2 * 1_024;

/// Of frames with a dictionary, level 1 would take 4 % more space in two thirds of the time.
const LEVEL: i32 = 3;
/// Entries of the tables of matches for a large text, as a power of two, and the shortest match. What the level has for
/// dictionaries of this length makes frames 5 % longer and saves a tenth of the time.
const LONG_SEEN_LOG: u32 = 17;
const LONG_MATCH: u32 = 5;
const PROBE: usize = 8 * 1_024;
/// Larger frames are compressed without a dictionary of other documents: they contain enough repetition themselves, and it is
/// faster.
const ALONE: usize = 32 * 1_024;

/// How the bytes of a frame are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Raw = 0,
    Zstd = 1,
    /// Compressed with the pack's dictionary.
    Worded = 2,
    /// The dictionary itself.
    Dictionary = 3,
}

impl Codec {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Raw),
            1 => Some(Self::Zstd),
            2 => Some(Self::Worded),
            3 => Some(Self::Dictionary),
            _ => None,
        }
    }
}

/// Compresses frames; data that does not shrink is stored raw.
pub(crate) struct Packer {
    zstd: Compressor<'static>,
    /// Uses the batch's dictionary, once there is one.
    worded: Option<Compressor<'static>>,
    /// Whether the dictionary is a part of the document itself, so that frames of any length profit from it.
    is_wide: bool,
    /// The longest frame that is compressed with another dictionary.
    longest: usize,
}

impl Packer {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { zstd: Compressor::new(LEVEL)?, worded: None, is_wide: false, longest: ALONE })
    }

    /// Uses the dictionary from now on.
    pub(crate) fn learn(&mut self, dictionary: &Dictionary) -> io::Result<()> {
        if self.worded.is_none() {
            let mut worded = Compressor::with_dictionary(LEVEL, dictionary.raw())?;
            if dictionary.serves_long {
                worded.set_parameter(CParameter::HashLog(LONG_SEEN_LOG))?;
                worded.set_parameter(CParameter::ChainLog(LONG_SEEN_LOG))?;
                worded.set_parameter(CParameter::MinMatch(LONG_MATCH))?;
                self.longest = RAW_MAX;
            }
            self.worded = Some(worded);
        }
        Ok(())
    }

    /// Uses the dictionary, which is a part of the document, for all frames from now on.
    pub(crate) fn learn_wide(&mut self, dictionary: &Dictionary) -> io::Result<()> {
        self.worded = Some(Compressor::with_dictionary(LEVEL, dictionary.raw())?);
        self.is_wide = true;
        Ok(())
    }

    /// Whether a part of a large document would help to compress a later part of it.
    pub(crate) fn profits(&mut self, earlier: &[u8], later: &[u8]) -> io::Result<bool> {
        let alone = self.zstd.compress(later)?.len().min(later.len());
        let together = Compressor::with_dictionary(LEVEL, earlier)?.compress(later)?.len();
        Ok(together < alone - alone / 6)
    }

    pub(crate) fn knows_dictionary(&self) -> bool {
        self.worded.is_some()
    }

    pub(crate) fn pack(&mut self, raw: &[u8]) -> io::Result<(Codec, Vec<u8>)> {
        if self.is_wide
            && let Some(worded) = &mut self.worded
        {
            let sample = middle(raw);
            if worded.compress(sample)?.len() < sample.len() - sample.len() / 32 {
                return Ok((Codec::Worded, worded.compress(raw)?));
            }
        }
        if raw.len() > 4 * PROBE && !self.shrinks(raw)? {
            return Ok((Codec::Raw, raw.to_vec()));
        }
        let (codec, packed) = match &mut self.worded {
            Some(worded) if raw.len() <= self.longest => (Codec::Worded, worded.compress(raw)?),
            _ => (Codec::Zstd, self.zstd.compress(raw)?),
        };
        if packed.len() < raw.len() { Ok((codec, packed)) } else { Ok((Codec::Raw, raw.to_vec())) }
    }

    /// Whether a sample from the middle shrinks when compressed.
    pub(crate) fn shrinks(&mut self, raw: &[u8]) -> io::Result<bool> {
        let sample = middle(raw);
        self.zstd.set_compression_level(1)?;
        let packed = self.zstd.compress(sample)?;
        self.zstd.set_compression_level(LEVEL)?;
        Ok(packed.len() < sample.len() - sample.len() / 32)
    }
}

/// A sample from the middle.
fn middle(raw: &[u8]) -> &[u8] {
    let rest = &raw[raw.len() / 2..];
    &rest[..rest.len().min(PROBE)]
}

thread_local! {
    /// Creating a compressor costs more than compressing a small block with it.
    static PACKER: RefCell<Option<Packer>> = const { RefCell::new(None) };
}

/// Compresses a single block with a thread-local compressor.
pub(crate) fn pack_alone(raw: &[u8]) -> io::Result<(Codec, Vec<u8>)> {
    PACKER.with_borrow_mut(|kept| {
        let packer = match kept {
            Some(packer) => packer,
            None => kept.insert(Packer::new()?),
        };
        packer.pack(raw)
    })
}

/// Decompresses frames into its own buffer, which the next frame overwrites.
///
/// The dictionary is in the same buffer, directly before the frame, where zstd treats it as a contiguous prefix of the
/// output: a quarter faster than a dictionary in a separate buffer.
pub(crate) struct Unpacker {
    zstd: DCtx<'static>,
    memory: Vec<u8>,
    dictionary: Option<Arc<Vec<u8>>>,
    length: usize,
}

impl Default for Unpacker {
    fn default() -> Self {
        Self { zstd: DCtx::create(), memory: Vec::new(), dictionary: None, length: 0 }
    }
}

impl Unpacker {
    /// Decompresses a frame; fails unless the result has exactly `length` bytes.
    pub(crate) fn unpack(
        &mut self,
        codec: Codec,
        dictionary: Option<&Arc<Vec<u8>>>,
        stored: &[u8],
        length: usize,
    ) -> Result<&[u8], String> {
        // If anything below fails, the buffer must not count as holding a frame.
        self.length = 0;
        let start = match (codec, dictionary) {
            (Codec::Worded, Some(dictionary)) => {
                self.place_dictionary(dictionary);
                dictionary.len()
            }
            (Codec::Worded, None) => return Err("a frame needs a dictionary, but there is none".into()),
            _ => {
                self.dictionary = None;
                0
            }
        };
        if self.memory.len() < start + length {
            self.memory.resize(start + length, 0);
        }
        let (before, rest) = self.memory.split_at_mut(start);
        let unpacked = if codec == Codec::Raw {
            if stored.len() == length {
                rest[..length].copy_from_slice(stored);
            }
            stored.len()
        } else {
            self.zstd
                .decompress_using_dict(&mut rest[..length], stored, before)
                .map_err(|code| zstd::zstd_safe::get_error_name(code).to_owned())?
        };
        if unpacked != length {
            return Err(format!("a frame holds {unpacked} bytes instead of {length}"));
        }
        self.length = length;
        Ok(&self.memory[start..start + length])
    }

    /// The most recently decompressed frame.
    pub(crate) fn last(&self) -> &[u8] {
        let start = self.dictionary.as_ref().map_or(0, |dictionary| dictionary.len());
        &self.memory[start..start + self.length]
    }

    fn place_dictionary(&mut self, dictionary: &Arc<Vec<u8>>) {
        if self.dictionary.as_ref().is_some_and(|present| Arc::ptr_eq(present, dictionary)) {
            return;
        }
        if self.memory.len() < dictionary.len() {
            self.memory.resize(dictionary.len(), 0);
        }
        self.memory[..dictionary.len()].copy_from_slice(dictionary);
        self.dictionary = Some(dictionary.clone());
    }
}

thread_local! {
    static UNPACKER: RefCell<Unpacker> = RefCell::default();
}

/// Decompresses a frame with a thread-local unpacker: creating one costs more than decompressing a small frame.
pub(crate) fn unpack(
    codec: Codec,
    dictionary: Option<&Arc<Vec<u8>>>,
    stored: &[u8],
    length: usize,
) -> Result<Vec<u8>, String> {
    UNPACKER
        .with_borrow_mut(|unpacker| unpacker.unpack(codec, dictionary, stored, length).map(<[u8]>::to_vec))
}
