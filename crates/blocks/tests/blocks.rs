//! Tests of the block store: chunking, packing, verification, garbage collection and crash safety.

use std::{collections::HashSet, convert::Infallible, path::Path, sync::Arc};

use proptest::prelude::*;
use shelf_base::{Digest, ErrorInfo, Kind};
use shelf_blocks::{
    BlockId, BlockRef, Loose, Manifest, Piece, Store, Trust,
    cut::{self, Cut},
    gc,
    objects::{self, ByteRange, Folder, LIST_PAGE, Listed, Memory, Objects, forgetful::Forgetful},
    patch,
};

fn cut_slice(bytes: &[u8]) -> (Cut, Vec<Vec<u8>>) {
    let mut blocks = Vec::new();
    let cut = cut::slice::<Infallible>(bytes, |_, block| {
        blocks.push(block.to_vec());
        Ok(())
    });
    (cut.unwrap_or_else(|never| match never {}), blocks)
}

/// Bytes that look like text, different for every seed.
fn prose(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(length + 16);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(format!("word{} ", state % 5_000).as_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn store_all(store: &Store, contents: &[Vec<u8>]) -> Vec<Cut> {
    let batch = store.batch(Trust::Pack);
    let mut writer = batch.writer().unwrap();
    let cuts = contents
        .iter()
        .map(|bytes| {
            let cut = cut::slice(bytes, |block, bytes| writer.put(block, bytes)).unwrap();
            writer.end_document().unwrap();
            cut
        })
        .collect();
    writer.finish().unwrap();
    let _sealed = batch.seal().unwrap();
    cuts
}

fn read_all(store: &Store, cut: &Cut) -> Result<Vec<u8>, shelf_blocks::Error> {
    let blocks = cut.manifest.blocks().map(|block| store.read(&block.id)).collect::<Result<Vec<_>, _>>()?;
    let pieces = cut.manifest.pieces.iter().zip(&blocks);
    Ok(pieces.flat_map(|(piece, block)| piece.of(block).unwrap()).copied().collect())
}

/// Stores a new version of a blob with the help of the earlier one, as folders are added again.
fn store_patch(store: &Store, earlier: &Cut, earlier_bytes: &[u8], new: &[u8]) -> Cut {
    let batch = store.batch(Trust::Pack);
    assert!(earlier.manifest.blocks().all(|block| batch.holds(&block.id).unwrap()));
    let mut writer = batch.writer().unwrap();
    let parts = patch::around_an_edit(earlier_bytes, new);
    let patched = patch::patch(&earlier.manifest, &parts, new, patch::DOCUMENT, |block, bytes| {
        writer.put(block, bytes)
    });
    let cut = match patched.unwrap() {
        Some(cut) => cut,
        None => cut::slice(new, |block, bytes| writer.put(block, bytes)).unwrap(),
    };
    writer.end_document().unwrap();
    writer.finish().unwrap();
    let _sealed = batch.seal().unwrap();
    cut
}

/// Like `read_all`, but through a reader, as pattern searches read.
fn read_places(store: &Store, cut: &Cut) -> Result<Vec<u8>, shelf_blocks::Error> {
    let places = store.places(cut.manifest.blocks().map(|block| block.id))?;
    let (mut reader, mut bytes) = (store.reader(), Vec::new());
    reader.expect(places.iter().copied().flatten());
    for (piece, place) in cut.manifest.pieces.iter().zip(places) {
        let place = place.ok_or(shelf_blocks::Error::Missing(piece.block.id))?;
        bytes.extend_from_slice(piece.of(reader.read(&piece.block.id, place)?).unwrap());
    }
    Ok(bytes)
}

/// Many documents of a few kilobytes, enough for a dictionary.
fn small_documents() -> Vec<Vec<u8>> {
    (0..120).map(|seed| prose(seed, 200 + (seed as usize * 131) % 9_000)).collect()
}

/// The rows of a pack's frame table: offset, stored length, codec.
fn frames(pack: &[u8]) -> Vec<(usize, usize, u8)> {
    let number = |at: usize, bytes: usize| {
        pack[at..at + bytes].iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte))
    };
    let trailer = pack.len() - 64;
    let rows = (0..number(trailer, 4)).map(|row| number(trailer + 8, 8) + 20 * row);
    rows.map(|at| (number(at, 8), number(at + 8, 4), pack[at + 16])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn blocks_cover_the_content_within_bounds(seed: u64, length in 0_usize..400_000) {
        let bytes = prose(seed, length);
        let (cut, blocks) = cut_slice(&bytes);
        prop_assert_eq!(&blocks.concat(), &bytes);
        prop_assert_eq!(cut.hash, Digest::of(&bytes));
        prop_assert_eq!(cut.manifest.size(), length as u64);
        for (at, block) in blocks.iter().enumerate() {
            let last = at + 1 == blocks.len();
            prop_assert!(block.len() <= cut::MAX && (last || block.len() >= cut::MIN));
            let block = BlockRef { id: BlockId::of(block), length: block.len() as u32 };
            prop_assert_eq!(cut.manifest.pieces[at], Piece::whole(block));
        }
    }

    #[test]
    fn a_stream_is_cut_where_a_slice_is(seed: u64, length in 0_usize..9_000_000) {
        let bytes = prose(seed, length);
        let streamed = cut::stream::<shelf_blocks::Error>(&bytes[..], |_, _| Ok(())).unwrap();
        prop_assert_eq!(streamed, cut_slice(&bytes).0);
    }

    #[test]
    fn cuts_come_back_after_an_edit(seed: u64, at in 0_usize..1_000_000, inserted in 1_usize..2_000) {
        let before = prose(seed, 1_000_000);
        let mut after = before.clone();
        after.splice(at..at, prose(!seed, inserted));
        let known: HashSet<BlockId> = cut_slice(&before).0.manifest.blocks().map(|block| block.id).collect();
        let fresh: u64 = cut_slice(&after).0.manifest.blocks()
            .filter(|block| !known.contains(&block.id)).map(|block| u64::from(block.length)).sum();
        prop_assert!(fresh <= 4 * cut::MAX as u64 + inserted as u64, "{} new bytes", fresh);
    }

    #[test]
    fn packs_give_back_what_was_put(contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40_000), 0..12)) {
        let memory = Memory::default();
        let store = Store::new(Arc::new(memory.clone()));
        let cuts = store_all(&store, &contents);
        // Another process opens the same objects and sees the same bytes.
        let other = Store::new(Arc::new(memory));
        for (cut, bytes) in cuts.iter().zip(&contents) {
            prop_assert_eq!(&read_all(&store, cut).unwrap(), bytes);
            prop_assert_eq!(&read_all(&other, cut).unwrap(), bytes);
            prop_assert_eq!(&read_places(&other, cut).unwrap(), bytes);
        }
        prop_assert!(other.verify(|_, _| true).unwrap().is_empty());
    }

    #[test]
    fn manifests_and_loose_blocks_round_trip(bytes in prop::collection::vec(any::<u8>(), 0..60_000), noise: Vec<u8>) {
        let (cut, blocks) = cut_slice(&bytes);
        prop_assert_eq!(Manifest::decode(&cut.manifest.encode()).unwrap(), cut.manifest);
        for block in blocks {
            let loose = Loose::encode(BlockId::of(&block), &block).unwrap();
            prop_assert_eq!(loose.decode().unwrap(), block);
        }
        // Noise is rejected or decoded to something; it never panics.
        let _ = Manifest::decode(&noise);
        let _ = Loose { id: BlockId::of(b""), bytes: noise }.decode();
    }

    #[test]
    fn patched_versions_are_what_was_stored(
        length in 0_usize..120_000,
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..3_000, 0_usize..3_000), 1..12),
        noise: Vec<u8>,
    ) {
        let store = Store::new(Arc::new(Memory::default()));
        let mut present = prose(length as u64, length);
        let mut cut = store_all(&store, std::slice::from_ref(&present)).remove(0);
        for (seed, (place, removed, inserted)) in edits.into_iter().enumerate() {
            let mut new = present.clone();
            let at = place.index(new.len() + 1);
            let end = (at + removed).min(new.len());
            new.splice(at..end, prose(seed as u64 + 900, inserted));
            cut = store_patch(&store, &cut, &present, &new);
            prop_assert_eq!(cut.hash, Digest::of(&new));
            prop_assert_eq!(cut.manifest.size(), new.len() as u64);
            let decoded = Manifest::decode(&cut.manifest.encode()).unwrap();
            prop_assert_eq!(&decoded, &cut.manifest);
            // A version costs at most twice its length to read, and an eighth of it to describe.
            let blocks: HashSet<BlockRef> = decoded.blocks().collect();
            let read: u64 = blocks.iter().map(|block| u64::from(block.length)).sum();
            prop_assert!(read <= 2 * cut.size);
            prop_assert!(cut.manifest.encode().len() <= new.len() / 8 + 1 + 36 * new.len().div_ceil(cut::MIN));
            prop_assert_eq!(&read_all(&store, &cut).unwrap(), &new);
            prop_assert_eq!(&read_places(&store, &cut).unwrap(), &new);
            present = new;
        }
        // The same with a version that has parts, and its bytes damaged: rejected, or pieces within their blocks.
        let mut bytes = cut.manifest.encode();
        for (at, byte) in noise.into_iter().enumerate() {
            let place = (at * 7 + byte as usize) % bytes.len();
            bytes[place] ^= byte;
            if let Ok(manifest) = Manifest::decode(&bytes) {
                prop_assert!(manifest.pieces.iter().all(|piece| u64::from(piece.from) + u64::from(piece.length) <= u64::from(piece.block.length)));
            }
        }
    }

    #[test]
    fn documents_come_back_from_small_frames(seeds in prop::collection::vec((0_u64..400, 0_usize..20_000), 0..150)) {
        let memory = Memory::default();
        let contents: Vec<Vec<u8>> = seeds.iter().map(|(seed, length)| prose(*seed, *length)).collect();
        let cuts = store_all(&Store::new(Arc::new(memory.clone())), &contents);
        let store = Store::new(Arc::new(memory));
        for (cut, bytes) in cuts.iter().zip(&contents) {
            prop_assert_eq!(&read_all(&store, cut).unwrap(), bytes);
            prop_assert_eq!(&read_places(&store, cut).unwrap(), bytes);
        }
        prop_assert!(store.verify(|_, _| true).unwrap().is_empty());
    }

    #[test]
    fn a_flipped_bit_among_small_frames_never_gives_wrong_bytes(position: prop::sample::Index, bit in 0_u8..8) {
        let memory = Memory::default();
        let contents = small_documents();
        let cuts = store_all(&Store::new(Arc::new(memory.clone())), &contents);
        let name = memory.list("").unwrap().remove(0).name;
        memory.tamper(&name, |bytes| {
            let at = position.index(bytes.len());
            bytes[at] ^= 1 << bit;
        });
        let store = Store::new(Arc::new(memory));
        for (cut, bytes) in cuts.iter().zip(&contents) {
            for read in [read_all(&store, cut), read_places(&store, cut)] {
                match read {
                    Ok(read) => prop_assert_eq!(&read, bytes),
                    Err(error) => prop_assert_eq!(error.kind(), Kind::Corrupt),
                }
            }
        }
    }

    #[test]
    fn a_flipped_bit_never_gives_wrong_bytes(position: prop::sample::Index, bit in 0_u8..8) {
        let memory = Memory::default();
        let contents = vec![prose(1, 30_000), prose(2, 200_000)];
        let cuts = store_all(&Store::new(Arc::new(memory.clone())), &contents);
        let name = memory.list("").unwrap().remove(0).name;
        memory.tamper(&name, |bytes| {
            let at = position.index(bytes.len());
            bytes[at] ^= 1 << bit;
        });
        let store = Store::new(Arc::new(memory));
        for (cut, bytes) in cuts.iter().zip(&contents) {
            match read_all(&store, cut) {
                Ok(read) => prop_assert_eq!(&read, bytes),
                Err(error) => prop_assert_eq!(error.kind(), Kind::Corrupt),
            }
        }
    }
}

