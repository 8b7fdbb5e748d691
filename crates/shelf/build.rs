//! Tells the linker to store the addresses that the loader has to adjust in their packed form, which makes the shipped
//! program 1.8 MB smaller. Loaders know that form since glibc 2.36, so it is used only where the program is built for
//! the machine that builds it, and only for what is shipped: tests link as fast as ever.

use std::{env, process::Command};

/// The first version of the GNU C library that reads the packed form.
const SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let is_shipped = variable("OPT_LEVEL") == "s";
    let is_for_this_machine = variable("HOST") == variable("TARGET")
        && variable("CARGO_CFG_TARGET_OS") == "linux"
        && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    if is_shipped && is_for_this_machine && c_library().is_some_and(|version| version >= SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's C library, as `getconf` gives it: `glibc 2.36`.
fn c_library() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
