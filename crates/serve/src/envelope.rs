//! The envelope of a JSON-RPC message, looked at before the MCP library sees it, so that every fault gets an answer
//! with the id of its request.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use shelf_base::bounds::REQUEST_BYTES;
use shelf_tools::verbatim;

/// Levels of nesting that a message may have; the library gives up a little above.
const DEPTH: usize = 100;

/// Why a message is refused.
#[derive(Debug, PartialEq)]
pub(crate) struct MessageError {
    code: i32,
    text: String,
    id: Option<Value>,
}

impl MessageError {
    fn new(code: i32, text: impl Into<String>, id: Option<Value>) -> Self {
        Self { code, text: text.into(), id }
    }

    /// The message was too large to be read.
    pub(crate) fn too_large() -> Self {
        Self::new(-32600, format!("the request is larger than {} MiB", REQUEST_BYTES >> 20), None)
    }

    /// A request of a batch that is not carried out, or whose reply cannot be given.
    pub(crate) fn in_batch(text: &str, id: Option<Value>) -> Self {
        Self::new(-32600, text, id)
    }

    /// The same fault, of a request whose id was found in what is left of it.
    pub(crate) fn with_id(mut self, id: Option<Value>) -> Self {
        self.id = id;
        self
    }

    /// The error message; without an id when none could be read.
    pub(crate) fn message(&self) -> Value {
        let mut message = json!({ "jsonrpc": "2.0", "error": { "code": self.code, "message": self.text } });
        if let Some(id) = &self.id {
            message["id"] = id.clone();
        }
        message
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default, borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(default)]
    id: Option<Value>,
    #[serde(default, borrow)]
    method: Option<&'a RawValue>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// Checks a message without reading more of it than its envelope.
pub(crate) fn check(bytes: &[u8]) -> Result<(), MessageError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let depth = depth_of(bytes);
    let text = std::str::from_utf8(bytes)
        .map_err(|_| MessageError::new(-32700, "the message is not valid UTF-8", None))?;
    if depth > DEPTH {
        return Err(MessageError::new(
            -32600,
            format!("the message is nested deeper than {DEPTH} levels"),
            find_id(text),
        ));
    }
    let trimmed = text.trim_start();
    if trimmed.starts_with('[') {
        return Err(MessageError::new(-32600, NO_BATCHES, None));
    }
    let envelope: Envelope<'_> = match serde_json::from_str(text) {
        Ok(envelope) => envelope,
        Err(error) if error.is_data() => {
            return Err(MessageError::new(-32600, "a message is a JSON object", None));
        }
        Err(_) => return Err(MessageError::new(-32700, "the message is not valid JSON", None)),
    };
    let id = envelope.id.clone().filter(|id| id.is_string() || id.is_i64() || id.is_u64());
    // Half a surrogate pair passes as long as nobody reads the text; only where one may stand is the whole read here.
    if (text.contains("\\ud") || text.contains("\\uD")) && serde_json::from_str::<Value>(text).is_err() {
        return Err(MessageError::new(-32700, "the message holds text that is not Unicode", id));
    }
    if envelope.id.is_some() && id.is_none() {
        return Err(MessageError::new(-32600, "id must be a string or an integer", None));
    }
    let refuse = |code, text: &str| Err(MessageError::new(code, text, id.clone()));
    if envelope.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
        return refuse(-32600, "jsonrpc must be \"2.0\"");
    }
    match envelope.method {
        Some(method) if !method.get().starts_with('"') => refuse(-32600, "method must be a string"),
        Some(_) if envelope.params.is_some_and(|params| !params.get().starts_with('{')) => {
            refuse(-32602, "params must be an object")
        }
        None if envelope.result.is_none() && envelope.error.is_none() => {
            refuse(-32600, "a message needs a method, or is the reply to a request")
        }
        _ => Ok(()),
    }
}

const NO_BATCHES: &str =
    "batches are a part of revision 2025-03-26 over HTTP only: send one message at a time";

/// The messages of a batch, of which each is still to be checked.
pub(crate) fn split(bytes: &[u8], most: usize) -> Result<Vec<Box<RawValue>>, MessageError> {
    let refuse = |code, text: String| Err(MessageError::new(code, text, None));
    // One level is the batch itself.
    if depth_of(bytes) > DEPTH + 1 {
        return refuse(-32600, format!("a message of the batch is nested deeper than {DEPTH} levels"));
    }
    let Ok(messages) = serde_json::from_slice::<Vec<Box<RawValue>>>(bytes) else {
        return refuse(-32700, "the batch is not valid JSON".into());
    };
    match messages.len() {
        0 => refuse(-32600, "a batch needs at least one message".into()),
        count if count > most => refuse(-32600, format!("a batch may hold {most} messages, not {count}")),
        _ => Ok(messages),
    }
}

