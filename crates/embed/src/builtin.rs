//! The built-in model: one row of numbers per token; the vector of a text is the mean of its rows.
//!
//! There is no matrix product, so embedding costs about as much as tokenizing the text and can run inside every write.
//! The rows are compiled into the program, so a library can be searched by meaning without a download.
//! `model/MODEL_CARD.md` describes their origin and quality.

use std::cell::RefCell;

use shelf_base::CallContext;

use crate::{
    Embedder, Result, rows,
    tokenizer::{Tokens, tokenize},
};

/// The number of dimensions of the built-in model's vectors.
pub const DIMENSIONS: usize = 384;

/// The built-in model's id. Only vectors with the same id are compared, so it must change whenever the rows or the
/// rules of the tokenizer change.
pub const BUILT_IN: &str = "shelf-static-384-1";

/// The vector of a sequence of tokens: the mean of their rows, scaled to length one. Unknown words are ignored; without
/// any known word, the vector is zero.
pub fn embed_tokens(ids: &[u16]) -> [f32; DIMENSIONS] {
    // Scaling to length one cancels the number of tokens, so the sum serves as well as the mean.
    let mut vector = rows::sum(ids);
    normalise(&mut vector);
    vector
}

/// The vector of a text.
pub fn embed_text(text: &str) -> [f32; DIMENSIONS] {
    thread_local! {
        static TOKENS: RefCell<Tokens> = RefCell::default();
    }
    TOKENS.with_borrow_mut(|tokens| {
        tokenize(text, tokens);
        embed_tokens(&tokens.ids)
    })
}

/// The built-in model as an [`Embedder`].
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

impl Embedder for BuiltIn {
    fn model(&self) -> &str {
        BUILT_IN
    }

    fn dimensions(&self) -> Option<usize> {
        Some(DIMENSIONS)
    }

    fn embed(&self, texts: &[&str], call: &CallContext) -> Result<Vec<Vec<f32>>> {
        let vector = |text: &&str| {
            call.check()?;
            Ok(embed_text(text).to_vec())
        };
        texts.iter().map(vector).collect()
    }
}

/// Scales a vector to length one; a zero vector stays zero.
pub(crate) fn normalise(vector: &mut [f32]) {
    let length = length(vector);
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
    }
}

/// The length of a vector, computed in f64 so that finite numbers cannot overflow.
fn length(vector: &[f32]) -> f64 {
    vector.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::vocabulary::UNKNOWN;

    #[derive(Deserialize)]
    struct Golden {
        text: String,
        token_ids: Vec<u16>,
        first_8: [f32; 8],
        norm_before: f64,
    }

    #[test]
    fn agrees_with_the_reference() {
        let golden: Vec<Golden> = serde_json::from_str(include_str!("../model/golden.json")).unwrap();
        assert!(golden.len() > 10);
        for Golden { text, token_ids, first_8, norm_before } in golden {
            let mut tokens = Tokens::default();
            tokenize(&text, &mut tokens);
            assert_eq!(tokens.ids, token_ids, "{text}");
            let counted = token_ids.iter().filter(|&&id| id != UNKNOWN).count().max(1);
            let mean = length(&rows::sum(&token_ids)) / counted as f64;
            assert!((mean - norm_before).abs() < 2e-6, "{text}: {mean} {norm_before}");
            for (value, expected) in embed_text(&text).iter().zip(first_8) {
                assert!((value - expected).abs() < 2e-6, "{text}: {value} {expected}");
            }
        }
    }

    #[test]
    fn vectors_have_length_one_or_are_zero() {
        assert!((length(&embed_text("a library of documents")) - 1.0).abs() < 1e-6);
        assert!(embed_tokens(&[UNKNOWN]).iter().all(|&value| value == 0.0));
        assert!(embed_text("").iter().all(|&value| value == 0.0));
        let mut huge = [f32::MAX; 4];
        normalise(&mut huge);
        assert_eq!(huge, [0.5; 4]);
    }

    #[test]
    fn embeds_in_order_until_cancelled() {
        let call = CallContext::new();
        let vectors = BuiltIn.embed(&["one text", "", "another"], &call).unwrap();
        assert_eq!(vectors[0], embed_text("one text"));
        assert_eq!(vectors[2], embed_text("another"));
        assert_eq!((vectors.len(), vectors[1].len()), (3, DIMENSIONS));
        call.cancel();
        assert!(BuiltIn.embed(&["one text"], &call).is_err());
    }

    #[test]
    fn related_texts_are_more_similar() {
        let cosine = |left: &str, right: &str| -> f32 {
            embed_text(left).iter().zip(embed_text(right)).map(|(left, right)| left * right).sum()
        };
        let question = "How do I reset my password?";
        let near = cosine(question, "Changing a forgotten login credential");
        assert!(near > cosine(question, "The mitochondria is the powerhouse of the cell.") + 0.1);
    }
}
