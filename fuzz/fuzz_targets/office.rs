//! Reads arbitrary bytes as a presentation, a workbook or a book.

#![no_main]

use libfuzzer_sys::fuzz_target;
use shelf_testkit::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::office(bytes);
});
