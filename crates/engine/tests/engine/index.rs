//! The search index: derived, so whatever happens to it, searching goes on as if nothing had.

use std::{fs, path::PathBuf};

use shelf_base::CallContext;
use shelf_engine::{
    AddRequest, Caller, DeleteRequest, Idle, Library, ListRequest, Options, SearchKind, SearchRequest, What,
};

const SUBJECTS: [&str; 8] =
    ["harbour", "telescope", "orchard", "violin", "glacier", "library", "engine", "market"];

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

    fn index(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    fn segments(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.index()).unwrap().flatten().map(|entry| entry.path());
        files.filter(|path| path.extension().is_some_and(|extension| extension == "seg")).collect()
    }
}

fn add(library: &Library, name: &str, content: &str) {
    let what = What::Content { name: name.into(), bytes: content.as_bytes().to_vec() };
    library.add(&Caller::owner(), &AddRequest::new(what), &CallContext::new()).unwrap();
}

fn text(number: usize) -> String {
    let (one, two) = (SUBJECTS[number % 8], SUBJECTS[number / 8 % 8]);
    format!(
        "Report {number} tells of the {one} and, at length, of the {two}. {}",
        format!("{two} ").repeat(number % 5)
    )
}

fn fill(library: &Library, documents: usize) {
    (0..documents).for_each(|number| add(library, &format!("reports/{number}.txt"), &text(number)));
}

/// Paths and scores of every kind of search.
fn answers(library: &Library) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for kind in [SearchKind::Keyword, SearchKind::Semantic, SearchKind::Hybrid] {
        for query in ["harbour telescope", "the music of a violin", "glacer", "\"tells of the market\""] {
            let request = SearchRequest { kind, limit: 50, ..SearchRequest::new(query) };
            let found = library.search(&Caller::owner(), &request, &CallContext::new()).unwrap();
            assert!(!found.hits.is_empty() || kind == SearchKind::Semantic, "{kind:?} {query}");
            all.extend(
                found
                    .hits
                    .iter()
                    .map(|hit| (hit.document.path.clone(), format!("{:?} {query} {:.5}", kind, hit.score))),
            );
            all.push((query.to_owned(), found.total.to_string()));
        }
    }
    all
}

#[test]
fn order_and_scores_do_not_depend_on_how_the_index_was_made() {
    let (piece, bulk) = (Place::new(), Place::new());
    let (slow, fast) = (piece.open(), bulk.open());
    // One by one with searches between, with replaced and deleted documents on the way.
    for number in 0..120 {
        add(&slow, &format!("reports/{number}.txt"), "to be replaced by a telescope harbour violin");
        if number % 10 == 0 {
            answers_quietly(&slow);
        }
        add(&slow, &format!("reports/{number}.txt"), &text(number));
        add(&slow, "gone.txt", "harbour telescope violin glacier market");
    }
    let gone = DeleteRequest { names: vec!["gone.txt".into()], ..DeleteRequest::default() };
    slow.delete(&Caller::owner(), &gone, &CallContext::new()).unwrap();
    fill(&fast, 120);
    let expected = answers(&fast);
    assert_eq!(answers(&slow), expected);
    slow.reindex(&CallContext::new()).unwrap();
    assert_eq!(answers(&slow), expected, "after building anew");
    drop(slow);
    assert_eq!(answers(&piece.open()), expected, "after opening again");
}

fn answers_quietly(library: &Library) {
    let _ = library.search(&Caller::owner(), &SearchRequest::new("harbour"), &CallContext::new()).unwrap();
}

#[test]
fn a_missing_index_is_built_anew() {
    let place = Place::new();
    let library = place.open();
    fill(&library, 300);
    let expected = answers(&library);
    library.reindex(&CallContext::new()).unwrap();
    assert!(!place.segments().is_empty(), "a large gap is written out");
    fs::remove_dir_all(place.index()).unwrap();
    assert_eq!(answers(&library), expected, "in the running process");
    drop(library);
    fs::remove_dir_all(place.index()).unwrap();
    let library = place.open();
    assert_eq!(answers(&library), expected, "in a new one");
    for segment in place.segments() {
        fs::remove_file(segment).unwrap();
    }
    drop(library);
    assert_eq!(answers(&place.open()), expected, "without its segments");
}

