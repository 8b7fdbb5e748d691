//! MCP over stdio. Nothing but protocol messages reaches stdout, bad input gets an answer, and the end of input is
//! the end of the server.
//!
//! The MCP library drops lines that are too long or are no JSON without a word, which leaves a client waiting for
//! ever; so lines are looked at here first, and answers to bad ones go out between the library's own.

use std::{io, sync::Arc, time::Duration};

use rmcp::{ServiceExt, service::ServerInitializeError, transport::async_rw::AsyncRwTransport};
use shelf_base::{Secret, bounds::REQUEST_BYTES};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

use crate::{
    App, archives,
    backlog::{Backlog, Message},
    envelope::{self, MessageError},
    lines::{LineReader, LineSender},
    mcp::{Handler, Who},
    standard,
};

/// How long work that is under way at the end of input may take to answer.
const GRACE: Duration = Duration::from_millis(700);
/// Requests that may wait between the reading of lines and the library.
const WAITING: usize = 256;
/// Bytes of a line from which on looking at it is work for a thread of its own.
const LONG_LINE: usize = 256 << 10;
/// What is kept of a line beyond the limit.
const KEPT_HEAD: usize = 4_096;
const KEPT_TAIL: usize = 256;

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
/// Lines are read and written by tasks of the runtime. With a runtime of one thread and a client at the other end of a
/// pipe or a socket, a short read is answered without any change of thread.
pub async fn serve(app: Arc<App>, identity: Identity, stop: CancellationToken) -> io::Result<()> {
    let (incoming, requests) = mpsc::channel(WAITING);
    let (ended, end_of_input) = oneshot::channel();
    let backlog = Arc::new(Backlog::default());
    let (answers, lines) = Answers::new(backlog.clone());
    let writing = tokio::spawn(write_lines(lines, backlog.clone(), standard::output()));
    let own_answers = answers.clone();
    tokio::spawn(async move {
        read_lines(BufReader::new(standard::input()), &incoming, &own_answers).await;
        let _ = ended.send(());
    });
    let transport = AsyncRwTransport::new_server(
        LineReader::new(requests),
        LineSender::new(move |line| answers.send(line)),
    )
    .with_max_line_length(usize::MAX);
    let is_over = stop.child_token();
    let _ends_with_this = is_over.clone().drop_guard();
    tokio::spawn(archives::clear(app.clone(), is_over));
    let handler = Handler::new(app, Who::Process(identity)).with_backlog(backlog);
    let served = async {
        match handler.serve_with_ct(transport, stop.child_token()).await {
            Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        }
    };
    let outcome = tokio::select! {
        outcome = served => outcome,
        () = async { let _ = end_of_input.await; tokio::time::sleep(GRACE).await } => Ok(()),
    };
    // The writing task ends when the last sender has gone; what it still holds goes out first.
    let _ = tokio::time::timeout(Duration::from_millis(200), writing).await;
    outcome
}

/// The way to the client, on which what waits is counted.
#[derive(Clone)]
struct Answers {
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    backlog: Arc<Backlog>,
}

impl Answers {
    fn new(backlog: Arc<Backlog>) -> (Self, mpsc::UnboundedReceiver<Vec<u8>>) {
        let (outgoing, lines) = mpsc::unbounded_channel();
        (Self { outgoing, backlog }, lines)
    }

    /// `false` when nobody reads any more.
    fn send(&self, line: Vec<u8>) -> bool {
        self.backlog.add(&line);
        self.outgoing.send(line).is_ok()
    }
}

/// A line of input that has been looked at.
enum Examined {
    Empty,
    /// The answer to a line that the library shall not see.
    Bad(Vec<u8>),
    Good(Message, Vec<u8>),
}

/// Reads lines, answers the bad ones and passes the good ones on.
async fn read_lines(
    mut input: impl AsyncBufRead + Unpin,
    incoming: &mpsc::Sender<Vec<u8>>,
    answers: &Answers,
) {
    let mut line = Vec::new();
    while let Ok(Some(length)) = next_line(&mut input, &mut line).await {
        let taken = std::mem::take(&mut line);
        let examined = if taken.len() < LONG_LINE {
            examine(taken, length)
        } else {
            match tokio::task::spawn_blocking(move || examine(taken, length)).await {
                Ok(examined) => examined,
                Err(_) => return,
            }
        };
        let passed_on = match examined {
            Examined::Empty => true,
            Examined::Bad(answer) => {
                answers.backlog.wait_for_room().await;
                answers.send(answer)
            }
            Examined::Good(message, line) => {
                if message.is_request() {
                    answers.backlog.wait_for_room().await;
                }
                answers.backlog.took(&message);
                incoming.send(line).await.is_ok()
            }
        };
        if !passed_on {
            return;
        }
    }
}

/// Looks at a line, of which only a part is there when its length is beyond the limit.
fn examine(line: Vec<u8>, length: usize) -> Examined {
    if length <= REQUEST_BYTES && line.trim_ascii().is_empty() {
        return Examined::Empty;
    }
    let checked = if length > REQUEST_BYTES {
        Err(MessageError::too_large().with_id(envelope::find_id(&String::from_utf8_lossy(&line))))
    } else {
        envelope::check(&line)
    };
    match checked {
        Err(fault) => Examined::Bad(format!("{}\n", fault.message()).into_bytes()),
        Ok(()) => {
            let message = Message::of(&line);
            let mut line = envelope::keep_text(line);
            line.push(b'\n');
            Examined::Good(message, line)
        }
    }
}

/// Reads one line without its end and tells its length; `None` at the end of input. Of a line beyond the limit only the
/// beginning and the end are kept, among which its id is looked for.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> io::Result<Option<usize>> {
    line.clear();
    let mut length = 0;
    loop {
        let read = input.fill_buf().await?;
        if read.is_empty() {
            return Ok((length > 0).then_some(length));
        }
        let end = memchr::memchr(b'\n', read);
        let part = &read[..end.unwrap_or(read.len())];
        length += part.len();
        line.extend_from_slice(part);
        if length > REQUEST_BYTES && line.len() > KEPT_HEAD + 2 * KEPT_TAIL {
            line.drain(KEPT_HEAD..line.len() - KEPT_TAIL);
            line.shrink_to(1 << 16);
        }
        let count = part.len() + usize::from(end.is_some());
        input.consume(count);
        if end.is_some() {
            return Ok(Some(length));
        }
    }
}

/// Writes lines until there are no more senders or no more reader.
async fn write_lines(
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
    backlog: Arc<Backlog>,
    mut output: impl AsyncWrite + Unpin,
) {
    while let Some(line) = lines.recv().await {
        let sent = async {
            output.write_all(&line).await?;
            output.flush().await
        };
        let sent = sent.await;
        backlog.taken(line.len());
        if sent.is_err() {
            break;
        }
    }
    backlog.end();
}
