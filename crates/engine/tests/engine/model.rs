//! Random sequences of add, update, delete, snapshot, fold, collection and restore, against a model in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use proptest::prelude::*;
use shelf_base::CallContext;
use shelf_engine::{
    AddRequest, Caller, DeleteRequest, GetRequest, Library, ListRequest, Options, RestoreRequest,
    UpdateRequest, What, Window, maintain::Retention,
};

#[derive(Clone, Debug)]
enum Step {
    Add { name: u8, content: u16, tag: u8 },
    AddLarge { name: u8, seed: u8 },
    Update { name: u8, value: u8 },
    Delete { name: u8 },
    Snapshot,
    Fold,
    Collect { keep_last: Option<u64> },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u8..6, 0_u16..20, 0_u8..3).prop_map(|(name, content, tag)| Step::Add { name, content, tag }),
        2 => (0_u8..6, 0_u8..5).prop_map(|(name, seed)| Step::AddLarge { name, seed }),
        2 => (0_u8..6, 0_u8..4).prop_map(|(name, value)| Step::Update { name, value }),
        3 => (0_u8..6).prop_map(|name| Step::Delete { name }),
        2 => Just(Step::Snapshot),
        1 => Just(Step::Fold),
        2 => prop_oneof![Just(None), (1_u64..4).prop_map(Some)].prop_map(|keep_last| Step::Collect { keep_last }),
        1 => Just(Step::Reopen),
    ]
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Kept {
    content: Vec<u8>,
    tags: BTreeSet<String>,
    value: Option<String>,
}

#[derive(Default)]
struct Model {
    documents: BTreeMap<String, Kept>,
    /// Snapshots in the order they were made: id and files.
    snapshots: Vec<(String, BTreeMap<String, Vec<u8>>)>,
}

fn name_of(name: u8) -> String {
    format!("folder-{}/document-{name}.txt", name % 2)
}

fn large(seed: u8) -> Vec<u8> {
    (0..200_000_u32).map(|n| (n.wrapping_mul(u32::from(seed) * 2 + 1) >> 7) as u8).collect()
}

struct Run {
    folder: tempfile::TempDir,
    library: Library,
    caller: Caller,
    call: CallContext,
    model: Model,
}

