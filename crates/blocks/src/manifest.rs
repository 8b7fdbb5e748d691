//! The list of blocks that make up one blob.

use std::{collections::HashMap, fmt};

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

/// A block and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRef {
    /// The block's id.
    pub id: BlockId,
    /// Its length in bytes.
    pub length: u32,
}

/// A part of a block, most often all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The block.
    pub block: BlockRef,
    /// Where in the block the part begins.
    pub from: u32,
    /// The length of the part in bytes.
    pub length: u32,
}

impl Piece {
    /// All of a block.
    pub const fn whole(block: BlockRef) -> Self {
        Self { block, from: 0, length: block.length }
    }

    /// Whether it is all of its block.
    pub const fn is_whole(&self) -> bool {
        self.length == self.block.length
    }

    /// The part of the block's bytes.
    pub fn of<'b>(&self, block: &'b [u8]) -> Result<&'b [u8], Error> {
        let part = block.get(self.from as usize..).and_then(|rest| rest.get(..self.length as usize));
        part.ok_or_else(|| {
            Error::damaged("a manifest", format!("block {} is shorter than it says", self.block.id))
        })
    }
}

/// What a blob consists of: blocks and parts of blocks, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The blocks and parts of blocks.
    pub pieces: Vec<Piece>,
}

/// The version in which every piece is a whole block.
const WHOLE: u8 = 1;
/// The version in which a piece may be a part of a block.
const PARTS: u8 = 2;
const BLOCK: usize = 36;

impl Manifest {
    /// The length of the blob.
    pub fn size(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.length)).sum()
    }

    /// Whether a piece is only a part of its block.
    pub fn has_parts(&self) -> bool {
        !self.pieces.iter().all(Piece::is_whole)
    }

    /// The blocks that are needed; a block occurs as often as the blob contains it.
    pub fn blocks(&self) -> impl Iterator<Item = BlockRef> {
        self.pieces.iter().map(|piece| piece.block)
    }

    /// Encodes the manifest. `FORMAT.md` has the bytes.
    pub fn encode(&self) -> Vec<u8> {
        if self.has_parts() {
            return self.encode_parts();
        }
        let mut bytes = Vec::with_capacity(1 + self.pieces.len() * BLOCK);
        bytes.push(WHOLE);
        self.blocks().for_each(|block| push_block(&mut bytes, &block));
        bytes
    }

    fn encode_parts(&self) -> Vec<u8> {
        let mut places: HashMap<BlockRef, u64> = HashMap::new();
        let (mut blocks, mut pieces) = (Vec::new(), Vec::new());
        for piece in &self.pieces {
            let next = places.len() as u64;
            let place = *places.entry(piece.block).or_insert_with(|| {
                push_block(&mut blocks, &piece.block);
                next
            });
            push_number(&mut pieces, place);
            push_number(&mut pieces, piece.from.into());
            push_number(&mut pieces, piece.length.into());
        }
        let mut bytes = vec![PARTS];
        push_number(&mut bytes, places.len() as u64);
        bytes.append(&mut blocks);
        bytes.append(&mut pieces);
        bytes
    }

    /// Decodes the output of [`Manifest::encode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let damaged = |what: &str| Error::damaged("a manifest", what);
        let (version, entries) = bytes.split_first().ok_or_else(|| damaged("it is empty"))?;
        match *version {
            WHOLE => {
                let (blocks, []) = entries.as_chunks::<BLOCK>() else {
                    return Err(damaged("its length is not a whole number of entries"));
                };
                Ok(Self { pieces: blocks.iter().map(block).map(Piece::whole).collect() })
            }
            PARTS => decode_parts(entries).ok_or_else(|| damaged("its pieces do not fit its blocks")),
            unknown => Err(damaged(&format!("version {unknown} is unknown"))),
        }
    }
}

/// `None` if the bytes end early, or a piece is empty or not within a block of the manifest.
fn decode_parts(mut rest: &[u8]) -> Option<Manifest> {
    let count = usize::try_from(take_number(&mut rest)?).ok()?;
    let (blocks, mut rest) = rest.split_at_checked(count.checked_mul(BLOCK)?)?;
    let blocks = blocks.as_chunks::<BLOCK>().0;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let place = usize::try_from(take_number(&mut rest)?).ok()?;
        let block = block(blocks.get(place)?);
        let from = u32::try_from(take_number(&mut rest)?).ok()?;
        let length = u32::try_from(take_number(&mut rest)?).ok()?;
        if length == 0 || from.checked_add(length)? > block.length {
            return None;
        }
        pieces.push(Piece { block, from, length });
    }
    Some(Manifest { pieces })
}

fn push_block(bytes: &mut Vec<u8>, block: &BlockRef) {
    bytes.extend_from_slice(block.id.as_bytes());
    bytes.extend_from_slice(&block.length.to_le_bytes());
}

fn block(bytes: &[u8; BLOCK]) -> BlockRef {
    let mut id = [0; 32];
    id.copy_from_slice(&bytes[..32]);
    let length = u32::from_le_bytes([bytes[32], bytes[33], bytes[34], bytes[35]]);
    BlockRef { id: BlockId(id), length }
}

/// Seven bits a byte, the lowest first; all bytes but the last have the highest bit.
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
