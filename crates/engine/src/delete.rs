//! Deleting documents by name, names or pattern. Snapshots keep what they hold.

use shelf_base::{CallContext, Digest, ids::DocumentId};
use shelf_catalog::{Chosen, Filter};

use crate::{Caller, Error, Library, Result, commit::DeleteDraft, pattern::Patterns};

/// A request to delete.
#[derive(Clone, Debug, Default)]
pub struct DeleteRequest {
    /// Names, each meaning one document.
    pub names: Vec<String>,
    /// A pattern, meaning all that fit.
    pub pattern: Option<String>,
    /// Only in this collection.
    pub collection: Option<String>,
    /// Only tell.
    pub dry_run: bool,
}

/// One document that was, or would be, deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Its id.
    pub id: DocumentId,
    /// Its path.
    pub path: String,
    /// Its collection.
    pub collection: String,
    /// Its content.
    pub hash: Digest,
}

impl Library {
    /// Deletes what the request means; on a dry run only says what that is. Names that mean nothing come second.
    pub fn delete(
        &self,
        caller: &Caller,
        request: &DeleteRequest,
        call: &CallContext,
    ) -> Result<(Vec<Deleted>, Vec<String>)> {
        caller.must_write()?;
        call.check()?;
        if request.names.is_empty() && request.pattern.is_none() {
            return Err(Error::invalid("name", "or names or pattern is needed to say which documents"));
        }
        let mut doomed: Vec<Deleted> = Vec::new();
        let mut unknown = Vec::new();
        for name in &request.names {
            match self.one_named(caller, request.collection.as_deref(), name)? {
                Some(found) => doomed.push(Deleted {
                    id: found.id,
                    path: found.path,
                    collection: found.collection_name,
                    hash: found.version.hash,
                }),
                None => unknown.push(name.clone()),
            }
        }
        if let Some(pattern) = &request.pattern {
            doomed.extend(
                self.matching(caller, request.collection.as_deref(), pattern)?.into_iter().map(of_chosen),
            );
        }
        doomed.sort_by(|a, b| (&a.path, a.id).cmp(&(&b.path, b.id)));
        doomed.dedup_by_key(|deleted| deleted.id);
        if !request.dry_run && !doomed.is_empty() {
            let ids: Vec<DocumentId> = doomed.iter().map(|deleted| deleted.id).collect();
            let (actor, scope) = (caller.pass.actor(), caller.pass.scope());
            let gone = self.commit(DeleteDraft { actor, scope, ids: &ids }, call)?;
            doomed.retain(|deleted| gone.contains(&deleted.id));
        }
        Ok((doomed, unknown))
    }

    fn matching(&self, caller: &Caller, collection: Option<&str>, pattern: &str) -> Result<Vec<Chosen>> {
        let patterns = Patterns::new("pattern", &[pattern.to_owned()])?;
        let filter = Filter { collection: collection.map(str::to_owned), ..Filter::default() };
        let mut chosen = self.catalog.choose(caller.pass.scope(), &filter)?;
        chosen.retain(|chosen| patterns.fits(&chosen.path));
        Ok(chosen)
    }
}

fn of_chosen(chosen: Chosen) -> Deleted {
    Deleted {
        id: chosen.id,
        path: chosen.path,
        collection: chosen.collection_name,
        hash: chosen.version.hash,
    }
}
