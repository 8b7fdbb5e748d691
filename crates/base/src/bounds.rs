//! Limits shared by all tool families.

/// Longest document name or path, in bytes.
pub const PATH_BYTES: usize = 1_024;
/// Longest tag, in bytes.
pub const TAG_BYTES: usize = 256;
/// Most tags on one document.
pub const TAGS_PER_DOCUMENT: usize = 128;
/// Largest metadata object, in bytes of JSON.
pub const METADATA_BYTES: usize = 64 * 1_024;
/// Largest request body or stdio line a caller may send.
pub const REQUEST_BYTES: usize = 32 * 1_024 * 1_024;
/// Longest collection name, in characters.
pub const COLLECTION_CHARS: usize = 100;
/// Longest snapshot label, in bytes.
pub const LABEL_BYTES: usize = 256;
/// Longest glob pattern, in bytes.
pub const GLOB_BYTES: usize = 1_024;
/// Most glob patterns in one argument.
pub const GLOBS_PER_CALL: usize = 256;
/// Longest regular expression, in bytes.
pub const REGEX_BYTES: usize = 4_096;
/// Most characters in one page of a list reply.
pub const PAGE_CHARS: usize = 40_000;
/// Shortest hash prefix that identifies a blob.
pub const HASH_PREFIX_CHARS: usize = 8;
/// Most bytes of a caller's text that a message repeats where it is a name or an address.
pub const ECHO_BYTES: usize = 256;
/// Longest message of an error, in bytes; of a longer one the middle is left out.
pub const MESSAGE_BYTES: usize = 16_384;
/// Longest citation address, in bytes.
pub const ADDRESS_BYTES: usize = 4_096;
/// Most pages that one citation address lists.
pub const ADDRESS_PAGES: usize = 10_000;
/// Longest search query, in bytes.
pub const QUERY_BYTES: usize = 8_192;
