//! Large contents in memory: all calls together hold a bounded number of bytes, and whoever comes too much waits a little.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use shelf_base::CallContext;

use crate::{Error, Result};

/// Bytes of content that calls hold at once. Each byte becomes several on its way into a reply.
const MOST: u64 = 24 << 20;
/// Contents up to this size are not counted: the number of calls bounds them.
const SMALL: u64 = 256 << 10;
/// How long a call waits.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a waiting call looks whether it should go on.
const LOOK: Duration = Duration::from_millis(20);

/// The bytes that are held now.
#[derive(Default)]
pub(crate) struct Budget {
    held: Mutex<u64>,
    freed: Condvar,
}

/// A share of the budget, given back when it is dropped.
pub(crate) struct Share<'a> {
    budget: &'a Budget,
    bytes: u64,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        *self.budget.held.lock() -= self.bytes;
        self.budget.freed.notify_all();
    }
}

impl Budget {
    /// Waits for room for so many bytes. One content that is larger than the whole budget has it for itself.
    pub(crate) fn take(&self, bytes: u64, call: &CallContext) -> Result<Share<'_>> {
        let bytes = if bytes <= SMALL { 0 } else { bytes.min(MOST) };
        let until = Instant::now() + PATIENCE;
        let mut held = self.held.lock();
        while *held + bytes > MOST {
            call.check()?;
            if Instant::now() >= until {
                return Err(Error::Busy(
                    "too many large documents are being read at once; try again later".into(),
                ));
            }
            self.freed.wait_for(&mut held, LOOK);
        }
        *held += bytes;
        Ok(Share { budget: self, bytes })
    }
}
