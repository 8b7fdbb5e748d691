//! How the hits of a search divide by collection, type, tag and day.

use shelf_base::CallContext;
use shelf_catalog::{Facets, Filter};

use super::{SearchRequest, check, hash_of};
use crate::{Caller, Library, Result, validate};

/// Hits that are counted at most, the best first.
const COUNTED: usize = 10_000;
/// Values of each kind that are listed.
const FACETS: usize = 50;

impl Library {
    /// Counts what a search finds; of more than ten thousand documents the best ones.
    pub fn search_facets(
        &self,
        caller: &Caller,
        request: &SearchRequest,
        call: &CallContext,
    ) -> Result<Facets> {
        caller.must_read()?;
        check(request)?;
        validate::filter(&request.filter)?;
        if let Some(name) = &request.filter.collection {
            self.known_collection(caller, name)?;
        }
        let mut numbers = match hash_of(request) {
            Some(_) => {
                let all = SearchRequest { show: false, limit: COUNTED, cursor: None, ..request.clone() };
                self.search(caller, &all, call)?.hits.into_iter().map(|hit| hit.document.number).collect()
            }
            None => self.with_index_repair(call, || self.numbers_found(caller, request, call))?,
        };
        numbers.sort_unstable();
        let filter = Filter { numbers: Some(numbers), ..Filter::default() };
        Ok(self.catalog.facets(caller.pass.scope(), &filter, FACETS)?)
    }

    /// The numbers of the documents that the index finds.
    fn numbers_found(
        &self,
        caller: &Caller,
        request: &SearchRequest,
        call: &CallContext,
    ) -> Result<Vec<i64>> {
        let view = self.indexing.view(call)?;
        let found = self.ask_index(caller, request, &view, COUNTED, call)?.found;
        Ok(found.hits.into_iter().map(|hit| hit.number).collect())
    }
}
