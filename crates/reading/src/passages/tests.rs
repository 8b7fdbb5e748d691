//! Passages of particular texts, and properties of every passage.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn text(text: &str, markup: Markup) -> Text<'_> {
    Text { text: text.into(), as_stored: true, pages: Vec::new(), markup, layout: crate::Layout::default() }
}

/// A simple tokenizer: every run of letters or digits and every other visible character is a token.
fn tokens_of(text: &str) -> Vec<u32> {
    let mut tokens = Vec::new();
    let mut in_word = false;
    for (at, character) in text.char_indices() {
        let letter = character.is_ascii_alphanumeric();
        let within = letter && in_word;
        if !character.is_whitespace() && !within {
            tokens.push(at as u32);
        }
        in_word = letter;
    }
    tokens
}

fn cut(content: &str, markup: Markup) -> Vec<(&str, Passage)> {
    let tokens = tokens_of(content);
    let found = passages(&text(content, markup), &tokens);
    check(content, &tokens, &found);
    found
        .into_iter()
        .map(|each| (&content[each.bytes.start as usize..each.bytes.end as usize], each))
        .collect()
}

/// Checks the guarantees, each in the simplest way.
fn check(content: &str, tokens: &[u32], found: &[Passage]) {
    let mut covered = vec![false; tokens.len()];
    let mut previous: Option<&Passage> = None;
    for passage in found {
        let (start, end) = (passage.bytes.start as usize, passage.bytes.end as usize);
        let piece = content.get(start..end).expect("character boundaries");
        assert!(!piece.is_empty() && piece.trim() == piece);
        assert!(!passage.tokens.is_empty() && passage.tokens.len() <= MOST);
        let line = |byte: usize| content[..byte].matches('\n').count() as u32 + 1;
        assert_eq!(passage.lines, (line(start), line(end)));
        if let Some(previous) = previous {
            assert!(passage.tokens.start > previous.tokens.start && passage.tokens.end > previous.tokens.end);
            assert!(passage.bytes.start >= previous.bytes.start && passage.bytes.end >= previous.bytes.end);
        }
        for token in passage.tokens.clone() {
            covered[token as usize] = true;
            let byte = tokens[token as usize] as usize;
            let blank = content[byte..].chars().next().is_none_or(char::is_whitespace);
            assert!(blank || (start..end).contains(&byte), "token {token} outside its passage");
        }
        previous = Some(passage);
    }
    for (index, covered) in covered.iter().enumerate() {
        let end = tokens.get(index + 1).map_or(content.len(), |end| *end as usize);
        let blank = content[tokens[index] as usize..end].trim().is_empty();
        assert!(*covered || blank, "token {index} in no passage");
    }
}

fn words(count: usize) -> String {
    (0..count).map(|number| format!("word{number} ")).collect()
}

#[test]
fn empty_and_blank_texts_have_no_passages() {
    assert!(passages(&text("", Markup::Plain), &[]).is_empty());
    assert!(passages(&text(" \n\n\t ", Markup::Plain), &[]).is_empty());
    assert!(passages(&text(&"\n".repeat(5_000), Markup::Plain), &(0..5_000).collect::<Vec<_>>()).is_empty());
}

#[test]
fn a_short_text_is_one_passage() {
    let found = cut("\n\n  # One\n\ntext\n\n# Two\n\nmore\n\n", Markup::Markdown);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "# One\n\ntext\n\n# Two\n\nmore");
    assert_eq!(found[0].1.lines, (3, 9));
    assert_eq!(found[0].1.pages, None);
}

#[test]
fn headings_are_preferred_and_passages_do_not_overlap_across_them() {
    let content = format!("# A\n\n{}\n\n## B\n\n{}\n\n{}", words(250), words(100), words(300));
    let found = cut(&content, Markup::Markdown);
    assert!(found[1].0.starts_with("## B"));
    assert_eq!(found[0].1.tokens.end, found[1].1.tokens.start);
}

#[test]
fn paragraphs_then_sentences_then_tokens() {
    let found = cut(&format!("{}\n\n{}\n{}", words(300), words(50), words(300)), Markup::Plain).len();
    assert_eq!(found, 2);
    let content = format!("{}\n\n{}\n{}", words(300), words(50), words(300));
    assert!(cut(&content, Markup::Plain)[0].0.ends_with("word299"));
    let content = format!("{}end. {}", words(300), words(300));
    assert!(cut(&content, Markup::Plain)[0].0.ends_with("end."));
    let content = words(1_000);
    let found = cut(&content, Markup::Plain);
    assert_eq!(found[0].1.tokens, 0..400);
    assert_eq!(found[1].1.tokens, 350..750);
}

#[test]
fn the_next_passage_begins_with_a_line() {
    let content = (0..500).map(|number| format!("l{number} b c d e f g h i j\n")).collect::<String>();
    for markup in [Markup::Plain, Markup::Code] {
        let found = cut(&content, markup);
        assert!(found.iter().all(|(piece, _)| piece.starts_with('l')));
        assert_eq!(found[0].1.tokens, 0..400);
        assert_eq!(found[1].1.tokens.start, 350);
    }
}

