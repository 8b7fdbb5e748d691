//! Pages of mapped segments that stay in memory.
//!
//! A search touches pages all over the index. The system counts every page that was ever touched as this program's
//! memory until it is short of memory itself, so that a server seems to grow to the size of its index. When nobody
//! searches the pages are given back: the system still has them, and what is needed again is there without reading, at a
//! few microseconds for each 64 KB.

/// Gives back the pages of a mapped file. `mapped` must be the whole of a file that is mapped to be read and that nothing
/// writes to: then a page that is touched again has the same bytes.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "advice on mapped pages has no safe interface")]
pub(crate) fn let_go(mapped: &[u8]) {
    // SAFETY: the range is mapped for as long as `mapped` is borrowed. The mapping is of a file and is only read, so that
    // dropping its pages changes no byte that anyone can see. A refusal is harmless: the pages then stay.
    unsafe {
        libc::madvise(mapped.as_ptr().cast_mut().cast(), mapped.len(), libc::MADV_DONTNEED);
    }
}

/// Elsewhere the advice may mean another thing.
#[cfg(not(target_os = "linux"))]
pub(crate) const fn let_go(_: &[u8]) {}
