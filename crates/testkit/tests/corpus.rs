//! Runs every fuzz target on stable Rust with the seeds in `fuzz/corpus`, with their beginnings, and with copies in
//! which one byte is changed. Targets must not panic.

use std::{
    collections::BTreeSet,
    fs,
    panic::catch_unwind,
    path::{Path, PathBuf},
};

use shelf_testkit::fuzzing::{TARGETS, Target};

/// The number of beginnings of each seed.
const CUTS: usize = 16;
/// The number of changed copies of each seed.
const CHANGES: usize = 64;

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The names in a folder, in order, so that every run is the same.
fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A linear congruential generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// Runs a target once; a panic is reported with what it was given.
fn try_with(target: Target, bytes: &[u8], what: impl FnOnce() -> String) {
    assert!(catch_unwind(|| target(bytes)).is_ok(), "the target panicked with {}", what());
}

/// Runs a target with all seeds in its folder.
fn run(name: &str) {
    let (_, target) = TARGETS.into_iter().find(|(known, _)| *known == name).expect("a target of this name");
    let folder = fuzz_folder().join("corpus").join(name);
    let seeds = names_in(&folder);
    assert!(!seeds.is_empty(), "{} has no seeds", folder.display());
    let mut numbers = Numbers(1);
    for seed in seeds {
        let bytes = fs::read(folder.join(&seed)).unwrap();
        try_with(target, &bytes, || format!("the seed {name}/{seed}"));
        for cut in 0..CUTS {
            let length = bytes.len() * cut / CUTS;
            try_with(target, &bytes[..length], || format!("the first {length} bytes of {name}/{seed}"));
        }
        let changes = if bytes.is_empty() { 0 } else { CHANGES };
        for _ in 0..changes {
            let (at, bits) = (numbers.below(bytes.len()), 1 + numbers.below(255));
            let mut changed = bytes.clone();
            changed[at] ^= bits as u8;
            try_with(target, &changed, || format!("{name}/{seed}, byte {at} changed by {bits:#04x}"));
        }
    }
}

#[test]
fn every_target_has_a_file_and_seeds() {
    let names: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names_in(&fuzz_folder().join("corpus")), names);
    let files: BTreeSet<String> = names.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names_in(&fuzz_folder().join("fuzz_targets")), files);
}

#[test]
fn addresses() {
    run("address");
}

#[test]
fn derived_data() {
    run("derived");
}

#[test]
fn word_documents() {
    run("docx");
}

#[test]
fn web_pages() {
    run("html");
}

#[test]
fn images() {
    run("image");
}

#[test]
fn office_documents() {
    run("office");
}

#[test]
fn maps() {
    run("map");
}

#[test]
fn packs() {
    run("pack");
}

#[test]
fn pdf_documents() {
    run("pdf");
}

#[test]
fn segments_and_manifests() {
    run("segment");
}
