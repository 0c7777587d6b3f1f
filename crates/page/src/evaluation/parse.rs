//! Builds a tree of a page that may be hostile: in small steps, with limits on what grows checked between them.
//!
//! html5ever follows the HTML standard, whose tree builder walks its open elements again and again: 128 KiB of nested lists cost
//! seconds. So the page goes in by small pieces, and between them it is asked how deep and how large the tree has become. Depth bounds
//! every walk, their number bounds what the standard makes out of misnested markup, and the clock bounds what nobody thought of.

use super::limits::Limits;
use crate::scanner::{tag::StartTag, tokens::StartTags};
use html5ever::{
    Attribute, QualName, TokenizerResult,
    tendril::StrTendril,
    tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts},
    tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeBuilder, TreeBuilderOpts, TreeSink},
};
use nearcrawl_model::evaluation::Gate;
use scraper::{Html, HtmlTreeSink};
use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

/// A node of a tree.
pub(super) type NodeId = <HtmlTreeSink as TreeSink>::Handle;

/// How much of a page is parsed at once, in bytes: what grows is checked after each such piece.
const PIECE: usize = 2048;

/// One walk over the tags. Refuses those with many attributes (the tokenizer of html5ever compares each with each), and documents in
/// other languages than HTML. Returns those that have an attribute twice, which the tree does not show any more: the line in which they
/// begin, and how they are written.
pub(super) fn read_tags<'t>(text: &'t str, limits: &Limits) -> Result<Vec<(u32, &'t str)>, Gate> {
    let mut with_duplicates = Vec::new();
    let (mut line, mut counted) = (1, 0);
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
        if names.iter().enumerate().any(repeats) {
            let begin = tag.0.as_ptr().addr() - text.as_ptr().addr();
            line +=
                split_lines(&text[counted..begin], text.as_bytes()[..counted].ends_with(b"\r")).filter(|(_, ends_line)| *ends_line).count();
            counted = begin;
            let end = (begin + tag.0.len() + 1).min(text.len());
            with_duplicates.push((u32::try_from(line).unwrap_or(u32::MAX), text.get(begin - 1..end).unwrap_or_default()));
        }
    }
    if tags.most_untold_attributes() > limits.attributes {
        return Err(Gate::TooManyAttributes);
    }
    Ok(with_duplicates)
}

/// Whether a document that begins with this tag is MathML, or SVG (which has to name its namespace; in HTML hardly anybody does).
fn is_another_language(root: &StartTag<'_>, attributes: &[&[u8]]) -> bool {
    root.is(b"math") || (root.is(b"svg") && attributes.contains(&b"xmlns".as_slice()))
}

/// A page as a tree.
pub(super) struct Tree {
    pub(super) html: Html,
    /// In which line each element begins, in the order of their nodes.
    begins: Vec<(NodeId, u32)>,
}

impl Tree {
    /// The line in which an element begins, from 1; 0 if it is none.
    pub(super) fn line(&self, node: NodeId) -> u32 {
        self.begins.binary_search_by_key(&node, |(node, _)| *node).map_or(0, |at| self.begins[at].1)
    }
}

/// The tree of a page, or why it was given up.
pub(super) fn tree(text: &str, limits: &Limits, elapsed: &dyn Fn() -> Duration) -> Result<Tree, Gate> {
    let begun = elapsed();
    let lines = Rc::new(Lines::default());
    let sink = Watched {
        sink: HtmlTreeSink::new(Html::new_document()),
        limits: *limits,
        elements: Cell::new(0),
        attributes: Cell::new(0),
        gathered: Cell::new(0),
        alarm: Cell::new(None),
        lines: Rc::clone(&lines),
        begins: RefCell::default(),
    };
    let tokens = Located { sink: TreeBuilder::new(sink, TreeBuilderOpts::default()), lines: Rc::clone(&lines) };
    let tokenizer = Tokenizer::new(tokens, TokenizerOpts::default());
    let input = BufferQueue::default();
    // The tokenizer stops behind each script, so that it could be run.
    let read = || while let TokenizerResult::Script(_) = tokenizer.feed(&input) {};
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE));
        // Each line goes in by itself, so that it is known which one a token ends in: the tokenizer does not count those in tags.
        let follows_return = text.as_bytes()[..text.len() - rest.len()].ends_with(b"\r");
        for (line, ends_line) in split_lines(piece, follows_return) {
            lines.now.set(lines.now.get() + u32::from(ends_line));
            input.push_back(StrTendril::from(line));
            read();
        }
        rest = behind;
        let sink = &tokenizer.sink.sink.sink;
        let late = || (elapsed().saturating_sub(begun) > limits.time).then_some(Gate::TooSlow);
        if let Some(gate) = sink.alarm.get().or_else(late) {
            return Err(gate);
        }
    }
    read();
    tokenizer.end();
    let (tree, alarm) = tokenizer.sink.sink.sink.finish();
    alarm.map_or(Ok(tree), Err)
}

