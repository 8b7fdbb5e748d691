//! Rate limits: calls per minute, for each identity and tool, in this process.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;
use shelf_base::{Moment, ids::AccountId};
use shelf_engine::Caller;

use crate::{Tool, family::ToolError};

const MINUTE_MICROS: i64 = 60_000_000;

/// Identifies one identity's calls of one tool.
type Key = (AccountId, Option<String>, &'static str);

/// Calls per minute by tool, and the calls of the last minute.
#[derive(Debug, Default)]
pub struct Limits {
    per_minute: HashMap<String, u32>,
    calls: Mutex<HashMap<Key, VecDeque<Moment>>>,
}

impl Limits {
    /// Limits by tool name; 0 means no limit.
    pub fn new(per_minute: HashMap<String, u32>) -> Self {
        Self { per_minute, calls: Mutex::default() }
    }

    /// Counts one call, or fails with the time until the next one is allowed.
    pub(crate) fn take(&self, tool: &Tool, caller: &Caller, now: Moment) -> Result<(), ToolError> {
        let per_minute = self.per_minute.get(tool.name).copied().unwrap_or(0);
        if per_minute == 0 {
            return Ok(());
        }
        let actor = caller.pass.actor();
        let mut calls = self.calls.lock();
        let calls = calls.entry((actor.account, actor.token.clone(), tool.name)).or_default();
        while calls.front().is_some_and(|call| now.micros() - call.micros() >= MINUTE_MICROS) {
            calls.pop_front();
        }
        match calls.front() {
            Some(oldest) if calls.len() >= per_minute as usize => {
                let wait = MINUTE_MICROS - (now.micros() - oldest.micros());
                let retry_after_seconds = wait.unsigned_abs().div_ceil(1_000_000).max(1);
                Err(ToolError::RateLimited { tool: tool.name, per_minute, retry_after_seconds })
            }
            _ => {
                calls.push_back(now);
                Ok(())
            }
        }
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
