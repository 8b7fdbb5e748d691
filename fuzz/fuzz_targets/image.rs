//! Crops arbitrary bytes as an image.

#![no_main]

use libfuzzer_sys::fuzz_target;
use shelf_testkit::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::image(bytes);
});
