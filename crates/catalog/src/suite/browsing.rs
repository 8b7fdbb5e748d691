//! Folders, facets and recent records.

use shelf_base::ids::{CollectionId, DocumentId};

use super::{at, default_collection, put, sample, scope};
use crate::{Actor, Catalog, Filter, Operation, Order, Page, RecordFilter, Scope, SortBy, Subject};

pub(super) fn folders_facets_and_records_are_counted(catalog: &dyn Catalog) {
    let collection = default_collection(catalog);
    let mut tagged = sample("a/ä/two", "22");
    tagged.tags = ["red".to_owned()].into();
    let documents =
        vec![sample("top", "1"), sample("a/one", "1"), tagged, sample("a/ä/three", "333"), sample("a0", "1")];
    let made = put(catalog, collection, 1, documents);
    put(catalog, collection, 90_000, vec![sample("b/late", "4444")]);
    let page =
        |limit, offset| Page { sort: SortBy::Name, order: Order::Ascending, limit, offset, after: None };
    let look = |folder: &str, page: &Page| {
        let found = catalog.folder(&scope(), "default", folder, page).expect("a folder");
        let folders: Vec<(String, u64, u64)> = found
            .folders
            .iter()
            .map(|folder| (folder.name.clone(), folder.documents, folder.bytes))
            .collect();
        let documents: Vec<String> = found.documents.iter().map(|document| document.path.clone()).collect();
        (folders, documents, found.total)
    };
    assert_eq!(
        look("", &page(10, 0)),
        (vec![("a".into(), 3, 6), ("b".into(), 1, 4)], vec!["a0".into(), "top".into()], 2)
    );
    assert_eq!(look("", &page(1, 1)).1, ["top"]);
    assert_eq!(look("a/", &page(10, 0)), (vec![("ä".into(), 2, 5)], vec!["a/one".into()], 1));
    assert_eq!(look("a/ä/", &page(10, 0)).1, ["a/ä/three", "a/ä/two"]);
    let ends = |folder: &str| catalog.ends(&scope(), "default", folder).expect("an answer");
    assert_eq!(ends(""), Some(("a/one".into(), "top".into())));
    assert_eq!(ends("a/"), Some(("a/one".into(), "a/ä/two".into())));
    assert_eq!(ends("nowhere/"), None);
    let elsewhere = Scope::Collection(CollectionId::fresh());
    let nothing = catalog.folder(&elsewhere, "default", "", &page(10, 0)).expect("a folder");
    assert!(nothing.folders.is_empty() && nothing.documents.is_empty() && nothing.total == 0);

    let facets = catalog.facets(&scope(), &Filter::default(), 10).expect("facets");
    assert_eq!((facets.types[0].value.as_str(), facets.types[0].documents), ("text/plain", 6));
    assert_eq!((facets.tags[0].value.as_str(), facets.tags[0].documents), ("red", 1));
    assert_eq!((facets.collections[0].value.as_str(), facets.collections[0].bytes), ("default", 12));
    assert_eq!(facets.days, [(0, 5, 8), (1, 1, 4)]);
    assert!(catalog.facets(&elsewhere, &Filter::default(), 10).expect("facets").types.is_empty());

    catalog.delete(&Actor::local(), &scope(), &[made[0].id], at(90_001)).expect("a deletion");
    let recent = |scope: &Scope, filter: RecordFilter| -> Vec<_> {
        let found = catalog.recent(scope, &filter, 100).expect("records");
        assert_eq!(found.next_before, None, "everything was looked at");
        found.records.into_iter().map(|(record, _)| record).collect()
    };
    let all = recent(&scope(), RecordFilter::default());
    assert_eq!((all[0].operation, all[0].path.as_str()), (Operation::Delete, "top"));
    assert!(all.windows(2).all(|pair| pair[0].sequence > pair[1].sequence));
    let of_one = RecordFilter { document: Some(made[0].id), ..RecordFilter::default() };
    assert_eq!(recent(&scope(), of_one).len(), 2);
    let adds = RecordFilter { operations: vec![Operation::Add], ..RecordFilter::default() };
    assert_eq!(recent(&scope(), adds).len(), 6);
    let older = RecordFilter { before: Some(all[0].sequence), ..RecordFilter::default() };
    assert_eq!(recent(&scope(), older).len(), all.len() - 1);
    assert!(recent(&elsewhere, RecordFilter::default()).is_empty());
    let some = catalog.recent(&scope(), &RecordFilter::default(), 2).expect("records");
    assert_eq!(some.next_before, Some(all[1].sequence), "there are older ones");
    put(catalog, collection, 90_002, vec![sample(&format!("documents/{}", DocumentId::fresh()), "titled")]);
    let of = |subject| recent(&scope(), RecordFilter { subject: Some(subject), ..RecordFilter::default() });
    assert_eq!(of(Subject::Documents)[0].operation, Operation::Add);
    assert!(of(Subject::Documents)[1..].iter().all(|record| record.document.is_none()));
    assert!(of(Subject::Books).is_empty() && of(Subject::Citations).is_empty());
    assert_eq!(of(Subject::Store).len() + of(Subject::Documents).len(), all.len() + 1);
}
