//! `cargo xtask clients`: clients that we did not write take a tour of all tools, over stdio and HTTP and in both protocol
//! eras, and every reply is compared with `tests/clients/tour.replies.json`. The Inspector and the converters of model
//! providers look at the schemas.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::scratch::Scratch;
use crate::server::Server;
use crate::{conformance, places, step};

/// Python packages by environment: the adapters still need the first version of the protocol's own package.
const CURRENT: (&str, &[&str]) = ("current", &["mcp>=2", "fastmcp>=4", "google-genai>=3.1", "anthropic>=2"]);
const ADAPTERS: (&str, &[&str]) = ("adapters", &["langchain-mcp-adapters", "openai-agents"]);

/// Packages of npm.
const PACKAGES: [&str; 4] = [
    "@modelcontextprotocol/sdk@1",
    "@modelcontextprotocol/client@2",
    "@modelcontextprotocol/inspector@2",
    conformance::NODE,
];

/// What a client runs on.
#[derive(Clone, Copy)]
enum Runner {
    Current,
    Adapters,
    Node,
}

/// The clients and the eras that they speak.
const CLIENTS: [(&str, Runner, &[&str]); 6] = [
    ("mcp", Runner::Current, &["legacy", "modern"]),
    ("fastmcp", Runner::Current, &["modern"]),
    ("langchain", Runner::Adapters, &["legacy"]),
    ("openai-agents", Runner::Adapters, &["legacy"]),
    ("sdk", Runner::Node, &["legacy"]),
    ("client", Runner::Node, &["legacy", "modern"]),
];

/// Runs it for the release build, or for another program.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let program = arguments.take_value("--program")?.map(PathBuf::from);
    let update = arguments.take_flag("--update");
    arguments.finish()?;
    tour(&program.map_or_else(places::built_shelf, Ok)?, update)
}

/// Has every client take the tour.
pub fn tour(shelf: &Path, update: bool) -> Result<()> {
    let places = Places::install()?;
    for (client, runner, eras) in CLIENTS {
        for era in eras {
            for transport in ["stdio", "http"] {
                println!("== the tour with {client} over {transport}, {era}");
                one(shelf, &places, (client, runner), transport, era, update)
                    .with_context(|| format!("{client} over {transport}, {era}"))?;
            }
        }
    }
    inspect(shelf, &places)?;
    println!("clients: all passed");
    Ok(())
}

/// Where everything is installed.
struct Places {
    folder: PathBuf,
}

impl Places {
    fn install() -> Result<Self> {
        let folder = places::target()?.join("clients");
        fs::create_dir_all(&folder)?;
        let made = Self { folder };
        for (name, packages) in [CURRENT, ADAPTERS] {
            made.python_packages(name, packages)?;
        }
        made.node_packages()?;
        Ok(made)
    }

    fn scripts() -> PathBuf {
        places::root().join("tests").join("clients")
    }

    fn python(&self, name: &str) -> PathBuf {
        self.folder.join(name).join("bin").join("python")
    }

    fn node(&self) -> PathBuf {
        self.folder.join("node_modules/node/bin/node")
    }

    fn python_packages(&self, name: &str, packages: &[&str]) -> Result<()> {
        let (folder, wanted) = (self.folder.join(name), packages.join("\n"));
        let stamp = folder.join("installed");
        if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            return Ok(());
        }
        let mut command = Command::new("python3");
        command.args(["-m", "venv", "--clear"]).arg(&folder);
        step::run("creating a Python environment", "Install python3-venv.", &mut command)?;
        let mut command = Command::new(self.python(name));
        command.args(["-m", "pip", "install", "--quiet"]).args(packages);
        step::run("installing clients with pip", "pip needs a reachable package index.", &mut command)?;
        Ok(fs::write(stamp, wanted)?)
    }

    fn node_packages(&self) -> Result<()> {
        let (stamp, wanted) = (self.folder.join("installed"), PACKAGES.join("\n"));
        if !fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) || !self.node().is_file() {
            fs::write(self.folder.join("package.json"), "{\"private\": true, \"type\": \"module\"}\n")?;
            let mut command = Command::new("npm");
            command.args(["install", "--no-audit", "--no-fund", "--loglevel=error"]).args(PACKAGES);
            let remedy = "Install npm, and make sure that it can reach its registry and run install scripts.";
            step::run("installing clients with npm", remedy, command.current_dir(&self.folder))?;
            fs::write(stamp, wanted)?;
        }
        // Node looks for packages next to the script.
        for name in ["typescript.mjs", "tour.json"] {
            fs::copy(Self::scripts().join(name), self.folder.join(name))?;
        }
        Ok(())
    }
}

