//! A cache of decompressed frames.
//!
//! Searches read the same documents repeatedly; a small library fits into this cache completely. Eviction is first in,
//! first out: a frame that is read often is soon cached again.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;

/// The cache's capacity in bytes.
const KEPT: usize = 8 << 20;

/// The pack's number and the frame's number.
type Key = (u64, u32);

/// The frame cache.
#[derive(Default)]
pub(crate) struct Frames(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    frames: HashMap<Key, Arc<Vec<u8>>>,
    order: VecDeque<Key>,
    bytes: usize,
}

impl Frames {
    pub(crate) fn get(&self, key: Key) -> Option<Arc<Vec<u8>>> {
        self.0.lock().frames.get(&key).cloned()
    }

    pub(crate) fn clear(&self) {
        *self.0.lock() = Kept::default();
    }

    pub(crate) fn keep(&self, key: Key, frame: &Arc<Vec<u8>>) {
        let mut kept = self.0.lock();
        if kept.frames.insert(key, frame.clone()).is_some() {
            return;
        }
        kept.order.push_back(key);
        kept.bytes += frame.len();
        while kept.bytes > KEPT {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some(gone) = kept.frames.remove(&oldest) {
                kept.bytes -= gone.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let frames = Frames::default();
        let large = Arc::new(vec![0; KEPT / 4]);
        for number in 0..6 {
            frames.keep((1, number), &large);
            frames.keep((1, number), &large);
        }
        let there: Vec<bool> = (0..6).map(|number| frames.get((1, number)).is_some()).collect();
        assert_eq!(there, [false, false, true, true, true, true]);
        assert!(frames.get((2, 5)).is_none());
    }
}
