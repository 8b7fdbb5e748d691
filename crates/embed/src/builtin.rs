//! The built-in model: one row of numbers per token, and the mean of a text's rows.
//!
//! There is no matrix product in it, so a vector costs about as much as cutting the text into tokens and can be made
//! inside every write. The rows are part of the program: a library can be searched by meaning without a download.
//! `model/MODEL_CARD.md` tells where they come from and how good they are.

use std::cell::RefCell;

use shelf_base::CallContext;

use crate::{
    Embedder, Result, rows,
    tokenizer::{Tokens, tokenize},
};

/// How many numbers a vector of the built-in model has.
pub const DIMENSIONS: usize = 384;

/// The built-in model's id. Vectors are compared only with vectors of the same id, so it changes with the rows and
/// with the rules of the tokenizer.
pub const BUILT_IN: &str = "shelf-static-384-1";

/// The vector of some tokens: the mean of their rows at length one. Unknown words do not count; where nothing counts,
/// the vector is zero.
pub fn embed_tokens(ids: &[u16]) -> [f32; DIMENSIONS] {
    // Scaling to length one takes the number of tokens out again, so the sum serves as well as the mean.
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

/// The length of a vector, added up in f64 so that no sum of finite numbers overflows.
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
    fn embeds_in_order_until_told_to_stop() {
        let call = CallContext::new();
        let vectors = BuiltIn.embed(&["one text", "", "another"], &call).unwrap();
        assert_eq!(vectors[0], embed_text("one text"));
        assert_eq!(vectors[2], embed_text("another"));
        assert_eq!((vectors.len(), vectors[1].len()), (3, DIMENSIONS));
        call.cancel();
        assert!(BuiltIn.embed(&["one text"], &call).is_err());
    }

    #[test]
    fn texts_about_the_same_thing_are_nearer() {
        let cosine = |left: &str, right: &str| -> f32 {
            embed_text(left).iter().zip(embed_text(right)).map(|(left, right)| left * right).sum()
        };
        let question = "How do I reset my password?";
        let near = cosine(question, "Changing a forgotten login credential");
        assert!(near > cosine(question, "The mitochondria is the powerhouse of the cell.") + 0.1);
    }
}
