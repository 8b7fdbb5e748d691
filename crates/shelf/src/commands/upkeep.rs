//! `check`, `reindex`, `embed`, `gc`, `recover`.

use std::{io::IsTerminal, path::Path, time::Duration};

use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_engine::{
    Caller, Library, Options,
    maintain::{Finding, GcPlan, Retention},
};

use super::near;
use crate::{
    cli,
    outcome::{CliError, Outcome},
    output::{Output, Tone, counted, human},
    progress,
};

pub(super) fn check(repair: bool, library: &Library, output: &Output) -> Outcome {
    let call = progress::call(output);
    let report = if repair { library.repair(&call)? } else { library.check(&call)? };
    drop(call);
    if output.json {
        let findings: Vec<Value> = report.findings.iter().map(view).collect();
        output.print_json(&json!({
            "ok": findings.is_empty(),
            "packs": report.packs,
            "blocks": report.blocks,
            "blobs": report.blobs,
            "versions": report.versions,
            "snapshots": report.snapshots,
            "journal": report.journal,
            "findings": findings,
        }))?;
    } else {
        for finding in &report.findings {
            output.print(&format!("{}: {}", finding.place, finding.what))?;
            finding.affects.iter().try_for_each(|affected| output.print(&format!("  affects {affected}")))?;
        }
        output.say(
            Tone::Good,
            &format!(
                "read {} in {}, {}, {}, {}",
                counted(report.blocks, "block", "blocks"),
                counted(report.packs, "pack", "packs"),
                counted(report.blobs, "content", "contents"),
                counted(report.snapshots, "snapshot", "snapshots"),
                counted(report.journal, "journal row", "journal rows"),
            ),
        );
    }
    match report.findings.len() {
        0 => {
            output.say(Tone::Good, "no problems found");
            Ok(())
        }
        count => Err(CliError::new(Kind::Corrupt, problems(count))
            .hint("everything not listed above is intact")
            .hint("run `shelf check --repair` to take damaged packs out of use, then add the affected files again")),
    }
}

pub(super) fn audit(library: &Library, output: &Output) -> Outcome {
    let call = progress::call(output);
    let (records, findings) = library.audit(&call)?;
    drop(call);
    if output.json {
        output.print_json(&json!({ "ok": findings.is_empty(), "records": records, "findings": findings }))?;
    } else {
        findings.iter().try_for_each(|finding| output.print(finding))?;
    }
    match findings.len() {
        0 => {
            output.say(
                Tone::Good,
                &format!(
                    "verified {}; no row was changed outside the journal",
                    counted(records, "journal record", "journal records")
                ),
            );
            Ok(())
        }
        count => Err(CliError::new(Kind::Corrupt, problems(count))
            .hint("run `shelf check` to see everything, `shelf recover` to go back to the recovery copy")),
    }
}

fn problems(count: usize) -> String {
    counted(count as u64, "problem found", "problems found")
}

fn view(finding: &Finding) -> Value {
    json!({ "place": finding.place, "what": finding.what, "affects": finding.affects })
}

pub(super) fn reindex(library: &Library, output: &Output) -> Outcome {
    let call = progress::call(output);
    let documents = library.reindex(&call).map_err(|error| {
        let error = CliError::from(error);
        if error.code != Kind::Denied.row().code {
            return error;
        }
        let folder = library.folder().display();
        CliError::new(
            Kind::Denied,
            format!("the library in {folder} is read-only, so its index cannot be rebuilt"),
        )
        .hint("run it as the user who owns the library; searching works without it")
    })?;
    drop(call);
    if output.json {
        return output.print_json(&json!({ "documents": documents }));
    }
    output.say(Tone::Good, &format!("{} indexed", counted(documents, "document", "documents")));
    Ok(())
}

pub(super) fn embed(command: &cli::Embed, library: &Library, output: &Output) -> Outcome {
    let call = progress::call(output);
    let made = library
        .set_model(&Caller::owner(), &command.collection, !command.built_in, &call)
        .map_err(|error| near::advised(error.into(), library))?;
    drop(call);
    let model = library.configured_model().filter(|_| !command.built_in).unwrap_or("the built-in model");
    if output.json {
        let reply = json!({ "collection": command.collection, "model": model, "vectors": made });
        return output.print_json(&reply);
    }
    output
        .say(Tone::Good, &format!("{} is searched with {model}; {made} vectors created", command.collection));
    Ok(())
}

pub(super) fn deepen(collection: Option<&str>, library: &Library, output: &Output) -> Outcome {
    let call = progress::call(output);
    let made = library
        .deepen(&Caller::owner(), collection, None, &call)
        .map_err(|error| near::advised(error.into(), library))?;
    drop(call);
    let figures = library.deepen_figures(&Caller::owner())?.unwrap_or_default();
    if output.json {
        let reply = json!({ "vectors": made, "deep": figures.deep, "passages": figures.passages });
        return output.print_json(&reply);
    }
    output.say(
        Tone::Good,
        &format!(
            "{} got deep vectors; {} of {} have them now",
            counted(made, "passage", "passages"),
            figures.deep,
            figures.passages
        ),
    );
    Ok(())
}

