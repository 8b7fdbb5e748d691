//! `watch`: keeps folders and the library in step, for a command or for a server.
//!
//! The system's notifications only say that something happened; what is stored is decided by looking at the folder again,
//! as `add --prune` does. Files that are as they were are not read, so that costs little. It also means that nothing is
//! missed: not what changed while nobody watched, nor what the system reported only in part.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use shelf_base::{CallContext, ErrorInfo, Kind};
use shelf_engine::{AddReply, AddRequest, Caller, Library, What};
use shelf_serve::App;
use tokio_util::sync::CancellationToken;

use crate::{
    cli,
    outcome::{CliError, Outcome},
    output::{Output, Tone},
    progress,
    settings::Settings,
};

/// Changes are stored after this long at the latest, even if there is never a quiet moment.
const AT_LATEST: Duration = Duration::from_secs(10);
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
    folders: Vec<PathBuf>,
    collection: Option<String>,
    prune: bool,
    settle: Duration,
}

pub(super) fn run(command: &cli::Watch, library: &Library, settings: &Settings, output: &Output) -> Outcome {
    let plan = Plan {
        folders: absolute(&command.folders, library)?,
        collection: command.collection.clone(),
        prune: !command.keep,
        settle: settle(settings),
    };
    let report = |folder: &Path, outcome: &Result<AddReply, CliError>| match outcome {
        Ok(added) => {
            if let Some(line) = changes(folder, added) {
                output.say(Tone::Good, &line);
            }
        }
        Err(error) => output.error(error),
    };
    let (sender, signals) = mpsc::channel();
    // Watching begins before looking, so that nothing falls in between.
    let _watcher = if command.once { None } else { Some(watch(&plan, library, &sender)?) };
    let first: Vec<Result<AddReply, CliError>> = plan
        .folders
        .iter()
        .map(|folder| {
            let outcome = bring_up_to_date(folder, &plan, library, &progress::call(output));
            report(folder, &outcome);
            outcome
        })
        .collect();
    if command.once {
        return first.into_iter().find_map(Result::err).map_or(Ok(()), Err);
    }
    let count = plan.folders.len();
    let what = if count == 1 { plan.folders[0].display().to_string() } else { format!("{count} folders") };
    output.say(Tone::Good, &format!("watching {what}; stop with Ctrl-C"));
    stop_on_signal(sender);
    follow(&plan, library, &signals, report);
    library.copy_at_the_end();
    Ok(())
}

/// Watches the configured folders for a server, in a thread of its own, while no other process does.
pub(super) fn for_server(app: &Arc<App>, settings: &Settings, stop: &CancellationToken) -> Outcome {
    let folders: Vec<PathBuf> = settings.texts("watch.folders").into_iter().map(PathBuf::from).collect();
    if folders.is_empty() {
        return Ok(());
    }
    let plan = Plan {
        folders: absolute(&folders, &app.library)?,
        collection: Some(settings.text("watch.collection").to_owned()).filter(|name| !name.is_empty()),
        prune: !settings.flag("watch.keep_removed"),
        settle: settle(settings),
    };
    let (app, stop) = (app.clone(), stop.clone());
    std::thread::Builder::new().name("watch".into()).spawn(move || serve(&plan, &app, &stop))?;
    Ok(())
}

fn serve(plan: &Plan, app: &App, stop: &CancellationToken) {
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
    let watcher = match watch(plan, library, &sender) {
        Ok(watcher) => watcher,
        Err(error) => return tracing::error!(message = error.message, "the folders cannot be watched"),
    };
    let report = |folder: &Path, outcome: &Result<AddReply, CliError>| match outcome {
        Ok(added) => {
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
    for folder in &plan.folders {
        report(folder, &bring_up_to_date(folder, plan, library, &CallContext::new()));
    }
    follow(plan, library, &signals, report);
    drop(watcher);
    drop(lease);
}

fn settle(settings: &Settings) -> Duration {
    Duration::from_millis(settings.number("watch.settle_milliseconds").clamp(10, 60_000))
}

/// The folders without `.` and `..`. One that holds the library itself would change with every look at it.
fn absolute(folders: &[PathBuf], library: &Library) -> Outcome<Vec<PathBuf>> {
    let own = library.folder().canonicalize().unwrap_or_else(|_| library.folder().to_owned());
    let mut all = Vec::new();
    for folder in folders {
        let full = folder.canonicalize().map_err(|error| {
            CliError::new(Kind::of_io(&error), format!("cannot watch {}: {error}", folder.display()))
        })?;
        if !full.is_dir() {
            let message = format!("{} is not a folder", folder.display());
            return Err(CliError::new(Kind::Invalid, message).hint("`shelf add` stores single files"));
        }
        if own.starts_with(&full) {
            let message = format!("{} holds the library itself ({})", folder.display(), own.display());
            return Err(CliError::new(Kind::Invalid, message).hint("watch folders beside the library"));
        }
        all.push(full);
    }
    Ok(all)
}

fn watch(plan: &Plan, library: &Library, sender: &Sender<Signal>) -> Outcome<RecommendedWatcher> {
    let (sender, own) = (sender.clone(), library.folder().to_owned());
    let told = move |event: notify::Result<notify::Event>| {
        let signal = match event {
            Ok(event) if event.need_rescan() => Signal::Changed(None),
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
            Ok(event) => match event.paths.into_iter().find(|path| matters(path, &own)) {
                Some(path) => Signal::Changed(Some(path)),
                None => return,
            },
            // Looking at everything again makes up for whatever was lost.
            Err(_) => Signal::Changed(None),
        };
        let _ = sender.send(signal);
    };
    let failed = |error: notify::Error, folder: &Path| {
        let error = CliError::new(Kind::Unavailable, format!("cannot watch {}: {error}", folder.display()));
        error.hint("on Linux, fs.inotify.max_user_watches limits how many folders can be watched")
    };
    let mut watcher =
        notify::recommended_watcher(told).map_err(|error| failed(error, Path::new("folders")))?;
    for folder in &plan.folders {
        watcher.watch(folder, RecursiveMode::Recursive).map_err(|error| failed(error, folder))?;
    }
    Ok(watcher)
}

/// Whether a change may concern a stored file: the inside of version control and of the library does not.
fn matters(path: &Path, library: &Path) -> bool {
    let hidden = |part: &std::ffi::OsStr| [".git", ".hg", ".svn"].iter().any(|name| part == *name);
    !path.starts_with(library) && !path.iter().any(hidden)
}

/// Waits for changes and stores them, until told to stop.
fn follow(
    plan: &Plan,
    library: &Library,
    signals: &Receiver<Signal>,
    report: impl Fn(&Path, &Result<AddReply, CliError>),
) {
    while let Ok(first) = signals.recv() {
        let Some(changed) = gather(first, signals, plan.settle) else { return };
        for folder in &plan.folders {
            let concerns = |path: &Option<PathBuf>| path.as_ref().is_none_or(|path| path.starts_with(folder));
            if changed.iter().any(concerns) {
                report(folder, &bring_up_to_date(folder, plan, library, &CallContext::new()));
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
