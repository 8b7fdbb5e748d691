//! Functions that feed arbitrary bytes to everything that reads bytes from outside the program: documents, packs, index
//! files, derived data and addresses. None of them may panic, whatever the bytes are.
//!
//! The fuzz targets in `fuzz` call them with generated input, and a test on stable Rust with the seeds in `fuzz/corpus`
//! and with damaged copies of them. Files that carry checksums are read twice: as they are, which tests that damage is
//! detected, and with corrected checksums, which tests what is behind that check.

use std::{collections::HashSet, fs, hint::black_box, sync::Arc};

use serde_json::json;
use shelf_base::{
    Address, Digest, MemoryLocks,
    address::{Pages, Region},
};
use shelf_blocks::{
    BlockId, Store,
    gc::Plan,
    objects::{Memory, Objects},
};
use shelf_index::{Derived, DerivedKey, Index, View};
use shelf_reading::{
    Text, crop, cut_pages, detect, image_size,
    map::{Map, contains},
    page_count, passages, text_of,
};
use tempfile::TempDir;

/// A function that reads arbitrary bytes.
pub type Target = fn(&[u8]);

/// Every target and the name of its file in `fuzz/fuzz_targets` and of its folder in `fuzz/corpus`.
pub const TARGETS: [(&str, Target); 10] = [
    ("address", address),
    ("derived", derived),
    ("docx", docx),
    ("html", html),
    ("image", image),
    ("map", map),
    ("office", office),
    ("pack", pack),
    ("pdf", pdf),
    ("segment", segment),
];

/// Reads a PDF document.
pub fn pdf(bytes: &[u8]) {
    read_document("a.pdf", "application/pdf", false, bytes);
    if let (Ok(pages), Ok(first)) = (page_count(bytes), Pages::single(1)) {
        black_box(cut_pages(bytes, &first).ok());
        let beyond = Pages::single(pages + 1).expect("a page");
        assert!(cut_pages(bytes, &beyond).is_err(), "a page that is not there is never cut");
    }
}

/// Maps a text in one of the languages that have outlines; the first byte chooses which.
pub fn map(bytes: &[u8]) {
    const FORMS: [(&str, &str); 12] = [
        ("a.md", "text/markdown"),
        ("a.rst", "text/x-rst"),
        ("a.adoc", "text/asciidoc"),
        ("a.tex", "text/x-tex"),
        ("a.json", "application/json"),
        ("a.yaml", "application/yaml"),
        ("a.toml", "application/toml"),
        ("a.txt", "text/plain"),
        ("a.rs", "text/x-rust"),
        ("a.py", "text/x-python"),
        ("a.js", "text/javascript"),
        ("a.srt", "text/plain"),
    ];
    let Some((first, rest)) = bytes.split_first() else { return };
    let (path, mime) = FORMS[usize::from(*first) % FORMS.len()];
    read_document(path, mime, true, rest);
    black_box(shelf_reading::cues(&String::from_utf8_lossy(rest)));
}

/// Reads a Word document.
pub fn docx(bytes: &[u8]) {
    let mime = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    read_document("a.docx", mime, false, bytes);
}

