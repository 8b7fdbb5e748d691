//! Deepening: better vectors arrive later, never twice for the same passage, and are kept.

use std::{fs, path::PathBuf};

use shelf_base::{CallContext, ErrorInfo, Kind};
use shelf_engine::{
    AddRequest, Caller, Deepen, DeepenFigures, DeleteRequest, Library, Options, SearchKind, SearchRequest,
    What,
};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn open(&self) -> Library {
        Library::open(self.folder.path(), Options::default()).unwrap()
    }

    /// The size of the file that keeps vectors: it grows when something is encoded.
    fn kept(&self) -> u64 {
        let files = fs::read_dir(self.folder.path().join("index")).unwrap().flatten();
        let caches =
            files.filter(|file| file.path().extension().is_some_and(|extension| extension == "cache"));
        caches.map(|file| file.metadata().unwrap().len()).sum()
    }
}

fn add(library: &Library, name: &str, content: &str) {
    let what = What::Content { name: name.into(), bytes: content.as_bytes().to_vec() };
    library.add(&Caller::owner(), &AddRequest::new(what), &CallContext::new()).unwrap();
}

const TEXTS: [(&str, &str); 6] = [
    ("cars.txt", "A vehicle with four wheels and a motor should be inspected every year by a mechanic."),
    (
        "bread.txt",
        "Knead the dough for ten minutes, let it rise in a warm place, then bake it until it is brown.",
    ),
    ("stars.txt", "Telescopes gather light from distant galaxies, which astronomers study at night."),
    ("money.txt", "A savings account pays interest on deposits, less than shares but without much risk."),
    ("teeth.txt", "Brush in the morning and before you go to bed; a dentist looks for caries twice a year."),
    ("birds.txt", "Swallows fly south in autumn and return in spring to the nests that they left."),
];

fn filled(place: &Place) -> Library {
    let library = place.open();
    TEXTS.iter().for_each(|(name, text)| add(&library, name, text));
    library
}

fn deepen(library: &Library) -> u64 {
    library.deepen(&Caller::owner(), None, None, &CallContext::new()).unwrap()
}

fn figures(library: &Library) -> (u64, u64) {
    library
        .search(&Caller::owner(), &SearchRequest::new("brings the index up to date"), &CallContext::new())
        .unwrap();
    let DeepenFigures { passages, deep, .. } = library.deepen_figures(&Caller::owner()).unwrap().unwrap();
    (passages, deep)
}

/// The best hit by meaning, and its cosine.
fn nearest(library: &Library, query: &str) -> (String, f32) {
    let request = SearchRequest { kind: SearchKind::Semantic, ..SearchRequest::new(query) };
    let found = library.search(&Caller::owner(), &request, &CallContext::new()).unwrap();
    let hit = found.hits.first().unwrap();
    (hit.document.path.clone(), hit.semantic.unwrap())
}

#[test]
fn passages_get_better_vectors_and_are_never_read_twice() {
    let place = Place::new();
    let library = filled(&place);
    let (path, before) = nearest(&library, "how do I look after my teeth?");
    assert_eq!((path.as_str(), figures(&library)), ("teeth.txt", (6, 0)));
    assert_eq!(deepen(&library), 6);
    assert_eq!(figures(&library), (6, 6));
    let (path, after) = nearest(&library, "how do I look after my teeth?");
    assert!(path == "teeth.txt" && after > before + 0.05, "{before} {after}");
    let kept = place.kept();
    assert!(kept > 6 * 384);
    assert_eq!(deepen(&library), 0);

    // A copy, the same content after deletion, and an index that was built anew: nothing is encoded again.
    add(&library, "copy.txt", TEXTS[0].1);
    let gone = DeleteRequest { names: vec!["birds.txt".into()], ..DeleteRequest::default() };
    library.delete(&Caller::owner(), &gone, &CallContext::new()).unwrap();
    add(&library, "birds.txt", TEXTS[5].1);
    assert_eq!((figures(&library), deepen(&library), figures(&library)), ((7, 5), 2, (7, 7)));
    library.reindex(&CallContext::new()).unwrap();
    assert_eq!((figures(&library), deepen(&library), figures(&library)), ((7, 0), 7, (7, 7)));
    assert_eq!(place.kept(), kept);

    add(&library, "new.txt", "Locksmiths open doors whose keys were lost, and copy keys while you wait.");
    assert_eq!((deepen(&library), figures(&library)), (1, (8, 8)));
    assert!(place.kept() > kept);
    // Another process sees them, and so does one that comes later.
    let other = place.open();
    assert_eq!(
        nearest(&other, "how do I look after my teeth?"),
        nearest(&library, "how do I look after my teeth?")
    );
    drop((library, other));
    assert_eq!(figures(&place.open()), (8, 8));
}

