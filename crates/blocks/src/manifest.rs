//! The list of blocks that make up one blob.

use std::fmt;

use shelf_base::hex;

use crate::Error;

/// The id of a block: the BLAKE3 hash of its bytes. Internal; callers identify blobs by SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId([u8; 32]);

impl BlockId {
    /// The id of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Wraps an id read from storage.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first eight bytes as a number, for accounting tables that need no more.
    pub const fn short(&self) -> i64 {
        let b = &self.0;
        i64::from_be_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for BlockId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "BlockId({self})")
    }
}

/// One block of a blob and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRef {
    /// The block's id.
    pub id: BlockId,
    /// Its length in bytes.
    pub length: u32,
}

/// The blocks of a blob, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The blocks.
    pub blocks: Vec<BlockRef>,
}

const VERSION: u8 = 1;
const ENTRY: usize = 36;

impl Manifest {
    /// The length of the blob.
    pub fn size(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.length)).sum()
    }

    /// Encodes the manifest: one version byte, then 36 bytes per block.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1 + self.blocks.len() * ENTRY);
        bytes.push(VERSION);
        for block in &self.blocks {
            bytes.extend_from_slice(block.id.as_bytes());
            bytes.extend_from_slice(&block.length.to_le_bytes());
        }
        bytes
    }

    /// Decodes the output of [`Manifest::encode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let (version, entries) =
            bytes.split_first().ok_or_else(|| Error::damaged("a manifest", "it is empty"))?;
        if *version != VERSION {
            return Err(Error::damaged("a manifest", format!("version {version} is unknown")));
        }
        if !entries.len().is_multiple_of(ENTRY) {
            return Err(Error::damaged("a manifest", "its length is not a whole number of entries"));
        }
        Ok(Self { blocks: entries.as_chunks::<ENTRY>().0.iter().map(entry).collect() })
    }
}

fn entry(bytes: &[u8; ENTRY]) -> BlockRef {
    let mut id = [0; 32];
    id.copy_from_slice(&bytes[..32]);
    let length = u32::from_le_bytes([bytes[32], bytes[33], bytes[34], bytes[35]]);
    BlockRef { id: BlockId(id), length }
}
