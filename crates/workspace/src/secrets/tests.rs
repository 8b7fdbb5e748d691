//! Real-looking secrets of every form, put together here so that none stands in the repository, and harmless texts.

use serde_json::{Value, json};

use super::*;

fn found(value: Value) -> Option<String> {
    find(value.as_object().unwrap())
}

/// `length` signs out of `alphabet`, as mixed as in a real key.
fn body(alphabet: &str, length: usize) -> String {
    let signs: Vec<char> = alphabet.chars().collect();
    (0..length).map(|at| signs[(at * 7 + at / 3 + 5) % signs.len()]).collect()
}

const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LETTERS: &str = "aB3dE5fG7hJ9kLmN2pQrS4tUvW6xYzA8bCcDdEeFf01";
const URL: &str = "aB3dE5fG7hJ9-kLmN2pQrS4_tUvW6xYzA8bCcDdEeFf01";

/// One or more of every form, in the order of `FORMS`.
fn secrets() -> Vec<Vec<String>> {
    let one = |prefix: &str, alphabet: &str, length: usize| format!("{prefix}{}", body(alphabet, length));
    vec![
        vec![one("AKIA", UPPER, 16), one("ASIA", UPPER, 16), "AKIAIOSFODNN7EXAMPLE".into()],
        vec![
            one("aws_secret_access_key = ", LETTERS, 40),
            one("AWS_SECRET_ACCESS_KEY=\"", LETTERS, 40) + "\"",
            one("\"SecretAccessKey\"; awsSecretAccessKey: ", LETTERS, 40),
        ],
        ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"].map(|prefix| one(prefix, LETTERS, 36)).to_vec(),
        vec![one("github_pat_11", LETTERS, 20) + "_" + &body(LETTERS, 59)],
        vec![one("glpat-", URL, 20), one("glrt-", URL, 20)],
        vec![one("sk-", LETTERS, 48), one("sk-", HEX, 32)],
        ["sk-proj-", "sk-svcacct-", "sk-admin-"].map(|prefix| one(prefix, URL, 120)).to_vec(),
        vec![one("sk-ant-api03-", URL, 95), one("sk-ant-admin01-", URL, 93), one("sk-ant-oat01-", URL, 80)],
        vec![one("sk-or-v1-", HEX, 64)],
        vec![one("hf_", LETTERS, 34)],
        vec![one("AIza", URL, 35)],
        vec![one("ya29.", URL, 120)],
        vec![one("GOCSPX-", URL, 28)],
        vec![
            one("xoxb-123456789012-1234567890123-", LETTERS, 24),
            one("xoxp-123456789012-123456789012-123456789012-", HEX, 32),
            one("xoxe-1-", LETTERS, 140),
        ],
        vec![one("xapp-1-A01B2C3D4E5-1234567890123-", HEX, 64)],
        vec![one("https://hooks.slack.com/services/T01ABCDEF/B02GHIJKL/", LETTERS, 24)],
        vec![one("sk_live_", LETTERS, 24), one("rk_live_", LETTERS, 99), one("sk_test_", LETTERS, 24)],
        vec![one("whsec_", LETTERS, 32)],
        vec![one("SG.", URL, 22) + "." + &body(URL, 43)],
        vec![one("123456789:AA", URL, 33)],
        vec![one("npm_", LETTERS, 36)],
        vec![one("dckr_pat_", URL, 27)],
        vec![one("pypi-AgEIcHlwaS5vcmc", URL, 150)],
        vec![one("dop_v1_", HEX, 64), one("doo_v1_", HEX, 64)],
        vec![one("AccountName=a;AccountKey=", LETTERS, 86) + "=="],
        vec![one("pat_live_", URL, 32), one("cat_live_", URL, 32)],
        vec![one("eyJ", LETTERS, 17) + ".eyJ" + &body(LETTERS, 40) + "." + &body(URL, 43)],
        ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "]
            .map(|kind| format!("-----BEGIN {kind}PRIVATE KEY-----\n{}", body(LETTERS, 64)))
            .into_iter()
            .chain(["-----BEGIN PGP PRIVATE KEY BLOCK-----".to_owned()])
            .collect(),
        vec!["PuTTY-User-Key-File-3: ssh-ed25519".into()],
        vec![one("AGE-SECRET-KEY-1", UPPER, 58)],
        vec![one("gsk_", LETTERS, 52)],
        vec![one("xai-", LETTERS, 80)],
        vec![one("pplx-", LETTERS, 48)],
        vec![one("r8_", LETTERS, 37)],
        vec![one("dapi", HEX, 32), one("dapi", HEX, 32) + "-2"],
        vec![one("shpat_", HEX, 32), one("shpca_", HEX, 32)],
        vec![one("hvs.", URL, 90), one("hvb.", URL, 140)],
        vec![one("lin_api_", LETTERS, 40)],
        vec![one("sbp_", HEX, 40)],
        vec![one("ATATT3xFfGF0", URL, 170) + "=1A2B3C4D"],
        vec![one("figd_", URL, 40)],
        vec![one("ntn_", LETTERS, 46)],
        vec![one("NRAK-", UPPER, 27)],
        vec![one("sq0atp-", URL, 22), one("sq0csp-", URL, 43)],
        vec![body(LETTERS, 14) + ".atlasv1." + &body(URL, 67)],
        vec![
            one("MT", LETTERS, 24) + ".Gx1y2z." + &body(URL, 38),
            one("ND", LETTERS, 22) + ".XsyQ8A." + &body(URL, 27),
        ],
        vec![
            "postgres://user:pass@host/db".into(),
            "mongodb+srv://admin:h7Kp!2@cluster0.example.net".into(),
            "redis://:hunter2@localhost:6379".into(),
        ],
    ]
}

