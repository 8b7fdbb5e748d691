//! Nodes that join with an empty disk: how long the first search takes, with everything that it fetches, and what it fetches.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::{Bench, Node, SHARED, sizes};
use crate::bench::many::Client;
use crate::bench::queries::Queries;
use crate::bench::report::{Report, Target};

/// Nodes that join.
const JOINING: usize = 3;
/// Searches on a node that has joined.
const SEARCHES: usize = 200;
/// Searches before the node that was there all the time is measured.
const WARM_UP: usize = 20;
/// How long nodes get to write out and publish what was added before.
const SETTLED: Duration = Duration::from_secs(5);

/// Adds the rows.
pub fn measure(bench: &Bench, old: &Node, queries: &mut Queries, report: &mut Report) -> Result<()> {
    std::thread::sleep(SETTLED);
    let (mut starts, mut firsts, mut later, mut fetched) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for number in 0..JOINING {
        let mut node = bench.node(&format!("fresh{number}"));
        let started = Instant::now();
        node.start()?;
        starts.push(started.elapsed().as_secs_f64() * 1e3);
        let mut client = Client::connect(&node.address()?)?;
        firsts.extend(searches(&mut client, &queries.take(1))?);
        fetched.push(node.metric("shelf_index_fetched_bytes_total")? / 1e6);
        later.extend(searches(&mut client, &queries.take(SEARCHES))?);
    }
    let published = sizes::newest_view(bench)?.map_or(0, |view| view.segment_bytes);
    report.samples("start of a node with an empty disk", SHARED, "ms", starts, Target::None);
    report.samples("its first search, with fetching", SHARED, "ms", firsts, Target::None);
    report.latencies("its searches after that", SHARED, &later, Target::None, Target::None);
    report.samples("index bytes it fetched", SHARED, "MB", fetched, Target::None);
    report.single("published index", SHARED, "MB", published as f64 / 1e6, Target::None);
    let mut client = Client::connect(&old.address()?)?;
    searches(&mut client, &queries.take(WARM_UP))?;
    let waits = searches(&mut client, &queries.take(SEARCHES))?;
    report.latencies("searches on a node that was there before", SHARED, &waits, Target::None, Target::None);
    Ok(())
}

/// Hybrid searches without the deep model, one after the other.
fn searches(client: &mut Client, queries: &[String]) -> Result<Vec<f64>> {
    let timed = |query: &String| {
        let started = Instant::now();
        client.call("search", &json!({ "query": query, "type": "hybrid", "limit": 10 }))?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    };
    queries.iter().map(timed).collect()
}
