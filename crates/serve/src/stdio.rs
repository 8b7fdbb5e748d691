//! MCP over stdio. Nothing but protocol messages reaches stdout, bad input gets an answer, and the end of input is
//! the end of the server.
//!
//! The MCP library drops lines that are too long or are no JSON without a word, which leaves a client waiting for
//! ever; so lines are looked at here first, and answers to bad ones go out between the library's own.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use rmcp::{ServiceExt, service::ServerInitializeError, transport::async_rw::AsyncRwTransport};
use shelf_base::bounds::REQUEST_BYTES;
use shelf_engine::Caller;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream},
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

use crate::{
    App,
    envelope::{self, Fault},
    mcp::Handler,
};

/// How long work that is under way at the end of input may take to answer.
const GRACE: Duration = Duration::from_millis(700);

/// Serves one client on stdin and stdout until the end of input or `stop`.
pub async fn serve(app: Arc<App>, caller: Caller, stop: CancellationToken) -> io::Result<()> {
    let (outgoing, lines) = mpsc::unbounded_channel();
    let (ended, end_of_input) = oneshot::channel();
    let (library_end, our_end) = tokio::io::duplex(256 * 1_024);
    let writer = tokio::spawn(write_lines(lines));
    tokio::spawn(read_lines(tokio::io::stdin(), our_end, outgoing.clone(), ended));
    let transport = AsyncRwTransport::new_server(library_end, LineSender { line: Vec::new(), outgoing })
        .with_max_line_length(usize::MAX);
    let served = async {
        match Handler::new(app, Some(caller)).serve_with_ct(transport, stop.child_token()).await {
            Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        }
    };
    let outcome = tokio::select! {
        outcome = served => outcome,
        () = async { let _ = end_of_input.await; tokio::time::sleep(GRACE).await } => Ok(()),
    };
    // The writer ends when the last sender has gone; what it still holds goes out first.
    let _ = tokio::time::timeout(Duration::from_millis(200), writer).await;
    outcome
}

/// Reads lines, answers the bad ones and passes the good ones on.
async fn read_lines(
    input: impl AsyncRead + Unpin,
    mut library: DuplexStream,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    ended: oneshot::Sender<()>,
) {
    let mut input = BufReader::with_capacity(64 * 1_024, input);
    let mut line = Vec::new();
    while let Ok(Some(length)) = next_line(&mut input, &mut line).await {
        let checked = if length > REQUEST_BYTES {
            Err(Fault::too_large().with_id(envelope::find_id(&String::from_utf8_lossy(&line))))
        } else if line.trim_ascii().is_empty() {
            continue;
        } else {
            envelope::check(&line)
        };
        match checked {
            Err(fault) => {
                let _ = outgoing.send(format!("{}\n", fault.message()).into_bytes());
            }
            Ok(()) => {
                line.push(b'\n');
                if library.write_all(&line).await.is_err() {
                    break;
                }
            }
        }
    }
    let _ = library.shutdown().await;
    let _ = ended.send(());
}

/// Reads one line without its end. Of a line beyond the limit only the beginning and its true length are kept.
async fn next_line(
    input: &mut (impl AsyncBufReadExt + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<Option<usize>> {
    line.clear();
    let limit = REQUEST_BYTES as u64 + 1;
    let read = (&mut *input).take(limit).read_until(b'\n', line).await?;
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
        let read = (&mut *input).take(1 << 20).read_until(b'\n', &mut rest).await?;
        length += read;
        if read == 0 || rest.last() == Some(&b'\n') {
            line.truncate(4_096);
            let tail = rest.len().saturating_sub(256);
            line.extend_from_slice(&rest[tail..]);
            return Ok(Some(length));
        }
    }
}

async fn write_lines(mut lines: mpsc::UnboundedReceiver<Vec<u8>>) {
    let mut output = tokio::io::stdout();
    while let Some(line) = lines.recv().await {
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

/// Gathers what the library writes into whole lines.
struct LineSender {
    line: Vec<u8>,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
}

impl AsyncWrite for LineSender {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.line.extend_from_slice(bytes);
        if bytes.last() == Some(&b'\n') {
            let line = std::mem::take(&mut self.line);
            if self.outgoing.send(line).is_err() {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
