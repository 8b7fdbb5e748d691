//! Facts and mentions as a view shows them: of live documents that pass a filter.

use shelf_base::{Digest, ids::CollectionId};

use crate::{Filter, View, bits::Bits, vector::Query};

/// A document of a view, by its segment and row. It means nothing in another view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    segment: u32,
    row: u32,
}

/// What the index knows of a document by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<'a> {
    /// Its number.
    pub number: i64,
    /// Its path.
    pub path: &'a str,
    /// The SHA-256 of its content.
    pub hash: Digest,
    /// Its collection.
    pub collection: CollectionId,
}

/// The documents of a view that pass a filter, with what they mention.
pub struct Linked<'a> {
    view: &'a View,
    allowed: Vec<Bits>,
}

impl View {
    /// The documents that pass `filter`, with what they mention.
    pub fn linked(&self, filter: &Filter) -> Linked<'_> {
        let mut allowed = self.allowed(filter);
        for (placed, allowed) in self.segments.iter().zip(&mut allowed) {
            placed.segment.drop_later_pieces(allowed);
        }
        Linked { view: self, allowed }
    }
}

impl<'a> Linked<'a> {
    /// Documents that mention a key, at most `most`.
    pub fn mentioning(&self, key: u32, most: usize) -> Vec<Place> {
        let mut found = Vec::new();
        for (segment, (placed, allowed)) in (0..).zip(self.view.segments.iter().zip(&self.allowed)) {
            placed.segment.mentions.each(key, |row| {
                if allowed.has(row as usize) {
                    found.push(Place { segment, row });
                }
                found.len() < most
            });
            if found.len() >= most {
                break;
            }
        }
        found
    }

    /// The place of a document by its number.
    pub fn place(&self, number: i64) -> Option<Place> {
        (0..).zip(self.view.segments.iter().zip(&self.allowed)).find_map(|(segment, (placed, allowed))| {
            let row = placed.segment.find(number).find(|row| allowed.has(*row))?;
            Some(Place { segment, row: row as u32 })
        })
    }

    /// What the index knows of a document.
    pub fn known(&self, place: Place) -> Known<'a> {
        let segment = &self.view.segments[place.segment as usize].segment;
        let row = segment.document(place.row as usize);
        Known { number: row.number, path: segment.path(&row), hash: row.hash, collection: row.collection }
    }

    /// The facts of a document; empty when it has none.
    pub fn facts(&self, place: Place) -> &'a [u8] {
        self.view.segments[place.segment as usize].segment.mentions.facts(place.row as usize)
    }

    /// Every document, in an order that lasts as long as the view.
    pub fn all(&self) -> impl Iterator<Item = Place> + '_ {
        (0..)
            .zip(&self.allowed)
            .flat_map(|(segment, allowed)| allowed.iter().map(move |row| Place { segment, row: row as u32 }))
    }

    /// The documents whose first passages mean nearly the same as that of a document, with the cosines of their vectors:
    /// the nearest first, at most `most`, without the document itself.
    pub fn neighbours(&self, place: Place, most: usize) -> Vec<(Place, f32)> {
        let own = &self.view.segments[place.segment as usize].segment;
        let first = own.document(place.row as usize).first_passage as usize;
        let query = Query::new(&own.vectors.plain(first));
        let mut found: Vec<(Place, f32)> = Vec::new();
        for (segment, (placed, allowed)) in (0..).zip(self.view.segments.iter().zip(&self.allowed)) {
            for row in allowed.iter() {
                let other = Place { segment, row: row as u32 };
                if other == place {
                    continue;
                }
                let passage = placed.segment.document(row).first_passage as usize;
                found.push((other, placed.segment.vectors.cosine(&query, passage)));
            }
        }
        let order =
            |one: &(Place, f32), other: &(Place, f32)| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0));
        if found.len() > most && most > 0 {
            found.select_nth_unstable_by(most - 1, order);
            found.truncate(most);
        }
        found.sort_by(order);
        found
    }
}
