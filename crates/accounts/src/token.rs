//! Access tokens: 192 random bits, shown once, kept as a hash.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use shelf_base::{
    Digest, Fault, Kind, Moment, Secret,
    ids::{AccountId, TokenId},
};
use shelf_catalog::{Actor, Catalog, NewToken, Scope, Token, TokenKind, scopes};

use crate::{Bearer, Pass};

const PERSONAL: &str = "pat_live_";
const COLLECTION: &str = "cat_live_";
const RANDOM_BYTES: usize = 24;

/// A token that was just made; its text is shown once.
#[derive(Debug)]
pub struct Minted {
    /// Its id.
    pub id: TokenId,
    /// Its text.
    pub text: Secret,
    /// What its owner calls it.
    pub label: String,
}

/// A token could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] shelf_catalog::Error),
    /// The system gave no random bytes.
    #[error("the system gave no random bytes: {0}")]
    Random(getrandom::Error),
}

impl Fault for MintError {
    fn kind(&self) -> Kind {
        match self {
            Self::Catalog(error) => error.kind(),
            Self::Random(_) => Kind::Io,
        }
    }
}

/// Makes a personal access token for `account` with READ and WRITE, and ADMIN when `administrator`.
pub fn mint_personal(
    catalog: &dyn Catalog,
    account: AccountId,
    label: &str,
    administrator: bool,
    now: Moment,
    expires_at: Option<Moment>,
) -> Result<Minted, MintError> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(MintError::Random)?;
    let text = format!("{PERSONAL}{}", URL_SAFE_NO_PAD.encode(random));
    let id = TokenId::fresh();
    let admin = if administrator { scopes::ADMIN } else { 0 };
    let token = NewToken {
        id,
        account,
        kind: TokenKind::Personal,
        label: label.to_owned(),
        hash: Digest::of(text.as_bytes()),
        scopes: scopes::READ | scopes::WRITE | admin,
        created_at: now,
        expires_at,
    };
    catalog.add_token(&Actor { account, token: None }, &token)?;
    Ok(Minted { id, text: Secret::new(text), label: label.to_owned() })
}

/// Why a caller was turned away; the sentences are the contract's.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No or malformed header.
    #[error("Missing or invalid Authorization header")]
    NoHeader,
    /// An unknown, revoked or expired personal token.
    #[error("Invalid PAT token")]
    Personal,
    /// An unknown, revoked or expired collection token.
    #[error("Invalid CAT")]
    Collection,
    /// A JSON web token where none is taken.
    #[error("JWT tokens not accepted for MCP")]
    WebToken,
    /// Anything else.
    #[error("Not authenticated")]
    Unknown,
    /// The catalog could not be asked.
    #[error(transparent)]
    Catalog(#[from] shelf_catalog::Error),
}

impl Fault for Refusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Catalog(error) => error.kind(),
            _ => Kind::Unauthenticated,
        }
    }
}

/// Checks a token's text. The look-up is by hash, so that neither its time nor the database shows how much of a
/// guess was right.
pub fn verify(catalog: &dyn Catalog, text: &str, now: Moment) -> Result<Pass, Refusal> {
    let refusal = match text {
        _ if text.starts_with(PERSONAL) => Refusal::Personal,
        _ if text.starts_with(COLLECTION) => Refusal::Collection,
        _ if looks_like_web_token(text) => return Err(Refusal::WebToken),
        _ => return Err(Refusal::Unknown),
    };
    let found = catalog.token(&Digest::of(text.as_bytes()))?;
    found.filter(|token| works(token, now)).map(pass).ok_or(refusal)
}

fn looks_like_web_token(text: &str) -> bool {
    text.starts_with("eyJ") && text.split('.').count() == 3
}

fn works(token: &Token, now: Moment) -> bool {
    token.revoked_at.is_none()
        && token.account_active
        && token.token.expires_at.is_none_or(|expiry| now < expiry)
}

fn pass(found: Token) -> Pass {
    let token = found.token;
    let actor = Actor { account: token.account, token: Some(token.label) };
    // ADMIN counts only while the account is a superuser.
    let allowed = if found.account_superuser { token.scopes } else { token.scopes & !scopes::ADMIN };
    match token.kind {
        TokenKind::Personal => {
            Pass::of_token(Bearer::Personal, actor, Scope::Account(token.account), allowed)
        }
        TokenKind::Collection(id) => {
            Pass::of_token(Bearer::Collection, actor, Scope::Collection(id), allowed)
        }
    }
}

#[cfg(test)]
mod tests {
    use shelf_base::ids::LOCAL_ACCOUNT;
    use shelf_catalog::sqlite::SqliteCatalog;

    use super::*;

    #[test]
    fn a_token_works_until_it_is_revoked_or_expires() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = SqliteCatalog::open(folder.path()).unwrap();
        let now = Moment::from_micros(1_000);
        let later = Moment::from_micros(2_000);
        let minted = mint_personal(&catalog, LOCAL_ACCOUNT, "laptop", false, now, Some(later)).unwrap();
        let text = minted.text.reveal();
        assert_eq!(text.len(), PERSONAL.len() + 32);
        let pass = verify(&catalog, text, now).unwrap();
        assert_eq!((pass.may_write(), pass.may_administer(), pass.bearer()), (true, false, Bearer::Personal));
        assert!(matches!(verify(&catalog, text, later), Err(Refusal::Personal)));
        assert!(catalog.revoke_token(&Actor::local(), minted.id, now).unwrap());
        assert!(matches!(verify(&catalog, text, now), Err(Refusal::Personal)));
        assert!(!catalog.revoke_token(&Actor::local(), minted.id, now).unwrap());
    }

    #[test]
    fn refusals_say_the_sentences_of_the_contract() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = SqliteCatalog::open(folder.path()).unwrap();
        let says = |text| verify(&catalog, text, Moment::default()).unwrap_err().to_string();
        assert_eq!(says("pat_live_x"), "Invalid PAT token");
        assert_eq!(says("cat_live_x"), "Invalid CAT");
        assert_eq!(says("eyJhbGciOiJIUzI1NiJ9.e30.c2ln"), "JWT tokens not accepted for MCP");
        assert_eq!(says("hunter2"), "Not authenticated");
        assert_eq!(Refusal::NoHeader.to_string(), "Missing or invalid Authorization header");
    }
}