#[test]
fn rest_changes_no_answer() {
    let place = Place::new();
    let library = place.open();
    fill(&library, 300);
    library.reindex(&CallContext::new()).unwrap();
    let expected = answers(&library);
    let pattern = shelf_engine::GrepRequest {
        pattern: "arbou|elescop[a-z]".into(),
        page_chars: usize::MAX,
        ..shelf_engine::GrepRequest::default()
    };
    let lines =
        |library: &Library| library.grep(&Caller::owner(), &pattern, &CallContext::new()).unwrap().lines;
    let expected_lines = lines(&library);
    assert!(!expected_lines.is_empty());
    for idle in [Idle::Short, Idle::Long, Idle::Long, Idle::Short] {
        library.release_memory(idle);
        assert_eq!(answers(&library), expected, "{idle:?}");
        assert_eq!(lines(&library), expected_lines, "{idle:?}");
        assert_eq!(lines(&library), expected_lines, "{idle:?}, from memory");
    }
    // While others read and write.
    std::thread::scope(|scope| {
        scope.spawn(|| (0..50).for_each(|_| library.release_memory(Idle::Long)));
        scope.spawn(|| (0..20).for_each(|_| assert_eq!(lines(&library), expected_lines)));
        (0..50).for_each(|number| add(&library, &format!("new/{number}.txt"), "nothing of that kind"));
    });
    assert_eq!(
        library.list(&Caller::owner(), &ListRequest::default(), &CallContext::new()).unwrap().total,
        350
    );
}

