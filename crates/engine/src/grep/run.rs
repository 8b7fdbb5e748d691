//! Searching many documents, with as many threads as there are processors.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use grep_regex::RegexMatcher;
use parking_lot::Mutex;
use shelf_base::{CallContext, Digest, ErrorInfo, Kind};
use shelf_catalog::Filter;

use super::{
    GrepRequest, GrepShow, LinePlace, Position, Sought,
    file::{self, Found},
    large,
    page::Page,
};
use crate::{
    Caller, Error, Library, Result,
    blobs::{Given, WHOLE},
    texts::Breadth,
};

/// Documents of the first run. While a page is not full each run is twice as long as the one before: few pages need
/// more than the first.
const RUN: usize = 128;
/// Documents of a run at most.
const LONGEST_RUN: usize = 8_192;
/// The same while lines are kept: each document may bring a page of them.
const LONGEST_RUN_OF_LINES: usize = 512;
/// Documents that a thread takes at once and reads in the order in which they lie.
const SHARE: usize = 64;
/// With fewer documents than this for each, a second thread is not worth starting.
const ALONE: usize = 24;

/// A search of more documents than this reads more than can be kept in memory.
const MANY: usize = 10_000;

/// A search under way.
pub(super) struct Searching<'a> {
    pub library: &'a Library,
    pub caller: &'a Caller,
    pub matcher: &'a RegexMatcher,
    pub call: &'a CallContext,
    /// Where the last page ended.
    pub after: Position,
}

impl Searching<'_> {
    /// Searches documents in order until the page is full. When all are to be counted the rest is searched as well, but
    /// no line of it is kept.
    pub(super) fn fill<'p>(
        &self,
        request: &'p GrepRequest,
        documents: &[Sought<'_>],
        count_all: bool,
    ) -> Result<Page<'p>> {
        let mut page = Page::new(request, self.after.clone());
        let counting = GrepRequest { show: GrepShow::Counts, ..request.clone() };
        let (mut done, mut length) = (0, RUN);
        while done < documents.len() && (page.end.is_none() || count_all) {
            let only_counts = page.end.is_some() || request.show != GrepShow::Lines;
            if only_counts && count_all {
                length = LONGEST_RUN;
            }
            let run = &documents[done..documents.len().min(done + length)];
            let asked = if only_counts { &counting } else { request };
            let found = self.run(run, asked, (done, documents.len()))?;
            run.iter().zip(found).for_each(|(document, found)| page.take(document, found));
            done += run.len();
            let longest = match request.show {
                GrepShow::Lines if request.parts => RUN,
                GrepShow::Lines => LONGEST_RUN_OF_LINES,
                _ => LONGEST_RUN,
            };
            length = (2 * length).min(longest);
        }
        Ok(page)
    }

    /// Lines of a document that earlier pages have shown.
    fn lines_before(&self, path: &str, number: i64) -> LinePlace {
        if (path, number) == (&self.after.0, self.after.1) { self.after.2 } else { LinePlace::default() }
    }

    /// Searches a run of documents; results in the run's order.
    fn run(
        &self,
        run: &[Sought<'_>],
        request: &GrepRequest,
        (before, total): (usize, usize),
    ) -> Result<Vec<Found>> {
        let next = AtomicUsize::new(0);
        let gathered = Mutex::new(Vec::with_capacity(run.len()));
        let work = || -> Result<()> {
            let mut worker = Worker {
                searching: self,
                request,
                searcher: file::searcher(request),
                reader: self.library.blobs.blocks.reader(),
                breadth: if total > MANY { Breadth::Many } else { Breadth::Few },
            };
            loop {
                let start = next.fetch_add(SHARE, Ordering::Relaxed);
                let Some(share) =
                    run.get(start..run.len().min(start + SHARE)).filter(|share| !share.is_empty())
                else {
                    return Ok(());
                };
                self.call.report((before + start) as u64, Some(total as u64), "searching");
                let found = worker.search(share)?;
                gathered.lock().push((start, found));
            }
        };
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let threads = processors.min(run.len() / ALONE).max(1);
        thread::scope(|scope| {
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
            others.fold(own, Result::and)
        })?;
        let mut gathered = gathered.into_inner();
        gathered.sort_by_key(|(start, _)| *start);
        Ok(gathered.into_iter().flat_map(|(_, found)| found).collect())
    }
}

/// What a thread needs.
struct Worker<'a> {
    searching: &'a Searching<'a>,
    request: &'a GrepRequest,
    searcher: grep_searcher::Searcher,
    reader: shelf_blocks::Reader<'a>,
    breadth: Breadth,
}

impl Worker<'_> {
    /// Searches neighbouring documents; results in their order.
    fn search(&mut self, share: &[Sought<'_>]) -> Result<Vec<Found>> {
        let Searching { library, matcher, call, .. } = self.searching;
        let (searcher, request) = (&mut self.searcher, self.request);
        let mut found: Vec<Found> = share.iter().map(|_| Found::default()).collect();
        let mut gone = Vec::new();
        let hashes: Vec<Digest> = share.iter().map(|document| document.hash).collect();
        library.blobs.read_each(call, &mut self.reader, (&hashes, self.breadth), |at, bytes| {
            let skipped = self.searching.lines_before(&share[at].path, share[at].number);
            match bytes {
                Ok(Given::Large) => {
                    let stream = library.blobs.open(call, &share[at].hash)?;
                    match large::search(matcher, request, stream, skipped) {
                        Ok(searched) => found[at] = searched,
                        Err(error) => {
                            call.check()?;
                            found[at].fault = Some(error.to_string());
                        }
                    }
                }
                Ok(Given::Whole(bytes)) => {
                    found[at] = file::search(searcher, matcher, request, (bytes, skipped), call)
                        .map_err(|error| stopped(call, &share[at].path, error))?;
                }
                // A damaged document is named; the others are searched all the same.
                Err(error) if error.kind() == Kind::Corrupt => found[at].fault = Some(error.to_string()),
                Err(error) if error.kind() == Kind::NotFound => gone.push(at),
                Err(error) => return Err(error),
            }
            Ok(())
        })?;
        for at in gone {
            found[at] = self.search_present(share[at].number)?;
        }
        Ok(found)
    }

    /// Searches what the catalog says is the document's content now: what was to be searched is not there any more.
    fn search_present(&mut self, number: i64) -> Result<Found> {
        let Searching { library, caller, matcher, call, .. } = self.searching;
        let filter = Filter { numbers: Some(vec![number]), is_text: Some(true), ..Filter::default() };
        let Some(document) = library.catalog.choose(caller.pass.scope(), &filter)?.pop() else {
            return Ok(Found { is_gone: true, ..Found::default() });
        };
        let skipped = self.searching.lines_before(&document.path, number);
        if document.version.size > WHOLE {
            let stream = library.blobs.open(call, &document.version.hash)?;
            return large::search(matcher, self.request, stream, skipped)
                .map_err(|error| stopped(call, &document.path, error));
        }
        let bytes = library.blobs.read_blocks(call, &document.version.hash, document.version.size)?;
        file::search(&mut self.searcher, matcher, self.request, (&bytes, skipped), call)
            .map_err(|error| stopped(call, &document.path, error))
    }
}

/// Why a search ended inside a document.
fn stopped(call: &CallContext, path: &str, error: std::io::Error) -> Error {
    call.check().map_or_else(Error::Stopped, |()| Error::reading(path, error))
}
