//! The one-click bundle (`.mcpb`): a ZIP file with a manifest and the program.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::arguments::Arguments;

/// Where the manifest is.
const MANIFEST: &str = "packaging/mcpb/manifest.json";

/// Packs the program at the first path into a bundle at the second.
pub fn run(arguments: Arguments) -> Result<()> {
    let words = arguments.take_rest()?;
    ensure!(words.len() == 2, "usage: cargo xtask bundle PROGRAM FILE.mcpb");
    pack(Path::new(&words[0]), Path::new(&words[1]))?;
    println!("{}", words[1]);
    Ok(())
}

fn pack(program: &Path, target: &Path) -> Result<()> {
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(MANIFEST).context(MANIFEST)?)?;
    manifest["version"] = env!("CARGO_PKG_VERSION").into();
    let mut source = File::open(program).with_context(|| format!("cannot read {}", program.display()))?;
    let bundle = File::create(target).with_context(|| format!("cannot write {}", target.display()))?;
    let mut bundle = ZipWriter::new(bundle);
    let plain = SimpleFileOptions::default().unix_permissions(0o644);
    bundle.start_file("manifest.json", plain)?;
    bundle.write_all(serde_json::to_string_pretty(&manifest)?.as_bytes())?;
    bundle
        .start_file("server/shelf", SimpleFileOptions::default().unix_permissions(0o755).large_file(true))?;
    io::copy(&mut source, &mut bundle)?;
    bundle.finish()?;
    Ok(())
}
