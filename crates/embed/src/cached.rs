//! A cache around an embedder.
//!
//! Calling an endpoint costs time and often money, and the same passages recur: in every reindex, in every version of a
//! document that leaves them unchanged, and in every copy. Vectors are therefore stored by model and by the hash of the
//! passage. The cache needs no invalidation, because a changed model or passage has a different key.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use parking_lot::Mutex;
use shelf_base::{CallContext, Digest};

use crate::{
    Embedder, Error, ReplyError, Result,
    vectors::{Precision, Vectors},
};

/// Number of texts to embed before their vectors are stored. A failure or cancellation loses at most these.
const RUN: usize = 256;

/// Caches the vectors of another embedder in a file.
pub struct Cached<E> {
    embedder: E,
    vectors: Mutex<Vectors>,
}

impl<E: Embedder> Cached<E> {
    /// Caches the vectors of `embedder` in `folder`, reusing those already there. Several processes may share a folder.
    pub fn open(folder: &Path, embedder: E) -> Result<Self> {
        Self::open_with(folder, embedder, Precision::Floats)
    }

    /// The same with vectors that take a quarter of the space, to a precision of a part in 127.
    pub fn open_small(folder: &Path, embedder: E) -> Result<Self> {
        Self::open_with(folder, embedder, Precision::Bytes)
    }

    /// Drops the oldest vectors when there are more than `most`, so that half as many are left.
    pub fn trim(&self, most: u64) -> Result<()> {
        self.vectors.lock().trim(most)
    }

    fn open_with(folder: &Path, embedder: E, precision: Precision) -> Result<Self> {
        let vectors = Vectors::open(folder, embedder.model(), precision)?;
        match (vectors.dimensions(), embedder.dimensions()) {
            (Some(expected), Some(found)) if expected != found => {
                Err(Error::Dimensions { model: embedder.model().to_owned(), expected, found })
            }
            _ => Ok(Self { embedder, vectors: Mutex::new(vectors) }),
        }
    }

    /// The cached vectors of `keys`.
    fn kept(&self, keys: &[Digest], call: &CallContext) -> Result<Vec<Option<Vec<f32>>>> {
        let mut vectors = self.vectors.lock();
        vectors.refresh()?;
        let get = |key| {
            call.check()?;
            vectors.get(key)
        };
        keys.iter().map(get).collect()
    }

    /// Embeds one batch of texts and stores the vectors. The file is not locked while the embedder works.
    fn embed_and_keep(&self, texts: &[&str], keys: &[Digest], call: &CallContext) -> Result<Vec<Vec<f32>>> {
        let made = self.embedder.embed(texts, call)?;
        if made.len() != texts.len() {
            let problem = ReplyError::Count { expected: texts.len(), found: made.len() };
            return Err(Error::Reply { host: self.model().to_owned(), problem });
        }
        let records: Vec<_> = keys.iter().copied().zip(made.iter().map(Vec::as_slice)).collect();
        self.vectors.lock().append(&records)?;
        Ok(made)
    }
}

impl<E: Embedder> Embedder for Cached<E> {
    fn model(&self) -> &str {
        self.embedder.model()
    }

    fn dimensions(&self) -> Option<usize> {
        self.embedder.dimensions().or_else(|| self.vectors.lock().dimensions())
    }

    fn embed(&self, texts: &[&str], call: &CallContext) -> Result<Vec<Vec<f32>>> {
        let keys: Vec<Digest> = texts.iter().map(|text| Digest::of(text.as_bytes())).collect();
        let mut found = self.kept(&keys, call)?;
        let missing = missing(texts, &keys, &found);
        let mut made = HashMap::with_capacity(missing.len());
        for run in missing.chunks(RUN) {
            let (texts, keys): (Vec<&str>, Vec<Digest>) = run.iter().copied().unzip();
            made.extend(keys.iter().copied().zip(self.embed_and_keep(&texts, &keys, call)?));
        }
        for (place, key) in found.iter_mut().zip(&keys) {
            if place.is_none() {
                *place = made.get(key).cloned();
            }
        }
        Ok(found.into_iter().map(Option::unwrap_or_default).collect())
    }
}

/// The texts without a vector, in order and without duplicates.
fn missing<'a>(texts: &[&'a str], keys: &[Digest], found: &[Option<Vec<f32>>]) -> Vec<(&'a str, Digest)> {
    let mut seen = HashSet::new();
    let texts = texts.iter().zip(keys).zip(found);
    texts
        .filter(|((_, key), found)| found.is_none() && seen.insert(**key))
        .map(|((&text, &key), _)| (text, key))
        .collect()
}

