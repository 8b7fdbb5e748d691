//! The behaviour that every kind of object storage must show, as calls on an empty one. Tests of each implementation run
//! it; so may whoever adds another.

use std::io;

use super::{ByteRange, LIST_PAGE, Listed, Objects, pages};

/// Checks everything on an empty storage.
///
/// # Panics
/// When the storage behaves otherwise.
pub fn run(objects: &dyn Objects) {
    stores_and_reads(objects);
    reads_many_ranges(objects);
    refuses_what_is_not_there(objects);
    puts_again(objects);
    puts_what_is_new(objects);
    keeps_large_objects(objects);
    lists_in_pages(objects);
    deletes(objects);
    serves_many_threads(objects);
}

/// Bytes that do not repeat.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut output = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut output);
    output
}

fn read(objects: &dyn Objects, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    Ok(objects.read(name, &[ByteRange { offset, length }])?.remove(0))
}

fn kind<T>(outcome: io::Result<T>) -> Option<io::ErrorKind> {
    outcome.err().map(|error| error.kind())
}

fn names(objects: &dyn Objects) -> Vec<String> {
    pages(objects).flat_map(|page| page.expect("a page")).map(|found| found.name).collect()
}

fn stores_and_reads(objects: &dyn Objects) {
    assert_eq!(objects.list("").expect("an empty list"), []);
    objects.put("one.pack", &[b"ab", b"", b"cde"]).expect("put");
    assert_eq!(objects.length("one.pack").expect("a length"), 5);
    assert_eq!(read(objects, "one.pack", 0, 5).expect("all"), b"abcde");
    assert_eq!(read(objects, "one.pack", 1, 3).expect("the middle"), b"bcd");
    assert_eq!(objects.list("").expect("a list"), [Listed { name: "one.pack".into(), size: 5 }]);
    assert!(!objects.describe().is_empty());
}

fn reads_many_ranges(objects: &dyn Objects) {
    let content = bytes(1, 3 << 20);
    objects.put("ranges.pack", &[&content]).expect("put");
    let places = [(2_000_000, 700), (0, 10), (5, 1), (2_000_700, 100_000), (content.len() - 1, 1), (17, 0)];
    let ranges: Vec<_> =
        places.iter().map(|(offset, length)| ByteRange { offset: *offset as u64, length: *length }).collect();
    let found = objects.read("ranges.pack", &ranges).expect("ranges");
    assert_eq!(found.len(), places.len());
    for ((offset, length), found) in places.iter().zip(&found) {
        assert!(found == &content[*offset..offset + length], "{length} bytes from {offset}");
    }
    // Once more: whoever keeps copies has them now.
    assert!(objects.read("ranges.pack", &ranges).expect("ranges") == found);
}

fn refuses_what_is_not_there(objects: &dyn Objects) {
    assert_eq!(kind(objects.length("none.pack")), Some(io::ErrorKind::NotFound));
    assert_eq!(kind(read(objects, "none.pack", 0, 1)), Some(io::ErrorKind::NotFound));
    for (offset, length) in [(0, 6), (4, 2), (5, 1), (100, 1), (1 << 40, 1)] {
        let outcome = kind(read(objects, "one.pack", offset, length));
        assert_eq!(outcome, Some(io::ErrorKind::UnexpectedEof), "{length} bytes from {offset}");
    }
}

fn puts_again(objects: &dyn Objects) {
    objects.put("one.pack", &[b"abcde"]).expect("the same bytes again");
    assert_eq!(read(objects, "one.pack", 0, 5).expect("all"), b"abcde");
    // Names follow from contents, so other bytes under the same name replace damaged ones.
    for mended in [&b"ABCDE"[..], b"longer than before", b"abcde"] {
        objects.put("one.pack", &[mended]).expect("other bytes");
        assert_eq!(read(objects, "one.pack", 0, mended.len()).expect("all"), mended);
        assert_eq!(objects.length("one.pack").expect("a length"), mended.len() as u64);
    }
}

fn puts_what_is_new(objects: &dyn Objects) {
    assert!(objects.put_new("new.pack", &[b"fi", b"rst"]).expect("a new object"));
    assert!(!objects.put_new("new.pack", &[b"second"]).expect("one of that name"));
    assert_eq!(read(objects, "new.pack", 0, 5).expect("all"), b"first");
    objects.delete("new.pack").expect("delete");
}

fn keeps_large_objects(objects: &dyn Objects) {
    let content = bytes(2, 21 << 20);
    let (head, rest) = content.split_at(9 << 20);
    objects.put("large.pack", &[head, rest]).expect("a large object");
    assert_eq!(objects.length("large.pack").expect("a length"), content.len() as u64);
    assert!(read(objects, "large.pack", 0, content.len()).expect("all") == content);
    assert!(
        read(objects, "large.pack", (9 << 20) - 5, 10).expect("a part") == content[(9 << 20) - 5..][..10]
    );
    objects.put("large.pack", &[&content]).expect("the same again");
    objects.delete("large.pack").expect("delete");
}

fn lists_in_pages(objects: &dyn Objects) {
    let before = names(objects);
    let many: Vec<String> = (0..LIST_PAGE + 3).map(|number| format!("many-{number:05}.pack")).collect();
    for name in &many {
        objects.put(name, &[name.as_bytes()]).expect("put");
    }
    let first = objects.list("many-").expect("the first page");
    assert_eq!(first.len(), LIST_PAGE);
    assert!(
        first.iter().zip(&many).all(|(found, name)| found.name == *name && found.size == name.len() as u64)
    );
    let second = objects.list(&first[LIST_PAGE - 1].name).expect("the second page");
    assert_eq!(second.iter().filter(|found| found.name.starts_with("many-")).count(), 3);
    let mut all = [before.clone(), many.clone()].concat();
    all.sort_unstable();
    assert_eq!(names(objects), all);
    many.iter().for_each(|name| objects.delete(name).expect("delete"));
    assert_eq!(names(objects), before);
}

fn deletes(objects: &dyn Objects) {
    objects.put("gone.pack", &[b"x"]).expect("put");
    objects.delete("gone.pack").expect("delete");
    objects.delete("gone.pack").expect("what is gone may be deleted");
    assert_eq!(kind(objects.length("gone.pack")), Some(io::ErrorKind::NotFound));
    assert_eq!(kind(read(objects, "gone.pack", 0, 1)), Some(io::ErrorKind::NotFound));
    objects.put("gone.pack", &[b"back"]).expect("put after delete");
    assert_eq!(read(objects, "gone.pack", 0, 4).expect("all"), b"back");
    objects.sweep().expect("sweep");
}

fn serves_many_threads(objects: &dyn Objects) {
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            scope.spawn(move || {
                for number in 0..6 {
                    let (name, content) = (format!("shared-{number}.pack"), bytes(number, 70_000));
                    objects.put(&name, &[&content]).expect("put by many");
                    let at = (thread * 1_000) as usize;
                    let found = read(objects, &name, at as u64, 5_000).expect("read by many");
                    assert!(found == content[at..at + 5_000]);
                }
            });
        }
    });
}
