//! The figures of a library, as the caller owns it.

use std::collections::{HashMap, hash_map::Entry};

use shelf_base::CallContext;
use shelf_blocks::{Manifest, Usage};
use shelf_catalog::{BlobRow, CollectionSummary, Operation, Scope, TypeFigures, chunks};

use crate::{Bearer, Caller, IndexFigures, Library, Result};

/// Blocks that are remembered between two looks, at most; with more of them, everything is counted each time.
const COUNTED_BLOCKS: usize = 1 << 18;
/// Records of the journal that are followed one by one.
const COUNTED_RECORDS: u64 = 1_000;

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

    /// Counted once from every live manifest, and from then on from what the journal says has changed.
    fn figures(&self, caller: &Caller) -> Result<Figures> {
        let scope = caller.pass.scope();
        let sequence = self.catalog.sequence()?;
        let mut kept = self.figures.lock();
        let known = kept.take().filter(|counted| counted.scope == *scope && counted.sequence <= sequence);
        let counted = match known {
            Some(counted) => self.count_on(counted, sequence)?,
            None => None,
        };
        let counted = match counted {
            Some(counted) => counted,
            None => self.count_all(scope, sequence)?,
        };
        let figures = counted.figures();
        // What changed while everything was counted may have been counted, and would be once more.
        let is_exact = self.catalog.sequence()? == sequence;
        *kept = Some(counted).filter(|counted| is_exact && counted.blocks.len() <= COUNTED_BLOCKS);
        Ok(figures)
    }

    fn count_all(&self, scope: &Scope, sequence: u64) -> Result<Counted> {
        let mut counted = Counted::new(scope.clone(), sequence);
        chunks(
            |position| Ok(self.catalog.live_manifests_from(scope, position)?),
            |rows| rows.iter().try_for_each(|row| counted.add(row)),
        )?;
        Ok(counted)
    }

    /// Goes on to a later record of the journal; `None` when that cannot be done, or takes longer than counting again.
    fn count_on(&self, mut counted: Counted, sequence: u64) -> Result<Option<Counted>> {
        if sequence - counted.sequence > COUNTED_RECORDS {
            return Ok(None);
        }
        if sequence == counted.sequence {
            return Ok(Some(counted));
        }
        let records = self.catalog.journal(counted.sequence, (sequence - counted.sequence) as usize)?;
        let collections = self.catalog.collection_ids(&counted.scope, None)?;
        for record in &records {
            match record.operation {
                Operation::Add | Operation::Replace | Operation::Delete => {}
                Operation::Update | Operation::Retitle if record.previous == record.new => continue,
                Operation::Snapshot
                | Operation::CreateCollection
                | Operation::RenameCollection
                | Operation::SetModel
                | Operation::SetBook
                | Operation::SetMap
                | Operation::CreateAccount
                | Operation::UpdateAccount
                | Operation::RevokeSession
                | Operation::CreateToken
                | Operation::RevokeToken
                | Operation::RotateToken => continue,
                Operation::Update
                | Operation::Retitle
                | Operation::DeleteCollection
                | Operation::DeleteAccount
                | Operation::Recover
                | Operation::DropSnapshot
                | Operation::Collect => return Ok(None),
            }
            if !record.collection.is_some_and(|id| collections.contains(&id)) {
                continue;
            }
            for (hash, is_new) in [(record.previous, false), (record.new, true)] {
                let Some(hash) = hash else { continue };
                let Some(row) = self.catalog.blob(&hash)? else { return Ok(None) };
                if is_new {
                    counted.add(&row)?;
                } else if !counted.remove(&row)? {
                    return Ok(None);
                }
            }
        }
        counted.sequence = sequence;
        Ok(Some(counted))
    }
}

/// The documents of a scope at one record of the journal, counted.
pub(crate) struct Counted {
    scope: Scope,
    sequence: u64,
    documents: u64,
    bytes: u64,
    /// How many documents use each block, by the short form of its id.
    blocks: HashMap<i64, u32, foldhash::fast::RandomState>,
    unique_bytes: u64,
}

impl Counted {
    fn new(scope: Scope, sequence: u64) -> Self {
        Self { scope, sequence, documents: 0, bytes: 0, blocks: HashMap::default(), unique_bytes: 0 }
    }

    fn figures(&self) -> Figures {
        Figures {
            total_objects: self.documents,
            total_bytes: self.bytes,
            unique_blocks: self.blocks.len() as u64,
            deduplicated_bytes: self.bytes.saturating_sub(self.unique_bytes),
        }
    }

    fn add(&mut self, row: &BlobRow) -> Result<()> {
        self.documents += 1;
        self.bytes += row.size;
        for block in Manifest::decode(&row.manifest)?.blocks() {
            let uses = self.blocks.entry(block.id.short()).or_insert(0);
            if *uses == 0 {
                self.unique_bytes += u64::from(block.length);
            }
            *uses += 1;
        }
        Ok(())
    }

    /// Takes a document out; false when it was not counted.
    fn remove(&mut self, row: &BlobRow) -> Result<bool> {
        if self.documents == 0 || self.bytes < row.size {
            return Ok(false);
        }
        self.documents -= 1;
        self.bytes -= row.size;
        for block in Manifest::decode(&row.manifest)?.blocks() {
            let Entry::Occupied(mut uses) = self.blocks.entry(block.id.short()) else { return Ok(false) };
            *uses.get_mut() -= 1;
            if *uses.get() == 0 {
                uses.remove();
                self.unique_bytes = self.unique_bytes.saturating_sub(u64::from(block.length));
            }
        }
        Ok(true)
    }
}