#[test]
fn one_byte_at_the_front_shares_nearly_everything() {
    let before = prose(7, 20_000_000);
    let mut after = before.clone();
    after.insert(0, b'x');
    let known: HashSet<BlockId> = cut_slice(&before).0.manifest.blocks().map(|block| block.id).collect();
    let cut = cut_slice(&after).0;
    let shared: u64 = cut
        .manifest
        .blocks()
        .filter(|block| known.contains(&block.id))
        .map(|block| u64::from(block.length))
        .sum();
    assert!(shared * 100 >= cut.size * 95, "{shared} of {} bytes shared", cut.size);
}

#[test]
fn damage_is_named_and_the_rest_stays_readable() {
    let memory = Memory::default();
    let contents: Vec<Vec<u8>> = (0..6).map(|seed| prose(seed, 150_000)).collect();
    let cuts = store_all(&Store::new(Arc::new(memory.clone())), &contents);
    let name = memory.list("").unwrap().remove(0).name;
    memory.tamper(&name, |bytes| bytes[1_000] ^= 1);
    let store = Store::new(Arc::new(memory));
    let problems = store.verify(|_, _| true).unwrap();
    assert!(
        !problems.is_empty()
            && problems.iter().all(|problem| problem.object == name && problem.block.is_some())
    );
    let readable = cuts
        .iter()
        .zip(&contents)
        .filter(|(cut, bytes)| read_all(&store, cut).is_ok_and(|read| read == **bytes));
    assert!(readable.count() >= 4);
}

