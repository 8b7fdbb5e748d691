//! Prompts: built-in ones, and files of the server's operator.

use std::collections::BTreeMap;

use shelf_engine::{Caller, PersonalScope::Read};
use shelf_testkit::TestLibrary;
use shelf_tools::{
    policy::Selection,
    prompts::{Prompts, Speaker},
};

fn given(arguments: &[(&str, &str)]) -> BTreeMap<String, String> {
    arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn names(prompts: &Prompts, caller: &Caller, selection: &Selection) -> Vec<String> {
    prompts.list(caller, selection).into_iter().map(|prompt| prompt.name).collect()
}

#[test]
fn built_in_prompts_take_their_arguments() {
    let (prompts, owner, all) = (Prompts::default(), Caller::owner(), Selection::default());
    let listed = prompts.list(&owner, &all);
    for name in ["search_codebase", "summarize_document", "research_topic", "cite_sources"] {
        assert!(listed.iter().any(|prompt| prompt.name == name), "{name}");
    }
    for prompt in &listed {
        assert!(!prompt.description.is_empty() && !prompt.title.is_empty(), "{}", prompt.name);
        // Every given value appears in the text unchanged, and optional arguments may be omitted.
        let everything: BTreeMap<String, String> = prompt
            .arguments
            .iter()
            .map(|argument| (argument.name.to_owned(), format!("<{{{}}}>", argument.name)))
            .collect();
        let text = prompts.get(&owner, &all, &prompt.name, &everything).unwrap().text;
        for value in everything.values() {
            assert!(text.contains(value.as_str()), "{}: {value} in {text}", prompt.name);
        }
        let needed = everything.iter().filter(|(name, _)| {
            prompt.arguments.iter().any(|argument| argument.name == *name && argument.required)
        });
        let needed: BTreeMap<String, String> =
            needed.map(|(name, value)| (name.clone(), value.clone())).collect();
        let got = prompts.get(&owner, &all, &prompt.name, &needed).unwrap();
        assert_eq!(got.speaker, Speaker::User);
        for missing in needed.keys() {
            let mut fewer = needed.clone();
            fewer.remove(missing);
            let error = prompts.get(&owner, &all, &prompt.name, &fewer).unwrap_err().to_string();
            assert!(error.contains(&format!("needs the argument '{missing}'")), "{error}");
            fewer.insert(missing.clone(), " ".into());
            assert!(
                prompts.get(&owner, &all, &prompt.name, &fewer).is_err(),
                "an empty argument counts as missing"
            );
        }
    }
    let refused = |name: &str, arguments: &[(&str, &str)]| {
        prompts.get(&owner, &all, name, &given(arguments)).unwrap_err().to_string()
    };
    assert_eq!(
        refused("search_codebas", &[]),
        "unknown prompt 'search_codebas': did you mean search_codebase?"
    );
    let unknown = refused("summarize_document", &[("document_name", "a"), ("colour", "red")]);
    assert!(unknown.contains("unknown argument 'colour'") && unknown.contains("max_length"), "{unknown}");
    assert!(refused("research_topic", &[("topic", &"x".repeat(9_000))]).contains("9000 bytes"));
}

#[test]
fn files_are_prompts_and_are_reread() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "PROMPT-research-mcp.md",
        "---\nowner: me\n---\n# Research workflow for MCP\n\nFirst {topic}, then all.\n",
    );
    write("PROMPT-plain.md", "Just do it.\nNow.");
    write("notes.md", "no prompt");
    write("PROMPT-.md", "no name");
    std::fs::create_dir(folder.path().join("PROMPT-folder.md")).unwrap();
    std::fs::write(folder.path().join("PROMPT-broken.md"), [0xFF, 0xFE]).unwrap();
    write("PROMPT-large.md", &"x".repeat((1 << 20) + 1));
    let prompts = Prompts { folder: Some(folder.path().to_owned()) };
    let (owner, all) = (Caller::owner(), Selection::default());
    let built_in = names(&Prompts::default(), &owner, &all).len();
    let listed = prompts.list(&owner, &all);
    assert_eq!(listed.len(), built_in + 2, "{listed:?}");
    let research = listed.iter().find(|prompt| prompt.name == "research_mcp").unwrap();
    assert_eq!(research.description, "Research workflow for MCP (from PROMPT-research-mcp.md)");
    let got = prompts.get(&owner, &all, "research_mcp", &given(&[])).unwrap();
    assert_eq!(got.speaker, Speaker::Assistant);
    assert!(got.text.starts_with("---\nowner") && got.text.ends_with("First {topic}, then all.\n"));
    assert!(prompts.get(&owner, &all, "research_mcp", &given(&[("topic", "x")])).is_err());
    write("PROMPT-plain.md", "Do something else.");
    assert_eq!(prompts.get(&owner, &all, "plain", &given(&[])).unwrap().text, "Do something else.");
    write("PROMPT-search-codebase.md", "My own way.");
    assert_eq!(prompts.list(&owner, &all).len(), built_in + 2, "a file replaces a built-in prompt");
    assert_eq!(prompts.get(&owner, &all, "search_codebase", &given(&[])).unwrap().text, "My own way.");
    std::fs::remove_file(folder.path().join("PROMPT-plain.md")).unwrap();
    assert!(prompts.get(&owner, &all, "plain", &given(&[])).is_err());
    let nowhere = Prompts { folder: Some(folder.path().join("nowhere")) };
    assert_eq!(names(&nowhere, &owner, &all).len(), built_in);
}

