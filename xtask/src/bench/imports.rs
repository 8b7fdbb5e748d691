//! Imports of Rust modules as a second program reads them: the module tree is followed from the root of a crate by its
//! `mod` declarations, and every `use` is resolved in it. `bench graph` compares the graph with this.
//!
//! It shares nothing with the readers of the library: there is no syntax tree, only words and brackets.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A module: a file, or a part of one.
struct Module {
    file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    uses: Vec<Use>,
    /// Names of functions, types, traits, constants and macros.
    items: BTreeSet<String>,
    /// Where the files of its modules stand.
    folder: PathBuf,
}

/// One path of a `use` declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    path: Vec<String>,
    /// What it is called here; `None` for everything in a module.
    name: Option<String>,
}

/// A file that imports another.
pub type Import = (PathBuf, PathBuf);

/// The imports between the files of a crate.
pub fn imports(root: &Path) -> Result<BTreeSet<Import>> {
    let mut tree = Tree::default();
    let folder = root.parent().context("the root of a crate stands in a folder")?.to_owned();
    tree.read(root.to_owned(), folder, None)?;
    Ok(tree.edges())
}

#[derive(Default)]
struct Tree {
    modules: Vec<Module>,
}

impl Tree {
    fn read(&mut self, file: PathBuf, folder: PathBuf, parent: Option<usize>) -> Result<usize> {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let own = self.module(file, folder, parent);
        let tokens = tokens(&text);
        self.items(own, &tokens)?;
        Ok(own)
    }

    fn module(&mut self, file: PathBuf, folder: PathBuf, parent: Option<usize>) -> usize {
        let (children, uses, items) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        self.modules.push(Module { file, parent, children, uses, items, folder });
        self.modules.len() - 1
    }

    /// Reads the items of a module from its words.
    fn items(&mut self, own: usize, tokens: &[String]) -> Result<()> {
        let (mut at, mut depth, mut given_path) = (0, 0_usize, None);
        let word = |at: usize| tokens.get(at).map_or("", String::as_str);
        while at < tokens.len() {
            match word(at) {
                "#" => {
                    let end = closing(tokens, at + if word(at + 1) == "!" { 2 } else { 1 });
                    let inside = &tokens[at..end.min(tokens.len())];
                    if inside.len() > 4 && inside[2] == "path" && inside[3] == "=" {
                        given_path = inside[4].strip_prefix('"').map(str::to_owned);
                    }
                    at = end;
                    continue;
                }
                "use" if word(at + 1) != "<" => {
                    let end = (at..tokens.len()).find(|at| word(*at) == ";").unwrap_or(tokens.len());
                    leaves(&tokens[at + 1..end], &[], &mut self.modules[own].uses);
                    at = end;
                }
                "mod" if depth == 0 && word(at + 2) == ";" => {
                    self.file_module(own, word(at + 1), given_path.take())?;
                    at += 2;
                }
                "mod" if depth == 0 && word(at + 2) == "{" => {
                    let end = closing(tokens, at + 2);
                    let name = word(at + 1).to_owned();
                    let (file, folder) =
                        (self.modules[own].file.clone(), self.modules[own].folder.join(&name));
                    let inner = self.module(file, folder, Some(own));
                    self.modules[own].children.insert(name, inner);
                    self.items(inner, &tokens[at + 3..end.saturating_sub(1).max(at + 3)])?;
                    at = end;
                    continue;
                }
                "macro_rules" if word(at + 1) == "!" => {
                    self.modules[own].items.insert(word(at + 2).to_owned());
                    at = closing(tokens, at + 3);
                    continue;
                }
                // What is inside the call of a macro is not ours to understand.
                "!" if matches!(word(at + 1), "{" | "(" | "[") && at > 0 && is_name(word(at - 1)) => {
                    at = closing(tokens, at + 1);
                    continue;
                }
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union" if depth == 0 => {
                    let name = if word(at + 1) == "mut" { word(at + 2) } else { word(at + 1) };
                    if is_name(name) {
                        self.modules[own].items.insert(name.to_owned());
                    }
                }
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if word(at) == ";" || word(at) == "}" {
                given_path = None;
            }
            at += 1;
        }
        Ok(())
    }

    /// `mod name;`: one that is switched off and has no file is left out.
    fn file_module(&mut self, own: usize, name: &str, given: Option<String>) -> Result<()> {
        let folder = self.modules[own].folder.clone();
        let plain = name.trim_start_matches("r#");
        let beside = self.modules[own].file.parent().map(Path::to_owned).unwrap_or_default();
        let candidates = match given {
            Some(given) => vec![beside.join(given)],
            None => vec![folder.join(format!("{plain}.rs")), folder.join(plain).join("mod.rs")],
        };
        let Some(file) = candidates.into_iter().find(|file| file.is_file()) else { return Ok(()) };
        let inner = if file.ends_with("mod.rs") {
            file.parent().map(Path::to_owned).unwrap_or_default()
        } else {
            file.with_extension("")
        };
        let read = self.read(file, inner, Some(own))?;
        self.modules[own].children.entry(name.to_owned()).or_insert(read);
        Ok(())
    }