/// Whether a text is a batch of messages.
pub(crate) fn is_batch(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"[")
}

/// The id of a checked message, if it is a request.
pub(crate) fn id(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice::<Envelope<'_>>(bytes).ok()?.id
}

/// The method that a checked message calls.
pub(crate) fn method(bytes: &[u8]) -> Option<String> {
    let envelope: Envelope<'_> = serde_json::from_slice(bytes).ok()?;
    serde_json::from_str(envelope.method?.get()).ok()
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow)]
    params: ToolParams<'a>,
}

#[derive(Deserialize)]
struct ToolParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// A checked message as the MCP library may read it: what a tool keeps as it was written is wrapped, because the library
/// reads numbers.
pub(crate) fn keep_text(message: Vec<u8>) -> Vec<u8> {
    let wrapped =
        std::str::from_utf8(&message).ok().filter(|text| verbatim::may_wrap(text)).and_then(|text| {
            let call: ToolCall<'_> = serde_json::from_str(text).ok()?;
            verbatim::wrap(&call.params.name, text, &["params", "arguments"])
        });
    wrapped.map_or(message, String::into_bytes)
}

/// How deeply the message is nested, told without recursion.
fn depth_of(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The id of a request that cannot be read whole, from wherever `"id":` first stands.
pub(crate) fn find_id(text: &str) -> Option<Value> {
    let after = text.split_once("\"id\"")?.1.trim_start().strip_prefix(':')?.trim_start();
    let id: Value = serde_json::Deserializer::from_str(after).into_iter().next()?.ok()?;
    (id.is_number() || id.is_string()).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(message: &str) -> Option<(i64, Value)> {
        let fault = check(message.as_bytes()).err()?.message();
        Some((fault["error"]["code"].as_i64()?, fault["id"].clone()))
    }

    #[test]
    fn only_what_a_tool_keeps_is_wrapped() {
        let call = |name: &str| {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{{"entry":{{"a":1.10}}}},"_meta":{{"p":1}}}}}}"#
            );
            (String::from_utf8(keep_text(text.clone().into_bytes())).unwrap(), text)
        };
        let (kept, text) = call("write_memory_entry");
        let (kept, text): (Value, Value) =
            (serde_json::from_str(&kept).unwrap(), serde_json::from_str(&text).unwrap());
        let entry = &kept["params"]["arguments"]["entry"];
        assert_eq!(entry.as_object().unwrap().values().collect::<Vec<_>>(), [&json!("{\"a\":1.10}")]);
        assert_eq!((&kept["params"]["_meta"], &kept["id"]), (&text["params"]["_meta"], &text["id"]));
        let (kept, text) = call("add");
        assert_eq!(kept, text);
        let mention =
            r#"{"method":"tools/call","params":{"name":"add","arguments":{"content":"write_memory_entry"}}}"#;
        assert_eq!(keep_text(mention.as_bytes().to_vec()), mention.as_bytes());
    }

    #[test]
    fn every_fault_is_answered_with_the_id_it_had() {
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), None);
        assert_eq!(answer(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), None);
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":"a","result":{}}"#), None);
        assert_eq!(answer("{"), Some((-32700, Value::Null)));
        assert_eq!(answer("5"), Some((-32600, Value::Null)));
        assert_eq!(answer("[]"), Some((-32600, Value::Null)));
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":1}"#), Some((-32600, json!(1))));
        assert_eq!(answer(r#"{"jsonrpc":"2.0"}"#), Some((-32600, Value::Null)));
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#), None);
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#), Some((-32600, Value::Null)));
        assert_eq!(answer(r#"{"id":9,"method":"ping"}"#), Some((-32600, json!(9))));
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":"x","method":5}"#), Some((-32600, json!("x"))));
        assert_eq!(
            answer(r#"{"jsonrpc":"2.0","id":10,"method":"tools/list","params":[]}"#),
            Some((-32602, json!(10)))
        );
        let half = r#"{"jsonrpc":"2.0","id":6,"method":"m","params":{"x":"\ud83d"}}"#;
        assert_eq!(answer(half), Some((-32700, json!(6))));
        let pair = r#"{"jsonrpc":"2.0","id":6,"method":"m","params":{"x":"\ud83d\ude42"}}"#;
        assert_eq!(answer(pair), None);
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"x":{}1{}}}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        assert_eq!(answer(&deep), Some((-32600, json!(7))));
        let endless = format!(r#"{{"jsonrpc":"2.0","id":8,"x":{}"#, "{\"a\":".repeat(5_000));
        assert_eq!(answer(&endless), Some((-32600, json!(8))));
    }
}