pub(super) fn collect(command: &cli::Gc, library: &Library, output: &Output) -> Outcome {
    let retention = Retention {
        keep_last: command.keep_last,
        keep_within_days: command.keep_within,
        keep_daily: command.keep_daily,
        keep_labelled: !command.drop_labelled,
    };
    if !command.plan {
        must_be_sure(command, library, &retention, output)?;
    }
    let call = progress::call(output);
    let plan = if command.plan {
        library.plan_gc(&retention, &call)?
    } else {
        library.gc(&retention, Duration::from_secs(command.wait), &call)?
    };
    drop(call);
    show_plan(&plan, command.plan, &retention, output)
}

/// A rule that keeps nothing deletes every earlier state of the library: that must be meant.
fn must_be_sure(command: &cli::Gc, library: &Library, retention: &Retention, output: &Output) -> Outcome {
    let keeps_none = retention.is_explicit()
        && [command.keep_last, command.keep_within, command.keep_daily]
            .iter()
            .all(|rule| rule.is_none_or(|kept| kept == 0));
    if !keeps_none || command.yes {
        return Ok(());
    }
    let call = progress::call(output);
    let doomed = library.plan_gc(retention, &call)?.snapshots.len() as u64;
    drop(call);
    if doomed == 0 {
        return Ok(());
    }
    let what = format!("this deletes {}", counted(doomed, "snapshot", "snapshots"));
    let unsure = CliError::new(Kind::Invalid, format!("{what} and keeps none of them; nothing was deleted"))
        .hint("add --yes to do it, or --plan to see what it would delete");
    if !std::io::stdin().is_terminal() {
        return Err(unsure);
    }
    if progress::confirm(&format!("{what} and keeps none of them. Continue?"), output)? {
        return Ok(());
    }
    Err(CliError::notice("nothing was deleted"))
}

fn show_plan(plan: &GcPlan, only_plan: bool, retention: &Retention, output: &Output) -> Outcome {
    if output.json {
        let snapshots: Vec<String> =
            plan.snapshots.iter().map(|snapshot| snapshot.at.with_micros()).collect();
        return output.print_json(&json!({
            "done": !only_plan,
            "snapshots": snapshots,
            "kept_snapshots": plan.kept_snapshots,
            "contents": plan.blobs,
            "content_bytes": plan.blob_bytes,
            "packs_deleted": plan.packs.delete,
            "packs_rewritten": plan.packs.rewrite,
            "freed_bytes": plan.packs.freed_bytes,
            "packs_marked": plan.marked,
            "marked_bytes": plan.marked_bytes,
        }));
    }
    for snapshot in &plan.snapshots {
        output.print(&format!("snapshot {} of {}", snapshot.at.with_micros(), snapshot.collection_name))?;
    }
    let verb = if only_plan { "would be deleted" } else { "deleted" };
    let snapshots = counted(plan.snapshots.len() as u64, "snapshot", "snapshots");
    output.print(&format!("{snapshots} {verb}, {} kept", plan.kept_snapshots))?;
    let contents = counted(plan.blobs, "unused content", "unused contents");
    output.print(&format!("{contents} ({}) {verb}", human(plan.blob_bytes)))?;
    let packs = counted(plan.packs.delete.len() as u64, "pack", "packs");
    let (rewritten, freed) = (plan.packs.rewrite.len(), human(plan.packs.freed_bytes));
    let (deleted, done) =
        if only_plan { ("would be deleted", "would be freed") } else { ("deleted", "freed") };
    output.print(&format!("{packs} {deleted}, {rewritten} rewritten: about {freed} {done}"))?;
    if plan.marked > 0 {
        let marked = counted(plan.marked, "pack", "packs");
        let (is_marked, freed) =
            (if only_plan { "would be marked" } else { "marked" }, human(plan.marked_bytes));
        output.print(&format!(
            "{marked} {is_marked}: other machines may be reading, so a gc from 15 minutes on deletes them and frees about {freed}"
        ))?;
    }
    if !retention.is_explicit() {
        output.say(
            Tone::Warning,
            "snapshots are kept unless a rule is given: --keep-last, --keep-within, --keep-daily",
        );
    }
    Ok(())
}

pub(super) fn recover(folder: &Path, force: bool, options: &Options, output: &Output) -> Outcome {
    let done = Library::recover(folder, force, options)?;
    if output.json {
        return output.print_json(&json!({
            "sequence": done.sequence,
            "documents": done.documents,
            "set_aside": done.set_aside,
        }));
    }
    if let Some(place) = &done.set_aside {
        output.say(Tone::Warning, &format!("the previous catalog was moved to {}", place.display()));
    }
    let (sequence, documents) = (done.sequence, done.documents);
    let documents = counted(documents, "document", "documents");
    output.print(&format!("rebuilt up to journal record {sequence}: {documents}"))?;
    output.say(
        Tone::Good,
        "anything written after that record is missing: add it again, then run `shelf check`",
    );
    Ok(())
}

pub(super) fn keep_catalog(library: &Library, output: &Output) -> Outcome {
    let sequence = library.accept_catalog()?;
    if output.json {
        return output.print_json(&json!({ "sequence": sequence }));
    }
    output
        .say(Tone::Good, &format!("the recovery copy now holds the catalog up to journal record {sequence}"));
    Ok(())
}
