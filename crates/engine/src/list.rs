//! Listing documents: filters, sorts, pages with signed cursors and a true total.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shelf_base::CallContext;
use shelf_catalog::{Document, Filter, Order, Page, SortBy};

use crate::{
    Caller, Library, Result,
    pattern::Patterns,
    times::{Bounds, as_asked},
    validate,
};

/// A request for a page of documents.
#[derive(Clone, Debug, Default)]
pub struct ListRequest {
    /// What fits.
    pub filter: Filter,
    /// The bounds of times in the filter as the caller wrote them; none when the filter says them itself. A cursor belongs to
    /// what was written, and keeps what that meant on the first page.
    pub times: Vec<Option<String>>,
    /// Path patterns of which one must fit.
    pub patterns: Vec<String>,
    /// A name: the path, the end of it, or the title must fit.
    pub name: Option<String>,
    /// Sorted by.
    pub sort: SortBy,
    /// In which order.
    pub order: Order,
    /// At most so many in this page.
    pub limit: usize,
    /// Leave out so many first.
    pub offset: u64,
    /// Go on where a page ended.
    pub cursor: Option<String>,
}

/// A page of documents.
#[derive(Clone, Debug)]
pub struct ListReply {
    /// The documents.
    pub documents: Vec<Document>,
    /// How many fit in all.
    pub total: u64,
    /// Whether more follow.
    pub more: bool,
}

#[derive(Serialize, Deserialize)]
struct Position(Value, i64, Bounds);

impl Library {
    /// One page of the caller's documents.
    pub fn list(&self, caller: &Caller, request: &ListRequest, call: &CallContext) -> Result<ListReply> {
        caller.must_read()?;
        call.check()?;
        validate::filter(&request.filter)?;
        let position = self.position(caller, request)?;
        let mut filter = request.filter.clone();
        if let Some(Position(_, _, bounds)) = &position {
            bounds.put_into(&mut filter);
        }
        if let Some(name) = &filter.collection {
            self.known_collection(caller, name)?;
        }
        if !request.patterns.is_empty() {
            filter.numbers = Some(self.fitting(caller, &filter, &request.patterns)?);
        }
        if let Some(name) = &request.name {
            filter.numbers = Some(self.named(caller, &filter, name)?);
        }
        let after = position.map(|Position(value, number, _)| (value, number));
        let offset = if after.is_some() { 0 } else { request.offset };
        let page = Page { sort: request.sort, order: request.order, limit: request.limit, offset, after };
        let listed = self.catalog.list(caller.pass.scope(), &filter, &page)?;
        Ok(ListReply { documents: listed.documents, total: listed.total, more: listed.more })
    }

    /// Where the page before ended.
    fn position(&self, caller: &Caller, request: &ListRequest) -> Result<Option<Position>> {
        let open = |cursor: &String| self.open_cursor(caller, &question(request), cursor);
        request.cursor.as_ref().map(open).transpose()
    }

    /// The cursor that goes on after `document` in the list that `request` asks for.
    pub fn cursor_after(
        &self,
        caller: &Caller,
        request: &ListRequest,
        document: &Document,
    ) -> Result<String> {
        let value = match request.sort {
            SortBy::Name => Value::from(document.path.clone()),
            SortBy::Size => Value::from(document.version.size),
            SortBy::Created => Value::from(document.created_at.micros()),
            SortBy::Modified => Value::from(document.version.modified_at.nanos()),
            SortBy::Indexed => Value::from(document.version.indexed_at.micros()),
        };
        let first = self.position(caller, request)?.map(|Position(_, _, bounds)| bounds);
        let bounds = first.unwrap_or_else(|| Bounds::of(&request.filter));
        self.seal_cursor(caller, &question(request), &Position(value, document.number, bounds))
    }

    /// All that the name may mean, not only the likeliest.
    fn named(&self, caller: &Caller, filter: &Filter, name: &str) -> Result<Vec<i64>> {
        let mut numbers = self.fitting(caller, filter, &[escape(name)])?;
        let titled = Filter { title: Some(name.to_owned()), recent: None, ..filter.clone() };
        numbers.extend(self.catalog.numbers(caller.pass.scope(), &titled)?);
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    fn fitting(&self, caller: &Caller, filter: &Filter, patterns: &[String]) -> Result<Vec<i64>> {
        let patterns = Patterns::new("pattern", patterns)?;
        let mut filter = filter.clone();
        filter.recent = None;
        let chosen = self.catalog.choose(caller.pass.scope(), &filter)?;
        Ok(chosen
            .into_iter()
            .filter(|chosen| patterns.fits(&chosen.path))
            .map(|chosen| chosen.number)
            .collect())
    }
}

/// Everything that decides the order and the set, so that a cursor fits only the question it came from.
fn question(request: &ListRequest) -> String {
    let ListRequest { filter, times, patterns, name, sort, order, limit: _, offset: _, cursor: _ } = request;
    let filter = as_asked(filter, times);
    format!("list {filter} {patterns:?} {name:?} {sort:?} {order:?}")
}

/// A name means itself, whatever signs it holds.
fn escape(name: &str) -> String {
    name.chars()
        .flat_map(|sign| if "*?[]{}\\!".contains(sign) { vec!['[', sign, ']'] } else { vec![sign] })
        .collect()
}
