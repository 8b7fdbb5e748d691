//! Parses and validates an endpoint's reply.
//!
//! A wrong vector is worse than none: it would be stored, and searches would silently miss its passage forever. A reply
//! is therefore accepted only when every text has exactly one vector and all vectors have the same size.

use serde::Deserialize;

use crate::{ReplyError, builtin::normalise};

#[derive(Deserialize)]
struct Reply {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

/// Parses the vectors of `count` texts, puts them in the order of the texts and scales them to length one.
pub(crate) fn read(bytes: &[u8], count: usize) -> Result<Vec<Vec<f32>>, ReplyError> {
    let Reply { data } =
        serde_json::from_slice(bytes).map_err(|error| ReplyError::NotEmbeddings(error.to_string()))?;
    if data.len() != count {
        return Err(ReplyError::Count { expected: count, found: data.len() });
    }
    let mut vectors = vec![Vec::new(); count];
    for Item { index, embedding } in data {
        match vectors.get_mut(index) {
            Some(place) if place.is_empty() => *place = embedding,
            _ => return Err(ReplyError::Index { index }),
        }
    }
    check(&vectors)?;
    vectors.iter_mut().for_each(|vector| normalise(vector));
    Ok(vectors)
}

fn check(vectors: &[Vec<f32>]) -> Result<(), ReplyError> {
    let expected = vectors.first().map_or(0, Vec::len);
    for (index, vector) in vectors.iter().enumerate() {
        let found = vector.len();
        if found == 0 || found != expected {
            return Err(ReplyError::Size { index, expected, found });
        }
        if !vector.iter().all(|value| value.is_finite()) {
            return Err(ReplyError::NotFinite { index });
        }
    }
    Ok(())
}

/// The message of an error response: the one in its JSON, or the whole body when there is none.
pub(crate) fn message(bytes: &[u8]) -> String {
    let json = serde_json::from_slice::<serde_json::Value>(bytes).ok();
    let places = ["/error/message", "/error", "/message", "/detail"];
    let message =
        json.and_then(|json| places.iter().find_map(|place| Some(json.pointer(place)?.as_str()?.to_owned())));
    message.unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned())
}

/// The beginning of a text, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARACTERS: usize = 200;
    let letters = text.trim().chars().take(CHARACTERS);
    letters.map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reply: &str, expect: Result<&[&[f32]], ReplyError>) {
        let found = read(reply.as_bytes(), 2);
        let expect = expect.map(|vectors| vectors.iter().map(|vector| vector.to_vec()).collect::<Vec<_>>());
        assert_eq!(found, expect, "{reply}");
    }

    #[test]
    fn vectors_are_put_in_order_and_scaled() {
        let reply =
            r#"{"object":"list","data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[3,4]}]}"#;
        check(reply, Ok(&[&[0.6, 0.8], &[0.0, 1.0]]));
    }

    #[test]
    fn invalid_replies_are_rejected() {
        let item = |index: usize, vector: &str| format!(r#"{{"index":{index},"embedding":{vector}}}"#);
        let reply = |items: &[String]| format!(r#"{{"data":[{}]}}"#, items.join(","));
        check(&reply(&[item(0, "[1]")]), Err(ReplyError::Count { expected: 2, found: 1 }));
        check(&reply(&[item(0, "[1]"), item(0, "[1]")]), Err(ReplyError::Index { index: 0 }));
        check(&reply(&[item(0, "[1]"), item(2, "[1]")]), Err(ReplyError::Index { index: 2 }));
        let size = ReplyError::Size { index: 1, expected: 1, found: 2 };
        check(&reply(&[item(0, "[1]"), item(1, "[1,2]")]), Err(size));
        check(
            &reply(&[item(0, "[]"), item(1, "[]")]),
            Err(ReplyError::Size { index: 0, expected: 0, found: 0 }),
        );
        let (nothing, too_large) = (reply(&[item(0, "[null]")]), reply(&[item(0, "[1e60]")]));
        for reply in ["", "[]", "null", &nothing, &too_large, r#"{"data":[{"embedding":[1]}]}"#] {
            assert!(matches!(read(reply.as_bytes(), 1), Err(ReplyError::NotEmbeddings(_))), "{reply}");
        }
    }

    #[test]
    fn messages_are_found_and_shortened() {
        assert_eq!(message(br#"{"error":{"message":"no such model","type":"x"}}"#), "no such model");
        assert_eq!(message(br#"{"detail":"too long"}"#), "too long");
        assert_eq!(message(b"<h1>Sorry</h1>"), "<h1>Sorry</h1>");
        assert_eq!(excerpt(" two\nlines\u{7} "), "two lines ");
        assert_eq!(excerpt(&"x".repeat(999)).len(), 200);
    }
}
