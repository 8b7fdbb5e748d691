//! Access tokens: 192 random bits, shown once and stored as a hash.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use shelf_base::{
    Digest, Moment, Secret,
    ids::{AccountId, TokenId},
};
use shelf_catalog::{Accounts, Actor, Holder, NewToken, Scope, Token, TokenKind, scopes};

use crate::{AuthError, Bearer, Error, Pass, Result, check_label, web_token};

const PERSONAL: &str = "pat_live_";
const COLLECTION: &str = "cat_live_";
const RANDOM_BYTES: usize = 24;
/// Maximum lifetime of a token, in days.
const MOST_DAYS: u64 = 3_650;

/// A new token; its text is shown once.
#[derive(Debug)]
pub struct Minted {
    /// The token as stored.
    pub token: NewToken,
    /// Its text.
    pub text: Secret,
}

/// The description of a token to create.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its owner.
    pub account: AccountId,
    /// Its kind.
    pub kind: TokenKind,
    /// The owner's name for it.
    pub label: String,
    /// What it may do.
    pub scopes: u8,
    /// Its lifetime in days; `None` for no expiry.
    pub days: Option<u64>,
}

fn random_text(kind: TokenKind) -> Result<String> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(Error::Random)?;
    let prefix = match kind {
        TokenKind::Personal => PERSONAL,
        TokenKind::Collection(_) => COLLECTION,
    };
    Ok(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(random)))
}

/// Creates a token.
pub fn mint(catalog: &dyn Accounts, actor: &Actor, wanted: Wanted, now: Moment) -> Result<Minted> {
    check_label(&wanted.label)?;
    let text = random_text(wanted.kind)?;
    let token = NewToken {
        id: TokenId::fresh(),
        account: wanted.account,
        kind: wanted.kind,
        label: wanted.label,
        hash: Digest::of(text.as_bytes()),
        scopes: wanted.scopes,
        created_at: now,
        expires_at: wanted.days.map(|days| expiry(days, now)).transpose()?,
    };
    catalog.add_token(actor, &token)?;
    Ok(Minted { token, text: Secret::new(text) })
}

fn expiry(days: u64, now: Moment) -> Result<Moment> {
    if !(1..=MOST_DAYS).contains(&days) {
        return Err(Error::invalid("expires_in_days", format!("must be from 1 to {MOST_DAYS}")));
    }
    Ok(Moment::from_micros(now.micros() + days as i64 * 86_400_000_000))
}

/// Replaces the text of a token; the old text stops working at once. Returns `None` when the holder has no such token
/// or it was revoked.
pub fn remint(
    catalog: &dyn Accounts,
    actor: &Actor,
    holder: &Holder,
    id: TokenId,
    now: Moment,
) -> Result<Option<(Token, Secret)>> {
    let kind = match holder {
        Holder::Personal(_) => TokenKind::Personal,
        // The collection does not affect the text.
        Holder::Collections(_) => TokenKind::Collection(shelf_base::ids::CollectionId::fresh()),
    };
    let text = random_text(kind)?;
    let rotated = catalog.rotate_token(actor, holder, id, &Digest::of(text.as_bytes()), now)?;
    Ok(rotated.map(|token| (token, Secret::new(text))))
}

/// Verifies a token. The lookup is by hash, so neither its timing nor the database reveals how much of a guess was
/// right.
pub fn verify(catalog: &dyn Accounts, text: &str, now: Moment) -> Result<Pass, AuthError> {
    let refusal = match text {
        _ if text.starts_with(PERSONAL) => AuthError::Personal,
        _ if text.starts_with(COLLECTION) => AuthError::Collection,
        _ if web_token::looks_like_one(text) => return Err(AuthError::WebToken),
        _ => return Err(AuthError::Unknown),
    };
    let found = catalog.token(&Digest::of(text.as_bytes()))?;
    found.filter(|token| token.is_active(now)).map(pass).ok_or(refusal)
}