#[cfg(test)]
mod tests {
    use shelf_base::{ErrorInfo, Kind};
    use tempfile::tempdir;

    use super::*;

    /// Returns the length of the text in every dimension and records the texts it was given.
    struct Counting {
        dimensions: usize,
        asked: Mutex<Vec<String>>,
        fail_on: Option<&'static str>,
    }

    impl Counting {
        fn new(dimensions: usize) -> Self {
            Self { dimensions, asked: Mutex::default(), fail_on: None }
        }
    }

    impl Embedder for Counting {
        fn model(&self) -> &str {
            "counting@test"
        }

        fn dimensions(&self) -> Option<usize> {
            None
        }

        fn embed(&self, texts: &[&str], _: &CallContext) -> Result<Vec<Vec<f32>>> {
            if texts.iter().any(|text| Some(*text) == self.fail_on) {
                return Err(shelf_base::Stopped::TimedOut.into());
            }
            self.asked.lock().extend(texts.iter().map(|&text| text.to_owned()));
            Ok(texts.iter().map(|text| vec![text.len() as f32; self.dimensions]).collect())
        }
    }

    #[test]
    fn each_text_is_embedded_only_once() {
        let folder = tempdir().unwrap();
        let call = CallContext::new();
        let texts = ["one", "three", "one", "", "three"];
        let expect = [3.0, 5.0, 3.0, 0.0, 5.0].map(|value| vec![value; 2]);
        let cached = Cached::open(folder.path(), Counting::new(2)).unwrap();
        assert_eq!(cached.dimensions(), None);
        assert_eq!(cached.embed(&texts, &call).unwrap(), expect);
        assert_eq!(*cached.embedder.asked.lock(), ["one", "three", ""]);
        assert_eq!(cached.dimensions(), Some(2));

        let again = Cached::open(folder.path(), Counting::new(2)).unwrap();
        assert_eq!(again.embed(&texts, &call).unwrap(), expect);
        assert!(again.embedder.asked.lock().is_empty());
        assert_eq!(again.embed(&[], &call).unwrap(), Vec::<Vec<f32>>::new());
    }

    #[test]
    fn open_caches_see_each_others_vectors() {
        let folder = tempdir().unwrap();
        let call = CallContext::new();
        let left = Cached::open(folder.path(), Counting::new(2)).unwrap();
        let right = Cached::open(folder.path(), Counting::new(2)).unwrap();
        left.embed(&["left"], &call).unwrap();
        right.embed(&["right", "left"], &call).unwrap();
        left.embed(&["left", "right"], &call).unwrap();
        assert_eq!(*left.embedder.asked.lock(), ["left"]);
        assert_eq!(*right.embedder.asked.lock(), ["right"]);
    }

    #[test]
    fn a_failure_keeps_the_finished_batches() {
        let folder = tempdir().unwrap();
        let texts: Vec<String> = (0..RUN + 10).map(|number| number.to_string()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let failing = Counting { fail_on: Some("260"), ..Counting::new(2) };
        let cached = Cached::open(folder.path(), failing).unwrap();
        assert!(cached.embed(&texts, &CallContext::new()).is_err());
        let cached = Cached::open(folder.path(), Counting::new(2)).unwrap();
        assert_eq!(cached.embed(&texts, &CallContext::new()).unwrap().len(), texts.len());
        assert_eq!(cached.embedder.asked.lock().len(), 10);
    }

    #[test]
    fn a_change_of_dimensions_is_detected() {
        let folder = tempdir().unwrap();
        Cached::open(folder.path(), Counting::new(2)).unwrap().embed(&["one"], &CallContext::new()).unwrap();
        let cached = Cached::open(folder.path(), Counting::new(3)).unwrap();
        let error = cached.embed(&["one", "two"], &CallContext::new()).unwrap_err();
        assert!(matches!(error, Error::Dimensions { expected: 2, found: 3, .. }));
        assert_eq!(error.kind(), Kind::Conflict);
    }

    #[test]
    fn a_cancelled_call_stops() {
        let folder = tempdir().unwrap();
        let call = CallContext::new();
        call.cancel();
        let cached = Cached::open(folder.path(), Counting::new(2)).unwrap();
        assert!(matches!(cached.embed(&["one"], &call), Err(Error::Stopped(_))));
    }
}