#[test]
fn damage_is_noticed_and_healed() {
    let place = Place::new();
    let library = place.open();
    fill(&library, 300);
    library.reindex(&CallContext::new()).unwrap();
    let expected = answers(&library);
    drop(library);
    let segment = place.segments().into_iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let whole = fs::read(&segment).unwrap();
    // Torn: the length is wrong.
    fs::write(&segment, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(answers(&place.open()), expected);
    let mut noticed = 0;
    for turn in 0..12 {
        let library = place.open();
        library.reindex(&CallContext::new()).unwrap();
        drop(library);
        let segment =
            place.segments().into_iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
        let mut bytes = fs::read(&segment).unwrap();
        let at = bytes.len() * (2 * turn + 1) / 24;
        bytes[at..].iter_mut().take(40).for_each(|byte| *byte ^= 0x5A);
        fs::write(&segment, &bytes).unwrap();
        let library = place.open();
        if turn % 3 == 0 {
            // Searching alone heals it as well.
            assert_eq!(answers(&library), expected, "turn {turn}, byte {at}, by searching");
        }
        let report = library.check(&CallContext::new()).unwrap();
        let padding = report.findings.is_empty();
        if !padding {
            assert!(
                report.findings.iter().any(|finding| finding.place.contains("search index")),
                "{turn}: {report:?}"
            );
            assert!(library.repair(&CallContext::new()).unwrap().findings.is_empty(), "{turn}");
            noticed += 1;
        }
        assert_eq!(answers(&library), expected, "turn {turn}, byte {at}");
        assert!(library.check(&CallContext::new()).unwrap().findings.is_empty(), "{turn}");
    }
    assert!(noticed >= 6, "{noticed} of 8 damages were noticed");
}

#[test]
fn an_index_of_another_library_is_not_believed() {
    let (one, two) = (Place::new(), Place::new());
    let library = one.open();
    fill(&library, 300);
    library.reindex(&CallContext::new()).unwrap();
    drop(library);
    let other = two.open();
    fill(&other, 20);
    let expected = answers(&other);
    drop(other);
    let _ = fs::remove_dir_all(two.index());
    fs::create_dir_all(two.index()).unwrap();
    for entry in fs::read_dir(one.index()).unwrap().flatten() {
        fs::copy(entry.path(), two.index().join(entry.file_name())).unwrap();
    }
    assert_eq!(answers(&two.open()), expected);
}

#[test]
fn cancelling_stops_indexing_and_loses_nothing() {
    let place = Place::new();
    let library = place.open();
    fill(&library, 300);
    let call = CallContext::new();
    call.cancel();
    assert!(library.index_now(&call).is_err());
    let undisturbed = Place::new();
    let other = undisturbed.open();
    fill(&other, 300);
    assert_eq!(answers(&library), answers(&other));
}

#[test]
fn a_collection_of_deleted_documents_leaves_true_totals_to_all() {
    let place = Place::new();
    let library = place.open();
    fill(&library, 300);
    library.reindex(&CallContext::new()).unwrap();
    let other = place.open();
    answers(&other);
    let gone = DeleteRequest { pattern: Some("reports/1?.txt".into()), ..DeleteRequest::default() };
    library.delete(&Caller::owner(), &gone, &CallContext::new()).unwrap();
    let retention = shelf_engine::maintain::Retention { keep_last: Some(1), ..Default::default() };
    library.gc(&retention, std::time::Duration::from_secs(5), &CallContext::new()).unwrap();
    for library in [&library, &other, &place.open()] {
        let request = SearchRequest { kind: SearchKind::Keyword, ..SearchRequest::new("report") };
        let found = library.search(&Caller::owner(), &request, &CallContext::new()).unwrap();
        assert_eq!(found.total, 290);
    }
}

/// A small generator: the same numbers on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// Text that is hard on words: identifiers, runs without spaces, other scripts, odd separators, long lines.
fn odd_text(dice: &mut Dice) -> String {
    const PIECES: [&str; 24] = [
        "alpha",
        "beta2",
        "Gamma",
        "DELTA",
        "_",
        "__",
        " ",
        "\n",
        "é",
        "中",
        "x",
        "connection_pool",
        "HttpServer",
        "-",
        ".",
        "(",
        "::",
        "\t",
        "the",
        "ß",
        "\u{301}",
        "zz9",
        "\u{a0}",
        "'s",
    ];
    let spaceless = dice.roll(3) == 0;
    let mut text = String::new();
    for _ in 0..400 + dice.roll(1_200) {
        let piece = PIECES[dice.roll(PIECES.len())];
        if !spaceless || !piece.chars().any(char::is_whitespace) {
            text.push_str(piece);
        }
    }
    text
}

#[test]
fn any_piece_of_any_text_is_found_by_pattern() {
    let place = Place::new();
    let library = place.open();
    let mut dice = Dice(42);
    let texts: Vec<String> = (0..60).map(|_| odd_text(&mut dice)).collect();
    for (number, text) in texts.iter().enumerate() {
        add(&library, &format!("odd/{number:02}.txt"), text);
    }
    for turn in 0..600 {
        if turn == 300 {
            library.reindex(&CallContext::new()).unwrap();
        }
        let text = &texts[dice.roll(texts.len())];
        let line = text.lines().nth(dice.roll(text.lines().count().max(1))).unwrap_or_default();
        let characters: Vec<char> = line.chars().collect();
        if characters.len() < 4 {
            continue;
        }
        let start = dice.roll(characters.len() - 3);
        let length = 3 + dice.roll((characters.len() - start - 2).min(40));
        let piece: String = characters[start..start + length.min(characters.len() - start)].iter().collect();
        let request = shelf_engine::GrepRequest {
            pattern: escaped(&piece),
            show: shelf_engine::GrepShow::FilesWithMatches,
            page_chars: usize::MAX,
            ..shelf_engine::GrepRequest::default()
        };
        let found = library.grep(&Caller::owner(), &request, &CallContext::new()).unwrap();
        let expected = texts.iter().filter(|text| text.lines().any(|line| line.contains(&piece))).count();
        assert_eq!(found.total_files, expected as u64, "{piece:?}");
    }
}

fn escaped(text: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || character == '_' || !character.is_ascii();
    text.chars()
        .map(|character| if plain(character) { character.to_string() } else { format!("\\{character}") })
        .collect()
}