pub(crate) fn pass(found: Token) -> Pass {
    let token = found.token;
    let actor = Actor { account: token.account, token: Some(token.label) };
    match token.kind {
        TokenKind::Personal => {
            // ADMIN counts only while the account is a superuser.
            let allowed = match token.scopes & scopes::ADMIN != 0 {
                // ADMIN implies every other scope.
                true if found.account_superuser => scopes::READ | scopes::WRITE | scopes::ADMIN,
                _ => token.scopes & !scopes::ADMIN,
            };
            Pass::of_token(Bearer::Personal, actor, Scope::Account(token.account), allowed, token.id)
        }
        TokenKind::Collection(id) => {
            // A collection token never reaches beyond its collection, even if its row says ADMIN.
            let allowed = token.scopes & !scopes::ADMIN;
            Pass::of_token(Bearer::Collection, actor, Scope::Collection(id), allowed, token.id)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shelf_base::ids::LOCAL_ACCOUNT;
    use shelf_catalog::sqlite::SqliteCatalog;

    use super::*;

    fn personal(scopes: u8, days: Option<u64>) -> Wanted {
        Wanted { account: LOCAL_ACCOUNT, kind: TokenKind::Personal, label: "laptop".into(), scopes, days }
    }

    fn day(days: i64) -> Moment {
        Moment::from_micros(days * 86_400_000_000)
    }

    #[test]
    fn a_token_works_until_it_is_revoked_or_expires() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = SqliteCatalog::open(folder.path()).unwrap();
        let wanted = personal(scopes::READ | scopes::WRITE, Some(2));
        let minted = mint(&catalog, &Actor::local(), wanted, day(1)).unwrap();
        let text = minted.text.reveal();
        assert_eq!(text.len(), PERSONAL.len() + 32);
        let pass = verify(&catalog, text, day(2)).unwrap();
        assert_eq!((pass.may_write(), pass.may_administer(), pass.bearer()), (true, false, Bearer::Personal));
        assert!(matches!(verify(&catalog, text, day(3)), Err(AuthError::Personal)));
        let holder = Holder::Personal(LOCAL_ACCOUNT);
        let revoke = || catalog.revoke_token(&Actor::local(), &holder, minted.token.id, day(1)).unwrap();
        assert!(revoke());
        assert!(matches!(verify(&catalog, text, day(1)), Err(AuthError::Personal)));
        assert!(!revoke());
        assert!(remint(&catalog, &Actor::local(), &holder, minted.token.id, day(1)).unwrap().is_none());
    }

    #[test]
    fn a_rotated_token_keeps_its_lifetime() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = SqliteCatalog::open(folder.path()).unwrap();
        let minted = mint(&catalog, &Actor::local(), personal(scopes::READ, Some(10)), day(0)).unwrap();
        let holder = Holder::Personal(LOCAL_ACCOUNT);
        for round in 1..=2 {
            let now = day(20 * round);
            let (token, text) =
                remint(&catalog, &Actor::local(), &holder, minted.token.id, now).unwrap().unwrap();
            assert_eq!(token.token.expires_at, Some(day(20 * round + 10)));
            assert_eq!((token.token.id, token.token.scopes), (minted.token.id, scopes::READ));
            assert!(verify(&catalog, text.reveal(), now).is_ok());
            assert!(verify(&catalog, minted.text.reveal(), now).is_err(), "the old text");
        }
    }

    #[test]
    fn rejections_use_the_messages_of_the_contract() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = SqliteCatalog::open(folder.path()).unwrap();
        let says = |text| verify(&catalog, text, Moment::default()).unwrap_err().to_string();
        assert_eq!(says("pat_live_x"), "Invalid PAT token");
        assert_eq!(says("cat_live_x"), "Invalid CAT");
        assert_eq!(says("eyJhbGciOiJIUzI1NiJ9.e30.c2ln"), "JWT tokens not accepted for MCP");
        assert_eq!(says("hunter2"), "Not authenticated");
        assert_eq!(AuthError::NoHeader.to_string(), "Missing or invalid Authorization header");
    }

    #[test]
    fn lifetimes_and_labels_are_validated() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = SqliteCatalog::open(folder.path()).unwrap();
        for days in [0, MOST_DAYS + 1, u64::MAX] {
            assert!(mint(&catalog, &Actor::local(), personal(1, Some(days)), day(0)).is_err());
        }
        let nameless = Wanted { label: "  ".into(), ..personal(1, None) };
        assert!(mint(&catalog, &Actor::local(), nameless, day(0)).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_token_with_a_changed_character_is_rejected(place in 9_usize..41, letter in "[A-Za-z0-9_-]") {
            let folder = tempfile::tempdir().unwrap();
            let catalog = SqliteCatalog::open(folder.path()).unwrap();
            let minted = mint(&catalog, &Actor::local(), personal(1, None), day(0)).unwrap();
            let mut text = minted.text.reveal().to_owned();
            text.replace_range(place..=place, &letter);
            let is_same = text == minted.text.reveal();
            prop_assert_eq!(verify(&catalog, &text, day(0)).is_ok(), is_same);
        }
    }
}
