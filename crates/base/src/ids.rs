//! Identifiers, one type per kind of object, so that they cannot be confused.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id; later ones sort after earlier ones.
            pub fn fresh() -> Self {
                Self(Uuid::now_v7())
            }

            /// Wraps a UUID.
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The 16 bytes.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// Reads 16 raw bytes; `None` for any other length.
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                Uuid::from_slice(bytes).ok().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                Uuid::parse_str(text).map(Self)
            }
        }
    )*};
}

uuid_id! {
    /// A user of the library.
    AccountId,
    /// A named set of documents.
    CollectionId,
    /// A document.
    DocumentId,
    /// A personal or collection access token.
    TokenId,
    /// A login session.
    SessionId,
}

/// The account that every library has: the OS user who can open the data directory.
pub const LOCAL_ACCOUNT: AccountId = AccountId(Uuid::from_u128(0x0000_0000_0000_7000_8000_0000_0000_0001));

/// The name of [`LOCAL_ACCOUNT`].
pub const LOCAL_ACCOUNT_NAME: &str = "local";
