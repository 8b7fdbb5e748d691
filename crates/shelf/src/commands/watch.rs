//! `watch`: keeps folders and the library in step, for a command or for a server.
//!
//! The system's notifications only say that something happened; what is stored is decided by looking at the folder again,
//! as `add --prune` does. Files that are as they were are not read, so that costs little. It also means that nothing is
//! missed: not what changed while nobody watched, nor what the system reported only in part.

mod folders;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use shelf_base::{CallContext, ErrorInfo};
use shelf_engine::{AddReply, AddRequest, Caller, Library, What};
use shelf_serve::App;
use tokio_util::sync::CancellationToken;

use self::folders::Watched;
use super::documents::{not_added, some_failed};
use crate::{
    cli,
    outcome::{CliError, Outcome, Setbacks},
    output::{Output, Tone, counted},
    progress,
    settings::Settings,
};

/// Changes are stored after this long at the latest, even if there is never a quiet moment.
const AT_LATEST: Duration = Duration::from_secs(10);
/// How often the folders are looked at when nothing is reported: one may have been replaced, or be there at last.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// How often a process that is not the one that watches looks whether it should be.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// The task that one process at a time does.
const LEASE: &str = "watch";

/// What happened, as far as a watch cares.
enum Signal {
    /// Something below this path, or anywhere when it is not known where.
    Changed(Option<PathBuf>),
    /// Nobody wants this any more.
    Stop,
}

/// What is watched, and how.
struct Plan {
    collection: Option<String>,
    prune: bool,
    settle: Duration,
}

pub(super) fn run(command: &cli::Watch, library: &Library, settings: &Settings, output: &Output) -> Outcome {
    let plan =
        Plan { collection: command.collection.clone(), prune: !command.keep, settle: settle(settings) };
    // A folder that is not there now was most likely mistyped.
    for folder in &command.folders {
        folders::resolve(folder, library)?;
    }
    let report = |folder: &Path, outcome: &Result<AddReply, CliError>| match outcome {
        Ok(added) => show(folder, added, output),
        Err(error) => output.error(error),
    };
    if command.once {
        return once(command, &plan, library, output);
    }
    let (sender, signals) = mpsc::channel();
    let mut watched = Watched::new(&command.folders, library, &sender)?;
    // Watching begins before looking, so that nothing falls in between.
    for folder in watched.renew(&|text| output.say(Tone::Warning, text)) {
        report(&folder, &bring_up_to_date(&folder, &plan, library, &progress::call(output)));
    }
    let count = command.folders.len();
    let what = if count == 1 {
        command.folders[0].display().to_string()
    } else {
        counted(count as u64, "folder", "folders")
    };
    output.say(Tone::Good, &format!("watching {what}; stop with Ctrl-C"));
    stop_on_signal(sender);
    follow(&plan, &mut watched, library, &signals, report, &|text| output.say(Tone::Warning, text));
    library.copy_at_the_end();
    Ok(())
}

/// Brings the library up to date once; one folder that fails does not stop the others.
fn once(command: &cli::Watch, plan: &Plan, library: &Library, output: &Output) -> Outcome {
    let mut setbacks = Setbacks::new(command.folders.len());
    let mut replies = Vec::new();
    let mut count = 0;
    for folder in &command.folders {
        let full = folders::resolve(folder, library)?;
        match bring_up_to_date(&full, plan, library, &progress::call(output)) {
            Ok(added) => {
                show(&full, &added, output);
                count += added.failed.len() as u64;
                let failed: Vec<Value> = added
                    .failed
                    .iter()
                    .map(|failed| json!({ "path": failed.path, "reason": failed.reason }))
                    .collect();
                replies.push(json!({
                    "folder": full,
                    "new": added.files_added - added.files_updated,
                    "changed": added.files_updated,
                    "removed": added.files_removed,
                    "failed": failed,
                }));
            }
            Err(error) => setbacks.take(&folder.display().to_string(), error, output)?,
        }
    }
    if output.json {
        output.print_json(&json!({ "folders": replies }))?;
    }
    setbacks.end("some folders were not brought up to date")?;
    some_failed(count)
}

/// Says what changed, and which files could not be stored.
fn show(folder: &Path, added: &AddReply, output: &Output) {
    for failed in &added.failed {
        output.say(Tone::Warning, &not_added(&failed.path, &failed.reason));
    }
    if let Some(line) = changes(folder, added) {
        output.say(Tone::Good, &line);
    }
}

/// Watches the configured folders for a server, in a thread of its own, while no other process does.
pub(super) fn for_server(app: &Arc<App>, settings: &Settings, stop: &CancellationToken) -> Outcome {
    let folders: Vec<PathBuf> = settings.texts("watch.folders").into_iter().map(PathBuf::from).collect();
    if folders.is_empty() {
        return Ok(());
    }
    let plan = Plan {
        collection: Some(settings.text("watch.collection").to_owned()).filter(|name| !name.is_empty()),
        prune: !settings.flag("watch.keep_removed"),
        settle: settle(settings),
    };
    for folder in &folders {
        // One that cannot be watched ever is a mistake in the settings; one that is not there may come.
        if folder.exists() {
            folders::resolve(folder, &app.library)?;
        }
    }
    let (app, stop) = (app.clone(), stop.clone());
    std::thread::Builder::new().name("watch".into()).spawn(move || serve(&folders, &plan, &app, &stop))?;
    Ok(())
}

