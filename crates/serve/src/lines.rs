//! Whole lines between a transport and the MCP library, which reads and writes bytes.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
};

/// Gives the lines to the library.
pub(crate) struct LineReader {
    requests: mpsc::Receiver<Vec<u8>>,
    line: Vec<u8>,
    at: usize,
}

impl LineReader {
    pub(crate) const fn new(requests: mpsc::Receiver<Vec<u8>>) -> Self {
        Self { requests, line: Vec::new(), at: 0 }
    }
}

impl AsyncRead for LineReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.at == self.line.len() {
            match self.requests.poll_recv(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(line)) => (self.line, self.at) = (line, 0),
            }
        }
        let count = buffer.remaining().min(self.line.len() - self.at);
        buffer.put_slice(&self.line[self.at..self.at + count]);
        self.at += count;
        Poll::Ready(Ok(()))
    }
}

/// Gathers what the library writes into whole lines.
pub(crate) struct LineSender<F> {
    line: Vec<u8>,
    /// Takes a line; `false` when nobody reads any more.
    send: F,
}

impl<F: FnMut(Vec<u8>) -> bool + Unpin> LineSender<F> {
    pub(crate) const fn new(send: F) -> Self {
        Self { line: Vec::new(), send }
    }
}

impl<F: FnMut(Vec<u8>) -> bool + Unpin> AsyncWrite for LineSender<F> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.line.extend_from_slice(bytes);
        if bytes.last() == Some(&b'\n') {
            let line = std::mem::take(&mut self.line);
            if !(self.send)(line) {
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
