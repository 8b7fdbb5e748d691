//! The way to a database and back, on the thread that asks.
//!
//! The protocol is `tokio-postgres`'s, which knows how to speak over any stream. The stream here is a socket that never blocks,
//! and whoever waits for an answer waits for that socket with `poll`, on its own thread, without a runtime: an answer changes
//! no thread, and a caller may be on a thread that belongs to a runtime. The crate `postgres` does this with a runtime of its
//! own, which refuses to start on such a thread, so each statement had to be handed to another one and back; and it sends a
//! statement only when the one before is answered.

use std::{
    future::Future,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::sockopt,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Client, Config,
    config::{Host, TargetSessionAttrs},
    tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a connection that is closed may take to say so.
const FAREWELL: Duration = Duration::from_millis(100);
const PORT: u16 = 5432;

/// Why something did not work.
#[derive(Debug)]
pub(super) enum WireError {
    /// The server's answer, or what the protocol makes of the connection.
    Protocol(tokio_postgres::Error),
    /// The connection cannot be made or does not answer.
    Network(String),
}

impl From<tokio_postgres::Error> for WireError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Protocol(error)
    }
}

type Outcome<T> = Result<T, WireError>;

/// The protocol at work; it ends with the connection.
type Speaking = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

/// One connection's socket, and what speaks the protocol over it.
pub(super) struct Wire {
    socket: Arc<Socket>,
    /// There until the connection has ended.
    connection: Option<Speaking>,
    woken: Arc<Woken>,
}

impl Wire {
    /// Connects to the first of the hosts that answers.
    pub(super) fn connect(config: &Config, tls: &MakeRustlsConnect) -> Outcome<(Self, Client)> {
        let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
        let count = hosts.len().max(addresses.len());
        let mut failure = WireError::Network("its address names no host".into());
        for at in 0..count {
            let ports = config.get_ports();
            let port = ports.get(at).or_else(|| ports.first()).copied().unwrap_or(PORT);
            let name = match hosts.get(at) {
                Some(Host::Tcp(name)) => name.as_str(),
                _ => "",
            };
            let places = match (addresses.get(at), hosts.get(at)) {
                (Some(address), _) => Ok(vec![Place::Tcp(SocketAddr::new(*address, port))]),
                (None, Some(Host::Tcp(name))) => (name.as_str(), port)
                    .to_socket_addrs()
                    .map(|found| found.map(Place::Tcp).collect())
                    .map_err(|error| not_connected(&error)),
                (None, Some(Host::Unix(folder))) => {
                    Ok(vec![Place::Unix(folder.join(format!(".s.PGSQL.{port}")))])
                }
                (None, None) => Ok(Vec::new()),
            };
            for place in places.unwrap_or_else(|error| {
                failure = error;
                Vec::new()
            }) {
                match Self::connect_to(&place, name, config, tls) {
                    Ok(connected) => return Ok(connected),
                    Err(error) => failure = error,
                }
            }
        }
        Err(failure)
    }

    fn connect_to(
        place: &Place,
        name: &str,
        config: &Config,
        tls: &MakeRustlsConnect,
    ) -> Outcome<(Self, Client)> {
        let patience = config.get_connect_timeout().copied();
        let socket = Arc::new(Socket::open(place, config).map_err(|error| not_connected(&error))?);
        let mut tls = tls.clone();
        let Ok(tls) = MakeTlsConnect::<Stream>::make_tls_connect(&mut tls, name);
        let mut wire = Self { socket: socket.clone(), connection: None, woken: Arc::default() };
        let (client, connection) = wire.wait_for(config.connect_raw(Stream(socket), tls), patience)?;
        wire.connection = Some(Box::pin(connection));
        wire.must_fit(&client, config.get_target_session_attrs(), patience)?;
        Ok((wire, client))
    }

    /// Refuses a server that does not take writes, or one that does, as the address asks for.
    fn must_fit(
        &mut self,
        client: &Client,
        wanted: TargetSessionAttrs,
        patience: Option<Duration>,
    ) -> Outcome<()> {
        if wanted == TargetSessionAttrs::Any {
            return Ok(());
        }
        let row = self.wait_for(client.query_one("SHOW transaction_read_only", &[]), patience)?;
        let is_read_only = row.try_get::<_, String>(0)? == "on";
        match (wanted, is_read_only) {
            (TargetSessionAttrs::ReadWrite, true) => {
                Err(WireError::Network("the database does not allow writes".into()))
            }
            (TargetSessionAttrs::ReadOnly, false) => {
                Err(WireError::Network("the database is not read-only".into()))
            }
            _ => Ok(()),
        }
    }

    /// Waits for an answer, for `patience` at most, and meanwhile sends what is to be sent.
    pub(super) fn wait_for<T>(
        &mut self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
        patience: Option<Duration>,
    ) -> Outcome<T> {
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        let waker = Waker::from(self.woken.clone());
        let mut context = Context::from_waker(&waker);
        let mut answer = pin!(answer);
        loop {
            self.woken.take();
            self.socket.wants_to_write.store(false, Ordering::Relaxed);
            if let Poll::Ready(answer) = answer.as_mut().poll(&mut context) {
                return Ok(answer?);
            }
            if let Some(ended) = self.poll(&mut context) {
                // An answer that came before the end counts, and says more than the end does.
                return match (answer.as_mut().poll(&mut context), ended) {
                    (Poll::Ready(Err(error)), Err(end)) if error.is_closed() => Err(end.into()),
                    (Poll::Ready(answer), _) => Ok(answer?),
                    (Poll::Pending, Err(end)) => Err(end.into()),
                    (Poll::Pending, Ok(())) => Err(WireError::Network("the connection was closed".into())),
                };
            }
            if !self.woken.take()
                && let Err(error) = self.socket.wait(until)
            {
                self.connection = None;
                return Err(WireError::Network(format!("error communicating with the server: {error}")));
            }
        }
    }

