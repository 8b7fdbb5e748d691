//! Text embeddings, so that a library can be searched by meaning.
//!
//! An [`Embedder`] turns texts into vectors of length one; the dot product of two vectors is the similarity of their
//! texts. There are three embedders:
//! - [`BuiltIn`], a table of one row per token that is compiled into the program. It needs no network and costs about
//!   as much as reading the text, so it runs inside every write. [`tokenize`] and [`embed_tokens`] are its two halves,
//!   for callers that split a text into passages by its tokens and embed each passage without tokenizing it again.
//! - [`Deep`], a small transformer that is compiled into the program too. Its vectors are in the same space as the
//!   table's and much better, but take milliseconds each.
//! - [`Endpoint`], any server with an OpenAI-compatible embeddings API, for users who run a larger model.
//!
//! [`Cached`] stores the vectors of any embedder in a file, so that each passage is embedded only once. `FORMAT.md`
//! specifies that file, `model/MODEL_CARD.md` the files of the built-in model, and `model/DEEP_CARD.md` those of the
//! deep model.
//!
//! Vectors of different models must not be compared, except for those of the table and the deep model. Each embedder
//! therefore has a model id ([`Embedder::model`]), which callers store with every vector.

mod builtin;
mod cached;
mod characters;
mod deep;
mod endpoint;
mod error;
mod reply;
mod rows;
mod settings;
mod tokenizer;
mod vectors;
mod vocabulary;

use shelf_base::CallContext;

pub use builtin::{BUILT_IN, BuiltIn, DIMENSIONS, embed_text, embed_tokens};
pub use cached::Cached;
pub use deep::{DEEP, Deep, Kernel};
pub use endpoint::Endpoint;
pub use error::{Error, ReplyError};
pub use settings::EndpointSettings;
pub use tokenizer::{TokenCount, Tokens, is_word, tokenize};

/// Shorthand for this crate's results.
pub type Result<T> = std::result::Result<T, Error>;

/// Turns texts into vectors.
pub trait Embedder: Send + Sync {
    /// The id of the model, stored with each of its vectors.
    fn model(&self) -> &str;

    /// The number of dimensions of its vectors; `None` until an endpoint has answered for the first time.
    fn dimensions(&self) -> Option<usize>;

    /// Embeds texts. Returns one vector per text, in order, of length one, or zero where there is nothing to embed.
    fn embed(&self, texts: &[&str], call: &CallContext) -> Result<Vec<Vec<f32>>>;
}

impl<E: Embedder + ?Sized> Embedder for std::sync::Arc<E> {
    fn model(&self) -> &str {
        (**self).model()
    }

    fn dimensions(&self) -> Option<usize> {
        (**self).dimensions()
    }

    fn embed(&self, texts: &[&str], call: &CallContext) -> Result<Vec<Vec<f32>>> {
        (**self).embed(texts, call)
    }
}
