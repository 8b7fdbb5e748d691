//! The cache file: its format, damage, killed processes and concurrent writers.

use std::{
    process::{Command, Stdio},
    thread,
};

use tempfile::{TempDir, tempdir};

use super::*;

const MODEL: &str = "model@host";

fn key(number: usize) -> Digest {
    Digest::of(&number.to_le_bytes())
}

fn vector(number: usize) -> Vec<f32> {
    vec![number as f32, 0.5, -1.0]
}

fn open(folder: &TempDir) -> Vectors {
    let mut vectors = Vectors::open(folder.path(), MODEL, Precision::Floats).unwrap();
    vectors.refresh().unwrap();
    vectors
}

fn append(vectors: &mut Vectors, numbers: &[usize]) {
    let kept: Vec<_> = numbers.iter().map(|&number| (key(number), vector(number))).collect();
    let records: Vec<_> = kept.iter().map(|(key, vector)| (*key, vector.as_slice())).collect();
    vectors.append(&records).unwrap();
}

fn check(vectors: &Vectors, kept: &[usize], not_kept: &[usize]) {
    for &number in kept {
        assert_eq!(vectors.get(&key(number)).unwrap(), Some(vector(number)), "{number}");
    }
    for &number in not_kept {
        assert_eq!(vectors.get(&key(number)).unwrap(), None, "{number}");
    }
}

#[test]
fn the_bytes_match_the_specification() {
    let folder = tempdir().unwrap();
    append(&mut open(&folder), &[7]);
    let name = &Digest::of(MODEL.as_bytes()).to_string()[..16];
    let bytes = fs::read(folder.path().join(format!("vectors-{name}.cache"))).unwrap();
    assert_eq!(&bytes[..20], b"SHELFVEC\x01\0\0\0\x03\0\0\0\x0a\0\0\0");
    assert_eq!(
        bytes[20..24],
        Digest::of(b"SHELFVEC\x01\0\0\0\x03\0\0\0\x0a\0\0\0model@host").as_bytes()[..4]
    );
    assert_eq!(&bytes[24..34], MODEL.as_bytes());
    let record = &bytes[34..];
    assert_eq!(record.len(), 32 + 3 * 4 + 4);
    assert_eq!(&record[..32], key(7).as_bytes());
    assert_eq!(record[32..36], 7.0_f32.to_le_bytes());
    assert_eq!(record[44..], Digest::of(&record[..44]).as_bytes()[..4]);
}

#[test]
fn an_incomplete_record_of_any_length_is_truncated() {
    let folder = tempdir().unwrap();
    append(&mut open(&folder), &[1, 2]);
    let path = open(&folder).path;
    let whole = fs::read(&path).unwrap();
    let record = Precision::Floats.record_length(3);
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let mut vectors = open(&folder);
        let left = length.saturating_sub(HEADER + MODEL.len()) / record;
        assert_eq!(vectors.places.len(), left, "{length}");
        append(&mut vectors, &[3]);
        check(&vectors, &[&[1, 2][..left], &[3]].concat(), &[1, 2][left..]);
        check(&open(&folder), &[3], &[]);
    }
}

#[test]
fn an_incomplete_record_is_truncated_by_the_next_writer() {
    let folder = tempdir().unwrap();
    let mut vectors = open(&folder);
    append(&mut vectors, &[1]);
    OpenOptions::new().append(true).open(&vectors.path).unwrap().write_all(b"half a rec").unwrap();
    append(&mut vectors, &[2]);
    check(&vectors, &[1, 2], &[3]);
    check(&open(&folder), &[1, 2], &[3]);
}

#[test]
fn damaged_records_count_as_missing() {
    let folder = tempdir().unwrap();
    let mut vectors = open(&folder);
    append(&mut vectors, &[1, 2]);
    let at = vectors.first() + 40;
    let file = OpenOptions::new().write(true).open(&vectors.path).unwrap();
    file.write_all_at(b"\xff\xff", at).unwrap();
    check(&open(&folder), &[2], &[1]);
    append(&mut vectors, &[1]);
    check(&open(&folder), &[1, 2], &[]);
}