#[test]
fn a_collection_frees_the_dead_and_keeps_the_living() {
    let memory = Memory::default();
    let store = Store::new(Arc::new(memory.clone()));
    let kept = store_all(&store, &[prose(1, 300_000), prose(2, 300_000)]);
    let mixed = store_all(&store, &[prose(3, 300_000), prose(4, 50_000)]);
    let dead = store_all(&store, &[prose(5, 300_000)]);
    let live_cuts = [&kept[0], &kept[1], &mixed[1]];
    let live: HashSet<BlockId> =
        live_cuts.iter().flat_map(|cut| cut.manifest.blocks().map(|block| block.id)).collect();
    let before = store.usage().unwrap();
    let plan = gc::Plan::make(&store, &live).unwrap();
    assert_eq!((plan.delete.len(), plan.rewrite.len(), plan.keep), (1, 1, 1));
    assert_eq!(store.usage().unwrap(), before, "a plan changes nothing");
    // A reader that opened the packs before must not be disturbed.
    let reader = Store::new(Arc::new(memory));
    assert!(read_all(&reader, &mixed[1]).is_ok());
    plan.run(&store, &live).unwrap();
    assert!(store.usage().unwrap().stored_bytes < before.stored_bytes);
    for cut in live_cuts {
        assert_eq!(Digest::of(&read_all(&store, cut).unwrap()), cut.hash);
        assert_eq!(Digest::of(&read_all(&reader, cut).unwrap()), cut.hash);
    }
    assert!(matches!(read_all(&store, &dead[0]), Err(shelf_blocks::Error::Missing(_))));
    assert!(gc::Plan::make(&store, &live).unwrap().delete.is_empty());
}

