//! Progress bars, and Ctrl-C to cancel the work rather than kill the process.

use std::{io::IsTerminal, sync::Arc, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
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
        let bar = ProgressBar::new_spinner();
        let template = "{spinner} {msg} {wide_bar:.cyan/dim} {pos}/{len} {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        call = call.reporting_to(Arc::new(Bar(bar)));
    }
    call
}

fn cancel_on_interrupt(call: CallContext) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        if let Ok(runtime) = runtime
            && runtime.block_on(tokio::signal::ctrl_c()).is_ok()
        {
            call.cancel();
        }
    });
}
