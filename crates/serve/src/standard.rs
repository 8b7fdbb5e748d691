//! Stdin and stdout for the runtime's own thread, without a thread in between.
//!
//! Handing a request from a reading thread to the runtime, and the reply to a writing thread, takes longer than a short
//! read of the library. Doing without needs descriptors that never block. Setting `O_NONBLOCK` on the inherited ones is
//! out of the question: the flag belongs to the open file, which other processes may share and go on using. So a pipe is
//! opened once more, which gives this process an open file of its own, and a socket is asked not to wait in each call.
//! Anything else, and any system on which this does not work, is left to the runtime's own stdin and stdout.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    pin::Pin,
    task::{Context, Poll, ready},
};

use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Errno,
    net::{RecvFlags, SendFlags},
};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd};

/// Stdin.
pub(crate) fn input() -> Box<dyn AsyncRead + Send + Unpin> {
    match Direct::of(io::stdin().as_fd(), OFlags::RDONLY, Interest::READABLE) {
        Some(input) => Box::new(input),
        None => Box::new(tokio::io::stdin()),
    }
}

/// Stdout.
pub(crate) fn output() -> Box<dyn AsyncWrite + Send + Unpin> {
    match Direct::of(io::stdout().as_fd(), OFlags::WRONLY, Interest::WRITABLE) {
        Some(output) => Box::new(output),
        None => Box::new(tokio::io::stdout()),
    }
}

/// One direction of a pipe or socket, which never blocks.
struct Direct {
    file: AsyncFd<OwnedFd>,
    is_socket: bool,
}

impl Direct {
    fn of(inherited: BorrowedFd<'_>, access: OFlags, interest: Interest) -> Option<Self> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(inherited).ok()?.st_mode);
        let (file, is_socket) = match kind {
            FileType::Fifo => (reopen(inherited, access)?, false),
            FileType::Socket => (inherited.try_clone_to_owned().ok()?, true),
            _ => return None,
        };
        #[expect(unsafe_code, reason = "tokio offers no safe way to register a descriptor")]
        // SAFETY: the descriptor is owned by the value that is handed over, which gives out no other one and closes it
        // only when it is dropped.
        let file = unsafe { AsyncFd::register_with_interest(file, interest) }.ok()?;
        Some(Self { file, is_socket })
    }
}

/// A pipe once more, as an open file that nobody else shares. Linux alone does this, where `/proc` is mounted.
fn reopen(pipe: BorrowedFd<'_>, access: OFlags) -> Option<OwnedFd> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let opened = rustix::fs::open(path, access | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let same = |file: BorrowedFd<'_>| rustix::fs::fstat(file).map(|found| (found.st_dev, found.st_ino)).ok();
    (same(opened.as_fd()).is_some() && same(opened.as_fd()) == same(pipe)).then_some(opened)
}

fn uninterrupted(mut attempt: impl FnMut() -> Result<usize, Errno>) -> io::Result<usize> {
    loop {
        match attempt() {
            Err(Errno::INTR) => {}
            outcome => return outcome.map_err(Into::into),
        }
    }
}

impl AsyncRead for Direct {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.file.poll_read_ready(context))?;
            let space = buffer.initialize_unfilled();
            let room = space.len();
            let read = guard.try_io(|file| {
                uninterrupted(|| {
                    if self.is_socket {
                        rustix::net::recv(file, &mut *space, RecvFlags::DONTWAIT).map(|(count, _)| count)
                    } else {
                        rustix::io::read(file, &mut *space)
                    }
                })
            });
            if let Ok(read) = read {
                let count = read?;
                // A pipe that gave less than there was room for is empty: asking once more would only say so.
                if 0 < count && count < room {
                    guard.clear_ready();
                }
                buffer.advance(count);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Direct {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.file.poll_write_ready(context))?;
            let written = guard.try_io(|file| {
                uninterrupted(|| {
                    if self.is_socket {
                        rustix::net::send(file, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
                    } else {
                        rustix::io::write(file, bytes)
                    }
                })
            });
            if let Ok(written) = written {
                return Poll::Ready(written);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use rustix::fs::{OFlags, fcntl_getfl};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn flags(file: &impl AsFd) -> OFlags {
        fcntl_getfl(file).unwrap()
    }

    #[tokio::test]
    async fn pipes_and_sockets_never_block_and_keep_their_flags() {
        let (pipe_out, pipe_in) = io::pipe().unwrap();
        let (near, far) = UnixStream::pair().unwrap();
        let files: [(OwnedFd, OwnedFd); 2] = [(pipe_out.into(), pipe_in.into()), (near.into(), far.into())];
        for (reading, writing) in files {
            let mut input = Direct::of(reading.as_fd(), OFlags::RDONLY, Interest::READABLE).unwrap();
            let mut output = Direct::of(writing.as_fd(), OFlags::WRONLY, Interest::WRITABLE).unwrap();
            output.write_all(b"hello").await.unwrap();
            let mut text = [0; 16];
            assert_eq!(input.read(&mut text).await.unwrap(), 5);
            // Nobody reads: the write waits, and with it nothing else.
            let much = vec![7; 8 << 20];
            let stuck = output.write_all(&much);
            let waited = tokio::time::timeout(std::time::Duration::from_millis(50), stuck).await;
            assert!(waited.is_err(), "8 MiB do not fit");
            assert!(!flags(&reading).contains(OFlags::NONBLOCK));
            assert!(!flags(&writing).contains(OFlags::NONBLOCK));
        }
    }

    #[tokio::test]
    async fn the_end_of_input_is_seen_and_files_are_left_to_the_runtime() {
        let (pipe_out, pipe_in) = io::pipe().unwrap();
        let mut input = Direct::of(pipe_out.as_fd(), OFlags::RDONLY, Interest::READABLE).unwrap();
        // A read that leaves room is followed by another one that waits, and wakes up.
        let writer = std::thread::spawn(move || {
            for part in [b"ab", b"cd"] {
                io::Write::write_all(&mut &pipe_in, part).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        for part in [b"ab", b"cd"] {
            let mut read = [0; 4];
            assert_eq!((input.read(&mut read).await.unwrap(), &read[..2]), (2, &part[..]));
        }
        assert_eq!(input.read(&mut [0; 4]).await.unwrap(), 0);
        writer.join().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(Direct::of(file.as_fd(), OFlags::RDONLY, Interest::READABLE).is_none());
    }
}
