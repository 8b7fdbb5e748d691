//! Reads arbitrary bytes as a segment and as a manifest of the index.

#![no_main]

use libfuzzer_sys::fuzz_target;
use shelf_testkit::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::segment(bytes);
});
