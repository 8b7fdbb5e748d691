//! Names that are close to one that means nothing: for "did you mean".

use shelf_base::bounds;
use shelf_catalog::{Chunk, Filter, Position};

use crate::{Caller, Error, Library, Result};

/// Names that are suggested for one that means nothing.
const NEAR_NAMES: usize = 3;
/// Paths that are compared with a name that means nothing.
const NEAR_PATHS: usize = 100_000;

impl Library {
    /// Paths of documents whose names are close to one that means nothing: for "did you mean".
    pub fn near_names(&self, caller: &Caller, collection: Option<&str>, name: &str) -> Result<Vec<String>> {
        caller.must_read()?;
        // No document has such a name, and comparing takes time for every letter.
        if name.len() > bounds::PATH_BYTES {
            return Ok(Vec::new());
        }
        let filter = Filter { collection: collection.map(str::to_owned), ..Filter::default() };
        let wanted = last_part(name).to_lowercase();
        let letters = wanted.chars().count();
        let most = if letters < 3 { 0 } else { (letters / 3).clamp(1, 4) };
        let mut near: Vec<(usize, String)> = Vec::new();
        let (mut position, mut looked_at) = (Position::default(), 0);
        while looked_at < NEAR_PATHS {
            let Chunk { items, next } = self.catalog.paths_from(caller.pass.scope(), &filter, &position)?;
            looked_at += items.len();
            for path in items {
                if let Some(distance) = how_near(&wanted, &last_part(&path).to_lowercase(), most) {
                    near.push((distance, path));
                }
            }
            near.sort();
            near.truncate(NEAR_NAMES);
            match next {
                Some(next) => position = next,
                None => break,
            }
        }
        Ok(near.into_iter().map(|(_, path)| path).collect())
    }

    /// The error for a name that means nothing, with names that are close to it.
    pub(crate) fn no_document(&self, caller: &Caller, collection: Option<&str>, name: &str) -> Error {
        let near = self.near_names(caller, collection, name).unwrap_or_default();
        Error::NotFound { what: "document", id: name.to_owned(), near }
    }
}

fn last_part(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// How far a file name is from the one that was asked for; `None` when it is another one altogether. A name without its
/// extension, or a whole part of a longer name, is near.
fn how_near(wanted: &str, found: &str, most: usize) -> Option<usize> {
    let stem = |name: &'_ str| name.rsplit_once('.').map_or(name.len(), |(stem, _)| stem.len());
    let (own, other) = (&wanted[..stem(wanted)], &found[..stem(found)]);
    if !own.is_empty() && own == other {
        return Some(0);
    }
    if wanted.len() >= 4 && found.contains(wanted) {
        return Some(1);
    }
    let (ours, theirs) = (wanted.chars().count(), found.chars().count());
    if ours.abs_diff(theirs) > most {
        return None;
    }
    Some(shelf_base::distance(wanted, found)).filter(|distance| *distance <= most)
}
