//! Budgets against the rule itself: a passage is taken when the whole context with it still fits.

use proptest::prelude::*;
use shelf_base::{
    Digest, Moment,
    ids::{CollectionId, DocumentId},
};
use shelf_catalog::Version;
use shelf_embed::Tokens;

use super::*;

fn document(title: &str) -> Document {
    Document {
        number: 1,
        account_number: 1,
        id: DocumentId::fresh(),
        collection: CollectionId::fresh(),
        collection_name: "default".into(),
        path: title.into(),
        title: title.into(),
        resource_id: None,
        extension: String::new(),
        mime: "text/plain".into(),
        is_text: true,
        document_type: None,
        version: Version {
            number: 1,
            hash: Digest::of(title.as_bytes()),
            size: 0,
            modified_at: Moment::from_micros(0),
            indexed_at: Moment::from_micros(0),
            mode: 0,
        },
        created_at: Moment::from_micros(0),
        tags: Vec::new(),
        metadata: serde_json::Map::new(),
        damaged: Vec::new(),
    }
}

fn tokens(text: &str) -> usize {
    let mut tokens = Tokens::default();
    shelf_embed::tokenize(text, &mut tokens);
    tokens.divide_unknown(text);
    tokens.ids.len()
}

/// Passages of a few documents, in any order.
fn passages() -> impl Strategy<Value = Vec<FoundPassage>> {
    let titles = proptest::collection::vec("[a-zA-Z \u{e000}\u{301}ก-ฮ\n]{0,60}", 1..4);
    let contents = proptest::collection::vec((any::<prop::sample::Index>(), "[a-z .\n\tก-ฮ]{0,90}"), 0..12);
    (titles, contents).prop_map(|(titles, contents)| {
        let documents: Vec<Document> = titles.iter().map(|title| document(title)).collect();
        let found = contents.into_iter().enumerate().map(|(number, (which, content))| FoundPassage {
            document: which.get(&documents).clone(),
            ordinal: (number as u32 * 7) % 5,
            content,
            score: 1.0 / (number + 1) as f32,
            address: format!("text://{number}#lines=1-2"),
            is_cut: false,
            heading: Heading::Whole,
        });
        found.collect()
    })
}

proptest! {
    #[test]
    fn what_is_taken_is_what_fits(passages in passages(), most in 1..400_usize) {
        let mut budget = Budget::new(most);
        for passage in passages {
            let before = budget.taken.clone();
            let with_it: Vec<FoundPassage> = before.iter().cloned().chain([passage.clone()]).collect();
            let fits = tokens(&format_passages(&with_it)) <= most;
            budget.take(&passage);
            // Only a first passage is cut rather than left out.
            if fits || !before.is_empty() {
                prop_assert_eq!(budget.taken.len(), before.len() + usize::from(fits));
            }
            prop_assert_eq!(budget.tokens, tokens(&format_passages(&budget.taken)));
            prop_assert!(budget.tokens <= most);
        }
        let reply = budget.reply(0);
        prop_assert_eq!(reply.tokens, tokens(&reply.context));
    }
}
