//! Where the virtual nodes of a map lead: each must lead to a place that is there, in one step.

use std::collections::HashMap;

use shelf_base::{
    CallContext,
    address::{Address, Place},
};
use shelf_reading::map::{Location, Map};

use super::{Answer, CitationError, given::MOST_PROBLEMS, mapped::Extent};
use crate::{Caller, Library};

impl Library {
    /// What is wrong with the virtual nodes of a map that is to be given to a resource with these names.
    pub(super) fn check_targets(
        &self,
        caller: &Caller,
        map: &Map,
        extent: &Extent,
        names: &[String],
        call: &CallContext,
    ) -> Answer<Vec<String>> {
        let own: HashMap<&str, &Location> =
            map.nodes.iter().map(|node| (node.id.as_str(), &node.location)).collect();
        let mut problems = Vec::new();
        for node in &map.nodes {
            let Location::Elsewhere(target) = &node.location else { continue };
            call.check()?;
            let led = if names.iter().any(|name| name == target.resource()) {
                leads(target, extent, |id| own.get(id).copied())
            } else {
                self.leads_elsewhere(caller, target, call)
            };
            match led {
                Ok(()) => {}
                Err(CitationError::Engine(error)) => return Err(error.into()),
                Err(error) => problems.push(format!("node '{}': {error}", node.id)),
            }
            if problems.len() >= MOST_PROBLEMS {
                break;
            }
        }
        Ok(problems)
    }

    fn leads_elsewhere(&self, caller: &Caller, target: &Address, call: &CallContext) -> Answer<()> {
        let id = target.resource();
        let source = self.cited(caller, id)?.ok_or_else(|| CitationError::NoResource(id.to_owned()))?;
        let mapped = self.opened(caller, source, call)?.mapped;
        leads(target, &mapped.extent, |id| mapped.node(id).map(|node| &node.location))
    }
}

/// Whether a target is a place of a resource, or a node at such a place.
fn leads<'a>(
    target: &Address,
    extent: &Extent,
    node: impl FnOnce(&str) -> Option<&'a Location>,
) -> Answer<()> {
    let place = match target.place() {
        Place::Virtual(None) => return Err(names_no_node(target)),
        Place::Virtual(Some(id)) => match node(id.as_str()) {
            Some(Location::Here(place)) => place,
            Some(Location::Elsewhere(_)) => return Err(leads_on(target)),
            None => return Err(CitationError::NoNode(id.as_str().to_owned())),
        },
        place => place,
    };
    extent.within(place).map(drop)
}

pub(super) fn names_no_node(address: &Address) -> CitationError {
    CitationError::NoPlace(format!("'{address}' names no node: write its id after '#'"))
}

pub(super) fn leads_on(target: &Address) -> CitationError {
    CitationError::NoPlace(format!(
        "the node leads to '{target}', which leads on to another; only one step is followed"
    ))
}
