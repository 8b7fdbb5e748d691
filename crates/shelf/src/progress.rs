//! Progress bars, and Ctrl-C to cancel the work rather than kill the process.

use std::{
    io::{IsTerminal, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};
use shelf_base::{CallContext, Progress};

use crate::output::Output;

struct Bar(ProgressBar);

impl Progress for Bar {
    fn report(&self, done: u64, total: Option<u64>, message: &str) {
        if let Some(total) = total {
            self.0.set_length(total);
        }
        self.0.set_position(done);
        self.0.set_message(message.to_owned());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The call context of a command: it reports to a progress bar on a terminal, and Ctrl-C cancels it.
pub(crate) fn call(output: &Output) -> CallContext {
    let mut call = CallContext::new();
    // The waiting thread must not own the bar, which is cleared when its last owner is dropped.
    cancel_on_interrupt(call.clone());
    if !output.quiet && std::io::stderr().is_terminal() {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let template = "{spinner} {msg} {wide_bar:.cyan/dim} {pos}/{len} {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        show_later(bar.downgrade());
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.downgrade());
        call = call.reporting_to(Arc::new(Bar(bar)));
    }
    call
}

/// How long work takes before its progress is worth showing.
const SOON: Duration = Duration::from_millis(300);

/// Puts the bar on the terminal if the work still goes on after a while, and nothing else was printed meanwhile.
fn show_later(bar: WeakProgressBar) {
    std::thread::spawn(move || {
        std::thread::sleep(SOON);
        if let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(Duration::from_millis(120));
        }
    });
}

/// The bar that is on the terminal, if one is.
static SHOWN: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Takes the bar off the terminal before something is printed there: what follows would be drawn over otherwise.
pub(crate) fn make_room() {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(bar) = shown.and_then(|shown| shown.upgrade()) {
        bar.finish_and_clear();
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
}

/// The first Ctrl-C cancels the work, which then ends by itself. One while the user is asked something, or a second one,
/// ends the process.
fn cancel_on_interrupt(call: CallContext) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let Ok(runtime) = runtime else { return };
        while runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            if call.check().is_err() || IS_ASKING.load(Ordering::SeqCst) {
                let _ = writeln!(std::io::stderr());
                std::process::exit(INTERRUPTED);
            }
            call.cancel();
        }
    });
}

/// Whether the user is being asked something: then there is no work that could be cancelled.
static IS_ASKING: AtomicBool = AtomicBool::new(false);
/// The exit code of a process that was interrupted.
const INTERRUPTED: i32 = 130;

/// Asks a question that is answered with yes or no.
pub(crate) fn confirm(question: &str, output: &Output) -> std::io::Result<bool> {
    output.tell_inline(&format!("{question} [y/N] "));
    IS_ASKING.store(true, Ordering::SeqCst);
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    IS_ASKING.store(false, Ordering::SeqCst);
    read?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
