//! The connections of an HTTP server, each with its bounds: how many there are in all and from one address, how long a
//! request may take to arrive, and how long a client may leave an answer unread.
//!
//! Written by hand on hyper because the loop that comes with axum has none of these bounds.

use std::{
    collections::HashMap,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, extract::ConnectInfo};
use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    time::{Instant, Sleep},
};
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::throttle::network_of;

/// How many connections a server takes.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// In all.
    pub total: usize,
    /// From one address.
    pub per_address: usize,
}

/// How long the head of a request may take to arrive, and how long a connection may be idle between two requests.
const HEAD: Duration = Duration::from_secs(20);
/// A client that takes fewer bytes than [`SLOWEST`] in this time is not reading.
const UNREAD: Duration = Duration::from_secs(20);
const SLOWEST: usize = 64 << 10;
/// Bytes of a head, and of an answer that waits to be sent, beside its body.
const BUFFER: usize = 64 << 10;
/// How long a refused client is listened to, so that it gets to read why.
const FAREWELL: Duration = Duration::from_secs(1);
/// Refused clients that are listened to at once.
const FAREWELLS: usize = 128;
/// Pause after the system gave no connection.
const BREATH: Duration = Duration::from_millis(50);

const REFUSAL: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 2\r\n\
    Connection: close\r\nContent-Length: 93\r\n\r\n\
    {\"error\":{\"code\":\"busy\",\"message\":\"too many connections; try again in 2 s\",\"hints\":[      ]}}";

/// The open connections by network.
#[derive(Default)]
struct Open {
    total: usize,
    by_network: HashMap<IpAddr, usize>,
}

/// Counts connections.
struct Counter {
    limits: ConnectionLimits,
    open: Mutex<Open>,
}

/// One connection's place; it is free again when this is dropped.
struct Slot {
    counter: Arc<Counter>,
    network: IpAddr,
}

impl Counter {
    fn take(self: &Arc<Self>, address: IpAddr) -> Option<Slot> {
        let network = network_of(address);
        let mut open = self.open.lock();
        let own = open.by_network.get(&network).copied().unwrap_or(0);
        if open.total >= self.limits.total || own >= self.limits.per_address {
            return None;
        }
        open.total += 1;
        open.by_network.insert(network, own + 1);
        Some(Slot { counter: self.clone(), network })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.counter.open.lock();
        open.total -= 1;
        match open.by_network.get_mut(&self.network) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.by_network.remove(&self.network)),
        }
    }
}

/// Serves connections until `stop`, then lets the requests that are under way finish.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
    drain: Duration,
) {
    let counter = Arc::new(Counter { limits, open: Mutex::default() });
    let farewells = Arc::new(tokio::sync::Semaphore::new(FAREWELLS));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            // Out of descriptors, or a client that has gone already.
            tokio::time::sleep(BREATH).await;
            continue;
        };
        match counter.take(peer.ip()) {
            Some(slot) => {
                tokio::spawn(connection(stream, peer, router.clone(), stop.clone(), slot));
            }
            None => {
                if let Ok(permit) = farewells.clone().try_acquire_owned() {
                    tokio::spawn(async move {
                        refuse(stream).await;
                        drop(permit);
                    });
                }
            }
        }
    }
    drop(listener);
    let until = Instant::now() + drain;
    while counter.open.lock().total > 0 && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    stop: CancellationToken,
    slot: Slot,
) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        // A router is always ready.
        router.clone().call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(Watched::new(stream)), service);
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
    drop(slot);
}

/// Says why, and listens for a moment: closing at once would take the answer away from a client that is still sending.
async fn refuse(mut stream: TcpStream) {
    if stream.try_write(REFUSAL.as_bytes()).is_err() {
        return;
    }
    let mut ignored = [0; 4_096];
    let listen = async { while matches!(stream.read(&mut ignored).await, Ok(1..)) {} };
    let _ = tokio::time::timeout(FAREWELL, listen).await;
}

/// A stream that ends when its client does not read what it is sent.
struct Watched {
    stream: TcpStream,
    /// Runs while a write waits.
    unread: Pin<Box<Sleep>>,
    is_waiting: bool,
    /// Bytes that went out since the clock was last set.
    sent: usize,
}

impl Watched {
    fn new(stream: TcpStream) -> Self {
        Self { stream, unread: Box::pin(tokio::time::sleep(UNREAD)), is_waiting: false, sent: 0 }
    }

    fn watch<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            if self.sent >= SLOWEST {
                self.is_waiting = false;
            }
            return outcome;
        }
        if !self.is_waiting {
            (self.is_waiting, self.sent) = (true, 0);
            self.unread.as_mut().reset(Instant::now() + UNREAD);
        }
        match self.unread.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(&outcome);
        self.watch(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.count(&outcome);
        self.watch(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Watched {
    fn count(&mut self, outcome: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(count)) = outcome {
            self.sent += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_has_the_length_that_it_says() {
        let (head, body) = REFUSAL.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{}", body.len());
        serde_json::from_str::<serde_json::Value>(body).unwrap();
    }

    #[test]
    fn places_are_given_back() {
        let limits = ConnectionLimits { total: 3, per_address: 2 };
        let counter = Arc::new(Counter { limits, open: Mutex::default() });
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let one = counter.take(address("192.0.2.1")).unwrap();
        let two = counter.take(address("192.0.2.1")).unwrap();
        assert!(counter.take(address("192.0.2.1")).is_none(), "two from one address");
        let three = counter.take(address("192.0.2.2")).unwrap();
        assert!(counter.take(address("192.0.2.3")).is_none(), "three in all");
        drop(one);
        assert!(counter.take(address("192.0.2.1")).is_some());
        drop((two, three));
        assert!(counter.open.lock().by_network.is_empty() && counter.open.lock().total == 0);
    }
}
