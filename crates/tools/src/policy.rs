//! The policy table: what an identity may list *and* call. This is the only place that decides it.

use shelf_engine::{Bearer, Caller, FileAccess, Library, Pass};

use crate::{Family, Tool, family::ToolError, find, registry};

/// The access that a tool requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Reading and writing: what hands out keys that read, what writes stored content to files, and what changes the text
    /// that is found.
    ReadWrite,
}

/// Who may call a tool at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Everyone, including collection tokens.
    Anyone,
    /// Everyone except collection tokens.
    Personal,
    /// Administrators.
    Administrators,
}

/// The decision for one identity and one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is listed and may be called.
    Allowed,
    /// It is hidden, and a call fails with this message.
    Refused(&'static str),
}

/// Which tools a server offers. Each field can only narrow the selection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these families; empty means all.
    pub toolsets: Vec<String>,
    /// Only these tools; empty means all.
    pub tools: Vec<String>,
    /// Tools that are not offered.
    pub excluded: Vec<String>,
    /// Only tools that change nothing.
    pub read_only: bool,
}

/// The toolset of tools beyond the contracts. No other toolset includes it, not even `all`.
pub const EXTRAS: &str = "extras";

const NOT_OFFERED: &str = "This tool is not offered here";
const READ_NEEDED: &str = "Insufficient permissions: read access required";
const PERSONAL_NEEDED: &str = "Insufficient permissions: PAT required";
const ADMIN_NEEDED: &str = "Insufficient permissions: ADMIN scope required";
pub(crate) const WRITE_NEEDED: &str = "Insufficient permissions: write access required";

impl Selection {
    /// The toolset names that a selection may contain.
    pub const TOOLSETS: [&'static str; 7] =
        ["all", "store", "documents", "books", "citations", "workspace", "extras"];

    /// Every tool, including extras.
    pub fn everything() -> Self {
        Self { toolsets: vec!["all".into(), EXTRAS.into()], ..Self::default() }
    }

    /// Narrows the selection to `toolsets`, a comma-separated list; `None` when one of them is unknown.
    pub fn narrowed(&self, toolsets: &str, read_only: bool) -> Option<Self> {
        let asked: Vec<String> =
            toolsets.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
        if asked.iter().any(|name| !Self::TOOLSETS.contains(&name.as_str())) {
            return None;
        }
        let mut narrowed = self.clone();
        narrowed.read_only |= read_only;
        if !asked.is_empty() && !asked.iter().any(|name| name == "all") {
            let everything = self.toolsets.is_empty() || self.toolsets.iter().any(|name| name == "all");
            let named = |name: &String| self.toolsets.contains(name) || (everything && name != EXTRAS);
            narrowed.toolsets = asked.into_iter().filter(named).collect();
            if narrowed.toolsets.is_empty() {
                narrowed.toolsets = vec!["none".into()];
            }
        }
        Some(narrowed)
    }

    /// The same selection with the tools beyond the contracts, unless it is narrowed to some families: for REST routes and
    /// the web console, where further tools are in nobody's way.
    pub fn with_extras(&self) -> Self {
        let mut wider = self.clone();
        if wider.toolsets.is_empty() {
            wider.toolsets.push("all".into());
        }
        if wider.toolsets.iter().any(|name| name == "all")
            && !wider.toolsets.iter().any(|name| name == EXTRAS)
        {
            wider.toolsets.push(EXTRAS.into());
        }
        wider
    }

    /// Names in `tools` and `excluded` that are not tools.
    pub fn unknown_tools(&self) -> Vec<&str> {
        self.tools
            .iter()
            .chain(&self.excluded)
            .map(String::as_str)
            .filter(|name| find(name).is_none())
            .collect()
    }

    /// Extras in `tools` that would silently not be offered, because the toolset is not named.
    pub fn unoffered_extras(&self) -> Vec<&str> {
        let is_extra = |name: &&str| find(name).is_some_and(|tool| tool.toolset() == EXTRAS);
        let named = self.toolsets.iter().any(|toolset| toolset == EXTRAS);
        self.tools.iter().map(String::as_str).filter(|name| !named && is_extra(name)).collect()
    }

    fn offers(&self, tool: &Tool) -> bool {
        let listed = |names: &[String], name: &str| names.iter().any(|known| known == name);
        let everything = self.toolsets.is_empty() || listed(&self.toolsets, "all");
        let toolset = tool.toolset();
        let in_set = listed(&self.toolsets, toolset) || (everything && toolset != EXTRAS);
        let named = self.tools.is_empty() || listed(&self.tools, tool.name);
        in_set && named && !listed(&self.excluded, tool.name)
    }
}

/// Looks up the decision for one identity and one tool.
pub fn verdict(pass: &Pass, selection: &Selection, tool: &Tool) -> Verdict {
    if !selection.offers(tool) {
        return Verdict::Refused(NOT_OFFERED);
    }
    if selection.read_only && tool.access != Access::Read {
        return Verdict::Refused(WRITE_NEEDED);
    }
    match (pass.bearer(), tool.audience) {
        // The contract gives collection tokens the document tools and nothing else.
        (Bearer::Collection, Audience::Personal | Audience::Administrators) => {
            return Verdict::Refused(PERSONAL_NEEDED);
        }
        (Bearer::Owner | Bearer::Personal | Bearer::Web, Audience::Administrators)
            if !pass.may_administer() =>
        {
            return Verdict::Refused(ADMIN_NEEDED);
        }
        (Bearer::Collection, Audience::Anyone)
        | (
            Bearer::Owner | Bearer::Personal | Bearer::Web,
            Audience::Anyone | Audience::Personal | Audience::Administrators,
        ) => {}
    }
    match tool.access {
        Access::Read | Access::ReadWrite if !pass.may_read() => Verdict::Refused(READ_NEEDED),
        Access::Write | Access::ReadWrite if !pass.may_write() => Verdict::Refused(WRITE_NEEDED),
        Access::Read | Access::Write | Access::ReadWrite => Verdict::Allowed,
    }
}

/// Requires write access for an argument that makes a reading tool write.
pub(crate) fn must_write(pass: &Pass, selection: &Selection) -> Result<(), ToolError> {
    if selection.read_only || !pass.may_write() { Err(ToolError::Refused(WRITE_NEEDED)) } else { Ok(()) }
}

/// What keeps a tool from doing anything for this caller as the server is set up. It is not listed then, and a call says
/// what to set. Callers of this machine have all that the operating system gives them, and the tools say what is missing.
pub(crate) fn lacking(library: &Library, caller: &Caller, tool: &Tool) -> Option<ToolError> {
    if caller.file_access == FileAccess::OperatingSystem {
        return None;
    }
    match (tool.family, tool.name) {
        (Family::Workspace, "hello") => None,
        (Family::Workspace, _) => library.can_use_workspace(caller).err().map(ToolError::from),
        (_, "download") => library.can_download(caller).err().map(ToolError::from),
        (_, "restore") => library.can_restore(caller).err().map(ToolError::from),
        _ => None,
    }
}

/// The tools that are listed for a caller: those that it may call and that can do something as the server is set up. May
/// ask the catalog.
pub fn listed(library: &Library, caller: &Caller, selection: &Selection) -> Vec<&'static Tool> {
    registry().filter(|tool| is_listed(library, caller, selection, tool)).collect()
}

