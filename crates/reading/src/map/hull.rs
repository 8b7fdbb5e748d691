//! How places lie to each other.

use shelf_base::address::{Clip, Lines, Pages, Place, Region};

/// The smallest place that contains both, where that is one place; otherwise the first.
pub fn hull(first: &Place, second: &Place) -> Place {
    let hulled = match (first, second) {
        (Place::Text(Some(a)), Place::Text(Some(b))) => {
            Lines::new(a.first().min(b.first()), a.last().max(b.last())).map(|lines| Place::Text(Some(lines)))
        }
        (Place::Document(Some(a)), Place::Document(Some(b))) => {
            Pages::range(a.first().min(b.first()), a.last().max(b.last()))
                .map(|pages| Place::Document(Some(pages)))
        }
        (Place::Video(Some(a)), Place::Video(Some(b))) => Ok(Place::Video(Some(clip_hull(*a, *b)))),
        (Place::Audio(Some(a)), Place::Audio(Some(b))) => Ok(Place::Audio(Some(clip_hull(*a, *b)))),
        (Place::Image(Some(a)), Place::Image(Some(b))) => {
            let ([a1, a2, a3, a4], [b1, b2, b3, b4]) = (a.millionths(), b.millionths());
            Region::from_millionths([a1.min(b1), a2.min(b2), a3.max(b3), a4.max(b4)])
                .map(|region| Place::Image(Some(region)))
        }
        _ => Ok(first.clone()),
    };
    hulled.unwrap_or_else(|_| first.clone())
}

fn clip_hull(a: Clip, b: Clip) -> Clip {
    let start = a.start().min(b.start());
    let end = a.end().zip(b.end()).map(|(a, b)| a.max(b));
    match end.map(|end| Clip::new(start, end)) {
        Some(Ok(clip)) => clip,
        _ => Clip::starting(start),
    }
}

/// Whether `inner` lies within `outer`. Places of different modalities never do, and the whole contains everything.
pub fn contains(outer: &Place, inner: &Place) -> bool {
    if outer.modality() != inner.modality() {
        return false;
    }
    match (outer, inner) {
        (Place::Text(Some(outer)), Place::Text(Some(inner))) => {
            outer.first() <= inner.first() && inner.last() <= outer.last()
        }
        (Place::Document(Some(outer)), Place::Document(Some(inner))) => outer.contains(inner),
        (Place::Video(Some(outer)), Place::Video(Some(inner)))
        | (Place::Audio(Some(outer)), Place::Audio(Some(inner))) => {
            let ends = match (outer.end(), inner.end()) {
                (None, _) => true,
                (Some(outer), Some(inner)) => inner <= outer,
                (Some(_), None) => false,
            };
            outer.start() <= inner.start() && ends
        }
        (Place::Image(Some(outer)), Place::Image(Some(inner))) => {
            let ([a1, a2, a3, a4], [b1, b2, b3, b4]) = (outer.millionths(), inner.millionths());
            a1 <= b1 && a2 <= b2 && b3 <= a3 && b4 <= a4
        }
        (Place::Virtual(outer), Place::Virtual(inner)) => outer.is_none() || outer == inner,
        (
            Place::Text(None)
            | Place::Document(None)
            | Place::Video(None)
            | Place::Audio(None)
            | Place::Image(None),
            _,
        ) => true,
        _ => false,
    }
}
