//! `bench gc`: how long garbage collection takes, and whether it scales linearly with the number of dropped snapshots.

use std::fs;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;

use super::many::Client;
use super::report::{Report, Target};
use super::{Scale, corpus};
use crate::places;
use crate::server::Server;

/// Numbers of snapshots to drop.
const FEW: usize = 3_000;
const MANY: usize = 4 * FEW;

/// Creates two libraries and runs garbage collection on both.
pub fn run(scale: Scale) -> Result<()> {
    let work = places::root().join("bench").join("work").join(scale.folder());
    fs::create_dir_all(&work)?;
    let mut report = Report::new("gc", scale, &work);
    let (few, many) = (dropped(scale, scale.of(FEW))?, dropped(scale, scale.of(MANY))?);
    let name = |count: usize| format!("garbage collection that drops {} snapshots", scale.of(count));
    report.single(&name(FEW), "shelf", "s", few, Target::None);
    report.single(&name(MANY), "shelf", "s", many, Target::None);
    // Four times the work may take at most six times as long; superlinear growth would exceed that.
    report.single("time for four times as many snapshots", "shelf", "times", many / few, Target::AtMost(6.0));
    corpus::remove(&work.join("stores"))?;
    report.finish()
}

/// The number of seconds that it takes to drop this many snapshots.
fn dropped(scale: Scale, snapshots: usize) -> Result<f64> {
    let shelf = places::built_shelf()?;
    let work = places::root().join("bench").join("work").join(scale.folder());
    let data = work.join("stores").join("gc");
    corpus::remove(&data)?;
    fs::create_dir_all(&data)?;
    println!("== creating a library with {snapshots} snapshots");
    let server = Server::start(&shelf, &data)?;
    let mut client = Client::connect(&server.address())?;
    for number in 0..=snapshots {
        let arguments =
            json!({ "name": format!("n{}", number % 50), "content": format!("content {number}") });
        client.call("add", &arguments)?;
    }
    drop(server);
    let started = Instant::now();
    let ended = Command::new(&shelf)
        .arg("--data-dir")
        .arg(&data)
        .args(["--quiet", "gc", "--keep-last", "1"])
        .output()?;
    ensure!(ended.status.success(), "gc failed: {}", String::from_utf8_lossy(&ended.stderr));
    Ok(started.elapsed().as_secs_f64())
}
