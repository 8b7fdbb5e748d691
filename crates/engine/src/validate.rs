//! The shared rules for names, tags and metadata.

use std::{collections::BTreeSet, os::unix::ffi::OsStrExt, path::Path};

use shelf_base::bounds;
use shelf_catalog::{Filter, Metadata};

use crate::{Error, Result};

pub(crate) fn path(field: &str, text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::invalid(field, "must not be empty"));
    }
    if text.len() > bounds::PATH_BYTES {
        return Err(Error::TooLarge {
            what: field.to_owned(),
            limit: format!("{} bytes", bounds::PATH_BYTES),
        });
    }
    if text.chars().any(char::is_control) {
        return Err(Error::invalid(field, "must not hold control characters"));
    }
    if text.strip_prefix('/').unwrap_or(text).split('/').any(str::is_empty) {
        return Err(Error::invalid(field, "must not hold empty segments ('//') or end in '/'"));
    }
    if text.split('/').any(|segment| segment == ".." || segment == ".") {
        return Err(Error::invalid(field, "must not hold '.' or '..' segments"));
    }
    Ok(())
}

/// A path of a file or folder of this machine; the system takes any other characters.
pub(crate) fn file_path(field: &str, path: &Path) -> Result<()> {
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(Error::invalid(field, "must not hold the character NUL"));
    }
    Ok(())
}

pub(crate) fn tags(tags: &[String]) -> Result<BTreeSet<String>> {
    let set: BTreeSet<String> = tags.iter().cloned().collect();
    if set.len() > bounds::TAGS_PER_DOCUMENT {
        return Err(Error::TooLarge {
            what: "tags".into(),
            limit: format!("{} tags", bounds::TAGS_PER_DOCUMENT),
        });
    }
    for tag in &set {
        if tag.trim().is_empty() || tag.chars().any(char::is_control) {
            return Err(Error::invalid("tags", "must be non-empty texts without control characters"));
        }
        if tag.len() > bounds::TAG_BYTES {
            return Err(Error::TooLarge {
                what: "a tag".into(),
                limit: format!("{} bytes", bounds::TAG_BYTES),
            });
        }
    }
    Ok(set)
}

pub(crate) fn metadata(metadata: &Metadata) -> Result<()> {
    let size = serde_json::to_string(metadata).map_or(0, |text| text.len());
    if size > bounds::METADATA_BYTES {
        return Err(Error::TooLarge {
            what: "metadata".into(),
            limit: format!("{} bytes of JSON", bounds::METADATA_BYTES),
        });
    }
    if metadata.keys().any(|key| key.is_empty() || key.chars().any(char::is_control)) {
        return Err(Error::invalid("metadata", "needs non-empty keys without control characters"));
    }
    Ok(())
}

/// What a filter asks for must be something that a document can have.
pub(crate) fn filter(filter: &Filter) -> Result<()> {
    if filter.tags.len() > bounds::TAGS_PER_DOCUMENT {
        return Err(Error::TooLarge {
            what: "tags".into(),
            limit: format!("{} tags", bounds::TAGS_PER_DOCUMENT),
        });
    }
    Ok(())
}

pub(crate) fn collection(name: &str) -> Result<()> {
    collection_name("collection", name)
}

pub(crate) fn collection_name(field: &str, name: &str) -> Result<()> {
    let count = name.chars().count();
    if name.trim().is_empty() || count > bounds::COLLECTION_CHARS || name.chars().any(char::is_control) {
        let expected =
            format!("must be 1 to {} characters without control characters", bounds::COLLECTION_CHARS);
        return Err(Error::invalid(field, expected));
    }
    Ok(())
}

pub(crate) fn label(label: &str) -> Result<()> {
    if label.trim().is_empty() || label.len() > bounds::LABEL_BYTES || label.chars().any(char::is_control) {
        let expected = format!("must be 1 to {} bytes without control characters", bounds::LABEL_BYTES);
        return Err(Error::invalid("snapshot_label", expected));
    }
    Ok(())
}

pub(crate) fn resource_id(id: &str) -> Result<()> {
    let first = id.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    let rest = id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if first && rest && id.len() <= 128 {
        Ok(())
    } else {
        Err(Error::invalid(
            "resource_id",
            "must be 1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit",
        ))
    }
}

/// A hash or a prefix of one, in lowercase.
pub(crate) fn hash_prefix(text: &str) -> Result<String> {
    let text = text.trim().to_lowercase();
    let length = bounds::HASH_PREFIX_CHARS..=64;
    if length.contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        Ok(text)
    } else {
        Err(Error::invalid(
            "hash",
            "must be 8 to 64 hexadecimal digits: a whole SHA-256 or the beginning of one",
        ))
    }
}
