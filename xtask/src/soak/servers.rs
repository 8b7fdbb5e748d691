//! The servers that clients share, and whoever kills servers at random.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::bench::Random;
use crate::server::Server;

/// An HTTP server that is started again after it was killed.
pub struct HttpServer {
    shelf: PathBuf,
    data: PathBuf,
    running: Mutex<Option<Server>>,
    address: Mutex<String>,
}

impl HttpServer {
    /// Starts it.
    pub fn start(shelf: &Path, data: &Path) -> Result<Self> {
        let made = Self {
            shelf: shelf.to_owned(),
            data: data.to_owned(),
            running: Mutex::default(),
            address: Mutex::default(),
        };
        made.restart()?;
        Ok(made)
    }

    /// Kills it in the middle of whatever it does, and starts it again.
    pub fn restart(&self) -> Result<()> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        drop(running.take());
        let server = Server::start(&self.shelf, &self.data)?;
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = server.address();
        *running = Some(server);
        Ok(())
    }

    /// Where it listens at present.
    pub fn address(&self) -> String {
        self.address.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The process id.
    pub fn process(&self) -> Option<u32> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Server::id)
    }
}

/// Kills a server every few seconds until `stop`.
pub fn kill_at_random(
    processes: &[Arc<AtomicU32>],
    server: &HttpServer,
    (stop, kills): (&AtomicBool, &AtomicUsize),
    seed: u64,
) -> Result<()> {
    let mut random = Random::new(seed);
    while !stop.load(Ordering::Relaxed) {
        pause(Duration::from_millis(random.between(500, 5_000) as u64), stop);
        match random.below(processes.len() + 1) {
            at if at < processes.len() => {
                let process = processes[at].load(Ordering::SeqCst);
                if process == 0 || !kill(process) {
                    continue;
                }
            }
            _ => server.restart()?,
        }
        kills.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Sends a signal that no process can catch.
fn kill(process: u32) -> bool {
    let mut command = Command::new("kill");
    command.arg("-9").arg(process.to_string()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Waits, but not beyond the end.
pub fn pause(time: Duration, stop: &AtomicBool) {
    let until = Instant::now() + time;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(50));
    }
}
