//! What one client does: it writes, reads and deletes its own documents through three families, and remembers what was
//! acknowledged.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::connection::{Connection, Outcome};
use crate::bench::Random;

/// Documents of each sort that one client has. They are written again and again, so that the library stays as large as
/// it is and memory can be compared.
const NAMES: usize = 25;
/// How often a question is asked again after the load.
const TRIES: usize = 20;

/// One document of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Written by the store.
    Note(usize),
    /// Written as a lesson of a book.
    Lesson(usize),
}

/// What is known of a document.
#[derive(Clone, Debug, Default)]
struct State {
    /// What was acknowledged last; `None` is that there is none.
    certain: Option<String>,
    /// What was sent after that and never answered.
    maybe: Vec<Option<String>>,
}

/// Counts of a client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Calls that were answered.
    pub calls: usize,
    /// Writes that were acknowledged.
    pub writes: usize,
    /// Calls whose answer never came.
    pub lost: usize,
}

/// A client and all that was acknowledged to it.
pub struct Client {
    number: usize,
    random: Random,
    states: BTreeMap<Key, State>,
    /// Counts.
    pub tally: Tally,
    step: usize,
}

impl Client {
    /// A client that has not done anything yet.
    pub fn new(number: usize, seed: u64) -> Self {
        let random = Random::new(seed + number as u64);
        Self { number, random, states: BTreeMap::new(), tally: Tally::default(), step: 0 }
    }

    /// Does something; fails when the server says something that cannot be true.
    pub fn step(&mut self, connection: &mut Connection) -> Result<()> {
        self.step += 1;
        let which = self.random.below(NAMES);
        let key = if self.random.percent(70) { Key::Note(which) } else { Key::Lesson(which) };
        let (word, collection) = (self.word(), self.collection());
        match self.random.below(100) {
            0..35 => {
                let text = self.text();
                self.write(connection, key, Some(text))
            }
            35..42 => self.write(connection, key, None),
            42..75 => self.read(connection, key),
            75..85 => self.ask(connection, "search", &json!({ "query": word, "limit": 5 })),
            85..92 => self.ask(connection, "grep", &json!({ "pattern": word, "max_count": 3 })),
            92..96 => {
                let query = format!("what does client {} say of {word}", self.number);
                self.ask(connection, "search_documents_tool", &json!({ "query": query }))
            }
            _ => self.ask(connection, "list", &json!({ "collection": collection, "limit": 10 })),
        }
    }

    /// Reads everything that was ever written; fails when something acknowledged is not there.
    pub fn verify(&mut self, connection: &mut Connection) -> Result<usize> {
        let keys: Vec<Key> = self.states.keys().copied().collect();
        for key in &keys {
            let mut tries = 0;
            while !self.checked(connection, *key)? {
                tries += 1;
                if tries == TRIES {
                    bail!("{key:?} of client {}: no server answers", self.number);
                }
            }
        }
        Ok(keys.len())
    }

    fn collection(&self) -> String {
        format!("soak-{}", self.number)
    }

    fn book(&self) -> String {
        format!("book-{}", self.number)
    }

    fn word(&mut self) -> String {
        format!("word{}", self.random.below(2_000))
    }

    fn text(&mut self) -> String {
        let mut text = format!("# Client {}, step {}\n\n", self.number, self.step);
        for _ in 0..self.random.between(5, 600) {
            text.push_str(&self.word());
            text.push(if self.random.percent(8) { '\n' } else { ' ' });
        }
        text
    }

    fn lesson(at: usize) -> String {
        format!("lessons/part-1/chapter-{:02}/lesson-{:02}.md", at / 10 + 1, at % 10 + 1)
    }

    fn write(&mut self, connection: &mut Connection, key: Key, text: Option<String>) -> Result<()> {
        let (tool, arguments) = match (key, &text) {
            (Key::Note(at), Some(text)) => {
                let name = format!("note-{at}");
                ("add", json!({ "name": name, "content": text, "collection": self.collection() }))
            }
            (Key::Note(at), None) => {
                let name = format!("note-{at}");
                ("delete_by_name", json!({ "name": name, "collection": self.collection() }))
            }
            (Key::Lesson(at), Some(text)) => (
                "write_content",
                json!({ "book_id": self.book(), "path": Self::lesson(at), "content": text }),
            ),
            (Key::Lesson(at), None) => {
                ("delete_content", json!({ "book_id": self.book(), "path": Self::lesson(at) }))
            }
        };
        let is_delete = text.is_none();
        let state = self.states.entry(key).or_default();
        match connection.call(tool, &arguments) {
            Outcome::Done(_) => {
                *state = State { certain: text, maybe: Vec::new() };
                self.tally.calls += 1;
                self.tally.writes += 1;
            }
            Outcome::Busy => {}
            // There is no collection before its first document.
            Outcome::Refused(_) if is_delete && state.certain.is_none() => {}
            Outcome::Refused(why) => bail!("{tool} was refused: {why}"),
            Outcome::Lost => {
                state.maybe.push(text);
                self.tally.lost += 1;
            }
        }
        Ok(())
    }

    fn read(&mut self, connection: &mut Connection, key: Key) -> Result<()> {
        if self.states.contains_key(&key) {
            self.checked(connection, key)?;
        }
        Ok(())
    }

    fn ask(&mut self, connection: &mut Connection, tool: &str, arguments: &Value) -> Result<()> {
        match connection.call(tool, arguments) {
            Outcome::Done(_) => self.tally.calls += 1,
            Outcome::Busy => {}
            Outcome::Refused(why) if why.contains("no collection") => {}
            Outcome::Refused(why) => bail!("{tool} was refused: {why}"),
            Outcome::Lost => self.tally.lost += 1,
        }
        Ok(())
    }

    /// Compares a document with what is known of it; `false` when no answer came.
    fn checked(&mut self, connection: &mut Connection, key: Key) -> Result<bool> {
        let outcome = match key {
            Key::Note(at) => connection.call(
                "get",
                &json!({ "name": format!("note-{at}"), "collection": self.collection(), "include_content": true }),
            ),
            Key::Lesson(at) => {
                connection.call("read_content", &json!({ "book_id": self.book(), "path": Self::lesson(at) }))
            }
        };
        let found = match outcome {
            Outcome::Done(got) => got["content"].as_str().map(str::to_owned),
            Outcome::Refused(why) if is_absent(&why) => None,
            Outcome::Refused(why) => bail!("a read of {key:?} of client {} was refused: {why}", self.number),
            Outcome::Busy => return Ok(false),
            Outcome::Lost => {
                self.tally.lost += 1;
                return Ok(false);
            }
        };
        self.tally.calls += 1;
        let state = self.states.entry(key).or_default();
        if found != state.certain && !state.maybe.contains(&found) {
            let short = |text: &Option<String>| {
                text.as_ref().map_or_else(
                    || "nothing".to_owned(),
                    |text| text.lines().next().unwrap_or_default().to_owned(),
                )
            };
            bail!(
                "{key:?} of client {}: found {}, but {} was acknowledged",
                self.number,
                short(&found),
                short(&state.certain)
            );
        }
        *state = State { certain: found, maybe: Vec::new() };
        Ok(true)
    }
}

fn is_absent(why: &str) -> bool {
    why.contains("ContentNotFoundError") || why.contains("no collection")
}
