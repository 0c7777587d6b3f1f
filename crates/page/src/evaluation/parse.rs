//! How is a tree made of a page that may be hostile? In small steps, with limits on what grows checked between them.
//!
//! html5ever follows the HTML standard, whose tree builder walks its open elements again and again: 128 KiB of nested lists cost
//! seconds. So the page goes in by small pieces, and between them it is asked how deep and how large the tree has become. Depth bounds
//! every walk, their number bounds what the standard makes out of misnested markup, and the clock bounds what nobody thought of.

use super::limits::Limits;
use crate::scanner::{tag::StartTag, tokens::StartTags};
use html5ever::{
    Attribute, ParseOpts, QualName,
    driver::{self, Parser},
    tendril::{StrTendril, TendrilSink},
    tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink},
};
use nearcrawl_model::evaluation::Gate;
use scraper::{Html, HtmlTreeSink};
use std::{borrow::Cow, cell::Cell, time::Duration};

/// A node of a tree.
pub(super) type NodeId = <HtmlTreeSink as TreeSink>::Handle;

/// How much of a page is parsed at once, in bytes: what grows is checked after each such piece.
const PIECE: usize = 2048;

/// What the tags themselves say, before there is a tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tags {
    /// Tags that have an attribute twice; the tree does not show it any more.
    pub(super) with_duplicates: u32,
}

/// One walk over the tags. Refuses those with many attributes (the tokenizer of html5ever compares each with each), and documents in
/// other languages than HTML.
pub(super) fn read_tags(text: &str, limits: &Limits) -> Result<Tags, Gate> {
    let mut with_duplicates = 0;
    let mut names: Vec<&[u8]> = Vec::new();
    let mut tags = StartTags::every(text.as_bytes());
    let mut is_first = true;
    for tag in tags.by_ref() {
        names.clear();
        for attribute in tag.attributes() {
            if names.len() == limits.attributes {
                return Err(Gate::TooManyAttributes);
            }
            names.push(attribute.name);
        }
        if std::mem::take(&mut is_first) && is_another_language(&tag, &names) {
            return Err(Gate::NotHtml);
        }
        let repeats = |(at, name): (usize, &&[u8])| names[..at].iter().any(|before| before.eq_ignore_ascii_case(name));
        with_duplicates += u32::from(names.iter().enumerate().any(repeats));
    }
    if tags.most_untold_attributes() > limits.attributes {
        return Err(Gate::TooManyAttributes);
    }
    Ok(Tags { with_duplicates })
}

/// Whether a document that begins with this tag is MathML, or SVG (which has to name its namespace; in HTML hardly anybody does).
fn is_another_language(root: &StartTag<'_>, attributes: &[&[u8]]) -> bool {
    root.is(b"math") || (root.is(b"svg") && attributes.contains(&b"xmlns".as_slice()))
}

/// The tree of a page, or why it was given up.
pub(super) fn tree(text: &str, limits: &Limits, elapsed: &dyn Fn() -> Duration) -> Result<Html, Gate> {
    let begun = elapsed();
    let sink = Watched {
        sink: HtmlTreeSink::new(Html::new_document()),
        limits: *limits,
        elements: Cell::new(0),
        gathered: Cell::new(0),
        alarm: Cell::new(None),
    };
    let mut parser: Parser<Watched> = driver::parse_document(sink, ParseOpts::default());
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE));
        parser.process(StrTendril::from(piece));
        rest = behind;
        let sink = &parser.tokenizer.sink.sink;
        let late = || (elapsed().saturating_sub(begun) > limits.time).then_some(Gate::TooSlow);
        if let Some(gate) = sink.alarm.get().or_else(late) {
            return Err(gate);
        }
    }
    let (html, alarm) = parser.finish();
    alarm.map_or(Ok(html), Err)
}

/// A sink that remembers when the tree became too deep or too large.
struct Watched {
    sink: HtmlTreeSink,
    limits: Limits,
    /// Elements made so far.
    elements: Cell<usize>,
    /// Attributes that later `html` and `body` tags added to the first ones.
    gathered: Cell<usize>,
    alarm: Cell<Option<Gate>>,
}

impl Watched {
    fn raise(&self, gate: Gate) {
        self.alarm.set(self.alarm.get().or(Some(gate)));
    }

    /// Looks how deep a child of `parent` lies. Elements that were taken out of the tree count from where they hang now.
    fn measure(&self, parent: NodeId) {
        let html = self.sink.0.borrow();
        let deeper = html.tree.get(parent).is_some_and(|node| node.ancestors().take(self.limits.depth).count() == self.limits.depth);
        if deeper {
            self.raise(Gate::TooDeep);
        }
    }
}

impl TreeSink for Watched {
    type Handle = NodeId;
    type Output = (Html, Option<Gate>);
    type ElemName<'a> = <HtmlTreeSink as TreeSink>::ElemName<'a>;

    fn finish(self) -> Self::Output {
        (self.sink.finish(), self.alarm.get())
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, flags: ElementFlags) -> NodeId {
        self.elements.set(self.elements.get() + 1);
        if self.elements.get() > self.limits.elements {
            self.raise(Gate::TooManyElements);
        }
        self.sink.create_element(name, attributes, flags)
    }

    fn append(&self, parent: &NodeId, child: NodeOrText<NodeId>) {
        if let NodeOrText::AppendNode(_) = child {
            self.measure(*parent);
        }
        self.sink.append(parent, child);
    }

    fn append_before_sibling(&self, sibling: &NodeId, child: NodeOrText<NodeId>) {
        self.measure(*sibling);
        self.sink.append_before_sibling(sibling, child);
    }

    fn append_based_on_parent_node(&self, element: &NodeId, previous: &NodeId, child: NodeOrText<NodeId>) {
        self.measure(*previous);
        self.sink.append_based_on_parent_node(element, previous, child);
    }

    fn add_attrs_if_missing(&self, target: &NodeId, attributes: Vec<Attribute>) {
        self.gathered.set(self.gathered.get() + attributes.len());
        if self.gathered.get() > self.limits.attributes {
            return self.raise(Gate::TooManyAttributes);
        }
        self.sink.add_attrs_if_missing(target, attributes);
    }

    // Comments and errors say nothing about the page's elements.
    fn create_comment(&self, _text: StrTendril) -> NodeId {
        self.sink.create_comment(StrTendril::new())
    }

    fn create_pi(&self, _target: StrTendril, _data: StrTendril) -> NodeId {
        self.sink.create_comment(StrTendril::new())
    }

    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> NodeId {
        self.sink.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> Self::ElemName<'a> {
        self.sink.elem_name(target)
    }

    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.sink.append_doctype_to_document(name, public, system);
    }

    fn get_template_contents(&self, target: &NodeId) -> NodeId {
        self.sink.get_template_contents(target)
    }

    fn same_node(&self, left: &NodeId, right: &NodeId) -> bool {
        left == right
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.sink.set_quirks_mode(mode);
    }

    fn remove_from_parent(&self, target: &NodeId) {
        self.sink.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &NodeId, new_parent: &NodeId) {
        self.sink.reparent_children(node, new_parent);
    }
}
