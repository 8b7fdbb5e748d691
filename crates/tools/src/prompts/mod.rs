//! Prompts: instructions for working with the library that a client offers its user, built in or written by the
//! operator of the server.
//!
//! A prompt is offered to callers who may call the tools it mentions, according to the policy table. Listing and
//! getting apply the same rule. Files are read every time, so that changes take effect immediately.

mod built_in;
mod files;

use std::{collections::BTreeMap, path::PathBuf};

use built_in::{BUILT_IN, BuiltIn};
use files::PromptFile;
use shelf_base::{bounds::ECHO_BYTES, clipped, nearest};
use shelf_engine::{Caller, Error, Library};

use crate::{
    find,
    policy::{self, Selection, Verdict},
    resources,
};

/// Maximum size of one argument in bytes.
const ARGUMENT_BYTES: usize = 8 << 10;

/// A prompt in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name, by which it is requested.
    pub name: String,
    /// A title for people.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// Its arguments.
    pub arguments: Vec<Argument>,
}

/// An argument of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub description: &'static str,
    /// Whether it must be given.
    pub required: bool,
}

/// The role of a prompt's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A prompt with its arguments filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// What it is for.
    pub description: String,
    /// The role of the message.
    pub speaker: Speaker,
    /// The text.
    pub text: String,
}

/// The prompt is unknown, or its arguments are wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

/// The prompts of a server.
#[derive(Clone, Debug, Default)]
pub struct Prompts {
    /// The folder with files named `PROMPT-*.md`.
    pub folder: Option<PathBuf>,
}

impl Prompts {
    /// The prompts that the caller may use, by name. A file replaces a built-in prompt of the same name.
    pub fn list(&self, caller: &Caller, selection: &Selection) -> Vec<Listed> {
        let built_in = BUILT_IN.iter().filter(|prompt| may_use(prompt, caller, selection)).map(Listed::from);
        let mut all: BTreeMap<String, Listed> =
            built_in.map(|prompt| (prompt.name.clone(), prompt)).collect();
        for file in self.files(caller, selection) {
            let listed = Listed {
                name: file.name.clone(),
                title: file.title(),
                description: file.description(),
                arguments: Vec::new(),
            };
            all.insert(file.name, listed);
        }
        all.into_values().collect()
    }

    /// The prompt of that name, with its arguments filled in.
    pub fn get(
        &self,
        caller: &Caller,
        selection: &Selection,
        name: &str,
        given: &BTreeMap<String, String>,
    ) -> Result<Prompt, Refused> {
        if let Some(file) = self.files(caller, selection).into_iter().find(|file| file.name == name) {
            check(name, &[], given)?;
            return Ok(Prompt {
                description: file.description(),
                speaker: Speaker::Assistant,
                text: file.text,
            });
        }
        let prompt = BUILT_IN.iter().find(|prompt| prompt.name == name);
        let Some(prompt) = prompt.filter(|prompt| may_use(prompt, caller, selection)) else {
            return Err(self.unknown(caller, selection, name));
        };
        check(name, prompt.arguments, given)?;
        Ok(Prompt {
            description: prompt.description.to_owned(),
            speaker: Speaker::User,
            text: (prompt.text)(given),
        })
    }

    /// Files are offered to callers who may read documents, because that is what prompts tell the model to do.
    fn files(&self, caller: &Caller, selection: &Selection) -> Vec<PromptFile> {
        if resources::allowed(caller, selection) { files::all(self.folder.as_deref()) } else { Vec::new() }
    }

    /// Whether the caller may use this prompt and it takes an argument of that name.
    pub fn takes(&self, caller: &Caller, selection: &Selection, name: &str, argument: &str) -> bool {
        let has = |prompt: &Listed| prompt.arguments.iter().any(|known| known.name == argument);
        self.list(caller, selection).iter().any(|prompt| prompt.name == name && has(prompt))
    }

    fn unknown(&self, caller: &Caller, selection: &Selection, name: &str) -> Refused {
        let known = self.list(caller, selection);
        let near = nearest(name, known.iter().map(|prompt| prompt.name.as_str()), 3);
        let hint = match near.is_empty() {
            true => "prompts/list shows all prompts".to_owned(),
            false => format!("did you mean {}?", near.join(", ")),
        };
        Refused(format!("unknown prompt '{}': {hint}", clipped(name, ECHO_BYTES)))
    }
}

/// Completions for an argument of a prompt: names of documents and collections.
pub fn complete(
    library: &Library,
    caller: &Caller,
    argument: &str,
    text: &str,
) -> Result<(Vec<String>, Option<u64>), Error> {
    let mut complete = true;
    let mut values: Vec<String> = match argument {
        "document_name" | "first" | "second" => {
            let (found, is_all) = resources::documents_like(library, caller, text)?;
            complete = is_all;
            found.into_iter().map(|document| document.path).collect()
        }
        "collection" => {
            let all = library.collections(caller)?.into_iter().map(|known| known.collection.name);
            all.filter(|name| name.starts_with(text)).collect()
        }
        _ => Vec::new(),
    };
    values.dedup();
    let total = complete.then_some(values.len() as u64);
    values.truncate(resources::COMPLETIONS);
    Ok((values, total))
}

fn may_use(prompt: &BuiltIn, caller: &Caller, selection: &Selection) -> bool {
    let may_call = |name: &&str| {
        find(name).is_some_and(|tool| policy::verdict(&caller.pass, selection, tool) == Verdict::Allowed)
    };
    prompt.tools.iter().all(may_call)
}

/// Checks the arguments against those that the prompt takes.
fn check(name: &str, known: &[Argument], given: &BTreeMap<String, String>) -> Result<(), Refused> {
    for (argument, value) in given {
        if !known.iter().any(|known| known.name == argument) {
            let names: Vec<&str> = known.iter().map(|known| known.name).collect();
            let takes = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(Refused(format!(
                "unknown argument '{argument}' of prompt '{name}', which takes {takes}"
            )));
        }
        if value.len() > ARGUMENT_BYTES {
            return Err(Refused(format!(
                "argument '{argument}' of prompt '{name}' has {} bytes; at most {ARGUMENT_BYTES} are allowed",
                value.len()
            )));
        }
    }
    let missing = |argument: &&Argument| {
        argument.required && given.get(argument.name).is_none_or(|value| value.trim().is_empty())
    };
    match known.iter().find(missing) {
        Some(argument) => Err(Refused(format!(
            "prompt '{name}' needs the argument '{}': {}",
            argument.name, argument.description
        ))),
        None => Ok(()),
    }
}

impl From<&BuiltIn> for Listed {
    fn from(prompt: &BuiltIn) -> Self {
        Self {
            name: prompt.name.to_owned(),
            title: prompt.title.to_owned(),
            description: prompt.description.to_owned(),
            arguments: prompt.arguments.to_vec(),
        }
    }
}
