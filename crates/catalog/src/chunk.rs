//! Lists that are read in chunks, so that no call hands over a whole table.

/// A part of a longer list, and where the next part begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk<T> {
    /// The part, in the order of the list.
    pub items: Vec<T>,
    /// Where to go on; `None` at the end of the list.
    pub next: Option<Position>,
}

/// A place in a list that is read in chunks; the default is its beginning. What is written meanwhile may or may not be
/// seen, but nothing that stays is left out or given twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub(crate) number: i64,
    pub(crate) text: String,
}

impl Position {
    pub(crate) const fn at(number: i64) -> Self {
        Self { number, text: String::new() }
    }
}

/// Reads a list to its end, chunk by chunk.
pub fn chunks<T, E>(
    mut read: impl FnMut(&Position) -> Result<Chunk<T>, E>,
    mut take: impl FnMut(Vec<T>) -> Result<(), E>,
) -> Result<(), E> {
    let mut position = Position::default();
    loop {
        let Chunk { items, next } = read(&position)?;
        take(items)?;
        match next {
            Some(next) => position = next,
            None => return Ok(()),
        }
    }
}
