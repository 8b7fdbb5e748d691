//! Reading fields of tool replies. A reply fits its schema, so what is missing is simply absent.

use serde_json::Value;

/// Short ways to the fields of a JSON object.
pub(crate) trait Fields {
    /// A text; empty when there is none.
    fn text(&self, name: &str) -> &str;
    /// A text that may be absent.
    fn maybe(&self, name: &str) -> Option<&str>;
    /// A number; 0 when there is none.
    fn number(&self, name: &str) -> u64;
    /// A list; empty when there is none.
    fn list(&self, name: &str) -> &[Value];
    /// A truth; false when there is none.
    fn flag(&self, name: &str) -> bool;
}

impl Fields for Value {
    fn text(&self, name: &str) -> &str {
        self.maybe(name).unwrap_or_default()
    }

    fn maybe(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Self::as_str)
    }

    fn number(&self, name: &str) -> u64 {
        self.get(name).and_then(Self::as_u64).unwrap_or_default()
    }

    fn list(&self, name: &str) -> &[Value] {
        self.get(name).and_then(Self::as_array).map_or(&[], Vec::as_slice)
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Self::as_bool).unwrap_or_default()
    }
}
