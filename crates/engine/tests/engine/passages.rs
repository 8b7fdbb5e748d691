//! Passages within a budget: what is counted is what is given.

use shelf_base::CallContext;
use shelf_embed::Tokens;
use shelf_engine::{Caller, DocumentType, Library, Options, PassageRequest, StoreRequest};

/// A small generator, so that every run asks the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }
}

const WORDS: [&str; 24] = [
    "heron",
    "river",
    "configuration",
    "token",
    "ünïcode",
    "library",
    "passage",
    "authentication",
    "日本語",
    "cite",
    "budget",
    "otter",
    "walrus",
    "snow",
    "block",
    "journal",
    "seal",
    "index",
    "vector",
    "night",
    "x1",
    "naïve",
    "e-mail",
    "under_score",
];

fn text(dice: &mut Dice, words: usize) -> String {
    let mut text = String::new();
    if dice.roll(6) == 0 {
        text.push_str(&"ไม่มีช่องว่างx".repeat(1 + dice.roll(200)));
    }
    for at in 0..words {
        text.push_str(WORDS[dice.roll(WORDS.len())]);
        text.push_str(match dice.roll(14) {
            0 => ".\n\n",
            1 => ",\n",
            2 if at > 20 => "\n\n## Heading\n\n",
            _ => " ",
        });
    }
    text
}

fn tokens(text: &str) -> usize {
    let mut tokens = Tokens::default();
    shelf_embed::tokenize(text, &mut tokens);
    tokens.divide_unknown(text);
    tokens.ids.len()
}

#[test]
fn two_hundred_budgets_hold_and_totals_do_not_depend_on_them() {
    let folder = tempfile::tempdir().unwrap();
    let library = Library::open(folder.path(), Options::default()).unwrap();
    let (owner, call, mut dice) = (Caller::owner(), CallContext::new(), Dice(7));
    for number in 0..40 {
        let words = 20 + dice.roll(900);
        let request = StoreRequest {
            title: format!("Paper {number} on {}", WORDS[dice.roll(WORDS.len())]),
            content: text(&mut dice, words),
            document_type: Some(DocumentType::Markdown),
            metadata: serde_json::Map::new(),
            collection: None,
        };
        let stored = library.store_document(&owner, &request, &call).unwrap();
        assert_eq!(stored.tokens, tokens(&request.content));
    }
    for _ in 0..200 {
        let query =
            (0..1 + dice.roll(3)).map(|_| WORDS[dice.roll(WORDS.len())]).collect::<Vec<_>>().join(" ");
        let ask = |limit, tokens| {
            let request = PassageRequest { query: query.clone(), limit, tokens, collection: None };
            library.search_passages(&owner, &request, &call).unwrap()
        };
        let (limit, budget) = (1 + dice.roll(20), 1 + dice.roll(3_000));
        let found = ask(limit, budget);
        assert_eq!(found.tokens, tokens(&found.context), "{query}");
        assert!(found.tokens <= budget, "{query}: {} of {budget}", found.tokens);
        assert!(found.passages.len() <= limit);
        for passage in &found.passages {
            assert!(found.context.contains(&passage.content), "{query}");
        }
        let everything = ask(10_000, 10_000_000);
        assert_eq!(found.total, everything.total, "{query}");
        assert_eq!(everything.total, everything.passages.len() as u64, "{query}: the total is what there is");
    }
}
