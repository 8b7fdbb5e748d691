//! Pages that are drawn by a process of their own.
//!
//! A page may be made to take any time and any memory, and a thread can neither be bounded nor ended from outside. A
//! process can: this program starts itself, gives the other one the page, and reads the image. Where no program is known
//! (in tests of this crate), a page is drawn by a thread of this process; see [`super::draw`].

use std::{
    io::{self, Read, Write},
    panic,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use shelf_base::CallContext;

use super::{
    STACK,
    draw::{DrawError, DrawnPage, draw},
};
use crate::Unreadable;

/// The command by which a program that draws pages is asked to; the width follows. See [`draw_alone`].
pub const DRAW_COMMAND: &str = "draw-page";
/// Memory that such a process may use, in bytes.
pub const DRAW_MEMORY: u64 = 1 << 30;
/// Seconds of processor time that it may use: a bound for when nobody waits for it any more.
pub const DRAW_SECONDS: u64 = 60;

/// How such a process says that the page is the reason, with what is wrong on its standard error.
const REFUSED: i32 = 65;
/// Bytes of an image, and of a reason, at most.
const MOST_IMAGE: u64 = 128 << 20;
const MOST_REASON: u64 = 1 << 10;
/// How often a process that draws is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// What such a process does: draws the page on `input`, which is a document of one page, and writes the image. The result
/// is its exit code. The caller has bounded the process before.
pub fn draw_alone(width: u32, mut input: impl Read, mut output: impl Write, mut reason: impl Write) -> u8 {
    // Standard error holds the reason and nothing else.
    panic::set_hook(Box::new(|_| ()));
    let mut bytes = Vec::new();
    let drawn = match input.read_to_end(&mut bytes) {
        Ok(_) => on_a_deep_stack(bytes, width),
        Err(error) => Err(Unreadable::damaged(format!("it could not be handed over: {error}"))),
    };
    match drawn {
        Ok(page) if output.write_all(&page.png).and_then(|()| output.flush()).is_ok() => 0,
        Ok(_) => 1,
        Err(error) => {
            let _ = write!(reason, "{}", what_is_wrong(&error));
            REFUSED as u8
        }
    }
}

fn on_a_deep_stack(bytes: Vec<u8>, width: u32) -> Result<DrawnPage, Unreadable> {
    let thread = thread::Builder::new().name("page".into()).stack_size(STACK);
    let inconsistent = || Unreadable::damaged("the page is inconsistent");
    let thread = thread.spawn(move || draw(bytes, width)).map_err(cannot_start)?;
    thread.join().unwrap_or_else(|_| Err(inconsistent()))
}

fn what_is_wrong(error: &Unreadable) -> String {
    match error {
        Unreadable::Damaged { what } => what.clone(),
        other => other.to_string(),
    }
}

/// Has `program` draw a document of one page. It is ended when it takes longer than `time`, and when the call ends.
pub(super) fn draw_by(
    program: &Path,
    page: &[u8],
    width: u32,
    time: Duration,
    call: &CallContext,
) -> Result<DrawnPage, DrawError> {
    let mut command = Command::new(program);
    command.arg(DRAW_COMMAND).arg(width.to_string());
    // It needs none of the secrets that the environment may hold.
    command.env_clear().current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot_start)?;
    let (input, output, reason) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        // Whoever reads only after writing would wait for ever for somebody who does the same.
        scope.spawn(move || input.map(|mut input| input.write_all(page)));
        let output = scope.spawn(|| gather(output, MOST_IMAGE));
        let reason = scope.spawn(|| gather(reason, MOST_REASON));
        let ended = wait(&mut child, time, call);
        if ended.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let (png, reason) = (output.join().unwrap_or_default(), reason.join().unwrap_or_default());
        outcome(ended?, png, &String::from_utf8_lossy(&reason))
    })
}

fn cannot_start(error: io::Error) -> Unreadable {
    Unreadable::damaged(format!("drawing cannot start: {error}"))
}

fn gather(from: Option<impl Read>, most: u64) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut from) = from {
        let _ = from.by_ref().take(most).read_to_end(&mut kept);
        let _ = io::copy(&mut from, &mut io::sink());
    }
    kept
}

fn wait(child: &mut Child, time: Duration, call: &CallContext) -> Result<ExitStatus, DrawError> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(cannot_start)? {
            return Ok(status);
        }
        call.check()?;
        if start.elapsed() >= time {
            return Err(DrawError::TooSlow { seconds: time.as_secs() });
        }
        thread::sleep(LOOK);
    }
}

/// What the end of the process means. One that may take no more memory aborts; a chain of calls without end overflows its
/// stack.
fn outcome(status: ExitStatus, png: Vec<u8>, reason: &str) -> Result<DrawnPage, DrawError> {
    match status.code() {
        Some(0) => match size_of(&png) {
            Some((width, height)) => Ok(DrawnPage { png, width, height }),
            None => Err(Unreadable::damaged("its image is incomplete").into()),
        },
        Some(REFUSED) => Err(Unreadable::damaged(reason).into()),
        Some(_) => Err(Unreadable::damaged("the page is inconsistent").into()),
        None if reason.contains("stack") => Err(Unreadable::damaged("the page is inconsistent").into()),
        None => Err(DrawError::TooMuch { mebibytes: DRAW_MEMORY >> 20 }),
    }
}

/// Width and height stand at the beginning of every image of this kind.
fn size_of(png: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u32::from_be_bytes(png.get(at..at + 4)?.try_into().ok()?));
    png.starts_with(b"\x89PNG\r\n\x1a\n").then_some((number(16)?, number(20)?))
}
