//! Vectors for texts, so that a library can be searched by meaning.
//!
//! An [`Embedder`] turns texts into vectors of length one; two texts are as near as their vectors' product is large.
//! There are two:
//! - [`BuiltIn`], a table of one row per token that is part of the program. It needs no network and costs about as
//!   much as reading the text, so it runs inside every write. [`tokenize`] and [`embed_tokens`] are its two halves,
//!   for callers who cut a text into passages by its tokens and embed each without cutting words again.
//! - [`Endpoint`], any server with an OpenAI-compatible embeddings interface, for those who run a larger model.
//!
//! [`Cached`] keeps the vectors of any embedder in a file, so that a passage is paid for once. `FORMAT.md` gives the
//! bytes of that file, `model/MODEL_CARD.md` those of the built-in model.
//!
//! Vectors of different models must not be compared. So each embedder names its [`Embedder::model`], and whoever
//! stores a vector stores that name with it.

mod builtin;
mod cached;
mod characters;
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
pub use endpoint::Endpoint;
pub use error::{Error, ReplyError};
pub use settings::EndpointSettings;
pub use tokenizer::{Tokens, tokenize};

/// What embedding gives, or why it could not.
pub type Result<T> = std::result::Result<T, Error>;

/// Turns texts into vectors.
pub trait Embedder: Send + Sync {
    /// The id of the model, stored with every vector it makes.
    fn model(&self) -> &str;

    /// How many numbers its vectors have; `None` until the first answer of an endpoint tells.
    fn dimensions(&self) -> Option<usize>;

    /// One vector per text, in their order, each of length one, or zero where there is nothing to embed.
    fn embed(&self, texts: &[&str], call: &CallContext) -> Result<Vec<Vec<f32>>>;
}