#[test]
fn titles_are_part_of_what_is_read() {
    let place = Place::new();
    let library = place.open();
    let store = |title: &str| {
        let request = shelf_engine::StoreRequest {
            title: title.into(),
            content: "It is described on the second page of the leaflet.".into(),
            document_type: None,
            metadata: Default::default(),
            collection: None,
        };
        library.store_document(&Caller::owner(), &request, &CallContext::new()).unwrap();
    };
    store("Feeding a hedgehog in winter");
    store("Repairing a bicycle chain");
    store("Paying taxes late");
    assert_eq!(deepen(&library), 3);
    let request = SearchRequest { kind: SearchKind::Semantic, ..SearchRequest::new("broken bike") };
    let found = library.search(&Caller::owner(), &request, &CallContext::new()).unwrap();
    assert_eq!(found.hits[0].document.title, "Repairing a bicycle chain");
}

#[test]
fn a_library_may_be_deepened_in_part_and_by_collection() {
    let place = Place::new();
    let library = filled(&place);
    let owner = Caller::owner();
    assert_eq!(library.deepen(&owner, None, Some(2), &CallContext::new()).unwrap(), 2);
    let error = library.deepen(&owner, Some("nowhere"), None, &CallContext::new()).unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
    let kept = place.kept();
    assert_eq!(deepen(&library), 4);
    assert_eq!(place.kept() - kept, 4 * (384 + 40));
    for (name, _) in TEXTS {
        let found =
            library.search(&owner, &SearchRequest::new(&*name.replace(".txt", "")), &CallContext::new());
        assert!(found.is_ok_and(|found| found.hits.iter().any(|hit| hit.document.path == name)), "{name}");
    }
}

#[test]
fn one_process_deepens_at_a_time_and_a_switch_turns_it_off() {
    let place = Place::new();
    let library = filled(&place);
    let locks = place.folder.path().join("locks");
    fs::create_dir_all(&locks).unwrap();
    let held = fs::File::create(locks.join("deepen.lock")).unwrap();
    held.lock().unwrap();
    let error = library.deepen(&Caller::owner(), None, None, &CallContext::new()).unwrap_err();
    assert_eq!(error.kind(), Kind::Busy);
    drop(held);
    assert_eq!(deepen(&library), 6);
    drop(library);
    let off = Options { deepen: Deepen::Off, ..Options::default() };
    let library = Library::open(place.folder.path(), off).unwrap();
    assert_eq!(library.deepen_figures(&Caller::owner()).unwrap(), None);
    assert!(library.deepen(&Caller::owner(), None, None, &CallContext::new()).is_err());
    assert!(library.search(&Caller::owner(), &SearchRequest::new("teeth"), &CallContext::new()).is_ok());
}

#[test]
fn it_stops_when_it_is_told_to() {
    let place = Place::new();
    let library = filled(&place);
    assert!(!library.deepen_quietly(&|| false, &CallContext::new()).unwrap());
    assert_eq!(figures(&library), (6, 0));
    assert!(library.deepen_quietly(&|| true, &CallContext::new()).unwrap());
    assert_eq!(figures(&library), (6, 6));
    let cancelled = CallContext::new();
    cancelled.cancel();
    add(&library, "more.txt", "Something else that was not there before.");
    assert!(library.deepen(&Caller::owner(), None, None, &cancelled).is_err());
}

#[test]
fn merging_keeps_deep_vectors() {
    let place = Place::new();
    let library = place.open();
    for round in 0..8 {
        for (name, text) in TEXTS {
            add(&library, &format!("{round}/{name}"), &format!("{text} Round {round}."));
        }
        deepen(&library);
    }
    assert_eq!(figures(&library), (48, 48));
    library.index_now(&CallContext::new()).unwrap();
    let segments = |place: &Place| -> Vec<PathBuf> {
        let files =
            fs::read_dir(place.folder.path().join("index")).unwrap().flatten().map(|file| file.path());
        files.filter(|path| path.extension().is_some_and(|extension| extension == "seg")).collect()
    };
    assert!(!segments(&place).is_empty());
    assert!(library.check(&CallContext::new()).unwrap().findings.is_empty());
}
