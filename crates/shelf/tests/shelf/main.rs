//! The program as users start it: processes, pipes, signals and sockets.

mod accounts;
mod attack;
mod backup;
mod book_links;
mod books;
mod bucket;
mod careful;
mod cite;
mod cli;
mod cluster;
mod console;
mod console_people;
mod console_work;
mod database;
mod deepen;
mod deploy;
mod disk;
mod everyday;
mod first_day;
mod hostile;
mod http;
mod many;
mod moving;
mod older;
mod one_engine;
mod places;
mod rest;
mod stdio;
mod storm;
mod subscriptions;
mod switched_off;
mod workspace;

use std::path::{Path, PathBuf};

/// The built program; set `TEST_BINARY` to test another build.
pub fn binary() -> &'static Path {
    static BINARY: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let built =
        || std::env::var_os("TEST_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_shelf").into(), PathBuf::from);
    BINARY.get_or_init(built)
}

/// Runs a command on a library and returns its exit code, stdout and stderr.
pub fn shelf(library: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = std::process::Command::new(binary())
        .arg("--data-dir")
        .arg(library)
        .args(arguments)
        .env_remove("SHELF_TOKEN")
        .output()
        .expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Creates a folder with `count` small, distinct files.
pub fn files(folder: &Path, count: usize) -> PathBuf {
    let path = folder.join("files");
    for number in 0..count {
        let place = path.join(format!("{:02}", number % 10));
        std::fs::create_dir_all(&place).expect("a folder");
        std::fs::write(
            place.join(format!("{number}.txt")),
            format!("file {number}\n").repeat(1 + number % 40),
        )
        .expect("a file");
    }
    path
}

/// Asserts that the library is intact. A process that was killed before it made one leaves nothing to look at.
pub fn assert_sound(library: &Path) {
    if !library.join("catalog.db").exists() && !library.join("packs").exists() {
        return;
    }
    let (code, out, err) = shelf(library, &["check"]);
    assert_eq!(code, 0, "{out}{err}");
}
