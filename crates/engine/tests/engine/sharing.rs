//! Index segments that machines share: one makes them, the others fetch them, and nothing depends on it.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use shelf_base::{CallContext, MemoryLocks, SystemClock};
use shelf_blocks::objects::{Listed, Memory, Objects, pages};
use shelf_catalog::sqlite::SqliteCatalog;
use shelf_engine::{AddRequest, Caller, DeleteRequest, Library, Options, Ports, SearchRequest, What};

/// What machines have in common.
struct Cluster {
    folder: tempfile::TempDir,
    catalog: Arc<SqliteCatalog>,
    counter: Arc<AtomicU64>,
    packs: Memory,
    index: Memory,
    locks: MemoryLocks,
}

impl Cluster {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (catalog, counter) = SqliteCatalog::open(&folder.path().join("catalog")).unwrap().counting();
        let (packs, index, locks) = (Memory::default(), Memory::default(), MemoryLocks::default());
        Self { catalog: Arc::new(catalog), counter, folder, packs, index, locks }
    }

    /// A machine with a folder of its own.
    fn machine(&self, name: &str) -> Library {
        let ports = Ports {
            catalog: self.catalog.clone(),
            objects: Arc::new(self.packs.clone()),
            coordination: Arc::new(self.locks.clone()),
        };
        let library =
            Library::over(&self.folder(name), ports, Arc::new(SystemClock), Options::default()).unwrap();
        library.share_index(Arc::new(self.index.clone()));
        library
    }

    fn folder(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn newest_view(&self) -> Option<Listed> {
        self.objects("view-").pop()
    }

    fn objects(&self, start: &str) -> Vec<Listed> {
        let all = pages(&self.index).flat_map(Result::unwrap);
        all.filter(|found| found.name.starts_with(start)).collect()
    }
}

fn add(library: &Library, number: usize) {
    let bytes = format!("report {number} tells of heron{number} by the lake").into_bytes();
    let what = What::Content { name: format!("{number}.txt"), bytes };
    library.add(&Caller::owner(), &AddRequest::new(what), &CallContext::new()).unwrap();
}

fn finds(library: &Library, number: usize) -> bool {
    let request = SearchRequest::new(format!("heron{number}"));
    let found = library.search(&Caller::owner(), &request, &CallContext::new()).unwrap();
    found.hits.iter().any(|hit| hit.document.path == format!("{number}.txt"))
}

/// Segments of a machine that another has made.
fn fetched(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder.join("index")).unwrap().flatten();
    files.filter(|file| file.file_name().len() == "segment-.seg".len() + 64).count()
}

#[test]
fn a_machine_fetches_what_another_has_indexed() {
    let (cluster, call) = (Cluster::new(), CallContext::new());
    let first = cluster.machine("first");
    (0..700).for_each(|number| add(&first, number));
    first.publish_index(&call).unwrap();
    let newest = cluster.newest_view();
    first.publish_index(&call).unwrap();
    assert_eq!(cluster.newest_view(), newest, "nothing new, nothing published");
    // Written since: by the first, and by one that has no index yet.
    (700..720).for_each(|number| add(&first, number));
    let second = cluster.machine("second");
    add(&second, 720);
    let gone = DeleteRequest { names: vec!["5.txt".into()], ..DeleteRequest::default() };
    first.delete(&Caller::owner(), &gone, &call).unwrap();
    let before = cluster.counter.load(Ordering::Relaxed);
    for number in [0, 300, 699, 719, 720] {
        assert!(finds(&second, number), "{number}");
        assert!(finds(&first, number), "{number}");
    }
    assert!(!finds(&second, 5) && !finds(&first, 5), "what was deleted is not found");
    assert!(fetched(&cluster.folder("second")) > 0, "segments were fetched");
    // Reading 700 documents would have asked the catalog for each of them.
    let asked = cluster.counter.load(Ordering::Relaxed) - before;
    assert!(asked < 400, "{asked} statements");
}

#[test]
fn what_cannot_be_used_is_indexed_from_the_journal() {
    let (cluster, call) = (Cluster::new(), CallContext::new());
    let first = cluster.machine("first");
    (0..600).for_each(|number| add(&first, number));
    first.publish_index(&call).unwrap();
    let (views, pieces) = (cluster.objects("view-"), cluster.objects("piece-"));
    let each = |objects: &[Listed], harm: &dyn Fn(&str)| objects.iter().for_each(|found| harm(&found.name));
    let change = |name: &str| cluster.index.tamper(name, |bytes| bytes[100] ^= 1);
    // Damaged pieces, missing ones, and damaged views.
    let harm: [(&str, &dyn Fn()); 3] = [
        ("damaged", &|| each(&pieces, &change)),
        ("missing", &|| each(&pieces, &|name| cluster.index.delete(name).unwrap())),
        ("view", &|| each(&views, &change)),
    ];
    for (name, harm) in harm {
        harm();
        let machine = cluster.machine(name);
        assert!(finds(&machine, 0) && finds(&machine, 599), "{name}");
        assert_eq!(fetched(&cluster.folder(name)), 0, "{name}");
    }
    // The next view brings back what is missing.
    add(&first, 600);
    first.publish_index(&call).unwrap();
    let last = cluster.machine("last");
    assert!(finds(&last, 1) && finds(&last, 600));
    assert!(fetched(&cluster.folder("last")) > 0);
}

#[test]
fn one_machine_leads_and_another_takes_over() {
    let (cluster, call) = (Cluster::new(), CallContext::new());
    let (first, second) = (cluster.machine("first"), cluster.machine("second"));
    (0..600).for_each(|number| add(&first, number));
    first.publish_index(&call).unwrap();
    let newest = cluster.newest_view();
    add(&second, 600);
    second.publish_index(&call).unwrap();
    assert_eq!(cluster.newest_view(), newest, "the first has the lease");
    drop(first);
    add(&second, 601);
    second.publish_index(&call).unwrap();
    assert!(cluster.newest_view() > newest, "and now the second");
    let third = cluster.machine("third");
    assert!(finds(&third, 0) && finds(&third, 601));
}