/// A write does not rely on packs that another process has deleted, even if this process remembers them.
#[test]
fn a_pack_that_has_gone_is_not_relied_on() {
    let objects: Arc<dyn Objects> = Arc::new(Memory::default());
    let store = Store::new(objects.clone());
    let cuts = store_all(&store, &[prose(1, 300_000)]);
    assert_eq!(read_all(&store, &cuts[0]).unwrap(), prose(1, 300_000));
    let other = Store::new(objects.clone());
    gc::Plan::make(&other, &HashSet::new()).unwrap().run(&other, &HashSet::new()).unwrap();
    assert!(objects.list("").unwrap().is_empty());
    let again = store_all(&store, &[prose(1, 300_000)]);
    assert_eq!(read_all(&Store::new(objects), &again[0]).unwrap(), prose(1, 300_000));
}

/// Storing content again repairs damaged blocks, even when the new pack gets the damaged pack's name.
#[test]
fn damaged_blocks_are_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(Arc::new(Folder::new(folder.path())));
    let cuts = store_all(&store, &[prose(1, 300_000)]);
    let pack = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&pack).unwrap();
    bytes[1_000] ^= 1;
    std::fs::write(&pack, bytes).unwrap();
    let store = Store::new(Arc::new(Folder::new(folder.path())));
    let presence = store.presence(Trust::Bytes);
    assert!(cuts[0].manifest.blocks().any(|block| !presence.holds(&block.id).unwrap()));
    let batch = store.batch(Trust::Bytes);
    let mut writer = batch.writer().unwrap();
    cut::slice(&prose(1, 300_000), |block, bytes| writer.put(block, bytes)).unwrap();
    writer.finish().unwrap();
    let _sealed = batch.seal().unwrap();
    assert_eq!(read_all(&store, &cuts[0]).unwrap(), prose(1, 300_000));
    assert_eq!(
        read_all(&Store::new(Arc::new(Folder::new(folder.path()))), &cuts[0]).unwrap(),
        prose(1, 300_000)
    );
}

