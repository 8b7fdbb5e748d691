//! Pages as images, for people who want to see a page as it was set.
//!
//! A page is first cut out into a document of its own, by the same code and limits as evidence, so that what is drawn is
//! small. Drawing runs on a thread of its own with a time limit: a page that is made to take for ever costs a thread and
//! one of two places, and nothing else.

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use hayro::{
    PixmapSettings, RenderCache, RenderSettings, hayro_interpret::InterpreterSettings, hayro_syntax::Pdf,
    vello_cpu::color::palette::css::WHITE,
};
use shelf_base::address::Pages;

use super::{CutError, STACK, cut_pages};
use crate::Unreadable;

/// The least and most pixels that an image of a page is wide.
pub const PAGE_WIDTH: std::ops::RangeInclusive<u32> = 32..=2_400;
/// Pixels of an image at most.
const MOST_PIXELS: f32 = 16_000_000.0;
/// Pixels in one direction at most.
const MOST_SIDE: f32 = 8_000.0;
/// Pages that are drawn at once.
const AT_ONCE: usize = 2;
/// How long a page may take.
const TIME: Duration = Duration::from_secs(20);
/// How long a page waits for its turn.
const TURN: Duration = Duration::from_secs(10);

/// Pages that are being drawn.
static DRAWING: AtomicUsize = AtomicUsize::new(0);

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

/// Draws one page of a PDF document, from 1, about `width` pixels wide.
pub fn draw_page(bytes: &[u8], page: u32, width: u32) -> Result<DrawnPage, CutError> {
    let wanted = Pages::single(page).map_err(|_| Unreadable::damaged("pages are counted from 1"))?;
    let single = cut_pages(bytes, &wanted)?;
    let turn = Turn::wait()?;
    let (sender, receiver) = mpsc::sync_channel(1);
    let work = move || {
        let drawn = draw(single, width.clamp(*PAGE_WIDTH.start(), *PAGE_WIDTH.end()));
        drop(turn);
        let _ = sender.send(drawn);
    };
    let thread = thread::Builder::new().name("page".into()).stack_size(STACK);
    thread.spawn(work).map_err(|error| Unreadable::damaged(format!("cannot start a thread: {error}")))?;
    match receiver.recv_timeout(TIME) {
        Ok(drawn) => Ok(drawn?),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            Err(Unreadable::TooLarge { what: "seconds to draw this page", limit: TIME.as_secs() }.into())
        }
        // A panic in the library ends only that thread.
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            Err(Unreadable::damaged("this page cannot be drawn").into())
        }
    }
}

/// A place among the pages that are drawn at once; given back when it is dropped.
struct Turn;

impl Turn {
    fn wait() -> Result<Self, Unreadable> {
        let until = Instant::now() + TURN;
        let free = |taken: usize| (taken < AT_ONCE).then_some(taken + 1);
        while DRAWING.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).is_err() {
            if Instant::now() >= until {
                let what = "seconds until other pages were drawn; try again later";
                return Err(Unreadable::TooLarge { what, limit: TURN.as_secs() });
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(Self)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        DRAWING.fetch_sub(1, Ordering::AcqRel);
    }
}

fn draw(bytes: Vec<u8>, width: u32) -> Result<DrawnPage, Unreadable> {
    let damaged = || Unreadable::damaged("its pages cannot be drawn");
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
