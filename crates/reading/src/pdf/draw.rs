//! Pages as images, for people who want to see a page as it was set.
//!
//! A page is first cut out into a document of its own, by the same code and limits as evidence, so that what is drawn is
//! small. It is drawn by a process of its own with limits on time and memory ([`super::apart`]). Where no program is given
//! for that, drawing runs on a thread, which cannot be ended from outside: a page that is made to take for ever keeps its
//! thread, but not its place, and others go on. Such threads are counted, and when there are too many of them nothing more
//! is drawn until one ends. A page that took too much is not tried again for a while.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use hayro::{
    PixmapSettings, RenderCache, RenderSettings, hayro_interpret::InterpreterSettings, hayro_syntax::Pdf,
    vello_cpu::color::palette::css::WHITE,
};
use shelf_base::{CallContext, Stopped, address::Pages};

use super::{CutError, STACK, apart, cut_pages};
use crate::Unreadable;

/// The least and most pixels that an image of a page is wide.
pub const PAGE_WIDTH: std::ops::RangeInclusive<u32> = 32..=2_400;
/// Pixels of an image at most.
const MOST_PIXELS: f32 = 16_000_000.0;
/// Pixels in one direction at most.
const MOST_SIDE: f32 = 8_000.0;
/// How long a page that took too much is not tried again.
const SHUNNED: Duration = Duration::from_secs(600);
/// How often a page that waits for its turn looks whether anybody still wants it.
const LOOK: Duration = Duration::from_millis(50);
/// Pages that are remembered as having taken too much.
const MOST_SHUNNED: usize = 64;

/// Where pages of this process are drawn.
static STUDIO: Studio =
    Studio::new(Bounds { at_once: 2, late: 2, time: Duration::from_secs(20), turn: Duration::from_secs(10) });

/// An image of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnPage {
    /// The image, as PNG.
    pub png: Vec<u8>,
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
}

/// Why a page was not drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrawError {
    /// The page could not be cut out or read.
    #[error(transparent)]
    Cut(#[from] CutError),
    /// The page takes too long.
    #[error("drawing it takes longer than {seconds} s")]
    TooSlow {
        /// The limit.
        seconds: u64,
    },
    /// The page takes too much memory.
    #[error("drawing it takes more memory than {mebibytes} MiB")]
    TooMuch {
        /// The limit.
        mebibytes: u64,
    },
    /// The call ended early.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// Other pages are being drawn.
    #[error("too many other pages are being drawn")]
    Busy,
    /// Pages that took too long are still being drawn.
    #[error("pages that take too long are still being drawn")]
    Stuck,
}

impl From<Unreadable> for DrawError {
    fn from(error: Unreadable) -> Self {
        Self::Cut(error.into())
    }
}

/// Draws one page of a PDF document, from 1, about `width` pixels wide. `program` is one that draws when it is asked with
/// [`crate::DRAW_COMMAND`]; without it, a thread of this process does, whose memory nothing bounds.
pub fn draw_page(
    bytes: &[u8],
    (page, width): (u32, u32),
    program: Option<&Path>,
    call: &CallContext,
) -> Result<DrawnPage, DrawError> {
    let wanted = Pages::single(page).map_err(|_| Unreadable::damaged("pages are counted from 1"))?;
    let single = cut_pages(bytes, &wanted)?;
    let mut hasher = DefaultHasher::new();
    single.hash(&mut hasher);
    let width = width.clamp(*PAGE_WIDTH.start(), *PAGE_WIDTH.end());
    match program {
        Some(program) => STUDIO
            .draw_apart(hasher.finish(), call, |time| apart::draw_by(program, &single, width, time, call)),
        None => STUDIO.draw(hasher.finish(), call, move || draw(single, width)),
    }
}

/// What may be under way.
struct Bounds {
    /// Pages that are drawn at once.
    at_once: usize,
    /// Pages that took too long and are still being drawn.
    late: usize,
    /// How long a page may take.
    time: Duration,
    /// How long a page waits for its turn.
    turn: Duration,
}

/// What is under way.
struct Counts {
    drawing: usize,
    late: usize,
    /// Pages that took too much, of what, and when.
    shunned: VecDeque<(u64, DrawError, Instant)>,
}

impl Counts {
    /// Remembers a page that took too much.
    fn shun(&mut self, key: u64, why: DrawError) {
        self.shunned.push_back((key, why, Instant::now()));
        if self.shunned.len() > MOST_SHUNNED {
            self.shunned.pop_front();
        }
    }
}

/// Draws a few pages at a time.
struct Studio {
    bounds: Bounds,
    counts: Mutex<Counts>,
    changed: Condvar,
}

