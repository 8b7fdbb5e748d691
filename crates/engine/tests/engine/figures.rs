//! The figures of a library follow its journal, and are those that counting from nothing gives.

use proptest::prelude::*;
use shelf_base::CallContext;
use shelf_engine::{AddRequest, Caller, DeleteRequest, Figures, Library, Options, UndeleteRequest, What};

#[derive(Clone, Debug)]
enum Step {
    /// A document of a name, with one of a few contents, in one of two collections.
    Add(u8, u8, bool),
    Delete(u8),
    /// The document that was deleted last comes back.
    Undelete,
    Tag(u8),
    DropCollection,
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..6_u8, 0..5_u8, any::<bool>()).prop_map(|(name, content, other)| Step::Add(name, content, other)),
        2 => (0..6_u8).prop_map(Step::Delete),
        1 => Just(Step::Undelete),
        1 => (0..6_u8).prop_map(Step::Tag),
        1 => Just(Step::DropCollection),
        4 => Just(Step::Look),
    ];
    proptest::collection::vec(step, 1..40)
}

fn figures(library: &Library) -> Figures {
    library.status(&Caller::owner(), false, false, &CallContext::new()).unwrap().figures
}

/// Small contents, and large ones that share most of their blocks.
fn content(number: u8) -> Vec<u8> {
    let lines = if number < 3 { 1 } else { 12_000 };
    let mut text: String = (0..lines).map(|line| format!("line {line} of a text about herons\n")).collect();
    text.push_str(&number.to_string());
    text.into_bytes()
}

fn run(library: &Library, step: &Step, gone: &mut Option<String>) {
    let (caller, call) = (Caller::owner(), CallContext::new());
    match step {
        Step::Add(name, number, is_other) => {
            let what = What::Content { name: format!("{name}.txt"), bytes: content(*number) };
            let collection = is_other.then(|| "other".to_owned());
            library.add(&caller, &AddRequest { collection, ..AddRequest::new(what) }, &call).unwrap();
        }
        Step::Tag(name) => {
            let what = What::Content { name: format!("{name}.txt"), bytes: content(0) };
            let request = AddRequest { tags: vec!["seen".into()], ..AddRequest::new(what) };
            library.add(&caller, &request, &call).unwrap();
        }
        Step::Delete(name) => {
            let names = vec![format!("{name}.txt")];
            let collection = Some("default".to_owned());
            let request = DeleteRequest { names, pattern: None, collection, dry_run: false };
            if let Ok((deleted, _)) = library.delete(&caller, &request, &call) {
                *gone = deleted.first().map(|deleted| deleted.id.to_string()).or(gone.take());
            }
        }
        Step::Undelete => {
            if let Some(document_id) = gone.take() {
                let request = UndeleteRequest { document_id, ..UndeleteRequest::default() };
                // Another document may stand in its place.
                let _ = library.undelete(&caller, &request, &call);
            }
        }
        Step::DropCollection => {
            let collections = library.collections(&caller).unwrap();
            if let Some(other) = collections.iter().find(|found| found.collection.name == "other") {
                library.delete_collection(&caller, &other.collection.id.to_string(), &call).unwrap();
            }
        }
        Step::Look => drop(figures(library)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn figures_that_follow_the_journal_are_those_of_a_new_count(steps in steps()) {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::open(folder.path(), Options::default()).unwrap();
        let mut gone = None;
        for (at, step) in steps.iter().enumerate() {
            run(&library, step, &mut gone);
            if at % 3 == 2 || at + 1 == steps.len() {
                // A library that was just opened has nothing to go on from.
                let fresh = Library::open(folder.path(), Options::default()).unwrap();
                prop_assert_eq!(figures(&library), figures(&fresh), "after {:?}", &steps[..=at]);
            }
        }
    }
}
