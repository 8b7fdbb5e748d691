//! Loose blocks: encoded here, stored by the caller until they are folded into a pack.

use crate::{
    BlockId, Error,
    frame::{self, Codec},
};

/// A block encoded on its own: one codec byte, the raw length in four bytes, then the stored bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loose {
    /// The block's hash.
    pub id: BlockId,
    /// Its encoding.
    pub bytes: Vec<u8>,
}

const HEADER: usize = 5;
/// Blocks up to this length are stored as they are. Compressing one takes longer than writing what it would save, and the
/// pack that it is folded into compresses it anyway.
const PLAIN: usize = 4 * 1_024;

impl Loose {
    /// Encodes `raw`.
    pub fn encode(id: BlockId, raw: &[u8]) -> Result<Self, Error> {
        let framed = |codec: Codec, stored: &[u8]| {
            let mut bytes = Vec::with_capacity(HEADER + stored.len());
            bytes.push(codec as u8);
            bytes.extend_from_slice(&(raw.len() as u32).to_le_bytes());
            bytes.extend_from_slice(stored);
            Self { id, bytes }
        };
        if raw.len() <= PLAIN {
            return Ok(framed(Codec::Raw, raw));
        }
        let (codec, stored) = frame::pack_alone(raw).map_err(Error::Source)?;
        Ok(framed(codec, &stored))
    }

    /// Returns the raw block, verified against its hash.
    pub fn decode(&self) -> Result<Vec<u8>, Error> {
        let damaged = |what: &str| Error::damaged(format!("loose block {}", self.id), what);
        let (header, stored) =
            self.bytes.split_at_checked(HEADER).ok_or_else(|| damaged("it is too short"))?;
        let codec = Codec::from_byte(header[0]).filter(|codec| matches!(codec, Codec::Raw | Codec::Zstd));
        let codec = codec.ok_or_else(|| damaged("its codec is unknown"))?;
        let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]) as usize;
        if length > crate::cut::MAX {
            return Err(damaged("its length exceeds the largest block size"));
        }
        let raw = frame::unpack(codec, None, stored, length).map_err(|what| damaged(&what))?;
        if BlockId::of(&raw) == self.id { Ok(raw) } else { Err(damaged("its bytes do not match its hash")) }
    }
}