impl Run {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::open(&folder.path().join("library"), Options::default()).unwrap();
        Self { folder, library, caller: Caller::owner(), call: CallContext::new(), model: Model::default() }
    }

    fn add(&mut self, name: u8, content: Vec<u8>, tags: Vec<String>) {
        let name = name_of(name);
        let mut request = AddRequest::new(What::Content { name: name.clone(), bytes: content.clone() });
        request.tags = tags.clone();
        let added = self.library.add(&self.caller, &request, &self.call).unwrap();
        assert_eq!(added.bytes_stored + added.bytes_deduped, content.len() as u64);
        let kept = self.model.documents.entry(name.clone()).or_default();
        kept.content.clone_from(&content);
        kept.tags.extend(tags);
        self.model.snapshots.push((added.snapshot.with_micros(), BTreeMap::from([(name, content)])));
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Add { name, content, tag } => {
                self.add(*name, format!("content {content}").into_bytes(), vec![format!("tag{tag}")]);
            }
            Step::AddLarge { name, seed } => self.add(*name, large(*seed), Vec::new()),
            Step::Update { name, value } => self.update(*name, *value),
            Step::Delete { name } => {
                let name = name_of(*name);
                let request = DeleteRequest { names: vec![name.clone()], ..DeleteRequest::default() };
                let (gone, unknown) = self.library.delete(&self.caller, &request, &self.call).unwrap();
                let known = self.model.documents.remove(&name).is_some();
                assert_eq!((gone.len(), unknown.len()), (usize::from(known), usize::from(!known)));
            }
            Step::Snapshot if self.model.snapshots.is_empty() => {}
            Step::Snapshot => {
                let made =
                    self.library.snapshot_collection(&self.caller, "default", None, &self.call).unwrap();
                let files = self
                    .model
                    .documents
                    .iter()
                    .map(|(name, kept)| (name.clone(), kept.content.clone()))
                    .collect();
                self.model.snapshots.push((made.at.with_micros(), files));
            }
            Step::Fold => drop(self.library.fold_now().unwrap()),
            Step::Collect { keep_last } => {
                let retention =
                    Retention { keep_last: *keep_last, keep_labelled: true, ..Retention::default() };
                let planned = self.library.plan_gc(&retention, &self.call).unwrap();
                let done =
                    self.library.gc(&retention, std::time::Duration::from_secs(5), &self.call).unwrap();
                assert_eq!(
                    (planned.blobs, planned.snapshots.len()),
                    (done.blobs, done.snapshots.len()),
                    "done as planned"
                );
                if let Some(keep) = keep_last {
                    let gone = self.model.snapshots.len().saturating_sub(usize::try_from(*keep).unwrap());
                    self.model.snapshots.drain(..gone);
                }
            }
            Step::Reopen => {
                self.library =
                    Library::open(&self.folder.path().join("library"), Options::default()).unwrap();
            }
        }
    }

    fn update(&mut self, name: u8, value: u8) {
        let name = name_of(name);
        let mut request = UpdateRequest { name: Some(name.clone()), ..UpdateRequest::default() };
        request.metadata.insert("value".into(), value.to_string().into());
        let updated = self.library.update(&self.caller, &request, &self.call);
        match self.model.documents.get_mut(&name) {
            Some(kept) => {
                updated.unwrap();
                kept.value = Some(value.to_string());
            }
            None => assert!(updated.is_err()),
        }
    }

    fn compare(&self) {
        let listed = self
            .library
            .list(&self.caller, &ListRequest { limit: 1_000, ..ListRequest::default() }, &self.call)
            .unwrap();
        let paths: Vec<&String> = listed.documents.iter().map(|document| &document.path).collect();
        assert_eq!(paths, self.model.documents.keys().collect::<Vec<_>>());
        let figures = self.library.status(&self.caller, false, false, &self.call).unwrap().figures;
        let bytes: u64 = self.model.documents.values().map(|kept| kept.content.len() as u64).sum();
        assert_eq!((figures.total_objects, figures.total_bytes), (self.model.documents.len() as u64, bytes));
        for (name, kept) in &self.model.documents {
            let request = GetRequest {
                name: Some(name.clone()),
                include_content: true,
                window: Window::default(),
                ..GetRequest::default()
            };
            let got = self.library.get(&self.caller, &request, &self.call).unwrap().unwrap();
            assert_eq!(got.version.hash, shelf_base::Digest::of(&kept.content));
            assert_eq!(got.content.unwrap().total_bytes, kept.content.len() as u64);
            assert_eq!(got.document.tags, kept.tags.iter().cloned().collect::<Vec<_>>());
            assert_eq!(
                got.document.metadata.get("value").and_then(|value| value.as_str()),
                kept.value.as_deref()
            );
        }
    }

    fn compare_snapshots(&self) {
        let found = self.library.snapshots_after(&self.caller, None, None, 10_000).unwrap();
        let ids: Vec<String> = found.iter().rev().map(|snapshot| snapshot.at.with_micros()).collect();
        assert_eq!(ids, self.model.snapshots.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>());
        for (number, (id, files)) in self.model.snapshots.iter().enumerate() {
            let output = self.folder.path().join(format!("out-{number}"));
            let _ = fs::remove_dir_all(&output);
            let request = RestoreRequest {
                collection: None,
                snapshot_id: Some(id.clone()),
                snapshot_label: None,
                output_directory: output.clone(),
                layout_template: "{path}".into(),
                include_patterns: Vec::new(),
                exclude_patterns: Vec::new(),
                overwrite: false,
                create_dirs: true,
                dry_run: false,
            };
            let reply = self.library.restore(&self.caller, &request, &self.call).unwrap();
            assert_eq!((reply.restored.len(), reply.failed.len()), (files.len(), 0), "{:?}", reply.failed);
            for (name, content) in files {
                assert_eq!(&fs::read(output.join(name)).unwrap(), content);
            }
        }
        let report = self.library.check(&self.call).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_house_does_what_the_model_does(steps in prop::collection::vec(step(), 1..25)) {
        let mut run = Run::new();
        for step in &steps {
            run.take(step);
            run.compare();
        }
        run.compare_snapshots();
    }
}
