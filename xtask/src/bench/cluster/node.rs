//! One node of a library: a data directory of its own, and variables that lead to what it shares with others.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::bench::machine;
use crate::bench::peak::{self, Made};
use crate::bench::programs::Program;
use crate::bench::timing::Invocation;
use crate::server::Server;

/// A node, running or not.
pub struct Node {
    shelf: PathBuf,
    data: PathBuf,
    variables: Vec<(&'static str, String)>,
    server: Option<Server>,
}

impl Node {
    /// A node that does not run yet. Deep vectors are off, so that nodes without work are idle.
    pub fn new(shelf: &Path, data: PathBuf, mut variables: Vec<(&'static str, String)>) -> Self {
        variables.push(("SHELF_EMBEDDING_DEEPEN", "off".to_owned()));
        Self { shelf: shelf.to_owned(), data, variables, server: None }
    }

    /// The version of the program.
    pub fn version(&self) -> String {
        Program::Shelf(self.shelf.clone()).version().unwrap_or_else(|| "unknown".to_owned())
    }

    /// Starts its server.
    pub fn start(&mut self) -> Result<()> {
        self.server = Some(Server::start_node(&self.shelf, &self.data, &self.variables)?);
        Ok(())
    }

    /// Ends its server with a signal that it cannot catch.
    pub fn kill(&mut self) {
        self.server = None;
    }

    /// Where its server listens.
    pub fn address(&self) -> Result<String> {
        Ok(self.running()?.address())
    }

    fn running(&self) -> Result<&Server> {
        self.server.as_ref().with_context(|| format!("{} does not run", self.data.display()))
    }

    /// The processor time of its server so far, in seconds.
    pub fn processor(&self) -> Result<f64> {
        machine::processor_seconds(self.running()?.id()).context("cannot read a node's time from /proc")
    }

    /// The memory of its server without mapped files, in MB.
    pub fn own_memory(&self) -> Result<f64> {
        machine::own_megabytes(self.running()?.id()).context("cannot read a node's memory from /proc")
    }

    /// The value of a metric, summed over its labels; zero when nothing was counted yet.
    pub fn metric(&self, name: &str) -> Result<f64> {
        let address = self.running()?.metrics_address().context("the node serves no metrics")?;
        let mut stream = TcpStream::connect(&address).context("cannot connect to a node's metrics")?;
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        if !reply.starts_with("HTTP/1.1 200") {
            bail!("a node's metrics could not be read: {}", reply.lines().next().unwrap_or_default());
        }
        Ok(value_of(&reply, name))
    }

    /// Stores everything below `tree`; small files go to `figures`.
    pub fn add(&self, tree: &Path, figures: &Path) -> Result<Made> {
        let arguments = ["add".into(), tree.into(), "--json".into(), "--quiet".into()];
        let mut words: Vec<OsString> = vec![(&self.shelf).into(), "--data-dir".into(), (&self.data).into()];
        words.extend(arguments);
        let variables = self.variables.iter().map(|(name, value)| (*name, value.into())).collect();
        peak::measure(&Invocation { words, variables }, figures)
    }

    /// Runs a command on its library that must succeed.
    pub fn run(&self, arguments: &[&str]) -> Result<()> {
        let output = Command::new(&self.shelf)
            .arg("--data-dir")
            .arg(&self.data)
            .args(arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .output()
            .with_context(|| format!("cannot start {}", self.shelf.display()))?;
        if !output.status.success() {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            bail!("shelf {arguments:?} failed: {}{}", text(&output.stdout), text(&output.stderr));
        }
        Ok(())
    }
}

fn value_of(metrics: &str, name: &str) -> f64 {
    let values = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let value = if rest.starts_with('{') { rest.rsplit_once("} ")?.1 } else { rest.strip_prefix(' ')? };
        value.trim().parse::<f64>().ok()
    });
    values.sum()
}

#[cfg(test)]
mod tests {
    use super::value_of;

    #[test]
    fn a_metric_is_summed_over_its_labels() {
        let text = "# TYPE a_total counter\na_total{x=\"1\"} 2\na_total{x=\"2\",y=\"} 7\"} 3\na_total_more 9\nb 1.5\n";
        assert!((value_of(text, "a_total") - 5.0).abs() < 1e-9);
        assert!((value_of(text, "b") - 1.5).abs() < 1e-9);
        assert!(value_of(text, "c").abs() < 1e-9);
    }
}
