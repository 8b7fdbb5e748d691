//! `backup` and `restore-library`: a library as one file; `migrate`: its packs at another place.

use std::path::Path;

use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_engine::{
    Library, ObjectsPlace, Options,
    maintain::{BackupReport, CatalogPlace},
};

use super::{must_exist, options};
use crate::{
    outcome::{CliError, Outcome},
    output::{Output, Tone, counted, human},
    progress,
    settings::{DATABASE_PASSWORD_VARIABLE, Settings},
};

pub(super) fn make(file: &Path, library: &Library, output: &Output) -> Outcome {
    let call = progress::call(output);
    let report = library.backup(file, &call)?;
    drop(call);
    if output.json {
        return output.print_json(&view("file", file, &report));
    }
    output.print(&format!("{}: {}", file.display(), human(report.bytes)))?;
    output.say(Tone::Good, &format!("verified: {}", told(&report)));
    Ok(())
}

pub(super) fn restore(file: &Path, folder: &Path, options: &Options, output: &Output) -> Outcome {
    let call = progress::call(output);
    let report = Library::restore_backup(file, folder, &options.storage, &call)?;
    drop(call);
    if output.json {
        return output.print_json(&view("data_dir", folder, &report));
    }
    output.print(&format!("{}: {}", folder.display(), told(&report)))?;
    output
        .say(Tone::Good, "verified; the search index is built when somebody searches, or by `shelf reindex`");
    Ok(())
}

pub(super) fn migrate(to: &str, delete_old: bool, settings: &Settings, output: &Output) -> Outcome {
    must_exist(settings)?;
    let password = std::env::var(DATABASE_PASSWORD_VARIABLE).ok();
    if let Some(place) = CatalogPlace::parse(to, password.as_deref()) {
        return migrate_catalog(&place?, delete_old, settings, output);
    }
    let place = ObjectsPlace::parse(to).ok_or_else(|| {
        CliError::new(Kind::Invalid, format!("--to cannot be '{to}'"))
            .hint("packs can be moved to s3://bucket/prefix, or to folder, which is the library's own")
            .hint("the catalog can be moved to postgres://user@host/database, or to sqlite, a file in the library's folder")
    })?;
    let call = progress::call(output);
    let moved =
        Library::migrate(&settings.data_dir()?, &place, &options(settings, None)?, delete_old, &call)?;
    drop(call);
    if output.json {
        return output.print_json(&json!({
            "from": moved.from.to_string(),
            "to": moved.to.to_string(),
            "packs": moved.packs,
            "copied": moved.copied,
            "bytes": moved.bytes,
            "blocks": moved.blocks,
            "journal": moved.journal,
        }));
    }
    let packs = counted(moved.packs, "pack", "packs");
    output.print(&format!("{packs} in {}; {} copied ({})", moved.to, moved.copied, human(moved.bytes)))?;
    output
        .say(Tone::Good, &format!("verified: {} blocks and {} journal records", moved.blocks, moved.journal));
    output.say(
        Tone::Warning,
        "restart servers that have this library open; until then they read at the old place",
    );
    Ok(())
}

fn migrate_catalog(place: &CatalogPlace, delete_old: bool, settings: &Settings, output: &Output) -> Outcome {
    let call = progress::call(output);
    let (folder, options) = (settings.data_dir()?, options(settings, None)?);
    let moved = Library::migrate_catalog(&folder, place, &options, delete_old, &call)?;
    drop(call);
    if output.json {
        return output.print_json(&json!({
            "to": moved.to,
            "rows": moved.rows,
            "journal": moved.journal,
            "old": moved.old,
        }));
    }
    output.print(&format!("{} in {}", counted(moved.rows, "row", "rows"), moved.to))?;
    output.say(Tone::Good, &format!("verified: {} journal records", moved.journal));
    if let Some(old) = moved.old {
        output.say(Tone::Good, &format!("the old catalog is still at {old}; it is not used any more"));
    }
    let setting = match place {
        CatalogPlace::Database(_) => "set library.catalog (SHELF_CATALOG) to that address",
        CatalogPlace::File => "remove library.catalog (SHELF_CATALOG) from your settings",
    };
    output.say(Tone::Warning, &format!("{setting}, and restart servers that have this library open"));
    Ok(())
}

fn told(report: &BackupReport) -> String {
    format!(
        "{} of documents, {}, {}, journal up to record {}",
        counted(report.versions, "version", "versions"),
        counted(report.snapshots, "snapshot", "snapshots"),
        counted(report.packs, "pack", "packs"),
        report.sequence
    )
}

fn view(place: &str, path: &Path, report: &BackupReport) -> Value {
    json!({
        place: path,
        "bytes": report.bytes,
        "packs": report.packs,
        "contents": report.contents,
        "versions": report.versions,
        "snapshots": report.snapshots,
        "sequence": report.sequence,
    })
}
