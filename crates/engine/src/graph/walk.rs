//! A walk from a node, level by level, as far as one page needs it.
//!
//! Nodes are numbered in the order in which they are found. That order depends on the documents only, so pages of one
//! question fit together. An edge belongs to the page of the later of its two nodes, so that each stands on one page.

use foldhash::HashMap;

use super::{
    Graph,
    docs::Doc,
    edges::Edge,
    nodes::{Node, Relation},
};
use crate::Result;

/// Nodes that one walk finds at most.
const MOST_NODES: usize = 100_000;
/// A walk that finds no more nodes than this goes to its end, so that the total is known.
const COUNTED: usize = 1_000;

/// The confidence up to which an edge is a guess, one of several possible meanings of a name.
const GUESS: f32 = 0.5;

/// Nodes that are prepared at once.
const TOGETHER: usize = 128;

/// What a walk is to find.
pub(super) struct Course {
    pub(super) depth: u32,
    pub(super) reverse: bool,
    pub(super) relations: Vec<Relation>,
    pub(super) offset: usize,
    pub(super) limit: usize,
    /// Only nodes of this type are counted and shown.
    pub(super) only: Option<String>,
}

impl Course {
    fn follows(&self, relation: Relation) -> bool {
        if self.relations.is_empty() { relation.is_usual() } else { self.relations.contains(&relation) }
    }

    /// Whether an edge is followed: without being asked to, only one that is more likely than not.
    fn trusts(&self, edge: &Edge) -> bool {
        !self.relations.is_empty() || edge.because.confidence > GUESS
    }
}

/// What a walk found.
#[derive(Default)]
pub(super) struct Walked {
    /// The nodes of the page, with their distances.
    pub(super) nodes: Vec<(Node, u32)>,
    /// The edges of the page.
    pub(super) edges: Vec<Edge>,
    /// How many nodes there are; `None` when the walk did not go to its end.
    pub(super) total: Option<usize>,
    /// Whether something is left out after this page.
    pub(super) truncated: bool,
}

#[derive(Default)]
struct Found {
    nodes: Vec<(Node, u32)>,
    places: HashMap<Node, usize>,
    edges: Vec<Edge>,
    /// Where an edge is, and at which node it was found.
    known: HashMap<(Node, Node, Relation), (usize, usize)>,
    is_full: bool,
}

impl Found {
    fn add(&mut self, node: &Node, distance: u32) {
        if self.places.contains_key(node) {
            return;
        }
        if self.nodes.len() >= MOST_NODES {
            self.is_full = true;
            return;
        }
        self.places.insert(node.clone(), self.nodes.len());
        self.nodes.push((node.clone(), distance));
    }

    /// Adds an edge that was found at a node; of several between the same nodes the first is kept, with the count of all.
    /// A document stands for its symbols too, so their edges are found again when the walk comes to them.
    fn join(&mut self, edge: Edge, node: usize) {
        let key = (edge.from.clone(), edge.to.clone(), edge.relation);
        match self.known.get(&key) {
            Some((at, same)) if *same == node => {
                let because = &mut self.edges[*at].because;
                because.count = because.count.saturating_add(edge.because.count);
            }
            Some(_) => {}
            None => {
                self.known.insert(key, (self.edges.len(), node));
                self.edges.push(edge);
            }
        }
    }
}

impl Graph<'_> {
    /// Walks from a node.
    pub(super) fn walk(&self, origin: &Node, course: &Course) -> Result<Walked> {
        let mut found = Found::default();
        found.add(origin, 0);
        let fits = |node: &Node| course.only.as_deref().is_none_or(|only| self.type_of(node) == only);
        let last_wanted = course.offset.saturating_add(course.limit);
        // With a type, positions among all nodes say nothing about positions on the page: the walk goes to its end.
        let is_filtered = course.only.is_some();
        let (mut at, mut prepared) = (0, 0);
        let mut ended = true;
        while let Some((node, distance)) = found.nodes.get(at).cloned() {
            self.call.check()?;
            if at > last_wanted && found.nodes.len() > (last_wanted + 1).max(COUNTED) && !is_filtered {
                ended = false;
                break;
            }
            at += 1;
            if distance >= course.depth {
                continue;
            }
            if at > prepared {
                prepared = (at + TOGETHER).min(found.nodes.len());
                self.prepare(&found.nodes[at - 1..prepared], course);
            }
            let wanted = |relation| course.follows(relation);
            let edges = if course.reverse {
                self.incoming(&node, distance == 0, &wanted)?
            } else {
                self.outgoing(&node, distance == 0, &wanted)?
            };
            for edge in edges.into_iter().filter(|edge| course.trusts(edge)) {
                let next = if course.reverse { &edge.from } else { &edge.to };
                found.add(&next.clone(), distance + 1);
                found.join(edge, at);
            }
        }
        Ok(self.page(found, course, ended, &fits))
    }

    /// Asks the catalog at once for what the nodes ahead need of it: one by one this takes longer than all the rest.
    fn prepare(&self, ahead: &[(Node, u32)], course: &Course) {
        let is_expanded = |distance: u32| distance < course.depth;
        let docs: Vec<Doc> = ahead
            .iter()
            .filter(|(_, distance)| course.reverse && is_expanded(*distance))
            .filter_map(|(node, _)| if let Node::Document(doc) = node { Some(*doc) } else { None })
            .collect();
        self.docs.fetch_rows(&docs);
    }

    fn page(&self, found: Found, course: &Course, ended: bool, fits: &dyn Fn(&Node) -> bool) -> Walked {
        let Found { nodes, places, edges, is_full, .. } = found;
        // Positions among the nodes that count; the origin is none of them.
        let mut positions: Vec<Option<usize>> = vec![None; nodes.len()];
        let mut count = 0;
        for (at, (node, _)) in nodes.iter().enumerate().skip(1) {
            if fits(node) {
                positions[at] = Some(count);
                count += 1;
            }
        }
        let page = course.offset..course.offset.saturating_add(course.limit);
        let is_on_page = |at: usize| positions[at].is_some_and(|position| page.contains(&position));
        let belongs = |edge: &Edge| {
            // The edge's ends; a part of the origin counts as the origin.
            let place = |node: &Node| places.get(node).copied().unwrap_or(0);
            let (one, other) = (place(&edge.from), place(&edge.to));
            is_on_page(one.max(other)) || (course.only.is_some() && (is_on_page(one) || is_on_page(other)))
        };
        let edges = edges.into_iter().filter(|edge| belongs(edge)).collect();
        let shown = nodes
            .iter()
            .enumerate()
            .filter(|(at, _)| is_on_page(*at))
            .map(|(_, node)| node.clone())
            .collect();
        let is_whole = ended && !is_full && !self.docs.was_cut();
        Walked {
            nodes: shown,
            edges,
            total: is_whole.then_some(count),
            truncated: !is_whole || count > page.end,
        }
    }
}