    fn edges(&self) -> BTreeSet<Import> {
        let mut edges = BTreeSet::new();
        for (at, module) in self.modules.iter().enumerate() {
            let mut join = |target: usize| {
                let to = &self.modules[target].file;
                if *to != module.file {
                    edges.insert((module.file.clone(), to.clone()));
                }
            };
            module.children.values().for_each(|child| join(*child));
            for one in &module.uses {
                self.targets(at, one).into_iter().for_each(&mut join);
            }
        }
        edges
    }

    /// The modules that a `use` leads to: the one that its path names, and the one that defines what that passes on.
    fn targets(&self, own: usize, one: &Use) -> Vec<usize> {
        let Some((module, rest)) = self.walk(own, &one.path, 4) else { return Vec::new() };
        let mut found = vec![module];
        if let Some(item) = rest.first() {
            found.extend(self.definition(module, item, 3).filter(|target| *target != module));
        }
        found
    }

    /// The module that defines a name which another one has.
    fn definition(&self, module: usize, item: &str, steps: u32) -> Option<usize> {
        if self.modules[module].items.contains(item) {
            return Some(module);
        }
        if steps == 0 {
            return None;
        }
        self.modules[module].uses.iter().find_map(|one| match &one.name {
            Some(name) if name == item => {
                let (target, rest) = self.walk(module, &one.path, 4)?;
                rest.first().map_or(Some(target), |item| self.definition(target, item, steps - 1))
            }
            Some(_) => None,
            None => {
                let (target, rest) = self.walk(module, &one.path, 4)?;
                let is_other = rest.is_empty() && target != module;
                is_other.then(|| self.definition(target, item, steps - 1)).flatten()
            }
        })
    }

    /// Follows a path as far as it names modules; what is left names something in the last of them.
    fn walk(&self, own: usize, path: &[String], steps: u32) -> Option<(usize, Vec<String>)> {
        let first = path.first()?.as_str();
        let (mut at, mut rest) = match first {
            "crate" => (0, &path[1..]),
            "self" => (own, &path[1..]),
            "super" => (self.modules[own].parent?, &path[1..]),
            first => match self.modules[own].children.get(first) {
                Some(child) => (*child, &path[1..]),
                None => {
                    let (at, left) = self.named(own, first, steps)?;
                    if !left.is_empty() {
                        return None;
                    }
                    (at, &path[1..])
                }
            },
        };
        while let Some(name) = rest.first() {
            let next = match name.as_str() {
                "super" => self.modules[at].parent,
                "self" => Some(at),
                name => self.modules[at].children.get(name).copied(),
            };
            // A module may pass another one on.
            let next = next.or_else(|| {
                self.named(at, name, steps).filter(|(_, left)| left.is_empty()).map(|(at, _)| at)
            });
            match next {
                Some(next) => (at, rest) = (next, &rest[1..]),
                None => break,
            }
        }
        Some((at, rest.to_vec()))
    }

    /// What a name means that a module has imported.
    fn named(&self, own: usize, name: &str, steps: u32) -> Option<(usize, Vec<String>)> {
        if steps == 0 {
            return None;
        }
        let one = self.modules[own].uses.iter().find(|one| one.name.as_deref() == Some(name))?;
        if one.path.len() == 1 {
            return None;
        }
        self.walk(own, &one.path, steps - 1)
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

/// The place after the bracket that closes the one at a place.
fn closing(tokens: &[String], at: usize) -> usize {
    let mut depth = 0_usize;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return place + 1;
                }
            }
            _ if depth == 0 => return place,
            _ => {}
        }
    }
    tokens.len()
}

/// The paths of a `use` declaration.
fn leaves(tokens: &[String], prefix: &[String], uses: &mut Vec<Use>) {
    let mut path = prefix.to_vec();
    let mut name: Option<Option<String>> = None;
    let mut at = 0;
    let finish = |path: &mut Vec<String>, name: &mut Option<Option<String>>, uses: &mut Vec<Use>| {
        if path.len() > prefix.len() || name.is_some() {
            if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
                path.pop();
            }
            let named = name.take().unwrap_or_else(|| path.last().cloned());
            uses.push(Use { path: path.clone(), name: named });
        }
        *path = prefix.to_vec();
    };
    while at < tokens.len() {
        match tokens[at].as_str() {
            "::" => {}
            "," => finish(&mut path, &mut name, uses),
            "*" => name = Some(None),
            "as" => {
                at += 1;
                name = Some(tokens.get(at).cloned());
            }
            "{" => {
                let end = closing(tokens, at);
                leaves(&tokens[at + 1..end.saturating_sub(1).max(at + 1)], &path, uses);
                path = prefix.to_vec();
                at = end;
                continue;
            }
            word => path.push(word.to_owned()),
        }
        at += 1;
    }
    finish(&mut path, &mut name, uses);
}

