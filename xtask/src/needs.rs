//! Checks the system requirements of the tests before they start, and installs what is missing if possible.

use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::step;

/// A system requirement.
struct Need {
    what: &'static str,
    present: fn() -> bool,
    packages: &'static [&'static str],
}

const NEEDS: [Need; 4] = [
    Need { what: "a C compiler", present: has_compiler, packages: &["gcc", "libc6-dev"] },
    Need {
        what: "python3 with the venv module",
        present: has_python,
        packages: &["python3", "python3-venv"],
    },
    Need { what: "ffmpeg and ffprobe", present: has_ffmpeg, packages: &["ffmpeg"] },
    Need { what: "pdftoppm", present: has_pdftoppm, packages: &["poppler-utils"] },
];

/// What some tests need that say so and do nothing when it is missing.
const WANTS: [Need; 1] = [Need { what: "PostgreSQL", present: has_postgresql, packages: &["postgresql"] }];

/// How often the package lists are read before that is given up, and the time in between.
const TRIES: usize = 6;
const PAUSE: Duration = Duration::from_secs(20);

/// Ensures that all requirements are met: installs missing packages as root with apt, or fails with a list of them.
pub fn ensure() -> Result<()> {
    provide_wants();
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().flat_map(|need| need.packages.iter().copied()).collect();
    if !can_install() {
        bail!("the tests need {}. Install: {}", listed(&missing), packages.join(" "));
    }
    install(&packages)?;
    let still = self::missing();
    if still.is_empty() {
        return Ok(());
    }
    bail!("apt-get ran, but the tests still need {}. Install it by hand.", listed(&still))
}

/// Installs the packages of something that only some tests need, if it is missing and that is possible. Tells whether it
/// is there then.
pub fn offer(present: impl Fn() -> bool, packages: &[&str]) -> bool {
    present() || (can_install() && install(packages).is_ok() && present())
}

/// Installs what some tests want, if possible; otherwise says which tests will be skipped.
fn provide_wants() {
    for want in WANTS.iter().filter(|want| !(want.present)()) {
        if can_install() && install(want.packages).is_ok() && (want.present)() {
            continue;
        }
        let packages = want.packages.join(" ");
        println!("SKIPPED: tests that need {}. Install: {packages}", want.what);
    }
}

fn missing() -> Vec<&'static Need> {
    NEEDS.iter().filter(|need| !(need.present)()).collect()
}

fn listed(needs: &[&Need]) -> String {
    needs.iter().map(|need| need.what).collect::<Vec<_>>().join(" and ")
}

fn can_install() -> bool {
    step::first_line("id", &["-u"]).as_deref() == Some("0") && step::succeeds("apt-get", &["--version"])
}

fn install(packages: &[&str]) -> Result<()> {
    let remedy = format!("Install by hand: {}", packages.join(" "));
    update(&remedy)?;
    step::run("installing what the tests need", &remedy, apt().args(["install", "--yes"]).args(packages))
}

/// Reads the package lists. Only installing waits for other package managers (a new machine is often busy with its own
/// updates), so reading is tried again.
fn update(remedy: &str) -> Result<()> {
    for _ in 1..TRIES {
        match step::run("reading the package lists", remedy, apt().arg("update")) {
            Ok(()) => return Ok(()),
            Err(error) => println!("{error:#}; trying again in {} s", PAUSE.as_secs()),
        }
        thread::sleep(PAUSE);
    }
    step::run("reading the package lists", remedy, apt().arg("update"))
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["--quiet", "-o", "DPkg::Lock::Timeout=300"]);
    command
}

fn has_compiler() -> bool {
    step::succeeds("cc", &["--version"])
}

/// Whether a PostgreSQL server can be started here.
pub fn has_postgresql() -> bool {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    step::succeeds("initdb", &["--version"])
        || debian.map(|version| version.path().join("bin/initdb")).any(|program| program.exists())
}

fn has_ffmpeg() -> bool {
    step::succeeds("ffmpeg", &["-version"]) && step::succeeds("ffprobe", &["-version"])
}

fn has_pdftoppm() -> bool {
    step::succeeds("pdftoppm", &["-v"])
}

fn has_python() -> bool {
    step::succeeds("python3", &["-c", "import venv, ensurepip"])
}
