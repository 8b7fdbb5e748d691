//! What the built-in models know: vectors of questions, and which words there are.

use std::sync::Arc;

use shelf_base::Recent;
use shelf_embed::{DIMENSIONS, Deep, embed_text};
use shelf_index::Lexicon;

/// Questions whose vectors are kept.
const QUESTIONS: usize = 1_024;
/// Longer questions are not kept, in bytes.
const KEPT_BYTES: usize = 1_024;

/// When vectors of passages are made anew by the deep model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deepen {
    /// While nobody calls.
    #[default]
    Idle,
    /// At any time.
    Always,
    /// Never; questions are not encoded by the deep model either.
    Off,
}

/// The vector of a question.
pub(crate) type QuestionVector = Arc<[f32; DIMENSIONS]>;

/// Makes vectors of questions.
pub(crate) struct Questions {
    deep: Option<Arc<Deep>>,
    known: Recent<String, QuestionVector>,
}

impl Questions {
    pub(crate) fn new(deep: Option<Arc<Deep>>) -> Self {
        Self { deep, known: Recent::new(QUESTIONS) }
    }

    /// The vector of a question, by the deep model unless it is off.
    pub(crate) fn vector(&self, text: &str) -> QuestionVector {
        let Some(deep) = &self.deep else { return Arc::new(embed_text(text)) };
        if let Some(known) = self.known.get(text) {
            return known;
        }
        let vector = deep.encode(&[text]).pop().unwrap_or([0.0; DIMENSIONS]);
        let vector = Arc::new(vector);
        if text.len() <= KEPT_BYTES {
            self.known.keep(text.to_owned(), vector.clone(), 1);
        }
        vector
    }

    /// Gives memory back; the weights are unpacked again for the next question.
    pub(crate) fn release_memory(&self) {
        self.known.clear();
        if let Some(deep) = &self.deep {
            deep.release();
        }
    }
}

/// The words of the built-in models.
pub(crate) struct KnownWords;

impl Lexicon for KnownWords {
    fn is_word(&self, word: &str) -> bool {
        shelf_embed::is_word(word)
    }

    fn alike(&self, word: &str, other: &str) -> f32 {
        embed_text(word).iter().zip(embed_text(other)).map(|(one, other)| one * other).sum()
    }
}
