//! Markdown that is made to take long, which is shown as it is written.

use std::collections::HashMap;

/// How many elements may be left open: sanitizing takes the square of how deep they lie in each other.
const MOST_OPEN: usize = 2_000;
/// Elements that never hold others of their kind, whatever is around them.
const FLAT: [&str; 7] = ["br", "dd", "dt", "hr", "img", "li", "p"];
/// How many quotations and lists may begin on one line: reading more takes the square of their number.
const MOST_ON_A_LINE: usize = 600;

/// Whether a line opens so many quotations and lists that the text is made to take long. It is shown as it is then.
pub(super) fn is_tiring(text: &str) -> bool {
    let edges = |line: &str| {
        let sign = |sign: &char| matches!(sign, '>' | ' ' | '\t' | '-' | '+' | '*' | '.' | ')' | '0'..='9');
        line.chars().take_while(sign).filter(|sign| !matches!(sign, ' ' | '\t' | '0'..='9')).count()
    };
    // A line of dashes, stars or dots without blanks is a rule or a word, and opens nothing.
    let opens = |line: &str| line.contains('>') || line.contains([' ', '\t']);
    text.split(['\n', '\r'])
        .any(|line| line.len() > MOST_ON_A_LINE && opens(line) && edges(line) > MOST_ON_A_LINE)
}

/// Whether a page leaves so many elements open that it is made to take long. What closes one element closes no other: a
/// closing tag without its opening one says nothing.
pub(super) fn leaves_open(html: &str) -> bool {
    let mut open: HashMap<&str, usize> = HashMap::new();
    let mut all = 0_usize;
    for tag in html.split('<').skip(1) {
        let (closes, rest) = tag.strip_prefix('/').map_or((false, tag), |rest| (true, rest));
        let end = rest.find(|sign: char| !sign.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let name = &rest[..end];
        if !name.starts_with(|sign: char| sign.is_ascii_alphabetic()) || FLAT.contains(&name) {
            continue;
        }
        let count = open.entry(name).or_default();
        if !closes {
            *count += 1;
            all += 1;
        } else if *count > 0 {
            *count -= 1;
            all -= 1;
        }
        if all > MOST_OPEN {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{
        super::markdown::{Home, page},
        is_tiring, leaves_open,
    };

    #[test]
    fn elements_without_end_are_noticed() {
        for part in ["<div>", "<ul><li>", "<i><div>", "<div></x>", "<div><table></div>", "<svg><td>"] {
            assert!(leaves_open(&part.repeat(3_000)), "{part}");
        }
        for part in ["<div>a</div>", "<p>a", "<li>a", "<br>", "a < b ", "</div>", "<ul><li>a<li>b</ul>"] {
            assert!(!leaves_open(&part.repeat(3_000)), "{part}");
        }
    }

    fn body(text: &str) -> String {
        page(text, &Home::nowhere(), None).body.into_string()
    }

    #[test]
    fn a_text_that_is_made_to_take_long_is_shown_as_it_is() {
        for part in [">", "> ", "- ", "* ", "+ ", "1. ", "1) ", "-\t", "> - "] {
            let text = part.repeat(400_000 / part.len());
            let begun = std::time::Instant::now();
            assert!(body(&text).starts_with("<pre tabindex=\"0\">"), "{part:?}");
            assert!(begun.elapsed() < std::time::Duration::from_secs(2), "{part:?} {:?}", begun.elapsed());
        }
        for fine in
            ["-".repeat(2_000), format!("| {} |", "-".repeat(2_000)), format!("a {}", "> ".repeat(2_000))]
        {
            assert!(!is_tiring(&fine), "{fine}");
        }
    }

    /// Whatever the text, its page does not take long.
    #[test]
    fn pages_take_no_longer_than_others_of_their_size() {
        const PARTS: &[&str] = &[
            "[",
            "]",
            "[a](",
            "[a](b) ",
            "![",
            "*",
            "**a",
            "*a ",
            "_a",
            "*a_b ",
            "`",
            "``a`",
            "<",
            "<a",
            "<a ",
            "<a b=",
            "<!--",
            "<?",
            "<![CDATA[",
            "</a>",
            "|",
            "| a ",
            "|-",
            "a|b\n",
            "|-|-\n",
            "| a | b |\n|-|-|\n",
            "- a\n",
            " - a\n",
            "> a\n",
            "- - a\n",
            "> > > > a\n\n",
            "1. a\n\n",
            "[a]: b\n",
            "[a]\n",
            "[a]: <",
            "[a]: b \"",
            "[^1]",
            "[^1]: a\n",
            "~~a",
            "~",
            "# a\n",
            "#",
            "a\n===\n",
            "```\n",
            "~~~",
            "&amp;",
            "&",
            "\\",
            "http://a.b ",
            "<http://a>",
            "a\n",
            "\n",
            " ",
            "\t",
            "<div>",
            "<b>",
            "<b><p>",
            "<a href=x>",
            "<table>",
            "<table><tr><td>",
            "<ul><li>",
            "<p>",
            "<svg>",
            "<font><p>",
            "<i><div>",
            "<div>\n\n",
            "<nobr>",
            "<button>",
            "<select><option>",
            "<ruby><rt>",
            "<dl><dd>",
            "</p>",
            "</b>",
            "<h1>",
            "<img ",
            "<img>",
            "\"",
            "<x \"",
            "é",
            "- [ ] a\n",
            "[[a]]",
            "![a](b \"",
            "(",
            "{",
            "$",
            ":",
            "a\n: b\n",
        ];
        let numbered =
            |part: &str| (0..2_000).map(|at| part.replace('%', &at.to_string())).collect::<String>();
        let texts = PARTS.iter().map(|part| ((*part).to_owned(), part.repeat(40_000 / part.len())));
        let numbered = [
            "[a%]: b\n",
            "[a%]\n",
            "[^a%]",
            "[^a%]: b\n",
            "<b id=%>",
            "<b id=%><p>",
            "# a\n",
            "<a id=% href=x><p>",
            "# a%\n",
        ]
        .map(|part| (part.to_owned(), numbered(part)));
        let mut slow = Vec::new();
        for (part, text) in texts.chain(numbered) {
            let begun = std::time::Instant::now();
            let _page = body(&text);
            if begun.elapsed() > std::time::Duration::from_secs(5) {
                slow.push(format!("{part:?}: {:?}", begun.elapsed()));
            }
        }
        assert!(slow.is_empty(), "{}", slow.join("\n"));
    }
}
