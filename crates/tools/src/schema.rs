//! Schemas that every client understands: plain types, no lists of types, no Rust number formats, no references.
//!
//! A field of a reply that may be null is marked with `x-or-null` and becomes a choice of two schemas, which clients that
//! convert schemas understand where they do not understand a list of types or a schema without any.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Map, Value, json};

/// The schema of `T`, made portable.
pub fn of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut value = schema.to_value();
    make_portable(&mut value);
    if let Value::Object(object) = &mut value {
        object.remove("title");
        object.remove("description");
    }
    value
}

/// The schema as an object. A schema that is not an object is a defect, which the registry's test finds.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// The schema of a reply, without the descriptions below its first level: what a field of a field means is said by its
/// name, and a model pays for every word of every tool.
pub(crate) fn brief(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut() {
            if let Value::Object(property) = property {
                let about = property.shift_remove("description");
                property.values_mut().for_each(without_descriptions);
                if let Some(about) = about {
                    property.insert("description".into(), about);
                }
            }
        }
    }
    if let Some(items) = schema.get_mut("items") {
        without_descriptions(items);
    }
    schema
}

fn without_descriptions(value: &mut Value) {
    match value {
        Value::Object(object) => {
            // A field may itself be called `description`; then it is a schema, not a text.
            if object.get("description").is_some_and(Value::is_string) {
                object.shift_remove("description");
            }
            object.values_mut().for_each(without_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(without_descriptions),
        _ => {}
    }
}

fn make_portable(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for open in ["additionalProperties", "items"] {
                // What is allowed anyway; some clients take only schemas in these places.
                if object.get(open).is_some_and(Value::is_boolean) {
                    object.shift_remove(open);
                }
            }
            if object.get("format").and_then(Value::as_str).is_some_and(|format| format != "date-time") {
                object.remove("format");
            }
            if let Some(Value::Array(types)) = object.get("type") {
                let plain: Vec<&Value> = types.iter().filter(|kind| *kind != "null").collect();
                if let [only] = plain[..] {
                    let only = only.clone();
                    object.insert("type".into(), only);
                }
            }
            drop_null_branch(object);
            if object.get("default").is_some_and(Value::is_null) {
                object.shift_remove("default");
            }
            object.values_mut().for_each(make_portable);
            or_null(object);
        }
        Value::Array(items) => items.iter_mut().for_each(make_portable),
        _ => {}
    }
}

/// Any value, for fields whose type is not known in advance.
pub(crate) struct Anything;

impl JsonSchema for Anything {
    fn schema_name() -> Cow<'static, str> {
        "Anything".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let types = ["string", "number", "boolean", "array", "object"].map(|kind| json!({ "type": kind }));
        json_schema!({ "anyOf": types, OR_NULL: true })
    }
}

/// Marks a field of a reply that may be null.
const OR_NULL: &str = "x-or-null";

/// Makes a choice of a field that may be null.
fn or_null(object: &mut Map<String, Value>) {
    if object.shift_remove(OR_NULL).is_none() {
        return;
    }
    let about = object.shift_remove("description");
    let plain = std::mem::take(object);
    let mut branches = match plain.get("anyOf") {
        Some(Value::Array(branches)) => branches.clone(),
        _ => vec![Value::Object(plain)],
    };
    branches.push(json!({ "type": "null" }));
    object.insert("anyOf".into(), branches.into());
    object.extend(about.map(|about| ("description".to_owned(), about)));
}

/// A nullable argument is simply not required: removes the null branch, and inlines a single remaining branch.
fn drop_null_branch(object: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = object.get_mut("anyOf") else { return };
    branches.retain(|branch| branch.get("type").and_then(Value::as_str) != Some("null"));
    if let [Value::Object(only)] = &branches[..] {
        let only = only.clone();
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}