#[test]
fn a_prompt_is_for_those_who_may_use_its_tools() {
    let library = TestLibrary::new();
    let (prompts, all) = (Prompts::default(), Selection::default());
    library.user("alice", false);
    let reader = library.personal("alice", &[Read], None);
    let reader = library.admit(reader.text.reveal(), shelf_engine::Door::Protocol).unwrap();
    let alice = library.caller("alice");
    let collection = library.collection_of(&alice, "default");
    let cat = library.collection_token(&alice, &collection, "read").1;
    let cat = library.admit(&cat, shelf_engine::Door::Protocol).unwrap();
    let arguments = given(&[]);
    assert!(prompts.get(&alice, &all, "organize_library", &arguments).is_ok());
    for (caller, selection) in [
        (&reader, all.clone()),
        (&cat, all.clone()),
        (&alice, Selection { read_only: true, ..Selection::default() }),
        (&alice, Selection { toolsets: vec!["workspace".into()], ..Selection::default() }),
    ] {
        assert!(!names(&prompts, caller, &selection).contains(&"organize_library".to_owned()));
        let error = prompts.get(caller, &selection, "organize_library", &arguments).unwrap_err();
        assert!(error.to_string().starts_with("unknown prompt 'organize_library'"), "{error}");
    }
    assert!(names(&prompts, &reader, &all).contains(&"research_topic".to_owned()));
    assert!(names(&prompts, &cat, &all).is_empty());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("PROMPT-own.md"), "---\r\na: b\r\n---\r\n# Own\r\n").unwrap();
    let prompts = Prompts { folder: Some(folder.path().to_owned()) };
    let own = prompts.list(&reader, &all).into_iter().find(|prompt| prompt.name == "own").unwrap();
    assert_eq!(own.description, "Own (from PROMPT-own.md)");
    let only_hello = Selection { tools: vec!["hello".into()], ..Selection::default() };
    assert!(names(&prompts, &alice, &only_hello).is_empty());
    assert!(prompts.get(&alice, &only_hello, "own", &given(&[])).is_err());
    assert!(prompts.takes(&alice, &all, "summarize_document", "document_name"));
    assert!(!prompts.takes(&alice, &all, "research_topic", "document_name"));
    assert!(!prompts.takes(&cat, &all, "summarize_document", "document_name"));
}
