//! A network that fails on purpose: a TCP proxy that delays, drops and cuts connections, and answers 503 for the server
//! behind it.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// What happens to connections. Shares are in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Every piece of data is this late.
    pub delay: Duration,
    /// Share of connections that are closed as soon as they are made.
    pub dropped: u8,
    /// Share of answers that are cut somewhere in the middle.
    pub cut: u8,
    /// Share of requests that are answered with 503 instead of being passed on.
    pub busy: u8,
    /// Nobody is there at all: connections are closed, those that stand too.
    pub away: bool,
}

impl Weather {
    /// Everything gets through.
    pub const CLEAR: Self = Self { delay: Duration::ZERO, dropped: 0, cut: 0, busy: 0, away: false };
}

struct State {
    server: SocketAddr,
    weather: Mutex<Weather>,
    dice: AtomicU64,
    is_over: AtomicBool,
    faults: AtomicU64,
    connections: AtomicU64,
}

/// The proxy; it ends when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

impl Proxy {
    /// Stands before `server`, in clear weather at first.
    pub fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            server,
            weather: Mutex::new(Weather::CLEAR),
            dice: AtomicU64::new(0x9E37_79B9_7F4A_7C15),
            is_over: AtomicBool::new(false),
            faults: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        });
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let state = shared.clone();
                thread::spawn(move || state.connection(stream));
            }
        });
        Self { address, state }
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the weather, also for connections that stand.
    pub fn set(&self, weather: Weather) {
        *self.state.weather.lock().expect("the weather") = weather;
    }

    /// How many faults there were so far.
    pub fn faults(&self) -> u64 {
        self.state.faults.load(Ordering::Relaxed)
    }

    /// How many connections were made so far.
    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

const UNAVAILABLE: &[u8] =
    b"HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\nconnection: close\r\nretry-after: 0\r\n\r\n";

impl State {
    fn weather(&self) -> Weather {
        *self.weather.lock().expect("the weather")
    }

    /// Whether it happens this time; each yes is counted as a fault.
    fn happens(&self, percent: u8) -> bool {
        let happens = percent > 0 && self.roll() % 100 < u64::from(percent);
        self.faults.fetch_add(u64::from(happens), Ordering::Relaxed);
        happens
    }

    fn roll(&self) -> u64 {
        let mut value = self.dice.load(Ordering::Relaxed);
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        self.dice.store(value, Ordering::Relaxed);
        value >> 8
    }

    fn connection(&self, client: TcpStream) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let weather = self.weather();
        if weather.away || self.happens(weather.dropped) {
            return;
        }
        let Ok(server) = TcpStream::connect(self.server) else { return };
        let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
        thread::scope(|scope| {
            scope.spawn(|| self.requests(&client, &server));
            scope.spawn(|| self.answers(&server, &client));
        });
    }

    /// From the client to the server.
    fn requests(&self, mut client: &TcpStream, mut server: &TcpStream) {
        let mut piece = vec![0; 64 << 10];
        let mut is_start = true;
        loop {
            let read = client.read(&mut piece).unwrap_or(0);
            let weather = self.weather();
            if read == 0 || weather.away {
                break;
            }
            // A piece that begins like a request is taken for the beginning of one.
            let begins = [&b"GET "[..], b"PUT ", b"POST ", b"HEAD ", b"DELETE "];
            is_start |= begins.iter().any(|word| piece[..read].starts_with(word));
            if is_start && self.happens(weather.busy) {
                drain(client);
                let _ = client.write_all(UNAVAILABLE);
                break;
            }
            is_start = false;
            thread::sleep(weather.delay);
            if server.write_all(&piece[..read]).is_err() {
                break;
            }
        }
        close(client, server);
    }

    /// From the server to the client.
    fn answers(&self, mut server: &TcpStream, mut client: &TcpStream) {
        let mut piece = vec![0; 64 << 10];
        loop {
            let read = server.read(&mut piece).unwrap_or(0);
            let weather = self.weather();
            if read == 0 || weather.away {
                break;
            }
            thread::sleep(weather.delay);
            let sent = if self.happens(weather.cut) { self.roll() as usize % read } else { read };
            if client.write_all(&piece[..sent]).is_err() || sent < read {
                break;
            }
        }
        close(client, server);
    }
}

/// Reads what the client is still sending, so that it listens to the answer.
fn drain(mut client: &TcpStream) {
    let mut rest = vec![0; 64 << 10];
    let _ = client.set_read_timeout(Some(Duration::from_millis(30)));
    while client.read(&mut rest).is_ok_and(|read| read > 0) {}
}

fn close(client: &TcpStream, server: &TcpStream) {
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}
