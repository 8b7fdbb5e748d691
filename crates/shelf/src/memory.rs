//! What the allocator does with memory that is free again.
//!
//! The GNU allocator learns from large buffers that were freed: it raises the size from which a buffer gets pages of its
//! own, and keeps what lies below in the heap of whichever thread had it. A server with many threads that has once seen a
//! burst of work then holds hundreds of megabytes for good. A fixed size ends the learning: large buffers go back to the
//! system when they are freed. Measured with twenty clients, 300 MB kept became 25 MB, at no cost in time.

/// Buffers of at least so many bytes get pages of their own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OWN_PAGES: libc::c_int = 256 * 1_024;
/// Heaps that threads share. With one for each, memory that one thread took and another gave back lies idle in many
/// places: after searches by sixteen threads that was 60 MB. Four are as fast with sixty-four calls at once as any number.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const HEAPS: libc::c_int = 4;
/// Free memory at the end of a heap that is kept.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT: libc::c_int = 1 << 20;

/// Lets the allocator give memory back early. Called before there are threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the allocator's settings have no safe interface; the calls only store a number"
)]
pub(crate) fn give_back_early() {
    // SAFETY: `mallopt` may be called at any time with any values, and reports a refusal by its result, which does not
    // matter here: without the settings the program is larger, not wrong.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
        libc::mallopt(libc::M_ARENA_MAX, HEAPS);
    }
}

/// Gives the system what is free in the heaps.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the allocator has no safe interface")]
pub(crate) fn give_back() {
    // SAFETY: `malloc_trim` may be called at any time and touches only memory that nobody holds.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other allocators do it by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back() {}

/// Other allocators have other habits.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back_early() {}
