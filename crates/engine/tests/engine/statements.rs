//! How often a use asks the catalog: not once for each document of its answer.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use shelf_base::{CallContext, MemoryLocks, SystemClock};
use shelf_blocks::objects::Memory;
use shelf_catalog::sqlite::SqliteCatalog;
use shelf_engine::{AddRequest, Caller, Library, Options, PassageRequest, Ports, SearchRequest, What};

fn open(folder: &Path) -> (Library, Arc<AtomicU64>) {
    let (catalog, counter) = SqliteCatalog::open(folder).unwrap().counting();
    let ports = Ports {
        catalog: Arc::new(catalog),
        objects: Arc::new(Memory::default()),
        coordination: Arc::new(MemoryLocks::default()),
    };
    (Library::over(folder, ports, Arc::new(SystemClock), Options::default()).unwrap(), counter)
}

/// How many statements `work` runs.
fn count<T>(counter: &AtomicU64, work: impl FnOnce() -> T) -> (u64, T) {
    let before = counter.load(Ordering::Relaxed);
    let done = work();
    (counter.load(Ordering::Relaxed) - before, done)
}

#[test]
fn hits_are_not_looked_up_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let (library, counter) = open(folder.path());
    let (caller, call) = (Caller::owner(), CallContext::new());
    for number in 0..60 {
        let large =
            if number % 10 == 0 { format!("line {number} of this\n").repeat(20_000) } else { String::new() };
        let bytes = format!("note {number} about herons that winter by the lake\n{large}").into_bytes();
        let what = What::Content { name: format!("{number}.md"), bytes };
        library.add(&caller, &AddRequest::new(what), &call).unwrap();
    }
    let search = |limit| {
        let request = SearchRequest { limit, ..SearchRequest::new("herons by the lake") };
        library.search(&caller, &request, &call).unwrap().hits
    };
    search(1);
    // Loose at first, then in a pack, and then with what the library remembers of the last search.
    for state in ["loose", "packed", "known"] {
        if state == "packed" {
            library.fold_now().unwrap();
        }
        let (few, hits) = count(&counter, || search(1));
        assert_eq!(hits.len(), 1);
        let (many, hits) = count(&counter, || search(50));
        assert_eq!(hits.len(), 50);
        assert!(hits.iter().all(|hit| !hit.snippet.lines.is_empty()));
        assert!(many <= 8 && many <= few + 2, "{state}: {few} statements for one hit, {many} for 50");
        let request =
            PassageRequest { query: "herons lake".into(), limit: 20, tokens: 4_000, collection: None };
        let (passages, found) =
            count(&counter, || library.search_passages(&caller, &request, &call).unwrap());
        assert_eq!(found.passages.len(), 20);
        assert!(passages <= 8, "{state}: {passages} statements for 20 passages");
    }
}
