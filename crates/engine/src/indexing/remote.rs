//! Vectors of a configured model: made in the background, used when they are complete.
//!
//! Writes never wait for a model elsewhere. A collection that remembers such a model is searched with the built-in one
//! until each of its passages has a vector, and again whenever the model cannot be reached.

use std::{collections::HashMap, path::Path, sync::Arc};

use parking_lot::Mutex;
use shelf_base::{CallContext, Digest, ErrorInfo, ids::CollectionId};
use shelf_catalog::{Document, Scope};
pub use shelf_embed::EndpointSettings;
use shelf_embed::{BUILT_IN, Cached, Embedder, Endpoint};
use shelf_index::{Cosines, DerivedKey, Filter, Missing, RemoteVectors, View};

use super::Indexing;
use crate::{Caller, Error, Library, Result, readings::Origin};

/// Passages that are embedded before their vectors are written.
const BATCH: usize = 256;

/// A configured model and its vectors.
pub(crate) struct OtherModel {
    embedder: Box<dyn Embedder>,
    vectors: Mutex<RemoteVectors>,
}

impl OtherModel {
    pub(crate) fn open(index: &Path, settings: EndpointSettings) -> Result<Self> {
        let endpoint = Endpoint::new(settings)?;
        std::fs::create_dir_all(index).map_err(|error| Error::writing(index.display().to_string(), error))?;
        let embedder = Cached::open(index, endpoint)?;
        let vectors = Mutex::new(RemoteVectors::new(index, embedder.model()));
        Ok(Self { embedder: Box::new(embedder), vectors })
    }

    pub(crate) fn name(&self) -> &str {
        self.embedder.model()
    }

    fn embed_one(&self, text: &str, call: &CallContext) -> Result<Vec<f32>> {
        Ok(self.embedder.embed(&[text], call)?.pop().unwrap_or_default())
    }
}

/// Which model answered, and with what.
pub(crate) struct Meant {
    pub cosines: Option<Cosines>,
    pub model: String,
    pub note: Option<String>,
}

impl Indexing {
    /// Cosines of the configured model, when everything in question is to be searched with it and has vectors.
    pub(crate) fn meant(
        &self,
        view: &View,
        filter: &Filter,
        scope: &Scope,
        query: &str,
        call: &CallContext,
    ) -> Result<Meant> {
        let built_in = |note: Option<String>| Meant { cosines: None, model: BUILT_IN.to_owned(), note };
        let Some(other) = &self.other else { return Ok(built_in(None)) };
        let models = self.blobs.catalog.models(scope)?;
        let asked =
            |id: &CollectionId| filter.collections.as_ref().is_none_or(|allowed| allowed.contains(id));
        let mut asked = models.iter().filter(|(id, _)| asked(id)).peekable();
        if asked.peek().is_none() || !asked.all(|(_, model)| model.as_deref() == Some(other.name())) {
            return Ok(built_in(None));
        }
        let lacks_some = || -> Result<bool> {
            let mut vectors = other.vectors.lock();
            vectors.refresh()?;
            Ok(!vectors.missing(view, filter, 1).is_empty())
        };
        if lacks_some()? {
            return Ok(built_in(Some(format!(
                "{} has not read all passages yet; the built-in model answered",
                other.name()
            ))));
        }
        // The model may be far away: nobody else waits for it.
        match other.embed_one(query, call) {
            Ok(query) => Ok(Meant {
                cosines: other.vectors.lock().cosines(view, filter, &query),
                model: other.name().to_owned(),
                note: None,
            }),
            Err(Error::Stopped(stopped)) => Err(stopped.into()),
            Err(error) => Ok(built_in(Some(format!("{error}; the built-in model answered")))),
        }
    }