/// Copying first keeps the locked phase short, and blocks that have become live in between are kept.
#[test]
fn blocks_are_copied_before_packs_are_deleted() {
    let objects: Arc<dyn Objects> = Arc::new(Memory::default());
    let store = Store::new(objects.clone());
    let contents: Vec<Vec<u8>> = (0..20).map(|seed| prose(seed, 100_000)).collect();
    let cuts = store_all(&store, &contents);
    let blocks = |which: &[usize]| -> HashSet<BlockId> {
        which.iter().flat_map(|at| cuts[*at].manifest.blocks()).map(|block| block.id).collect()
    };
    let plan = gc::Plan::make(&store, &blocks(&[3])).unwrap();
    assert_eq!(plan.rewrite.len(), 1);
    plan.copy(&store, &blocks(&[3]), &mut || true).unwrap();
    assert_eq!(objects.list("").unwrap().len(), 2, "nothing is deleted yet");
    // By now a second document is live, which only the old pack contains.
    let now = plan.again(&store, &blocks(&[3, 7])).unwrap();
    assert_eq!(now.rewrite, plan.rewrite);
    now.run(&store, &blocks(&[3, 7])).unwrap();
    assert!(objects.list("").unwrap().iter().all(|found| found.name != plan.rewrite[0]));
    let fresh = Store::new(objects);
    assert_eq!(read_all(&fresh, &cuts[3]).unwrap(), contents[3]);
    assert_eq!(read_all(&fresh, &cuts[7]).unwrap(), contents[7]);
    assert!(read_all(&fresh, &cuts[5]).is_err());
}

