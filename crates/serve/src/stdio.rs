//! MCP over stdio. Nothing but protocol messages reaches stdout, bad input gets an answer, and the end of input is
//! the end of the server.
//!
//! The MCP library drops lines that are too long or are no JSON without a word, which leaves a client waiting for
//! ever; so lines are looked at here first, and answers to bad ones go out between the library's own.

use std::{
    io::{self, BufRead, Read, Write},
    sync::{Arc, mpsc as threads},
    thread,
    time::Duration,
};

use rmcp::{ServiceExt, service::ServerInitializeError, transport::async_rw::AsyncRwTransport};
use shelf_base::{Secret, bounds::REQUEST_BYTES};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    App,
    backlog::{Backlog, Message},
    envelope::{self, MessageError},
    lines::{LineReader, LineSender},
    mcp::{Handler, Who},
};

/// How long work that is under way at the end of input may take to answer.
const GRACE: Duration = Duration::from_millis(700);
/// Requests that may wait between the reading thread and the library.
const WAITING: usize = 256;

/// Whom a client on stdio is.
#[derive(Clone, Debug)]
pub enum Identity {
    /// The OS user who started the server.
    Owner,
    /// Whoever this token stands for; it is checked anew for every request, so that revoking it counts at once.
    Token(Secret),
}

/// Serves one client on stdin and stdout until the end of input or `stop`.
///
/// A thread of its own reads and another writes: with a runtime of one thread that makes four changes of thread for a
/// call, where the runtime's own stdin and stdout would make nine.
pub async fn serve(app: Arc<App>, identity: Identity, stop: CancellationToken) -> io::Result<()> {
    let (outgoing, lines) = threads::channel();
    let (incoming, requests) = mpsc::channel(WAITING);
    let (ended, end_of_input) = oneshot::channel();
    let (written, all_written) = oneshot::channel();
    let backlog = Arc::new(Backlog::default());
    let (taken, awaited) = (backlog.clone(), backlog.clone());
    thread::Builder::new().name("stdout".into()).spawn(move || write_lines(&lines, &taken, written))?;
    let answers = outgoing.clone();
    thread::Builder::new()
        .name("stdin".into())
        .spawn(move || read_lines(&incoming, &answers, &awaited, ended))?;
    let reader = LineReader::new(requests);
    let writer = LineSender::new(move |line| {
        backlog.add(&line);
        outgoing.send(line).is_ok()
    });
    let transport = AsyncRwTransport::new_server(reader, writer).with_max_line_length(usize::MAX);
    let served = async {
        match Handler::new(app, Who::Process(identity)).serve_with_ct(transport, stop.child_token()).await {
            Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        }
    };
    let outcome = tokio::select! {
        outcome = served => outcome,
        () = async { let _ = end_of_input.await; tokio::time::sleep(GRACE).await } => Ok(()),
    };
    // The writing thread ends when the last sender has gone; what it still holds goes out first.
    let _ = tokio::time::timeout(Duration::from_millis(200), all_written).await;
    outcome
}

/// Reads lines, answers the bad ones and passes the good ones on.
fn read_lines(
    incoming: &mpsc::Sender<Vec<u8>>,
    answers: &threads::Sender<Vec<u8>>,
    backlog: &Backlog,
    ended: oneshot::Sender<()>,
) {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    while let Ok(Some(length)) = next_line(&mut input, &mut line) {
        let checked = if length > REQUEST_BYTES {
            Err(MessageError::too_large().with_id(envelope::find_id(&String::from_utf8_lossy(&line))))
        } else if line.trim_ascii().is_empty() {
            continue;
        } else {
            envelope::check(&line)
        };
        let passed_on = match checked {
            Err(fault) => answers.send(format!("{}\n", fault.message()).into_bytes()).is_ok(),
            Ok(()) => {
                let message = Message::of(&line);
                if message.is_request() {
                    backlog.wait_for_room();
                }
                backlog.took(&message);
                let mut line = envelope::keep_text(std::mem::take(&mut line));
                line.push(b'\n');
                incoming.blocking_send(line).is_ok()
            }
        };
        if !passed_on {
            break;
        }
    }
    let _ = ended.send(());
}

/// Reads one line without its end. Of a line beyond the limit only the beginning and its true length are kept.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<usize>> {
    line.clear();
    let limit = REQUEST_BYTES as u64 + 1;
    let read = input.by_ref().take(limit).read_until(b'\n', line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(line.len()));
    }
    if (read as u64) < limit {
        return Ok(Some(line.len()));
    }
    let mut length = line.len();
    let mut rest = Vec::new();
    loop {
        rest.clear();
        let read = input.by_ref().take(1 << 20).read_until(b'\n', &mut rest)?;
        length += read;
        if read == 0 || rest.last() == Some(&b'\n') {
            line.truncate(4_096);
            let tail = rest.len().saturating_sub(256);
            line.extend_from_slice(&rest[tail..]);
            return Ok(Some(length));
        }
    }
}

fn write_lines(lines: &threads::Receiver<Vec<u8>>, backlog: &Backlog, written: oneshot::Sender<()>) {
    let mut output = io::stdout().lock();
    while let Ok(line) = lines.recv() {
        let sent = output.write_all(&line).and_then(|()| output.flush());
        backlog.taken(line.len());
        if sent.is_err() {
            break;
        }
    }
    backlog.end();
    let _ = written.send(());
}
