//! A library in a temporary folder, with its catalog and packs there or on stores that the environment names.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::{Map, Value};
use shelf_base::{CallContext, ManualClock, Moment, bounds::PAGE_CHARS};
use shelf_blocks::objects::{Folder, Objects};
use shelf_engine::{Caller, Library, Options, WorkspaceSettings};
use shelf_tools::{Context, ErrorReply, Limits, policy::Selection};
use tempfile::TempDir;

use crate::shared::SharedStores;

/// A library in a temporary folder, which also has room for files to add and folders to restore into.
pub struct TestLibrary {
    folder: TempDir,
    stores: Option<SharedStores>,
    /// The library.
    pub library: Library,
    /// Its clock, when a test moves it by hand.
    pub clock: Option<Arc<ManualClock>>,
}

impl TestLibrary {
    /// An empty library.
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    /// An empty library with options. Unless they name a workspace, it is the folder `workspace` next to the library.
    pub fn with(mut options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let workspace = options.workspace.get_or_insert_with(|| WorkspaceSettings {
            root: folder.path().join("workspace"),
            also: Vec::new(),
            accounts: Vec::new(),
        });
        fs::create_dir_all(workspace.root.join("docs")).expect("a workspace");
        fs::write(workspace.root.join("docs/README.md"), "# Read me\n").expect("a file");
        let stores = SharedStores::fresh();
        let library =
            Library::open(&folder.path().join("library"), led(&stores, options)).expect("a new library");
        Self { folder, stores, library, clock: None }
    }

    /// An empty library whose clock only moves when the test advances it.
    pub fn with_clock() -> Self {
        let mut made = Self::new();
        let clock = Arc::new(ManualClock::at(Moment::from_micros(1_790_000_000_000_000)));
        let library = made.folder.path().join("library");
        let packs: Arc<dyn Objects> = match &made.stores {
            Some(stores) => stores.packs(),
            None => Arc::new(Folder::new(library.join("packs"))),
        };
        let options = led(&made.stores, Options::default());
        made.library = Library::with(&library, packs, clock.clone(), options).expect("the library");
        made.clock = Some(clock);
        made
    }

    /// Whether catalog and packs are on shared stores, and not in the library's folder.
    pub fn is_shared(&self) -> bool {
        self.stores.is_some()
    }

    /// Moves the clock forward by whole days.
    pub fn days_pass(&self, days: u64) {
        let clock = self.clock.as_ref().expect("a clock that is moved by hand");
        clock.advance(Duration::from_secs(days * 86_400));
    }

    /// A path next to the library.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file next to the library and returns its path.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(&path, bytes).expect("a file");
        path
    }

    /// Opens the same library again, as another process would.
    pub fn reopen(&self) -> Library {
        let options = led(&self.stores, Options::default());
        Library::open(&self.folder.path().join("library"), options).expect("the library")
    }

    /// Calls a tool as the owner.
    pub fn call(&self, tool: &str, arguments: Value) -> Result<Value, ErrorReply> {
        self.call_as(&Caller::owner(), tool, arguments)
    }

    /// Calls a tool as `caller`.
    pub fn call_as(&self, caller: &Caller, tool: &str, arguments: Value) -> Result<Value, ErrorReply> {
        let tool = shelf_tools::find(tool).expect("a known tool");
        let (call, limits, selection) = (CallContext::new(), Limits::default(), Selection::everything());
        let context = Context {
            library: &self.library,
            caller,
            call: &call,
            limits: &limits,
            selection: &selection,
            page_chars: PAGE_CHARS,
            upload_door: &|| Ok("http://127.0.0.1:1".into()),
        };
        let arguments: Map<String, Value> = arguments.as_object().cloned().expect("an object");
        shelf_tools::call(tool, &context, arguments).map(|answer| answer.value)
    }

    /// Calls a tool that must succeed.
    pub fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).unwrap_or_else(|failure| panic!("{tool}: {}", failure.text))
    }
}

/// Options that lead to the stores, if there are any.
fn led(stores: &Option<SharedStores>, options: Options) -> Options {
    match stores {
        Some(stores) => stores.lead(options),
        None => options,
    }
}

impl Default for TestLibrary {
    fn default() -> Self {
        Self::new()
    }
}

/// The error text of a call that must fail.
pub fn error_of(outcome: Result<Value, ErrorReply>) -> String {
    outcome.expect_err("a failure").text
}

/// Every file below `folder` with its bytes, by relative path.
pub fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below").to_string_lossy().into_owned();
                found.push((name, fs::read(&path).unwrap_or_default()));
            }
        }
    }
    found.sort();
    found
}
