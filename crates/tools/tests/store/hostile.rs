//! Hostile input to every tool: each call gets a reply, and no reply reveals SQL, a server path, or a stack trace.

use serde_json::{Map, Value, json};
use shelf_engine::{Caller, FileAccess};
use shelf_testkit::TestLibrary;
use shelf_tools::{Tool, registry};

/// Text that must not appear in any reply.
const FORBIDDEN: [&str; 13] = [
    "select ",
    "insert into",
    "delete from",
    "sqlite",
    "constraint failed",
    "panicked",
    "rust_backtrace",
    "stack backtrace",
    ".rs:",
    "called `",
    "catalog.db",
    "typemismatch",
    "no such table",
];

fn hostile_texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "",
        " ",
        "'; DROP TABLE documents; --",
        "\" OR 1=1 --",
        "%00",
        "a\u{0}b",
        "../../../../etc/passwd",
        "/etc/passwd",
        "C:\\Windows\\system.ini",
        "file:///etc/passwd",
        "${jndi:ldap://x}",
        "{{7*7}}",
        "%s%s%n",
        "\u{202e}evil",
        "\u{feff}",
        "🙂",
        "null",
        "-1",
        "[]",
        "{}",
        "(a+)+$",
        "[[:alpha:]",
        "(?P<",
        "*",
        "**/*",
        "\\",
        "00000000-0000-0000-0000-000000000000",
        "550e8400-e29b-41d4-a716-446655440000",
        "pat_live_x",
        "eyJ.e30.x",
        "2026-13-45T99:99:99Z",
        "https://127.0.0.1:1/",
        "text://x#lines=1-0",
        "\r\nSet-Cookie: a=b",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push("x".repeat(5_000));
    texts.push("(".repeat(3_000));
    texts
}

fn hostile_values(property: &Value) -> Vec<Value> {
    let mut values: Vec<Value> =
        vec![json!(null), json!(true), json!([]), json!({}), json!({ "a": { "b": [null] } })];
    values.extend([json!(0), json!(-1), json!(1.5), json!(u64::MAX), json!(i64::MIN), json!(1e308)]);
    match property["type"].as_str() {
        Some("array") => values.extend(hostile_texts().into_iter().map(|text| json!([text, text]))),
        _ => values.extend(hostile_texts().into_iter().map(Value::String)),
    }
    values
}

/// The example with one argument replaced, for every argument and every hostile value.
fn attacks(tool: &Tool) -> Vec<Value> {
    let example: Map<String, Value> = serde_json::from_str(tool.example).unwrap();
    let schema = tool.input_schema();
    let mut attacks = vec![json!({ "unknown": 1 }), json!({})];
    for (name, property) in schema["properties"].as_object().unwrap() {
        for value in hostile_values(property) {
            let mut arguments = example.clone();
            arguments.insert(name.clone(), value);
            attacks.push(Value::Object(arguments));
        }
    }
    attacks
}

#[test]
fn no_answer_shows_sql_paths_or_stacks() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "Call the printer.", "name": "notes/monday.txt" }));
    let remote = Caller { file_access: FileAccess::Configured, ..Caller::owner() };
    let place = library.path("").display().to_string().to_lowercase();
    let mut errors = 0;
    for tool in registry() {
        for arguments in attacks(tool) {
            let Err(failure) = library.call_as(&remote, tool.name, arguments.clone()) else { continue };
            errors += 1;
            let shown =
                format!("{} {} {}", failure.text, failure.message, failure.hints.join(" ")).to_lowercase();
            // A reply may repeat what the caller sent.
            let sent = arguments.to_string().to_lowercase();
            for word in FORBIDDEN.iter().copied().chain([place.as_str()]) {
                assert!(!shown.contains(word) || sent.contains(word), "{} {arguments}: {shown}", tool.name);
            }
            assert!(!failure.message.is_empty(), "{} {arguments}", tool.name);
            assert_ne!(failure.kind, shelf_base::Kind::Internal, "{} {arguments}: {shown}", tool.name);
        }
    }
    assert!(errors > 1_000, "only {errors} errors");
}
