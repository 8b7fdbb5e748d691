//! Resource ids and maps.

use shelf_base::{Digest, ids::CollectionId, ids::DocumentId};

use super::{at, default_collection, put, sample, scope};
use crate::{Actor, Catalog, NewMap, Operation, Purge, Scope};

pub(super) fn resources_have_ids_and_maps(catalog: &dyn Catalog) {
    let collection = default_collection(catalog);
    let ids: Vec<DocumentId> = put(catalog, collection, 1, vec![sample("a", "a"), sample("b", "b")])
        .iter()
        .map(|put| put.id)
        .collect();
    let name = |document, id: &str| catalog.name_resource(&Actor::local(), &scope(), document, id, at(2));
    assert!(name(ids[0], "zeta").expect("a name") && name(ids[1], "alpha").expect("a name"));
    assert!(name(ids[0], "alpha").is_err(), "the id is taken");
    assert!(!name(DocumentId::fresh(), "other").expect("an answer"), "there is no such document");
    assert_eq!(catalog.resource_ids(&scope(), 10).expect("ids"), ["alpha", "zeta"]);
    assert_eq!(catalog.resource_ids(&scope(), 1).expect("ids"), ["alpha"]);
    let found = catalog.resource(&scope(), "zeta").expect("a read").expect("the document");
    assert_eq!((found.id, found.resource_id.as_deref()), (ids[0], Some("zeta")));
    let elsewhere = Scope::Collection(CollectionId::fresh());
    assert_eq!(catalog.resource(&elsewhere, "zeta").expect("a read"), None);
    assert!(catalog.resource_ids(&elsewhere, 10).expect("ids").is_empty());

    assert_eq!(catalog.map_number(&scope(), ids[0]).expect("a read"), None);
    let map = |bytes: &[u8]| NewMap { source: Digest::of(b"a"), origin: "model".into(), map: bytes.to_vec() };
    let set = |document, bytes: &[u8]| {
        catalog.set_map(&Actor::local(), &scope(), document, map(bytes), at(3)).expect("an answer")
    };
    assert_eq!((set(ids[0], b"one"), set(ids[0], b"two")), (Some(1), Some(2)));
    assert_eq!(set(DocumentId::fresh(), b"x"), None);
    let newest = catalog.newest_map(&scope(), ids[0]).expect("a read").expect("a map");
    assert_eq!((newest.number, newest.map.as_slice(), newest.created_at), (2, &b"two"[..], at(3)));
    assert_eq!(catalog.map_number(&elsewhere, ids[0]).expect("a read"), None);
    let last = catalog.journal(0, 100).expect("the journal").pop().expect("a record");
    assert_eq!((last.operation, last.new), (Operation::SetMap, Some(Digest::of(b"two"))));
    assert!(catalog.audit().expect("an audit").is_empty());

    // A map goes with its document.
    catalog.delete(&Actor::local(), &scope(), &[ids[0]], at(4)).expect("a deletion");
    assert_eq!(catalog.newest_map(&scope(), ids[0]).expect("a read"), None);
    let purge = Purge { keep: [Digest::of(b"b")].into(), ..Purge::default() };
    catalog.purge(&Actor::local(), &purge, at(5)).expect("a purge");
    assert!(catalog.audit().expect("an audit").is_empty());
    assert!(catalog.integrity().expect("a check").is_empty());
}
