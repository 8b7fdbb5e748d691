//! Documents as what they are: prose, code, tables, data, differences.

pub(crate) mod code;
pub(crate) mod data;
pub(crate) mod diff;
mod dress;
pub(crate) mod markdown;
pub(crate) mod marks;
pub(crate) mod table;
mod tiring;
