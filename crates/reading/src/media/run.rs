//! Runs `ffprobe` and `ffmpeg`: no shell, bounded time and output, a few at once, stopped with the call.

use std::{
    ffi::OsString,
    io::Read,
    process::{Child, Command, Stdio},
    sync::{
        Condvar, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use shelf_base::CallContext;

use super::{MediaError, Task};

/// Programs that run at once.
const AT_ONCE: usize = 2;
/// Bytes of output that are kept.
const MOST_OUTPUT: u64 = 32 << 20;
/// Bytes of messages that are kept.
const MOST_TALK: u64 = 4 << 20;
/// How often a waiting call looks whether it should stop.
const LOOK: Duration = Duration::from_millis(20);
/// How soon a program that has closed its output is looked at again.
const CLOSED: Duration = Duration::from_micros(200);

static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// A place among the programs that run; given back when dropped.
struct Turn;

impl Turn {
    fn take(call: &CallContext) -> Result<Self, MediaError> {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        while *running >= AT_ONCE {
            call.check()?;
            running = ENDED.wait_timeout(running, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        *running += 1;
        Ok(Self)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}

/// What a program wrote.
pub(super) struct Ran {
    pub output: Vec<u8>,
    pub talk: String,
}

impl Ran {
    /// Whether there was more output than is kept.
    pub(super) fn is_cut(&self) -> bool {
        self.output.len() as u64 >= MOST_OUTPUT
    }
}

/// Runs a program to its end.
pub(super) fn run(task: Task<'_>, arguments: &[OsString]) -> Result<Ran, MediaError> {
    task.call.check()?;
    if !task.call.step_aside() {
        return Err(MediaError::Busy);
    }
    let _turn = Turn::take(task.call)?;
    let mut command = Command::new(task.program);
    // Untrusted files are opened by name only: no list in them leads to another file or to the network.
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => MediaError::Absent { program: task.program },
        _ => MediaError::Failed { program: task.program, what: error.to_string() },
    })?;
    let (output, talk) = (child.stdout.take(), child.stderr.take());
    let (open, closed) = channel();
    let also_open = open.clone();
    thread::scope(|scope| {
        let output = scope.spawn(|| gather(output, MOST_OUTPUT, open));
        let talk = scope.spawn(|| gather(talk, MOST_TALK, also_open));
        let ended = wait(&mut child, &closed, task);
        if ended.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let output = output.join().unwrap_or_default();
        let talk = String::from_utf8_lossy(&talk.join().unwrap_or_default()).into_owned();
        if ended? { Ok(Ran { output, talk }) } else { Err(MediaError::Damaged { what: last_words(&talk) }) }
    })
}

/// Whether it succeeded. `closed` hangs up when the program has closed its output, which nearly always is its end: so the
/// end is noticed at once.
fn wait(child: &mut Child, closed: &Receiver<()>, task: Task<'_>) -> Result<bool, MediaError> {
    let start = Instant::now();
    let mut pause = CLOSED;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) => {}
            Err(error) => return Err(MediaError::Failed { program: task.program, what: error.to_string() }),
        }
        task.call.check()?;
        if start.elapsed() >= Duration::from_secs(task.seconds) {
            return Err(MediaError::TooLong { program: task.program, seconds: task.seconds });
        }
        if closed.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected) {
            thread::sleep(pause);
            pause = (pause * 2).min(LOOK);
        }
    }
}

/// Reads to the end, keeps the beginning, and drops `open` then.
fn gather(from: Option<impl Read>, most: u64, open: Sender<()>) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut from) = from {
        let _ = from.by_ref().take(most).read_to_end(&mut kept);
        let _ = std::io::copy(&mut from, &mut std::io::sink());
    }
    drop(open);
    kept
}

/// What the program said last, without the path of the file it was given.
fn last_words(talk: &str) -> String {
    let line = talk.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
    let line = line.rsplit_once(": ").map_or(line, |(_, what)| what);
    line.trim().chars().take(200).collect()
}