/// A folder with a workspace and room for a library.
fn scratch() -> Result<Scratch> {
    let scratch = Scratch::new("tour")?;
    let docs = scratch.path().join("workspace").join("docs");
    fs::create_dir_all(&docs)?;
    fs::write(docs.join("README.md"), "# Read me\n")?;
    Ok(scratch)
}

fn one(
    shelf: &Path,
    places: &Places,
    (client, runner): (&str, Runner),
    transport: &str,
    era: &str,
    update: bool,
) -> Result<()> {
    let scratch = scratch()?;
    let (library, workspace) = (scratch.path().join("library"), scratch.path().join("workspace"));
    let server = match transport {
        "http" => Some(Server::start_with_workspace(shelf, &library, &workspace)?),
        _ => None,
    };
    let target = server.as_ref().map_or_else(|| shelf.to_string_lossy().into_owned(), Server::endpoint);
    let mut command = match runner {
        Runner::Current => Command::new(places.python(CURRENT.0)),
        Runner::Adapters => Command::new(places.python(ADAPTERS.0)),
        Runner::Node => Command::new(places.node()),
    };
    let script = match runner {
        Runner::Current | Runner::Adapters => Places::scripts().join("clients.py"),
        Runner::Node => places.folder.join("typescript.mjs"),
    };
    let replies = scratch.path().join("replies.json");
    command.arg(script).args([client, transport, era, &target]).arg(scratch.path());
    command.env("PYTHONDONTWRITEBYTECODE", "1").stdout(File::create(&replies)?);
    if !command.status()?.success() {
        bail!("the client failed; what it said is above");
    }
    let mut command = Command::new(places.python(CURRENT.0));
    command.arg(Places::scripts().join("tour.py")).arg(transport).arg(scratch.path()).arg(&replies);
    if update {
        command.arg("--update");
    }
    if !command.env("PYTHONDONTWRITEBYTECODE", "1").status()?.success() {
        bail!(
            "the replies are not those that were reviewed; `cargo xtask clients --update` writes them anew"
        );
    }
    Ok(())
}

/// The Inspector in its strict mode, without an error or a warning, and the converters.
fn inspect(shelf: &Path, places: &Places) -> Result<()> {
    let scratch = scratch()?;
    let library = scratch.path().join("library");
    let listed = scratch.path().join("tools.json");
    let inspector =
        places.folder.join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    let server = Server::start(shelf, &scratch.path().join("other"))?;
    for over_http in [true, false] {
        let mut command = Command::new(places.node());
        command.arg(&inspector).args(["--cli", "--strict", "--method", "tools/list"]);
        if over_http {
            command.arg(server.endpoint());
        } else {
            command.arg("--").arg(shelf).arg("--data-dir").arg(&library).arg("serve");
        }
        println!("== the Inspector over {}", if over_http { "HTTP" } else { "stdio" });
        let output = command.stdout(File::create(&listed)?).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() || said.contains("Warning:") || said.contains("Error:") {
            bail!("the Inspector found something in the schemas:\n{said}");
        }
    }
    let mut command = Command::new(places.python(CURRENT.0));
    command.arg(Places::scripts().join("schemas.py")).arg(&listed).env("PYTHONDONTWRITEBYTECODE", "1");
    step::run(
        "converting the schemas",
        "Change the schema so that every client understands it.",
        &mut command,
    )
}