#[test]
fn what_was_sealed_survives_a_power_cut() {
    let disk = Forgetful::default();
    let open = || Store::new(Arc::new(Folder::on(disk.clone(), Path::new("/library/packs"))));
    let sealed = store_all(&open(), &[prose(1, 500_000), prose(2, 10)]);
    // A batch that is not sealed before the power cut leaves nothing behind that looks valid.
    {
        let store = open();
        let batch = store.batch(Trust::Pack);
        let mut writer = batch.writer().unwrap();
        cut::slice(&prose(3, 500_000), |block, bytes| writer.put(block, bytes)).unwrap();
    }
    disk.cut_power();
    let store = open();
    for (cut, length) in sealed.iter().zip([500_000, 10]) {
        assert_eq!(read_all(&store, cut).unwrap().len(), length);
    }
    assert!(store.verify(|_, _| true).unwrap().is_empty());
}

#[test]
fn a_full_disk_is_a_clear_error_and_leaves_the_store_whole() {
    let disk = Forgetful::default();
    let folder = Arc::new(Folder::on(disk.clone(), Path::new("/library/packs")));
    let store = Store::new(folder.clone());
    let kept = store_all(&store, &[prose(1, 100_000)]);
    disk.limit(Some(1_000));
    let batch = store.batch(Trust::Pack);
    let mut writer = batch.writer().unwrap();
    cut::slice(&prose(2, 500_000), |block, bytes| writer.put(block, bytes)).unwrap();
    writer.finish().unwrap();
    let error = batch.seal().unwrap_err();
    assert_eq!(error.kind(), Kind::StorageFull);
    assert!(error.hints()[0].contains("free some disk space"));
    assert!(read_all(&store, &kept[0]).is_ok());
    assert_eq!(folder.list("").unwrap().len(), 1);
    disk.limit(None);
    assert_eq!(store_all(&store, &[prose(2, 500_000)]).len(), 1);
}