fn serve(folders: &[PathBuf], plan: &Plan, app: &App, stop: &CancellationToken) {
    let library = &app.library;
    let lease = loop {
        match library.try_lease(LEASE) {
            Ok(Some(lease)) => break lease,
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "the watched folders cannot be followed"),
        }
        std::thread::sleep(TRY_AGAIN);
        if stop.is_cancelled() {
            return;
        }
    };
    let (sender, signals) = mpsc::channel();
    let mut watched = match Watched::new(folders, library, &sender) {
        Ok(watched) => watched,
        Err(error) => return tracing::error!(message = error.message, "the folders cannot be watched"),
    };
    let report = |folder: &Path, outcome: &Result<AddReply, CliError>| match outcome {
        Ok(added) => {
            for failed in &added.failed {
                tracing::warn!(path = failed.path, reason = failed.reason, "a file could not be stored");
            }
            if let Some(line) = changes(folder, added) {
                tracing::info!("{line}");
            }
        }
        Err(error) => {
            tracing::error!(folder = %folder.display(), message = error.message, "a folder could not be followed");
        }
    };
    let stopped = stop.clone();
    std::thread::spawn(move || {
        while !stopped.is_cancelled() {
            std::thread::sleep(Duration::from_millis(200));
        }
        let _ = sender.send(Signal::Stop);
    });
    let warn = |text: &str| tracing::warn!("{text}");
    for folder in watched.renew(&warn) {
        report(&folder, &bring_up_to_date(&folder, plan, library, &CallContext::new()));
    }
    follow(plan, &mut watched, library, &signals, report, &warn);
    drop(watched);
    drop(lease);
}

fn settle(settings: &Settings) -> Duration {
    Duration::from_millis(settings.number("watch.settle_milliseconds").clamp(10, 60_000))
}

/// Waits for changes and stores them, until told to stop. Now and then it looks whether the folders are still the same.
fn follow(
    plan: &Plan,
    watched: &mut Watched,
    library: &Library,
    signals: &Receiver<Signal>,
    report: impl Fn(&Path, &Result<AddReply, CliError>),
    warn: &dyn Fn(&str),
) {
    loop {
        let changed = match signals.recv_timeout(LOOK_AGAIN) {
            Ok(first) => match gather(first, signals, plan.settle) {
                Some(changed) => changed,
                None => return,
            },
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let renewed = watched.renew(warn);
        for folder in watched.present() {
            let concerns =
                |path: &Option<PathBuf>| path.as_ref().is_none_or(|path| path.starts_with(&folder));
            if renewed.contains(&folder) || changed.iter().any(concerns) {
                report(&folder, &bring_up_to_date(&folder, plan, library, &CallContext::new()));
            }
        }
    }
}

/// Takes in what follows a first change until it is quiet; `None` when it is time to stop.
fn gather(first: Signal, signals: &Receiver<Signal>, settle: Duration) -> Option<Vec<Option<PathBuf>>> {
    let until = Instant::now() + AT_LATEST;
    let mut changed = Vec::new();
    let mut next = first;
    loop {
        match next {
            Signal::Stop => return None,
            Signal::Changed(path) => changed.push(path),
        }
        let patience = settle.min(until.saturating_duration_since(Instant::now()));
        next = match signals.recv_timeout(patience) {
            Ok(signal) => signal,
            Err(RecvTimeoutError::Timeout) => return Some(changed),
            Err(RecvTimeoutError::Disconnected) => return None,
        };
        if Instant::now() >= until {
            if let Signal::Changed(path) = next {
                changed.push(path);
                return Some(changed);
            }
            return None;
        }
    }
}

fn bring_up_to_date(
    folder: &Path,
    plan: &Plan,
    library: &Library,
    call: &CallContext,
) -> Result<AddReply, CliError> {
    let request = AddRequest {
        collection: plan.collection.clone(),
        prune: plan.prune,
        only_changes: true,
        ..AddRequest::new(What::Path(folder.to_owned()))
    };
    let added = library.add(&Caller::owner(), &request, call).map_err(|error| CliError {
        message: format!("{}: {error}", folder.display()),
        ..CliError::of(&error as &dyn ErrorInfo)
    })?;
    if added.files_added + added.files_removed > 0 {
        library.index_now(call)?;
    }
    Ok(added)
}

/// What changed, in a line; `None` when nothing did.
fn changes(folder: &Path, added: &AddReply) -> Option<String> {
    let new = added.files_added - added.files_updated;
    let parts: Vec<String> = [
        (new, "new"),
        (added.files_updated, "changed"),
        (added.files_removed, "removed"),
        (added.failed.len() as u64, "failed"),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    (!parts.is_empty()).then(|| format!("{}: {}", folder.display(), parts.join(", ")))
}

/// Ends the watch on Ctrl-C and when the system asks the process to end.
fn stop_on_signal(sender: Sender<Signal>) {
    std::thread::spawn(move || {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
        runtime.block_on(async {
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        let _ = sender.send(Signal::Stop);
    });
}