/// Words, `::` and single signs; comments are left out, and of strings only those that may be a path are kept.
fn tokens(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    let letter = |at: usize| letters.get(at).copied().unwrap_or('\0');
    while at < letters.len() {
        let now = letter(at);
        match now {
            '/' if letter(at + 1) == '/' => {
                while at < letters.len() && letter(at) != '\n' {
                    at += 1;
                }
            }
            '/' if letter(at + 1) == '*' => at = after_comment(&letters, at),
            '"' => {
                let end = after_string(&letters, at);
                tokens.push(letters[at..end.saturating_sub(1)].iter().collect());
                at = end;
            }
            'r' | 'b' if raw_string(&letters, at).is_some() => {
                at = raw_string(&letters, at).unwrap_or(at + 1)
            }
            '\'' => at = after_quote(&letters, at),
            ':' if letter(at + 1) == ':' => {
                tokens.push("::".to_owned());
                at += 2;
            }
            now if now.is_alphanumeric() || now == '_' => {
                let mut end = at + 1;
                while letter(end).is_alphanumeric() || letter(end) == '_' {
                    end += 1;
                }
                // A raw name keeps its mark: it names another file than the word alone would.
                if end == at + 1 && now == 'r' && letter(end) == '#' {
                    end += 1;
                    while letter(end).is_alphanumeric() || letter(end) == '_' {
                        end += 1;
                    }
                }
                tokens.push(letters[at..end].iter().collect());
                at = end;
            }
            now => {
                if !now.is_whitespace() {
                    tokens.push(now.to_string());
                }
                at += 1;
            }
        }
    }
    tokens
}

fn after_comment(letters: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while at < letters.len() {
        match (letters[at], letters.get(at + 1)) {
            ('/', Some('*')) => (at, depth) = (at + 2, depth + 1),
            ('*', Some('/')) => {
                (at, depth) = (at + 2, depth - 1);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn after_string(letters: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < letters.len() && letters[at] != '"' {
        at += if letters[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(letters.len())
}

/// The end of `r"…"`, `r#"…"#`, `b"…"`, `br"…"`; `None` for a word.
fn raw_string(letters: &[char], start: usize) -> Option<usize> {
    let mut at = start;
    let mut is_raw = false;
    if letters.get(at) == Some(&'b') {
        at += 1;
    }
    if letters.get(at) == Some(&'r') {
        is_raw = true;
        at += 1;
    }
    let marks = letters[at.min(letters.len())..].iter().take_while(|letter| **letter == '#').count();
    if letters.get(at + marks) != Some(&'"') || (marks > 0 && !is_raw) {
        return None;
    }
    // Within a word it is no beginning.
    if start > 0 && (letters[start - 1].is_alphanumeric() || letters[start - 1] == '_') {
        return None;
    }
    if !is_raw {
        return Some(after_string(letters, at));
    }
    let mut end = at + marks + 1;
    while end < letters.len() {
        let closes = letters[end] == '"'
            && letters[end + 1..].iter().take(marks).filter(|letter| **letter == '#').count() == marks;
        end += 1;
        if closes {
            return Some(end + marks);
        }
    }
    Some(end)
}

/// After a character, or after the mark of a lifetime.
fn after_quote(letters: &[char], at: usize) -> usize {
    match (letters.get(at + 1), letters.get(at + 2)) {
        (Some('\\'), _) => {
            let end = letters.iter().skip(at + 3).position(|letter| *letter == '\'');
            end.map_or(letters.len(), |end| at + 4 + end)
        }
        (Some(_), Some('\'')) => at + 3,
        _ => at + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_uses_are_followed() {
        let folder = crate::scratch::Scratch::new("imports").unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "lib.rs",
            "mod a;\npub mod b { mod c; use super::a::One; }\n#[path = \"odd.rs\"]\nmod d;\npub use a::One as Two;\n// use crate::gone;\n",
        );
        write(
            "a.rs",
            "use std::fs;\npub struct One;\nfn x() { let _ = \"use crate::d;\"; use crate::d::{self, deep::Thing}; }\n",
        );
        write("b/c.rs", "use crate::{Two, d::*};\nmod tests { use super::*; }\n");
        write("odd.rs", "println! { use crate::a; }\npub mod deep { pub enum Thing {} }\n");
        let found = imports(&folder.path().join("lib.rs")).unwrap();
        let shown: Vec<String> = found
            .iter()
            .map(|(from, to)| {
                let name = |path: &Path| path.strip_prefix(folder.path()).unwrap().display().to_string();
                format!("{} {}", name(from), name(to))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "a.rs odd.rs",
                "b/c.rs a.rs",
                "b/c.rs lib.rs",
                "b/c.rs odd.rs",
                "lib.rs a.rs",
                "lib.rs b/c.rs",
                "lib.rs odd.rs"
            ]
        );
    }

    #[test]
    fn signs_in_strings_and_comments_mean_nothing() {
        let text = "a /* { /* } */ */ '{' '\\'' 'x \"}\" r#\"{\"# b\"{\" // {\nr#type::b";
        assert_eq!(tokens(text), ["a", "x", "\"}", "r#type", "::", "b"]);
    }
}