impl Studio {
    const fn new(bounds: Bounds) -> Self {
        let counts = Counts { drawing: 0, late: 0, shunned: VecDeque::new() };
        Self { bounds, counts: Mutex::new(counts), changed: Condvar::new() }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn too_slow(&self) -> DrawError {
        DrawError::TooSlow { seconds: self.bounds.time.as_secs() }
    }

    /// Has `work`, which ends in the time that it is given, draw the page that `key` stands for.
    fn draw_apart(
        &'static self,
        key: u64,
        call: &CallContext,
        work: impl FnOnce(Duration) -> Result<DrawnPage, DrawError>,
    ) -> Result<DrawnPage, DrawError> {
        let turn = self.turn(key, call)?;
        let drawn = work(self.bounds.time);
        drop(turn);
        if let Err(error @ (DrawError::TooSlow { .. } | DrawError::TooMuch { .. })) = &drawn {
            self.counts().shun(key, error.clone());
        }
        drawn
    }

    /// Has `work` draw the page that `key` stands for, on a thread.
    fn draw(
        &'static self,
        key: u64,
        call: &CallContext,
        work: impl FnOnce() -> Result<DrawnPage, Unreadable> + Send + 'static,
    ) -> Result<DrawnPage, DrawError> {
        let turn = self.turn(key, call)?;
        let is_late = turn.is_late.clone();
        let (sender, receiver) = mpsc::sync_channel(1);
        let work = move || {
            let drawn = work();
            drop(turn);
            let _ = sender.send(drawn);
        };
        let thread = thread::Builder::new().name("page".into()).stack_size(STACK);
        thread.spawn(work).map_err(|error| Unreadable::damaged(format!("cannot start a thread: {error}")))?;
        match receiver.recv_timeout(self.bounds.time) {
            Ok(drawn) => Ok(drawn?),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                self.give_up(key, &is_late);
                Err(self.too_slow())
            }
            // A panic in the library ends only that thread.
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err(Unreadable::damaged("the page is inconsistent").into())
            }
        }
    }

    /// Waits for a place among the pages that are drawn at once.
    fn turn(&'static self, key: u64, call: &CallContext) -> Result<Turn, DrawError> {
        let until = Instant::now() + self.bounds.turn;
        let mut counts = self.counts();
        loop {
            call.check()?;
            counts.shunned.retain(|(_, _, at)| at.elapsed() < SHUNNED);
            if let Some((_, why, _)) = counts.shunned.iter().find(|(shunned, ..)| *shunned == key) {
                return Err(why.clone());
            }
            if counts.late >= self.bounds.late {
                return Err(DrawError::Stuck);
            }
            if counts.drawing < self.bounds.at_once {
                counts.drawing += 1;
                return Ok(Turn { studio: self, is_late: Arc::default() });
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(DrawError::Busy);
            }
            counts =
                self.changed.wait_timeout(counts, left.min(LOOK)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Gives the place of a page that takes too long to others. Whether it is late changes only under the lock.
    fn give_up(&self, key: u64, is_late: &Arc<AtomicBool>) {
        let mut counts = self.counts();
        counts.shun(key, self.too_slow());
        // The thread holds the other reference, until it has given its place back.
        if Arc::strong_count(is_late) > 1 {
            is_late.store(true, Ordering::Relaxed);
            counts.drawing -= 1;
            counts.late += 1;
        }
        drop(counts);
        self.changed.notify_all();
    }
}

/// A place among the pages that are drawn at once; given back when it is dropped.
struct Turn {
    studio: &'static Studio,
    is_late: Arc<AtomicBool>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut counts = self.studio.counts();
        if self.is_late.load(Ordering::Relaxed) {
            counts.late -= 1;
        } else {
            counts.drawing -= 1;
        }
        // Given up from here on, under the lock, it would be counted twice.
        self.is_late = Arc::default();
        drop(counts);
        self.studio.changed.notify_all();
    }
}

/// Draws a document of one page, with nothing to bound it.
pub(super) fn draw(bytes: Vec<u8>, width: u32) -> Result<DrawnPage, Unreadable> {
    let damaged = || Unreadable::damaged("its structure cannot be read");
    let document = Pdf::new(bytes).map_err(|_| damaged())?;
    let page = document.pages().first().ok_or_else(damaged)?;
    let (own_width, own_height) = page.render_dimensions();
    if !(own_width.is_finite() && own_height.is_finite() && own_width >= 1.0 && own_height >= 1.0) {
        return Err(Unreadable::damaged("this page has no size"));
    }
    let wanted = width as f32 / own_width;
    let scale = wanted
        .min((MOST_PIXELS / (own_width * own_height)).sqrt())
        .min(MOST_SIDE / own_height)
        .min(MOST_SIDE / own_width);
    if own_width * scale < 1.0 || own_height * scale < 1.0 {
        return Err(Unreadable::damaged("this page is too narrow to be drawn"));
    }
    let settings = PixmapSettings { x_scale: scale, y_scale: scale, bg_color: WHITE };
    let image = hayro::render(
        page,
        &RenderCache::new(),
        &InterpreterSettings::default(),
        &RenderSettings::default(),
        &settings,
    );
    let (width, height) = (u32::from(image.width()), u32::from(image.height()));
    let png = image.into_png().map_err(|_| damaged())?;
    Ok(DrawnPage { png, width, height })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough for a quick page on a busy machine, short enough to wait for slow ones.
    const TIME: Duration = Duration::from_secs(1);

    fn studio(time: Duration) -> &'static Studio {
        Box::leak(Box::new(Studio::new(Bounds { at_once: 2, late: 2, time, turn: time })))
    }

    fn quick() -> Result<DrawnPage, Unreadable> {
        Ok(DrawnPage { png: Vec::new(), width: 1, height: 1 })
    }

    /// A page that is drawn when the sender is dropped.
    fn slow(studio: &'static Studio, key: u64) -> (mpsc::Sender<()>, Result<DrawnPage, DrawError>) {
        let (sender, receiver) = mpsc::channel::<()>();
        let drawn = studio.draw(key, &CallContext::new(), move || {
            let _ = receiver.recv();
            quick()
        });
        (sender, drawn)
    }

    /// Pages that are being drawn in time, and those that are late.
    fn under_way(studio: &Studio) -> (usize, usize) {
        let counts = studio.counts();
        (counts.drawing, counts.late)
    }

    fn until(studio: &Studio, late: usize) {
        let start = Instant::now();
        while under_way(studio).1 != late {
            assert!(start.elapsed() < Duration::from_secs(10));
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_page_that_takes_too_long_gives_its_place_to_others() {
        let studio = studio(TIME);
        let (first, drawn) = slow(studio, 1);
        assert!(matches!(drawn, Err(DrawError::TooSlow { .. })), "{drawn:?}");
        assert_eq!(under_way(studio), (0, 1));
        assert!(studio.draw(2, &CallContext::new(), quick).is_ok());
        // The same page is not tried again.
        assert!(matches!(studio.draw(1, &CallContext::new(), quick), Err(DrawError::TooSlow { .. })));
        let (second, drawn) = slow(studio, 3);
        assert!(drawn.is_err());
        // Not one more while two of them run.
        assert_eq!(studio.draw(4, &CallContext::new(), quick), Err(DrawError::Stuck));
        drop(first);
        until(studio, 1);
        assert!(studio.draw(4, &CallContext::new(), quick).is_ok());
        drop(second);
        until(studio, 0);
        assert_eq!(under_way(studio).0, 0);
    }

    #[test]
    fn a_few_pages_are_drawn_at_once_and_others_wait_for_their_turn() {
        let studio = studio(TIME);
        let taken = [studio.turn(1, &CallContext::new()), studio.turn(2, &CallContext::new())];
        assert_eq!(studio.draw(3, &CallContext::new(), quick), Err(DrawError::Busy));
        let waiting = thread::spawn(move || studio.draw(3, &CallContext::new(), quick));
        thread::sleep(Duration::from_millis(20));
        drop(taken);
        assert!(waiting.join().is_ok_and(|drawn| drawn.is_ok()));
        assert_eq!(under_way(studio).0, 0);
    }

    #[test]
    fn a_panic_gives_the_place_back() {
        // Whoever panics prints where, which takes its time on a busy machine.
        let studio = studio(Duration::from_secs(60));
        let drawn = studio.draw(1, &CallContext::new(), || panic!("a defect of the library"));
        assert!(matches!(drawn, Err(DrawError::Cut(_))), "{drawn:?}");
        assert_eq!(under_way(studio).0, 0);
    }

    #[test]
    fn a_page_that_took_too_much_is_not_tried_again() {
        let studio = studio(TIME);
        let call = CallContext::new();
        let large = || Err(DrawError::TooMuch { mebibytes: 1 });
        assert_eq!(studio.draw_apart(1, &call, |_| large()), large());
        assert_eq!(studio.draw_apart(1, &call, |_| Ok(quick()?)), large());
        assert!(studio.draw_apart(2, &call, |_| Ok(quick()?)).is_ok());
        assert_eq!(under_way(studio), (0, 0));
    }

    #[test]
    fn whoever_has_gone_does_not_wait_for_a_turn() {
        let studio = studio(Duration::from_secs(60));
        let _taken = [studio.turn(1, &CallContext::new()), studio.turn(2, &CallContext::new())];
        let call = CallContext::new();
        let waiting = thread::scope(|scope| {
            let waiting = scope.spawn(|| studio.draw_apart(3, &call, |_| Ok(quick()?)));
            thread::sleep(Duration::from_millis(20));
            call.cancel();
            waiting.join()
        });
        assert!(matches!(waiting, Ok(Err(DrawError::Stopped(_)))));
    }
}