/// Whether a tool is among those that are listed for a caller.
pub fn is_listed(library: &Library, caller: &Caller, selection: &Selection, tool: &Tool) -> bool {
    verdict(&caller.pass, selection, tool) == Verdict::Allowed && lacking(library, caller, tool).is_none()
}

/// The tools that an identity may call.
pub fn visible<'a>(pass: &'a Pass, selection: &'a Selection) -> impl Iterator<Item = &'static Tool> + 'a {
    registry().filter(move |tool| verdict(pass, selection, tool) == Verdict::Allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_only_narrows() {
        let only_store = Selection { toolsets: vec!["store".into()], ..Selection::default() };
        let pass = Pass::owner();
        assert!(visible(&pass, &only_store).all(|tool| tool.family.word() == "store"));
        let wider = only_store.narrowed("all", false).unwrap();
        assert_eq!(wider, only_store);
        let other = only_store.narrowed("workspace", false).unwrap();
        assert_eq!(visible(&pass, &other).count(), 0);
        let reading = Selection::default().narrowed("", true).unwrap();
        assert!(visible(&pass, &reading).all(|tool| tool.hints.read_only));
        assert!(Selection::default().narrowed("nonsense", false).is_none());
    }

    #[test]
    fn extras_are_offered_only_where_they_are_named() {
        let pass = Pass::owner();
        let count =
            |selection: &Selection| visible(&pass, selection).filter(|tool| tool.toolset() == EXTRAS).count();
        let all = registry::extras().count();
        assert!(all >= 3);
        let default = Selection { toolsets: vec!["all".into()], ..Selection::default() };
        for closed in [Selection::default(), default.clone()] {
            assert_eq!(count(&closed), 0);
            // A request cannot widen the selection.
            for asked in ["extras", "all", "all,extras", "workspace,extras", "workspace"] {
                assert_eq!(count(&closed.narrowed(asked, false).unwrap()), 0, "{asked}");
            }
        }
        let by_name = Selection { tools: vec!["query_memory".into()], ..default };
        assert_eq!(visible(&pass, &by_name).count(), 0);
        let open = Selection::everything();
        assert_eq!((count(&open), visible(&pass, &open).count()), (all, registry().count()));
        let only = open.narrowed("extras", false).unwrap();
        assert_eq!((count(&only), visible(&pass, &only).count()), (all, all));
        assert_eq!(count(&open.narrowed("workspace", false).unwrap()), 0);
        assert_eq!(count(&open.narrowed("all", false).unwrap()), all);
    }

    #[test]
    fn a_wider_selection_keeps_its_limits() {
        let pass = Pass::owner();
        let count = |selection: &Selection| visible(&pass, selection).count();
        assert_eq!(count(&Selection::default().with_extras()), registry().count());
        let reading = Selection { read_only: true, ..Selection::default() }.with_extras();
        assert!(visible(&pass, &reading).all(|tool| tool.hints.read_only));
        let without = Selection { excluded: vec!["activity".into()], ..Selection::default() }.with_extras();
        assert_eq!(count(&without), registry().count() - 1);
        let store = Selection { toolsets: vec!["store".into()], ..Selection::default() };
        assert_eq!(store.with_extras(), store);
    }

    #[test]
    fn writing_tools_ask_for_write_access() {
        for tool in registry() {
            assert_eq!(tool.hints.read_only, tool.access == Access::Read, "{}", tool.name);
        }
    }
}
