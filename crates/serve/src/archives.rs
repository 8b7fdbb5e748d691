//! Archives are removed when their addresses have expired, whatever transport gave them out.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{App, app::Work};

/// How often expired archives are looked for.
const BETWEEN: Duration = Duration::from_secs(20);

/// Removes archives whose addresses have expired, at the start and now and then until `stop`.
pub(crate) async fn clear(app: Arc<App>, stop: CancellationToken) {
    let mut times = tokio::time::interval(BETWEEN);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = times.tick() => {}
        }
        let call = app.new_call();
        let _ = app.blocking(Work::Check, call, |app| app.library.clear_archives()).await;
    }
}