    /// Goes on with the connection; how it ended, if it has.
    fn poll(&mut self, context: &mut Context<'_>) -> Option<Result<(), tokio_postgres::Error>> {
        let connection = self.connection.as_mut()?;
        let Poll::Ready(ended) = connection.as_mut().poll(context) else { return None };
        self.connection = None;
        Some(ended)
    }

    /// Sends what is to be sent, and waits for no answer.
    pub(super) fn nudge(&mut self) {
        let _ = self.poll(&mut Context::from_waker(&Waker::from(self.woken.clone())));
    }

    /// Whether the connection is known to be gone.
    pub(super) fn is_closed(&mut self) -> bool {
        self.nudge();
        self.connection.is_none()
    }

    /// Ends a connection whose client has gone: the server is told, and not waited for.
    pub(super) fn close(&mut self) {
        let until = Instant::now() + FAREWELL;
        while self.connection.is_some() && Instant::now() < until {
            self.socket.wants_to_write.store(false, Ordering::Relaxed);
            self.nudge();
            if self.connection.is_none() || self.socket.wait(Some(until)).is_err() {
                return;
            }
        }
    }
}

fn not_connected(error: &io::Error) -> WireError {
    WireError::Network(format!("error connecting to server: {error}"))
}

/// Whether anybody asked to be polled again.
#[derive(Default)]
struct Woken(AtomicBool);

impl Woken {
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

enum Place {
    Tcp(SocketAddr),
    Unix(std::path::PathBuf),
}

enum Kind {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket that never blocks.
struct Socket {
    kind: Kind,
    /// Whether it had no room for what was to be sent.
    wants_to_write: AtomicBool,
}

impl Socket {
    fn open(place: &Place, config: &Config) -> io::Result<Self> {
        let kind = match place {
            Place::Tcp(address) => {
                let stream = match config.get_connect_timeout() {
                    Some(patience) => TcpStream::connect_timeout(address, *patience)?,
                    None => TcpStream::connect(address)?,
                };
                stream.set_nodelay(true)?;
                watch(&stream, config)?;
                stream.set_nonblocking(true)?;
                Kind::Tcp(stream)
            }
            Place::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Kind::Unix(stream)
            }
        };
        Ok(Self { kind, wants_to_write: AtomicBool::new(false) })
    }

    /// Waits until there is something to read, or room for what is to be sent.
    fn wait(&self, until: Option<Instant>) -> io::Result<()> {
        let mut wanted = PollFlags::IN;
        if self.wants_to_write.load(Ordering::Relaxed) {
            wanted |= PollFlags::OUT;
        }
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(self, wanted)], left.as_ref()) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer")),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.kind {
            Kind::Tcp(stream) => (&mut &*stream).read(buffer),
            Kind::Unix(stream) => (&mut &*stream).read(buffer),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.kind {
            Kind::Tcp(stream) => (&mut &*stream).write(bytes),
            Kind::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Tcp(stream) => stream.as_fd(),
            Kind::Unix(stream) => stream.as_fd(),
        }
    }
}

/// Has the system notice when the other machine is gone.
fn watch(stream: &TcpStream, config: &Config) -> io::Result<()> {
    if config.get_keepalives() {
        sockopt::set_socket_keepalive(stream, true)?;
        sockopt::set_tcp_keepidle(stream, config.get_keepalives_idle())?;
        if let Some(interval) = config.get_keepalives_interval() {
            sockopt::set_tcp_keepintvl(stream, interval)?;
        }
        if let Some(retries) = config.get_keepalives_retries() {
            sockopt::set_tcp_keepcnt(stream, retries)?;
        }
    }
    #[cfg(target_os = "linux")]
    if let Some(silence) = config.get_tcp_user_timeout() {
        let milliseconds = u32::try_from(silence.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(stream, milliseconds)?;
    }
    Ok(())
}

/// The socket as the protocol reads and writes it.
struct Stream(Arc<Socket>);

/// An attempt that would have to wait is made again when the socket is ready: whoever polls waits for it.
fn ready(mut attempt: impl FnMut() -> io::Result<usize>) -> Poll<io::Result<usize>> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            outcome => return Poll::Ready(outcome),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let space = buffer.initialize_unfilled();
        ready(|| self.0.read(space)).map_ok(|count| buffer.advance(count))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready(|| self.0.write(bytes));
        if written.is_pending() {
            self.0.wants_to_write.store(true, Ordering::Relaxed);
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = match &self.0.kind {
            Kind::Tcp(stream) => stream.shutdown(std::net::Shutdown::Write),
            Kind::Unix(stream) => stream.shutdown(std::net::Shutdown::Write),
        };
        Poll::Ready(ended)
    }
}
