//! `cargo xtask soak`: mixed load from 16 clients over stdio and HTTP while servers are killed and started again at
//! random. Afterwards every acknowledged write must be there, `shelf check` must find nothing, and the memory of the
//! servers that nobody killed must be as it was.

mod client;
mod connection;
mod servers;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::bench::own_megabytes;
use crate::scratch::Scratch;
use crate::{places, step};
use client::{Client, Tally};
use connection::Connection;
use servers::{HttpServer, kill_at_random, pause};

/// Clients with a server of their own, of which the first lives to the end; and clients of each of the two HTTP servers, of
/// which the first lives to the end.
const STDIO: usize = 8;
const HTTP: usize = 4;
/// Minutes when none are given.
pub const MINUTES: f64 = 20.0;
/// How much memory may grow, and from how many minutes on that is judged: a short run is all warming up.
const GROWTH: f64 = 1.10;
const JUDGED_FROM: f64 = 5.0;

/// Runs it.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let minutes = match arguments.take_value("--minutes")? {
        Some(text) => {
            text.parse().ok().filter(|minutes| *minutes > 0.0).context("--minutes takes a number")?
        }
        None => MINUTES,
    };
    let program = arguments.take_value("--program")?.map(PathBuf::from);
    arguments.finish()?;
    let shelf = program.map_or_else(places::built_shelf, Ok)?;
    for_minutes(&shelf, minutes)
}

/// Everything that the threads share.
struct Shared {
    stop: AtomicBool,
    kills: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

impl Shared {
    fn fail(&self, error: &anyhow::Error) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{error:#}"));
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The load, and then the questions.
pub fn for_minutes(shelf: &Path, minutes: f64) -> Result<()> {
    let length = Duration::from_secs_f64(minutes * 60.0);
    let scratch = Scratch::new("soak")?;
    let data = scratch.path().join("library");
    println!("== {} clients for {minutes} minutes", STDIO + 2 * HTTP);
    let (lasting, mortal) =
        (Arc::new(HttpServer::start(shelf, &data)?), Arc::new(HttpServer::start(shelf, &data)?));
    let processes: Vec<Arc<AtomicU32>> = (0..STDIO).map(|_| Arc::default()).collect();
    let connections = connect(shelf, &data, &processes, (&lasting, &mortal));
    let shared =
        Shared { stop: AtomicBool::new(false), kills: AtomicUsize::new(0), failures: Mutex::default() };
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    println!("   seed {seed}");
    let (clients, samples) = thread::scope(|scope| {
        let working: Vec<_> = connections
            .into_iter()
            .enumerate()
            .map(|(number, connection)| {
                let shared = &shared;
                scope.spawn(move || work(Client::new(number, seed), connection, shared))
            })
            .collect();
        let killing = scope.spawn(|| {
            let noted = (&shared.stop, &shared.kills);
            if let Err(error) = kill_at_random(&processes[1..], &mortal, noted, seed) {
                shared.fail(&error);
            }
        });
        let samples = sample(length, &lasting, &processes[0], &shared.stop);
        shared.stop.store(true, Ordering::Relaxed);
        let clients: Vec<Client> = working.into_iter().filter_map(|client| client.join().ok()).collect();
        let _ = killing.join();
        (clients, samples)
    });
    drop((lasting, mortal));
    conclude(shelf, &data, clients, &samples, &shared, minutes)
}

fn connect(
    shelf: &Path,
    data: &Path,
    processes: &[Arc<AtomicU32>],
    (lasting, mortal): (&Arc<HttpServer>, &Arc<HttpServer>),
) -> Vec<Connection> {
    let stdio = processes.iter().map(|process| Connection::stdio(shelf, data, process.clone()));
    let http = [lasting, mortal].into_iter().flat_map(|server| {
        (0..HTTP).map(move |number| Connection::http(Arc::clone(server), number % 2 == 0))
    });
    stdio.chain(http).collect()
}

fn work(mut client: Client, mut connection: Connection, shared: &Shared) -> Client {
    while !shared.stop.load(Ordering::Relaxed) {
        let before = client.tally.lost;
        if let Err(error) = client.step(&mut connection) {
            shared.fail(&error);
        }
        if client.tally.lost > before {
            thread::sleep(Duration::from_millis(100));
        }
    }
    client
}

/// Memory of the two servers that last, over time.
fn sample(length: Duration, lasting: &HttpServer, own: &AtomicU32, stop: &AtomicBool) -> [Vec<f64>; 2] {
    let (until, mut samples) = (Instant::now() + length, [Vec::new(), Vec::new()]);
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        pause(Duration::from_secs(2).min(until.saturating_duration_since(Instant::now())), stop);
        let processes = [lasting.process(), Some(own.load(Ordering::SeqCst))];
        for (sample, process) in samples.iter_mut().zip(processes) {
            sample.extend(process.and_then(own_megabytes));
        }
    }
    samples
}

fn conclude(
    shelf: &Path,
    data: &Path,
    clients: Vec<Client>,
    samples: &[Vec<f64>; 2],
    shared: &Shared,
    minutes: f64,
) -> Result<()> {
    let failures = std::mem::take(&mut *shared.failures.lock().unwrap_or_else(PoisonError::into_inner));
    if !failures.is_empty() {
        bail!("the load failed:\n{}", failures.join("\n"));
    }
    let tally = clients.iter().fold(Tally::default(), |all, client| Tally {
        calls: all.calls + client.tally.calls,
        writes: all.writes + client.tally.writes,
        lost: all.lost + client.tally.lost,
    });
    let kills = shared.kills.load(Ordering::Relaxed);
    println!(
        "   {} calls, {} acknowledged writes, {kills} kills, {} answers lost",
        tally.calls, tally.writes, tally.lost
    );
    let mut connection = Connection::stdio(shelf, data, Arc::default());
    let mut verified = 0;
    for mut client in clients {
        verified += client.verify(&mut connection)?;
    }
    drop(connection);
    println!("   {verified} documents are as they were acknowledged");
    step::run(
        "checking the library",
        "Every finding is damage that a kill did.",
        Command::new(shelf).arg("--data-dir").arg(data).arg("check"),
    )?;
    for (name, sample) in ["HTTP", "stdio"].into_iter().zip(samples) {
        judge_memory(name, sample, minutes)?;
    }
    println!("soak: passed");
    Ok(())
}

/// Compares the second quarter with the last one.
fn judge_memory(name: &str, samples: &[f64], minutes: f64) -> Result<()> {
    let quarter = samples.len() / 4;
    let (Some(early), Some(late)) =
        (median(&samples[quarter..2 * quarter]), median(&samples[samples.len() - quarter..]))
    else {
        println!("   memory of the {name} server: too few samples");
        return Ok(());
    };
    let growth = late / early;
    println!("   memory of the {name} server: {early:.1} MB, then {late:.1} MB");
    if minutes >= JUDGED_FROM && growth > GROWTH {
        bail!("the memory of the {name} server grew by {:.0} %", (growth - 1.0) * 100.0);
    }
    Ok(())
}

fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::{judge_memory, median};

    #[test]
    fn memory_that_grows_is_noticed() {
        let flat: Vec<f64> = (0..100).map(|at| 50.0 + f64::from(at % 3)).collect();
        judge_memory("flat", &flat, 20.0).unwrap();
        let growing: Vec<f64> = (0..100).map(|at| 50.0 + f64::from(at)).collect();
        assert!(judge_memory("growing", &growing, 20.0).is_err());
        judge_memory("too short", &growing, 1.0).unwrap();
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    }
}