#[test]
fn every_form_is_found_and_never_repeated() {
    let secrets = secrets();
    assert_eq!(secrets.len(), FORMS.len());
    for (form, examples) in FORMS.iter().zip(&secrets) {
        let form = regex::Regex::new(&bounded(form)).unwrap();
        for secret in examples {
            assert!(form.is_match(secret), "{form} does not find {secret}");
            let texts = [
                secret.clone(),
                format!("the key is {secret}, keep it"),
                format!("\"{secret}\"\n"),
                format!("密钥{secret}是"),
                format!("key_{secret}"),
            ];
            for text in texts {
                let field = found(json!({ "event": "x", "a": { "b": ["x", text] } }));
                assert_eq!(field.as_deref(), Some("entry.a.b[1]"), "{secret}");
            }
            let as_key = found(json!({ (secret.as_str()): 1 })).unwrap();
            let beneath = found(json!({ (secret.as_str()): { "note": secret } })).unwrap();
            assert!(!as_key.contains(secret) && !beneath.contains(secret), "{as_key} {beneath}");
        }
    }
}

#[test]
fn a_name_may_be_the_key_of_the_field() {
    let value = body(LETTERS, 40);
    assert_eq!(
        found(json!({ "aws_secret_access_key": value })).as_deref(),
        Some("entry.aws_secret_access_key")
    );
    assert_eq!(found(json!({ "commit": body(HEX, 40) })), None);
}

#[test]
fn two_hundred_harmless_texts_are_no_secrets() {
    let harmless: Vec<&str> = include_str!("harmless.txt").lines().collect();
    assert!(harmless.len() >= 200, "{}", harmless.len());
    for text in &harmless {
        assert_eq!(found(json!({ "event": text })), None, "{text}");
        assert_eq!(found(json!({ (*text): "x" })), None, "{text}");
    }
    // Nor do neighbours make one together.
    for text in harmless.windows(3) {
        assert_eq!(found(json!({ "event": text.join("\n") })), None, "{text:?}");
    }
}