    /// Makes the vectors that collections with the configured model still lack; how many it made.
    pub(crate) fn embed_missing(&self, view: &View, call: &CallContext) -> Result<u64> {
        let Some(other) = &self.other else { return Ok(0) };
        let models = self.blobs.catalog.models(&Scope::Library)?;
        let ours =
            models.into_iter().filter(|(_, model)| model.as_deref() == Some(other.name())).map(|(id, _)| id);
        let filter = Filter { collections: Some(ours.collect()), numbers: None };
        let mut made = 0;
        loop {
            call.check()?;
            let missing_now = || -> Result<Vec<Missing>> {
                let mut vectors = other.vectors.lock();
                vectors.refresh()?;
                Ok(vectors.missing(view, &filter, BATCH))
            };
            let missing = missing_now()?;
            if missing.is_empty() {
                return Ok(made);
            }
            call.report(made, None, "asking the embedding model");
            let texts = self.texts_of(view, &missing, call)?;
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let found = other.embedder.embed(&texts, call)?;
            let mut found: Vec<(Missing, Vec<f32>)> = missing.into_iter().zip(found).collect();
            // The lease is not held while the model is asked, so another process may have written some of them.
            let lease = self.wait_for_lease(call)?;
            let still_missing = missing_now()?;
            found.retain(|(passage, _)| still_missing.contains(passage));
            made += found.len() as u64;
            other.vectors.lock().append(&lease, &found)?;
        }
    }

    pub(super) fn converted(
        &self,
        passage: &Missing,
        key: &DerivedKey,
        call: &CallContext,
    ) -> Result<Arc<str>> {
        let document = self.blobs.catalog.numbered(&Scope::Library, &[passage.number])?.pop();
        let Some(document) = document else { return Ok("".into()) };
        let Document { path, mime, is_text, .. } = &document;
        let origin = Origin { hash: key.content, path, mime, is_text: *is_text };
        let text = self.blobs.readings.text_at(key, &origin, &self.blobs, call)?;
        Ok(text.map_or_else(|| "".into(), |text| (*text.text).into()))
    }

    fn texts_of(&self, view: &View, missing: &[Missing], call: &CallContext) -> Result<Vec<String>> {
        let mut whole: HashMap<Digest, Arc<str>> = HashMap::new();
        let mut texts = Vec::new();
        for passage in missing {
            let text = match whole.get(&passage.hash) {
                Some(text) => text.clone(),
                None => {
                    let text: Arc<str> = match view.text_key_at(passage.place) {
                        Some(key) => self.converted(passage, &key, call)?,
                        None => String::from_utf8_lossy(&self.blobs.read_blob(call, &passage.hash)?).into(),
                    };
                    whole.insert(passage.hash, text.clone());
                    text
                }
            };
            let range = passage.bytes.0 as usize..passage.bytes.1 as usize;
            texts.push(text.get(range).unwrap_or_default().to_owned());
        }
        Ok(texts)
    }
}

impl Library {
    /// The model that is configured beside the built-in one.
    pub fn configured_model(&self) -> Option<&str> {
        self.indexing.other.as_ref().map(OtherModel::name)
    }

    /// Lets a collection be searched with the configured model, or with the built-in one again, and makes the vectors
    /// it needs; how many were made.
    pub fn set_model(
        &self,
        caller: &Caller,
        collection: &str,
        configured: bool,
        call: &CallContext,
    ) -> Result<u64> {
        caller.must_write()?;
        self.known_collection(caller, collection)?;
        let found = self.catalog.collection(caller.pass.scope(), collection)?;
        let id = found.ok_or_else(|| Error::missing("collection", collection))?.id;
        let model = match (configured, self.configured_model()) {
            (false, _) => None,
            (true, Some(model)) => Some(model),
            (true, None) => {
                return Err(Error::Unavailable {
                    what: "no embedding model is configured".into(),
                    hint: "set embedding.url and embedding.model in shelf.toml".into(),
                });
            }
        };
        self.catalog.set_model(caller.pass.actor(), id, model, self.now())?;
        let view = self.indexing.view(call)?;
        self.indexing.embed_missing(&view, call)
    }
}

/// Opens the configured model, if there is one.
pub(super) fn open_other(index: &Path, settings: Option<EndpointSettings>) -> Result<Option<OtherModel>> {
    settings.map(|settings| OtherModel::open(index, settings)).transpose()
}

/// A failure of the model is a failure of a call only where the model was asked for by name.
impl From<shelf_embed::Error> for Error {
    fn from(error: shelf_embed::Error) -> Self {
        match error {
            shelf_embed::Error::Stopped(stopped) => Self::Stopped(stopped),
            other => Self::Unavailable {
                hint: other
                    .hints()
                    .into_iter()
                    .next()
                    .unwrap_or_else(|| "check [embedding] in shelf.toml".into()),
                what: other.to_string(),
            },
        }
    }
}