#[test]
fn fences_stay_whole_when_they_fit() {
    let code = (0..70).map(|number| format!("# {number} = x;\n\n")).collect::<String>();
    let fence = format!("```\n{code}```\n");
    for before in [10, 100, 190, 210, 350, 390] {
        let content = format!("{}\n\n{fence}\n{}", words(before), words(500));
        let found = cut(&content, Markup::Markdown);
        let whole = found.iter().filter(|(piece, _)| piece.contains(fence.trim_end())).count();
        assert_eq!(whole, 1, "{before} words before");
        let torn = found.iter().filter(|(piece, _)| piece.matches("```").count() == 1).count();
        assert_eq!(torn, 0, "{before} words before");
    }
}

#[test]
fn a_long_fence_is_split_at_lines() {
    let code = (0..600).map(|number| format!("let v{number} = f. g;\n")).collect::<String>();
    let content = format!("# T\n\n~~~\n{code}~~~\n\nEnd.");
    let found = cut(&content, Markup::Markdown);
    assert!(found.len() > 5);
    let (last, middle) = found[1..].split_last().unwrap();
    assert!(middle.iter().all(|(piece, _)| piece.starts_with("let v") && piece.ends_with([';', '~'])));
    assert!(last.0.ends_with("End."));
}

#[test]
fn text_without_spaces_and_windows_line_endings() {
    let found = cut(&"漢字".repeat(3_000), Markup::Plain).len();
    assert_eq!(found, 1 + (6_000_usize - 400).div_ceil(350));
    let content = "図書館で本を読む。".repeat(200);
    assert!(
        cut(&content, Markup::Plain)
            .iter()
            .all(|(piece, _)| piece.starts_with('図') && piece.ends_with('。'))
    );
    let content = "one two three\r\n\r\n".repeat(400);
    let found = cut(&content, Markup::Plain);
    assert_eq!(found[0].1.lines, (1, 265));
}

#[test]
fn passages_may_span_pages() {
    let content = format!("{}\n{}\n{}\n", words(320), words(300), words(10));
    let second = content.find('\n').unwrap() as u32 + 1;
    let third = content.trim_end().rfind('\n').unwrap() as u32 + 1;
    let text = Text { pages: vec![0, second, third], ..text(&content, Markup::Plain) };
    let found = passages(&text, &tokens_of(&content));
    assert_eq!(found.iter().map(|each| each.pages).collect::<Vec<_>>(), [Some((1, 1)), Some((1, 3))]);
}

#[test]
fn divided_characters_and_invalid_tokens_do_no_harm() {
    let content = "🦀".repeat(2_000);
    let bytes: Vec<u32> = (0..content.len() as u32).collect();
    for passage in passages(&text(&content, Markup::Plain), &bytes) {
        assert!(content.get(passage.bytes.start as usize..passage.bytes.end as usize).is_some());
    }
    let wrong = [vec![7; 3_000], (0..3_000).rev().collect(), vec![u32::MAX; 3_000]];
    for tokens in &wrong {
        for markup in [Markup::Markdown, Markup::Plain, Markup::Code] {
            passages(&text(&content, markup), tokens);
        }
    }
}

/// The limit is generous, but any quadratic step would take minutes.
#[test]
fn large_texts_of_any_shape_are_fast() {
    let size = 8 * 1_024 * 1_024;
    let shapes = [
        "a",
        "\n",
        "\n\n",
        "# a\n",
        "```\n",
        "~~~\nx\n~~~\n",
        "a. ",
        "a b\n---\n",
        " ",
        "\t\n ",
        "。",
        "- a\n",
    ];
    for shape in shapes {
        let content = shape.repeat(size / shape.len());
        for step in [4, 4_096] {
            let tokens: Vec<u32> =
                (0..size as u32).step_by(step).filter(|at| content.is_char_boundary(*at as usize)).collect();
            for markup in [Markup::Markdown, Markup::Plain, Markup::Code] {
                let begun = Instant::now();
                passages(&text(&content, markup), &tokens);
                assert!(begun.elapsed() < Duration::from_secs(5), "{shape:?} {step} {markup:?}");
            }
        }
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "word ",
        "x",
        "\n",
        "\n\n",
        "\r\n",
        ". ",
        "! ",
        "。",
        "漢字",
        "🦀",
        "# h\n",
        "\n## h\n",
        "```\n",
        "~~~\n",
        "    ",
        "\t",
        "h\n===\n",
        "- item\n",
        "é",
        "\u{a0}",
        "long line of several words here\n",
        "---\n",
    ]);
    prop::collection::vec((piece, 1..20_usize), 0..160)
        .prop_map(|pieces| pieces.into_iter().map(|(piece, times)| piece.repeat(times)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn guarantees_hold_for_any_text(
        content in pieces(),
        seed in any::<u64>(),
        density in 1..6_u64,
        markup in prop::sample::select(vec![Markup::Markdown, Markup::Plain, Markup::Code]),
    ) {
        let mut state = seed | 1;
        let mut chosen = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % density == 0
        };
        let tokens: Vec<u32> =
            content.char_indices().filter(|_| chosen()).map(|(at, _)| at as u32).collect();
        let found = passages(&text(&content, markup), &tokens);
        check(&content, &tokens, &found);
        if tokens.len() <= MOST {
            prop_assert!(found.len() <= 1);
        }
    }
}
