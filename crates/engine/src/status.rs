//! The figures of a library, as the caller owns it.

use std::collections::HashMap;

use shelf_base::CallContext;
use shelf_blocks::{BlockId, Manifest, Usage};
use shelf_catalog::{CollectionSummary, TypeFigures, chunks};

use crate::{Bearer, Caller, IndexFigures, Library, Result};

/// The contract's five figures; the ratio is made from two of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Live documents.
    pub total_objects: u64,
    /// Their bytes.
    pub total_bytes: u64,
    /// Distinct blocks under them.
    pub unique_blocks: u64,
    /// Bytes that sharing saves.
    pub deduplicated_bytes: u64,
}

impl Figures {
    /// Saved bytes as a share of all bytes; 0 for an empty library.
    pub fn dedup_ratio(&self) -> f64 {
        if self.total_bytes == 0 { 0.0 } else { self.deduplicated_bytes as f64 / self.total_bytes as f64 }
    }
}

/// Everything `status` can tell.
#[derive(Clone, Debug)]
pub struct StatusReply {
    /// The figures.
    pub figures: Figures,
    /// The caller's collections.
    pub collections: Vec<CollectionSummary>,
    /// By type of file.
    pub types: Vec<TypeFigures>,
    /// The last sequence number.
    pub sequence: u64,
    /// What the packs hold; only the owner and administrators see what is shared by all.
    pub storage: Option<Storage>,
}

/// Storage of the whole library.
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    /// The packs.
    pub packs: Usage,
    /// Loose blocks and their bytes.
    pub loose: (u64, u64),
    /// Bytes of the catalog.
    pub catalog_bytes: u64,
    /// What the search index holds; `None` when it is to be built anew.
    pub index: Option<IndexFigures>,
    /// Bytes of derived data.
    pub derived_bytes: u64,
}

impl Library {
    /// The caller's figures; collections, types and storage when `detailed` or `types` ask for them.
    pub fn status(
        &self,
        caller: &Caller,
        detailed: bool,
        types: bool,
        call: &CallContext,
    ) -> Result<StatusReply> {
        caller.must_read()?;
        call.check()?;
        let scope = caller.pass.scope();
        let sees_all = caller.pass.bearer() == Bearer::Owner || caller.pass.may_administer();
        let storage = if detailed && sees_all { Some(self.storage()?) } else { None };
        Ok(StatusReply {
            figures: self.figures(caller)?,
            collections: if detailed { self.collections(caller)? } else { Vec::new() },
            types: if types { self.catalog.type_figures(scope)? } else { Vec::new() },
            sequence: self.catalog.sequence()?,
            storage,
        })
    }

    /// What the whole library takes on its storage.
    pub fn storage(&self) -> Result<Storage> {
        Ok(Storage {
            packs: self.blocks.usage()?,
            loose: self.catalog.loose_figures()?,
            catalog_bytes: self.catalog.bytes()?,
            index: self.indexing.figures().ok(),
            derived_bytes: self.blobs.readings.bytes(),
        })
    }

    /// Counted from every live manifest; remembered until something changes.
    fn figures(&self, caller: &Caller) -> Result<Figures> {
        let scope = caller.pass.scope();
        let sequence = self.catalog.sequence()?;
        if let Some((known, at, figures)) = &*self.figures.lock()
            && known == scope
            && *at == sequence
        {
            return Ok(*figures);
        }
        let mut figures = Figures::default();
        let mut blocks: HashMap<BlockId, u32> = HashMap::new();
        chunks(
            |position| Ok(self.catalog.live_manifests_from(scope, position)?),
            |rows| {
                for row in rows {
                    figures.total_objects += 1;
                    figures.total_bytes += row.size;
                    let manifest = Manifest::decode(&row.manifest)?;
                    blocks.extend(manifest.blocks.iter().map(|block| (block.id, block.length)));
                }
                Ok::<_, crate::Error>(())
            },
        )?;
        figures.unique_blocks = blocks.len() as u64;
        let unique_bytes: u64 = blocks.values().map(|length| u64::from(*length)).sum();
        figures.deduplicated_bytes = figures.total_bytes.saturating_sub(unique_bytes);
        *self.figures.lock() = Some((scope.clone(), sequence, figures));
        Ok(figures)
    }
}