/// The lines of a part of a page, each with the line end before it, if there is one.
fn split_lines(part: &str, follows_return: bool) -> impl Iterator<Item = (&str, bool)> {
    let bytes = part.as_bytes();
    let is_end = move |at: usize| match bytes[at] {
        b'\r' => true,
        _ if at == 0 => !follows_return,
        _ => bytes[at - 1] != b'\r',
    };
    let mut ends = memchr::memchr2_iter(b'\n', b'\r', bytes).filter(move |at| is_end(*at)).peekable();
    let begins_with_end = ends.next_if_eq(&0).is_some();
    let mut next = Some((0, begins_with_end));
    std::iter::from_fn(move || {
        let (begin, ends_line) = next?;
        let end = ends.next();
        next = end.map(|end| (end, true));
        Some((&part[begin..end.unwrap_or(part.len())], ends_line))
    })
}

/// Which line of a page is being read? From 1.
struct Lines {
    /// The one that the tokenizer is in.
    now: Cell<u32>,
    /// The one in which the present token begins.
    begin: Cell<u32>,
    /// The one in which the token before it ended.
    end: Cell<u32>,
}

impl Default for Lines {
    fn default() -> Self {
        Lines { now: Cell::new(1), begin: Cell::new(1), end: Cell::new(1) }
    }
}

/// Passes tokens on, and notes in which line each of them begins: in that where the one before it ended.
struct Located {
    sink: TreeBuilder<NodeId, Watched>,
    lines: Rc<Lines>,
}

impl TokenSink for Located {
    type Handle = NodeId;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<NodeId> {
        // An error is told while its token is being read.
        if !matches!(token, Token::ParseError(_)) {
            self.lines.begin.set(self.lines.end.replace(self.lines.now.get()));
        }
        self.sink.process_token(token, line)
    }

    fn end(&self) {
        self.sink.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.sink.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// A sink that remembers when the tree became too deep or too large.
struct Watched {
    sink: HtmlTreeSink,
    limits: Limits,
    /// Elements made so far.
    elements: Cell<usize>,
    /// Attributes of the elements made so far.
    attributes: Cell<usize>,
    /// Attributes that later `html` and `body` tags added to the first ones.
    gathered: Cell<usize>,
    alarm: Cell<Option<Gate>>,
    lines: Rc<Lines>,
    /// In which line each element begins.
    begins: RefCell<Vec<(NodeId, u32)>>,
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
    type Output = (Tree, Option<Gate>);
    type ElemName<'a> = <HtmlTreeSink as TreeSink>::ElemName<'a>;

    fn finish(self) -> Self::Output {
        (Tree { html: self.sink.finish(), begins: self.begins.into_inner() }, self.alarm.get())
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, flags: ElementFlags) -> NodeId {
        self.elements.set(self.elements.get() + 1);
        if self.elements.get() > self.limits.elements {
            self.raise(Gate::TooManyElements);
        }
        self.attributes.set(self.attributes.get() + attributes.len());
        if self.attributes.get() > self.limits.all_attributes {
            self.raise(Gate::TooManyAttributes);
        }
        // The alarm is heard behind the present piece of the page, which may open tens of thousands of elements anew.
        let attributes = if self.alarm.get().is_none() { attributes } else { Vec::new() };
        let element = self.sink.create_element(name, attributes, flags);
        self.begins.borrow_mut().push((element, self.lines.begin.get()));
        element
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
