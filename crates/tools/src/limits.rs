//! What a process counts: calls per minute for each identity and tool, which have limits, and the calls of the last hour.

use std::{collections::HashMap, time::Duration};

use shelf_base::{Moment, RateWindow, ids::AccountId};
use shelf_engine::Caller;

use crate::{Tool, family::ToolError, meter::Meter};

const MINUTE: Duration = Duration::from_secs(60);

/// Identifies one identity's calls of one tool.
type Key = (AccountId, Option<String>, &'static str);

/// Calls per minute by tool, and the calls of the last minute.
#[derive(Debug)]
pub struct Limits {
    per_minute: HashMap<String, u32>,
    calls: RateWindow<Key>,
    pub(crate) meter: Meter,
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(HashMap::new())
    }
}

impl Limits {
    /// Limits by tool name; 0 means no limit.
    pub fn new(per_minute: HashMap<String, u32>) -> Self {
        Self { per_minute, calls: RateWindow::new(MINUTE), meter: Meter::default() }
    }

    /// The limits by tool, sorted by name.
    pub(crate) fn listed(&self) -> Vec<(&str, u32)> {
        let mut all: Vec<(&str, u32)> =
            self.per_minute.iter().map(|(tool, most)| (tool.as_str(), *most)).collect();
        all.retain(|(_, most)| *most > 0);
        all.sort_unstable();
        all
    }

    /// Counts one call, or fails with the time until the next one is allowed.
    pub(crate) fn take(&self, tool: &Tool, caller: &Caller, now: Moment) -> Result<(), ToolError> {
        let per_minute = self.per_minute.get(tool.name).copied().unwrap_or(0);
        if per_minute == 0 {
            return Ok(());
        }
        let actor = caller.pass.actor();
        let now = Duration::from_micros(now.micros().max(0).unsigned_abs());
        self.calls.take((actor.account, actor.token.clone(), tool.name), per_minute, now).map_err(
            |retry_after_seconds| ToolError::RateLimited { tool: tool.name, per_minute, retry_after_seconds },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minute_slides() {
        let limits = Limits::new(HashMap::from([("hello".to_owned(), 2)]));
        let tool = crate::find("hello").unwrap();
        let at = |seconds: i64| Moment::from_micros(seconds * 1_000_000);
        let take = |seconds| limits.take(tool, &Caller::owner(), at(seconds)).is_ok();
        assert!(take(0) && take(30));
        assert!(!take(59));
        assert!(take(60));
        assert!(!take(61));
        match limits.take(tool, &Caller::owner(), at(61)) {
            Err(ToolError::RateLimited { retry_after_seconds, .. }) => assert_eq!(retry_after_seconds, 29),
            other => panic!("{other:?}"),
        }
    }
}
