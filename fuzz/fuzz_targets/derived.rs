//! Reads arbitrary bytes as a log of derived data.

#![no_main]

use libfuzzer_sys::fuzz_target;
use shelf_testkit::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::derived(bytes);
});