/// Reads a presentation, a workbook or a book; the first byte chooses which.
pub fn office(bytes: &[u8]) {
    const FORMS: [(&str, &str); 3] = [
        ("a.pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
        ("a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("a.epub", "application/epub+zip"),
    ];
    let Some((first, rest)) = bytes.split_first() else { return };
    let (path, mime) = FORMS[usize::from(*first) % FORMS.len()];
    read_document(path, mime, false, rest);
}

/// Crops an image; the first four bytes choose the part.
pub fn image(bytes: &[u8]) {
    let Some((corners, rest)) = bytes.split_first_chunk::<4>() else { return };
    let size = image_size(rest);
    let whole = crop(rest, Region::from_millionths([0, 0, 1_000_000, 1_000_000]).expect("a whole image"));
    if let (Ok(size), Ok(whole)) = (&size, &whole) {
        assert_eq!(image_size(whole).as_ref(), Ok(size), "all of an image is as large as the image");
    }
    let Ok(region) = Region::from_millionths(corners.map(|corner| u32::from(corner) * 3_921)) else { return };
    let Ok(part) = crop(rest, region) else { return };
    let (width, height) = image_size(&part).expect("what was cropped is an image");
    let (most_width, most_height) = size.expect("what can be cropped has a size");
    assert!((1..=most_width).contains(&width) && (1..=most_height).contains(&height), "a part lies within");
}

/// Reads a web page.
pub fn html(bytes: &[u8]) {
    read_document("a.html", "text/html", true, bytes);
}

fn read_document(path: &str, mime: &str, is_text: bool, bytes: &[u8]) {
    black_box(detect(path, bytes));
    let Ok(Some(text)) = text_of(path, mime, is_text, bytes) else { return };
    assert!(text.pages.is_sorted(), "pages begin in order");
    check_passages(&text, &word_starts(&text.text));
    check_passages(&text, &visible_characters(&text.text));
    check_map(&shelf_reading::map::text_map(path, mime, &text));
}

fn check_map(map: &Map) {
    let mut ids = HashSet::new();
    for node in &map.nodes {
        assert!(ids.insert(node.id.as_str()), "ids are unique");
        let Some(parent) = node.parent.and_then(|parent| map.nodes.get(parent as usize)) else { continue };
        assert!(node.id.starts_with(&format!("{}.", parent.id)), "a child's id extends its parent's");
        let places = parent.location.place().zip(node.location.place());
        assert!(
            places.is_some_and(|(outer, inner)| contains(outer, inner)),
            "a child lies within its parent"
        );
    }
}

fn check_passages(text: &Text<'_>, tokens: &[u32]) {
    let mut last_start = 0;
    for passage in passages(text, tokens) {
        let range = passage.bytes.start as usize..passage.bytes.end as usize;
        let piece = text.text.get(range).expect("a passage consists of whole characters of the text");
        assert!(!piece.is_empty() && piece.trim() == piece, "a passage has no whitespace around it");
        assert!(passage.bytes.start >= last_start, "passages are in order");
        assert!(passage.tokens.end as usize <= tokens.len(), "a passage consists of tokens of the text");
        assert!((1..=passage.lines.1).contains(&passage.lines.0), "lines are in order");
        last_start = passage.bytes.start;
    }
}

fn word_starts(text: &str) -> Vec<u32> {
    let mut is_inside = false;
    let starts = text.char_indices().filter(|(_, character)| {
        let is_letter = character.is_alphanumeric();
        let is_within = is_letter && is_inside;
        is_inside = is_letter;
        !is_within && !character.is_whitespace()
    });
    starts.map(|(at, _)| at as u32).collect()
}

/// Many more tokens than words, so that even a short text has several passages.
fn visible_characters(text: &str) -> Vec<u32> {
    let visible = text.char_indices().filter(|(_, character)| !character.is_whitespace());
    visible.map(|(at, _)| at as u32).collect()
}

/// Parses an address, and checks that building and parsing it again changes nothing.
pub fn address(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let address = match text.parse::<Address>() {
        Ok(address) => address,
        Err(error) => {
            black_box(error.to_string());
            return;
        }
    };
    let plain = address.to_string();
    let again: Address = plain.parse().expect("an address that was built can be parsed");
    assert_eq!(again.to_string(), plain, "building, parsing and building is a fixed point");
    assert_eq!(again.exact(), None, "a plain address is exact");
    let exact = address.exact().unwrap_or(plain);
    assert_eq!(exact.parse::<Address>().as_ref(), Ok(&address), "the exact form is the same address");
}

/// The name of the object that holds the bytes.
const PACK: &str = "00000000000000000000000000000000.pack";
const PACK_TRAILER: usize = 64;
const FRAME_ENTRY: usize = 20;
const BLOCK_ENTRY: usize = 44;

/// Opens, verifies, reads, salvages and collects a pack.
pub fn pack(bytes: &[u8]) {
    read_pack(bytes);
    if let Some(corrected) = corrected_pack(bytes) {
        read_pack(&corrected);
    }
}

fn read_pack(bytes: &[u8]) {
    let objects = Memory::default();
    objects.put(PACK, &[bytes]).expect("an object in memory");
    let store = Store::new(Arc::new(objects));
    let problems = store.verify(|_, _| true).expect("a list of problems");
    let usage = store.usage().expect("totals");
    assert!(usage.packs == 1 || !problems.is_empty(), "a pack that cannot be opened is reported");
    let ids = block_ids(bytes);
    for id in &ids {
        black_box(store.read(id).ok());
    }
    let places = store.places(ids.iter().copied()).expect("places");
    let mut reader = store.reader();
    for (id, place) in ids.iter().zip(places) {
        if let Some(place) = place {
            black_box(reader.read(id, place).ok());
        }
    }
    let live: HashSet<BlockId> = ids.iter().copied().step_by(2).collect();
    let plan = Plan::make(&store, &live).expect("a plan");
    black_box(plan.copy(&store, &live, &mut || true).ok());
    black_box(store.salvage(&[PACK.to_owned()]).ok());
}

/// The number of frames and of blocks that the trailer states, reduced to what fits, and where the index starts then.
fn pack_shape(pack: &[u8]) -> Option<(usize, usize, usize)> {
    let end = pack.len().checked_sub(PACK_TRAILER)?;
    let frames = u32_at(pack, end)? as usize % (end / FRAME_ENTRY + 1);
    let room = end - frames * FRAME_ENTRY;
    let blocks = u32_at(pack, end + 4)? as usize % (room / BLOCK_ENTRY + 1);
    Some((frames, blocks, room - blocks * BLOCK_ENTRY))
}

fn block_ids(pack: &[u8]) -> Vec<BlockId> {
    let Some((frames, _, start)) = pack_shape(pack) else { return Vec::new() };
    let entries = &pack[start + frames * FRAME_ENTRY..pack.len() - PACK_TRAILER];
    let ids = entries.chunks_exact(BLOCK_ENTRY).filter_map(|entry| entry.first_chunk::<32>());
    ids.map(|id| BlockId::new(*id)).collect()
}

/// The pack with a trailer that matches its length and its index.
fn corrected_pack(bytes: &[u8]) -> Option<Vec<u8>> {
    let (frames, blocks, start) = pack_shape(bytes)?;
    let mut pack = bytes[..bytes.len() - PACK_TRAILER].to_vec();
    let index_length = pack.len() - start;
    let checksum = blake3::hash(&pack[start..]);
    pack.extend_from_slice(&(frames as u32).to_le_bytes());
    pack.extend_from_slice(&(blocks as u32).to_le_bytes());
    pack.extend_from_slice(&(start as u64).to_le_bytes());
    pack.extend_from_slice(&(index_length as u64).to_le_bytes());
    pack.extend_from_slice(checksum.as_bytes());
    pack.extend_from_slice(if bytes.ends_with(b"SHELFPK2") { b"SHELFPK2" } else { b"SHELFPK1" });
    Some(pack)
}

const MODEL: &str = "fuzzing";
const SEGMENT: &str = "segment-000000.seg";
const SEGMENT_FOOTER: usize = 52;

/// Opens and checks an index whose manifest or whose only segment consists of the bytes.
pub fn segment(bytes: &[u8]) {
    let empty = corrected_segment(&[]);
    open_index(bytes, &empty);
    open_index(&with_hash(bytes), &empty);
    for segment in [bytes.to_vec(), corrected_segment(bytes)] {
        let opened = open_index(&manifest_of(segment.len()), &segment);
        let segments = opened.map(|view| view.segments());
        assert!(matches!(segments, None | Some(1)), "the manifest below has the current format");
    }
}

fn open_index(manifest: &[u8], segment: &[u8]) -> Option<Arc<View>> {
    let folder = temporary_folder();
    fs::write(folder.path().join("manifest"), manifest).expect("a manifest");
    fs::write(folder.path().join(SEGMENT), segment).expect("a segment");
    let index = Index::new(folder.path().to_owned(), MODEL, Arc::new(MemoryLocks::default()));
    let view = index.view().ok();
    if let Some(view) = &view {
        black_box((view.documents(), view.passages(), view.sizes(), view.sequence()));
    }
    black_box((index.noted_sequence(), index.written().ok()));
    black_box(index.check().ok());
    view
}

/// A manifest of one segment without documents.
fn manifest_of(length: usize) -> Vec<u8> {
    let segment = json!({
        "name": SEGMENT, "length": length, "documents": 0, "text_bytes": 0, "model": MODEL, "dead": [],
    });
    let manifest = json!({
        "format": 5, "generation": 1, "sequence": 1, "mark": "", "segments": [segment],
    });
    with_hash(manifest.to_string().as_bytes())
}

/// A manifest as it is stored: the hash of its content precedes the content.
fn with_hash(content: &[u8]) -> Vec<u8> {
    let mut manifest = format!("{}\n", blake3::hash(content).to_hex()).into_bytes();
    manifest.extend_from_slice(content);
    manifest
}

/// The segment with a footer that matches its length and its table of parts. The hashes of the parts stay as they are:
/// a part is used only if its hash matches.
fn corrected_segment(bytes: &[u8]) -> Vec<u8> {
    let mut segment = bytes[..bytes.len().saturating_sub(SEGMENT_FOOTER)].to_vec();
    let stated = u32_at(bytes, segment.len()).unwrap_or(0) as usize;
    let table_length = stated % (segment.len() + 1);
    let hash = blake3::hash(&segment[segment.len() - table_length..]);
    segment.extend_from_slice(&(table_length as u64).to_le_bytes());
    segment.extend_from_slice(hash.as_bytes());
    segment.extend_from_slice(&1_u32.to_le_bytes());
    segment.extend_from_slice(b"SHELFSEG");
    segment
}

/// Reads a log of derived data, and checks that it can be appended to and cleaned whatever it contains.
pub fn derived(bytes: &[u8]) {
    let folder = temporary_folder();
    let path = folder.path().join("derived.log");
    fs::write(&path, bytes).expect("a log");
    let log = Derived::new(path.clone());
    if let Some(key) = first_key(bytes) {
        black_box(log.get(&key).expect("a record or none"));
    }
    black_box((log.check().ok(), log.bytes()));
    // The bytes cannot contain their own hash, so there is no such record yet.
    let key = DerivedKey { content: Digest::of(bytes), variant: 1 };
    assert_eq!(log.get(&key).expect("no record"), None);
    log.put(&key, b"kept").expect("a record that is added");
    assert_eq!(log.get(&key).expect("the record"), Some(b"kept".to_vec()));
    let other = Derived::new(path);
    assert_eq!(other.get(&key).expect("the record in another process"), Some(b"kept".to_vec()));
    other.retain(|content| *content == key.content).expect("a log of one record");
    assert_eq!(other.get(&key).expect("the record that was retained"), Some(b"kept".to_vec()));
    other.check().expect("a log without damage");
}

/// The key of the first record, after the eight magic bytes.
fn first_key(log: &[u8]) -> Option<DerivedKey> {
    let (content, rest) = log.get(8..)?.split_first_chunk::<32>()?;
    let variant = rest.first_chunk::<8>()?;
    Some(DerivedKey { content: Digest::new(*content), variant: u64::from_le_bytes(*variant) })
}

fn temporary_folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk::<4>().map(|four| u32::from_le_bytes(*four))
}