#[test]
fn many_writers_fill_one_batch() {
    let store = Store::new(Arc::new(Memory::default()));
    let contents: Vec<Vec<u8>> = (0..40).map(|seed| prose(seed % 30, 60_000)).collect();
    let batch = store.batch(Trust::Pack);
    let cuts: Vec<Cut> = std::thread::scope(|scope| {
        let workers: Vec<_> = contents
            .chunks(10)
            .map(|chunk| {
                let batch = &batch;
                scope.spawn(move || {
                    let mut writer = batch.writer().unwrap();
                    let cuts: Vec<Cut> = chunk
                        .iter()
                        .map(|bytes| cut::slice(bytes, |block, bytes| writer.put(block, bytes)).unwrap())
                        .collect();
                    writer.finish().unwrap();
                    cuts
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let _sealed = batch.seal().unwrap();
    for (cut, bytes) in cuts.iter().zip(&contents) {
        assert_eq!(&read_all(&store, cut).unwrap(), bytes);
    }
    let distinct: HashSet<BlockId> =
        cuts.iter().flat_map(|cut| cut.manifest.blocks().map(|block| block.id)).collect();
    assert_eq!(store.usage().unwrap().blocks, distinct.len() as u64, "no block is stored twice");
}

#[test]
fn one_damaged_dictionary_is_told_and_costs_nothing() {
    let contents = small_documents();
    let pristine = Memory::default();
    let cuts = store_all(&Store::new(Arc::new(pristine.clone())), &contents);
    let Listed { name, size } = pristine.list("").unwrap().remove(0);
    let whole = ByteRange { offset: 0, length: size as usize };
    let whole = pristine.read(&name, &[whole]).unwrap().remove(0);
    let copies: Vec<_> = frames(&whole).into_iter().filter(|(.., codec)| *codec == 3).collect();
    assert_eq!(copies.len(), 2, "the dictionary is stored twice");
    assert!(frames(&whole).iter().filter(|(.., codec)| *codec == 2).count() > 60, "documents have frames");
    for (offset, length, _) in copies {
        let memory = Memory::default();
        memory.put(&name, &[&whole]).unwrap();
        memory.tamper(&name, |bytes| bytes[offset + length / 2] ^= 8);
        let store = Store::new(Arc::new(memory));
        for (cut, bytes) in cuts.iter().zip(&contents) {
            assert_eq!(&read_all(&store, cut).unwrap(), bytes);
            assert_eq!(&read_places(&store, cut).unwrap(), bytes);
        }
        let problems = store.verify(|_, _| true).unwrap();
        assert!(problems.len() == 1 && problems[0].block.is_none(), "{problems:?}");
        // Salvaging the pack loses nothing.
        assert!(store.salvage(std::slice::from_ref(&name)).unwrap().is_empty());
        assert!(store.verify(|_, _| true).unwrap().is_empty());
        assert!(cuts.iter().zip(&contents).all(|(cut, bytes)| read_all(&store, cut).unwrap() == *bytes));
    }
}

#[test]
fn a_reader_goes_on_while_packs_are_rewritten() {
    let memory = Memory::default();
    let store = Store::new(Arc::new(memory));
    let contents = small_documents();
    let cuts = store_all(&store, &contents);
    let first = cuts[0].manifest.pieces[0].block.id;
    let place = store.places(std::iter::once(first)).unwrap().remove(0).unwrap();
    let mut reader = store.reader();
    reader.read(&first, place).unwrap();
    let live: HashSet<BlockId> =
        cuts[..20].iter().flat_map(|cut| cut.manifest.blocks().map(|block| block.id)).collect();
    let plan = gc::Plan::make(&store, &live).unwrap();
    assert_eq!(plan.rewrite.len(), 1);
    plan.run(&store, &live).unwrap();
    // What a reader holds stays readable; a new reader fails because the place is gone, but the store finds the block.
    assert_eq!(BlockId::of(reader.read(&first, place).unwrap()), first);
    assert!(store.reader().read(&first, place).is_err());
    assert_eq!(BlockId::of(&store.read(&first).unwrap()), first);
}

/// If everything in a pack can still be read, salvaging it may produce a pack of the same name, which must not be
/// deleted.
#[test]
fn salvaging_a_readable_pack_loses_nothing() {
    let objects: Arc<Memory> = Arc::default();
    let store = Store::new(objects.clone());
    // As when loose blocks are folded: in the order of their ids, each on its own.
    let mut blocks: Vec<(BlockRef, Vec<u8>)> = Vec::new();
    for content in small_documents() {
        cut::slice::<Infallible>(&content, |block, bytes| {
            blocks.push((block, bytes.to_vec()));
            Ok(())
        })
        .unwrap();
    }
    blocks.sort_by_key(|(block, _)| block.id);
    blocks.dedup_by_key(|(block, _)| block.id);
    let batch = store.batch(Trust::Bytes);
    let mut writer = batch.writer().unwrap();
    for (block, bytes) in &blocks {
        writer.put_alone(*block, bytes).unwrap();
    }
    writer.finish().unwrap();
    let _sealed = batch.seal().unwrap();
    let Listed { name, size } = objects.list("").unwrap().pop().unwrap();
    let whole = ByteRange { offset: 0, length: size as usize };
    let mut pack = objects.read(&name, &[whole]).unwrap().remove(0);
    let dictionary = frames(&pack).into_iter().find(|(_, _, codec)| *codec == 3);
    if let Some((offset, _, _)) = dictionary {
        pack[offset + 10] ^= 1;
        objects.tamper(&name, |bytes| *bytes = pack.clone());
    }
    let store = Store::new(objects.clone());
    assert!(store.salvage(std::slice::from_ref(&name)).unwrap().is_empty());
    let fresh = Store::new(objects);
    for (block, bytes) in &blocks {
        assert_eq!(&fresh.read(&block.id).unwrap(), bytes);
    }
    assert!(fresh.verify(|_, _| true).unwrap().is_empty());
}

/// Records with a counter and one of so many payloads of 96 random bytes.
fn records(payloads: usize, bytes: usize) -> Vec<u8> {
    let payload = |number: u64| {
        let mut state = number + 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        (0..96).map(|_| next()).collect::<Vec<u8>>()
    };
    let payloads: Vec<Vec<u8>> = (0..payloads as u64).map(payload).collect();
    let mut all = Vec::with_capacity(bytes);
    let mut chosen = 7_usize;
    for number in 0_u64.. {
        if all.len() >= bytes {
            break;
        }
        chosen = (chosen * 1_103_515_245 + 12_345) % 2_147_483_648;
        all.extend_from_slice(&u128::from(number).to_le_bytes());
        all.extend_from_slice(&payloads[chosen / 64 % payloads.len()]);
    }
    all
}

#[test]
fn repetition_over_long_distances_is_found_in_large_documents() {
    let objects = Arc::new(Memory::default());
    let store = Store::new(objects.clone());
    let content = records(2_000, 24 << 20);
    let batch = store.batch(Trust::Pack);
    let mut writer = batch.writer().unwrap();
    let cut =
        cut::stream::<shelf_blocks::Error>(&content[..], |block, bytes| writer.put(block, bytes)).unwrap();
    writer.finish().unwrap();
    let _sealed = batch.seal().unwrap();
    let fresh = Store::new(objects);
    assert_eq!(read_all(&fresh, &cut).unwrap(), content);
    assert_eq!(read_places(&fresh, &cut).unwrap(), content);
    let stored = fresh.usage().unwrap().stored_bytes;
    // What precedes the test is stored as it is; the rest takes less than a quarter.
    assert!(stored < (8 << 20) + (16 << 20) / 4 + (2 << 20), "{stored}");
    // Rewriting packs keeps the content and the dictionary.
    let live: Vec<BlockRef> = cut.manifest.blocks().step_by(2).collect();
    let ids: HashSet<BlockId> = live.iter().map(|block| block.id).collect();
    gc::Plan::make(&fresh, &ids).unwrap().run(&fresh, &ids).unwrap();
    for block in &live {
        assert_eq!(BlockId::of(&fresh.read(&block.id).unwrap()), block.id);
    }
    assert!(fresh.verify(|_, _| true).unwrap().is_empty());
    // With the dictionary from the start, even what preceded the test takes less.
    let rewritten = fresh.usage().unwrap().stored_bytes;
    assert!(rewritten < (12 << 20) / 4 + (2 << 20), "{rewritten} of {stored}");
}

#[test]
fn lists_come_in_pages_with_sizes_and_reads_in_one_call() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::default();
    for number in 0..2 * LIST_PAGE + 7 {
        let (name, bytes) = (format!("{number:05}"), [&vec![number as u8; number % 50][..], b"end"].concat());
        memory.put(&name, &[&bytes]).unwrap();
        // Without the syncs of a put, which take long.
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    std::fs::write(folder.path().join("00001.1-1.part"), "unfinished").unwrap();
    let stores: [Box<dyn Objects>; 2] = [Box::new(Folder::new(folder.path())), Box::new(memory)];
    for objects in stores {
        let listed: Vec<Vec<Listed>> = objects::pages(&*objects).collect::<Result<_, _>>().unwrap();
        assert_eq!(listed.iter().map(Vec::len).collect::<Vec<_>>(), [LIST_PAGE, LIST_PAGE, 7]);
        for (number, found) in listed.concat().iter().enumerate() {
            assert_eq!((&found.name, found.size), (&format!("{number:05}"), number as u64 % 50 + 3));
        }
        let at = |offset, length| ByteRange { offset, length };
        let read = objects.read("00049", &[at(49, 3), at(0, 2), at(51, 0)]).unwrap();
        assert_eq!(read, [b"end".to_vec(), vec![49; 2], Vec::new()]);
        assert!(objects.read("00049", &[at(0, 1), at(50, 3)]).is_err(), "it ends before");
        assert!(objects.read("absent", &[at(0, 1)]).is_err());
    }
}
