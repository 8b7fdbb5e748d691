//! The deep model as a user meets it: `shelf deepen`, a server that deepens beside its calls, `status`.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use shelf_testkit::StdioClient;

use crate::{assert_sound, binary, shelf};

const TEXTS: [(&str, &str); 3] = [
    ("teeth.txt", "Brush in the morning and before you go to bed; a dentist looks for caries twice a year."),
    (
        "bread.txt",
        "Knead the dough for ten minutes, let it rise in a warm place, then bake it until it is brown.",
    ),
    ("money.txt", "A savings account pays interest on deposits, less than shares but without much risk."),
];

fn filled() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let texts = place.path().join("texts");
    fs::create_dir(&texts).unwrap();
    for (name, text) in TEXTS {
        fs::write(texts.join(name), text).unwrap();
    }
    let (code, _, err) = shelf(&place.path().join("library"), &["add", texts.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    place
}

#[test]
fn the_command_deepens_and_says_how_far() {
    let place = filled();
    let library = place.path().join("library");
    let (code, out, err) = shelf(&library, &["deepen", "--json"]);
    assert_eq!(code, 0, "{err}");
    let reply: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(reply, json!({ "vectors": 3, "deep": 3, "passages": 3 }));
    let (code, _, err) = shelf(&library, &["deepen"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("3 of 3"), "{err}");
    let (code, _, err) = shelf(&library, &["deepen", "nowhere"]);
    assert!(code != 0 && err.contains("nowhere"), "{err}");
    assert_sound(&library);
}

#[test]
fn a_server_deepens_beside_its_calls_when_it_is_told_to() {
    let place = filled();
    let library = place.path().join("library");
    let config = place.path().join("shelf.toml");
    fs::write(&config, "[embedding]\ndeepen = \"always\"\n").unwrap();
    let mut client = StdioClient::spawn(binary(), &library, &["--config", config.to_str().unwrap()]);
    client.initialize();
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let status = client.call("status", json!({ "detailed": true }));
        if status["details"]["index"]["deep_passages"] == 3 {
            assert_eq!(status["details"]["index"]["deepening_seconds"], 0);
            break;
        }
        assert!(Instant::now() < until, "{status}");
        thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn a_wrong_setting_is_named() {
    let place = filled();
    let config = place.path().join("shelf.toml");
    fs::write(&config, "[embedding]\ndeepen = \"sometimes\"\n").unwrap();
    let config = config.to_str().unwrap();
    let (code, _, err) = shelf(&place.path().join("library"), &["--config", config, "search", "teeth"]);
    assert!(code != 0 && err.contains("embedding.deepen") && err.contains("sometimes"), "{err}");
}
