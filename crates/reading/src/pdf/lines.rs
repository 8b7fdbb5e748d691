//! Where the lines of a page stand, from where its strings do.

use super::frame::{Frame, scaled};
use super::page::Run;
use crate::LineBox;

/// The boxes of the lines of a page. `before` bytes at the beginning of its text are dropped, and the rest stands at
/// `offset` in the text of the document.
pub(super) fn boxes(shown: &str, runs: &[Run], frame: &Frame, before: usize, offset: usize) -> Vec<LineBox> {
    let mut lines = Vec::new();
    let mut runs = runs.iter().peekable();
    let mut start = 0;
    for line in shown.split_inclusive('\n') {
        let end = start + line.len();
        let mut all: Option<[f32; 4]> = None;
        let mut weights: Vec<(u16, usize)> = Vec::new();
        while let Some(run) = runs.next_if(|run| run.bytes.start < end) {
            let [a, b] = run.corners.map(|corner| frame.part(corner));
            let own = [a.0.min(b.0), a.1.min(b.1), a.0.max(b.0), a.1.max(b.1)];
            all = Some(all.map_or(own, |all| {
                [all[0].min(own[0]), all[1].min(own[1]), all[2].max(own[2]), all[3].max(own[3])]
            }));
            let size = (run.size * 10.0).clamp(0.0, 60_000.0).round() as u16;
            match weights.iter_mut().find(|(known, _)| *known == size) {
                Some((_, weight)) => *weight += run.bytes.len(),
                None => weights.push((size, run.bytes.len())),
            }
        }
        let size = weights.iter().max_by_key(|(_, weight)| *weight).map(|(size, _)| *size);
        if let (Some(all), Some(size)) = (all, size)
            && !line.trim().is_empty()
        {
            let at = offset + start.saturating_sub(before);
            lines.push(LineBox { start: at as u32, bbox: all.map(scaled), size });
        }
        start = end;
    }
    lines
}
