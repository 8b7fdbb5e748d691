//! Which servers of a library run on this machine. Each leaves a note in the library's folder and holds a lock on it for as
//! long as it lives, so that a note says whose server answers at an address, and one that was left behind says nothing.

use std::{
    fs::{self, File, TryLockError},
    io::{Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use shelf_base::{Moment, ids::DocumentId};

/// The folder of the notes, in the library's own.
const FOLDER: &str = "serving";
/// The file in it with the port that was used last.
const LAST: &str = "last-port";
/// How long a server on this machine may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Running {
    /// Where it is reached from this machine.
    pub address: SocketAddr,
    pub pid: u32,
    pub started_at: String,
}

/// A note that is there while its server runs.
pub(super) struct Note {
    path: PathBuf,
    _locked: File,
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Leaves a note that this process serves the library at an address. A folder that cannot be written to gets none, which
/// only means that other commands do not find the server by themselves.
pub(super) fn note(library: &Path, address: SocketAddr, now: Moment) -> Option<Note> {
    let written = || -> std::io::Result<Note> {
        let folder = library.join(FOLDER);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let path = folder.join(format!("{}.json", DocumentId::fresh()));
        let unfinished = path.with_extension("new");
        let running =
            Running { address: reachable(address), pid: std::process::id(), started_at: now.to_string() };
        // It gets its name when it is locked and whole, so that nobody takes it for one that was left behind.
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.lock()?;
        file.write_all(serde_json::to_string(&running)?.as_bytes())?;
        fs::rename(&unfinished, &path)?;
        fs::write(folder.join(LAST), address.port().to_string())?;
        Ok(Note { path, _locked: file })
    };
    written().inspect_err(|error| tracing::debug!(%error, "this server left no note of its address")).ok()
}

/// The port at which this library was served last on this machine.
pub(super) fn last_port(library: &Path) -> Option<u16> {
    let text = fs::read_to_string(library.join(FOLDER).join(LAST)).ok()?;
    text.trim().parse().ok().filter(|port| *port > 0)
}

/// The servers of this library that answer, the earliest first.
pub(super) fn of(library: &Path) -> Vec<Running> {
    let entries = fs::read_dir(library.join(FOLDER)).into_iter().flatten().flatten();
    let mut found: Vec<Running> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter_map(|path| read(&path))
        .filter(|running| is_shelfmark(running.address) == Some(true))
        .collect();
    found.sort_by(|one, other| (&one.started_at, one.pid).cmp(&(&other.started_at, other.pid)));
    found
}

/// The server to use: the one at the preferred address, or else the one that runs for the longest.
pub(super) fn best(library: &Path, preferred: Option<SocketAddr>) -> Option<Running> {
    let all = of(library);
    let preferred = preferred.map(reachable);
    all.iter().find(|running| Some(running.address) == preferred).or_else(|| all.first()).cloned()
}

/// What a note says, if its server still holds it; a note that was left behind is removed.
fn read(path: &Path) -> Option<Running> {
    let file = File::open(path).ok()?;
    // A shared lock, so that two readers do not take each other for the server.
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        let _ = fs::remove_file(path);
        return None;
    }
    let mut text = String::new();
    file.take(4_096).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// The address at which a server that listens everywhere is reached from this machine.
pub(super) fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// Whether a Shelfmark answers there, of whichever library; `None` when nobody listens.
pub(super) fn is_shelfmark(address: SocketAddr) -> Option<bool> {
    let mut stream = TcpStream::connect_timeout(&reachable(address), PATIENCE).ok()?;
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut reply = Vec::new();
    let asked = stream.write_all(request.as_bytes());
    // Another program may never end its answer; its beginning is enough.
    let _ = asked.and_then(|()| stream.take(4_096).read_to_end(&mut reply));
    let reply = String::from_utf8_lossy(&reply);
    Some(reply.starts_with("HTTP/1.1 200") && reply.trim_end().ends_with("ok"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_was_left_behind_says_nothing_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 9));
        let note = note(folder.path(), address, Moment::default()).unwrap();
        assert_eq!(read(&note.path).unwrap().address, address);
        let left = note.path.with_file_name("left.json");
        fs::copy(&note.path, &left).unwrap();
        assert_eq!(read(&left), None);
        assert!(!left.exists() && note.path.exists());
        let path = note.path.clone();
        drop(note);
        assert!(!path.exists());
        assert_eq!(last_port(folder.path()), Some(9), "where it was stays known");
    }
}