#[test]
fn an_invalid_header_starts_the_file_over() {
    let folder = tempdir().unwrap();
    let mut old = open(&folder);
    append(&mut old, &[1, 2, 3]);
    fs::write(&old.path, vec![b'x'; 4_000]).unwrap();
    let mut new = open(&folder);
    check(&new, &[], &[1, 2, 3]);
    append(&mut new, &[4]);
    check(&new, &[4], &[1]);
    old.refresh().unwrap();
    check(&old, &[4], &[1, 2, 3]);
    append(&mut old, &[5]);
    check(&open(&folder), &[4, 5], &[1]);
}

#[test]
fn concurrent_writers_lose_nothing() {
    let folder = tempdir().unwrap();
    thread::scope(|scope| {
        for writer in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                let mut vectors = open(folder);
                (0..50).for_each(|number| append(&mut vectors, &[writer * 1_000 + number]));
            });
        }
    });
    let numbers: Vec<usize> = (0..4).flat_map(|writer| writer * 1_000..writer * 1_000 + 50).collect();
    check(&open(&folder), &numbers, &[999]);
}

/// Runs this test binary again as a writer, kills it while it writes, and checks what is left.
#[test]
fn a_killed_process_leaves_a_usable_file() {
    const FOLDER: &str = "SHELF_EMBED_TEST_FOLDER";
    if let Ok(folder) = std::env::var(FOLDER) {
        let mut vectors = Vectors::open(Path::new(&folder), MODEL, Precision::Floats).unwrap();
        for number in 0.. {
            append(&mut vectors, &[number]);
        }
    }
    let folder = tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    let name = "vectors::tests::a_killed_process_leaves_a_usable_file";
    let mut command = Command::new(program);
    command.args(["--exact", name]).env(FOLDER, folder.path()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut vectors = open(&folder);
    while vectors.places.len() < 20 {
        vectors.refresh().unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut vectors = open(&folder);
    let kept: Vec<usize> = (0..vectors.places.len()).collect();
    check(&vectors, &kept, &[]);
    append(&mut vectors, &[9_000_000]);
    check(&open(&folder), &[0, 9_000_000], &[]);
}

#[test]
fn bytes_take_a_quarter_of_the_space_and_keep_the_vector() {
    let folder = tempdir().unwrap();
    let key = Digest::of(b"a text");
    let vector: Vec<f32> = (0..384).map(|at| (at as f32).sin() / 14.0).collect();
    let mut small = Vectors::open(folder.path(), MODEL, Precision::Bytes).unwrap();
    small.append(&[(key, &vector)]).unwrap();
    let found = small.get(&key).unwrap().unwrap();
    assert!(vector.iter().zip(&found).all(|(one, other)| (one - other).abs() < 0.001));
    assert_eq!(small.file.metadata().unwrap().len(), (HEADER + MODEL.len() + 40 + 384) as u64);
    // A file of the other precision is no file of this one.
    let floats = Vectors::open(folder.path(), MODEL, Precision::Floats).unwrap();
    assert_eq!(floats.get(&key).unwrap(), None);
}

#[test]
fn the_oldest_go_when_there_are_too_many() {
    let folder = tempdir().unwrap();
    let mut vectors = open(&folder);
    let numbers: Vec<usize> = (0..10).collect();
    append(&mut vectors, &numbers);
    let mut reader = open(&folder);
    vectors.trim(10).unwrap();
    check(&vectors, &numbers, &[]);
    vectors.trim(9).unwrap();
    check(&vectors, &[6, 7, 8, 9], &[0, 1, 2, 3, 4, 5]);
    // Another process looks at the old places until it notices, and finds nothing wrong there.
    for &number in &numbers {
        let found = reader.get(&key(number)).unwrap();
        assert!(found.is_none_or(|found| found == vector(number)), "{number}");
    }
    append(&mut vectors, &[20]);
    reader.refresh().unwrap();
    check(&reader, &[6, 7, 8, 9, 20], &[0, 5]);
    check(&open(&folder), &[6, 7, 8, 9, 20], &[0, 5]);
}
