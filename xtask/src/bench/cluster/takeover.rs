//! The leading node is killed while clients write to the others: how long until another leads, and how long writers waited.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::load::{self, CLIENTS};
use super::{Bench, Node, PATIENCE, SHARED};
use crate::bench::many::Client;
use crate::bench::report::{Report, Target};

/// How often it is done.
const ROUNDS: usize = 3;
/// How often nodes are asked whether they lead.
const LOOK: Duration = Duration::from_millis(20);
/// How long clients write before the node is killed.
const BEFORE: Duration = Duration::from_secs(1);
/// What a node says that leads.
const LEADS: &str = "shelf_lease_held";

/// Adds the rows.
pub fn measure(bench: &Bench, nodes: &mut [Node], report: &mut Report) -> Result<()> {
    let (mut taken, mut longest) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (seconds, wait) = once(bench, nodes)?;
        taken.push(seconds);
        longest.push(wait);
    }
    let what = "from kill -9 of the leading node until another leads";
    report.samples(what, SHARED, "s", taken, Target::None);
    report.samples("longest write on other nodes meanwhile", SHARED, "ms", longest, Target::None);
    Ok(())
}

/// Kills the leading node once and starts it again: the seconds until another led, and the longest write in milliseconds.
fn once(bench: &Bench, nodes: &mut [Node]) -> Result<(f64, f64)> {
    let (leader, last) = (leading(nodes)?, nodes.len() - 1);
    nodes.swap(leader, last);
    let (others, lead) = nodes.split_at_mut(last);
    let addresses = others.iter().map(Node::address).collect::<Result<Vec<_>>>()?;
    let stop = AtomicBool::new(false);
    let (seconds, wait) = thread::scope(|scope| {
        let writers: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (address, next) = (&addresses[number % addresses.len()], bench.documents.writer(number));
                let stop = &stop;
                scope.spawn(move || longest_write(address, next, stop))
            })
            .collect();
        thread::sleep(BEFORE);
        let started = Instant::now();
        lead.iter_mut().for_each(Node::kill);
        let outcome = leading(others).map(|_| started.elapsed().as_secs_f64());
        stop.store(true, Ordering::Relaxed);
        let mut longest = 0.0_f64;
        for writer in writers {
            let wait = writer.join().map_err(|_| anyhow::anyhow!("a writer of the benchmark panicked"))??;
            longest = longest.max(wait);
        }
        anyhow::Ok((outcome?, longest))
    })?;
    lead.iter_mut().try_for_each(Node::start)?;
    Ok((seconds, wait))
}

/// The place of the node that leads, as soon as there is one.
fn leading(nodes: &[Node]) -> Result<usize> {
    let until = Instant::now() + PATIENCE;
    loop {
        for (place, node) in nodes.iter().enumerate() {
            if node.metric(LEADS)? > 0.5 {
                return Ok(place);
            }
        }
        if Instant::now() > until {
            bail!("no node took the lead within {} s", PATIENCE.as_secs());
        }
        thread::sleep(LOOK);
    }
}

/// Writes until `stop`; the longest write in milliseconds.
fn longest_write(address: &str, mut next: load::Next, stop: &AtomicBool) -> Result<f64> {
    let mut client = Client::connect(address)?;
    let mut longest = 0.0_f64;
    while !stop.load(Ordering::Relaxed) {
        let waits = load::one_by_one(&mut client, &mut next, 1)?;
        longest = waits.into_iter().fold(longest, f64::max);
    }
    Ok(longest)
}
