//! A page as a flat list of elements and texts, each with what it inherits: hidden or not, operable or not, and its role.
//!
//! The tree is made flat once: everything within an element stands behind it, up to its end. So nothing here recurses, however deep
//! a page is.

use super::{
    limits::Limits,
    parse::{NodeId, Tree},
    roles::Role,
    semantics,
    sheet::Hiding,
    work::{VISIT, Work},
};
use scraper::Node;
use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
    ops::Range,
};

/// The steps of looking for a role among those of WAI-ARIA.
const ROLE: usize = 4;

/// A page as a flat list of nodes.
#[derive(Debug)]
pub(super) struct Document<'h> {
    entries: Vec<Entry<'h>>,
    /// The first element of each id. unordered: only looked up.
    by_id: HashMap<&'h str, usize>,
    /// The labels of each control. unordered: only looked up.
    labels: HashMap<usize, Vec<usize>>,
    /// Which element says in its aria-owns that it owns this one. unordered: only looked up.
    owners: HashMap<usize, usize>,
    /// What style sheets may hide.
    hiding: Hiding,
    /// The words of those scripts in the page that listen for the focus; made when the first one is asked for. unordered: only looked up.
    watched: OnceCell<HashSet<String>>,
    /// The maps that a picture uses; looked for when the first one is asked for. unordered: only looked up.
    maps_in_use: OnceCell<HashSet<usize>>,
    /// The radio buttons that are not chosen while another one of their group is; looked for when the first one is asked for.
    /// unordered: only looked up.
    passed_over: OnceCell<HashSet<usize>>,
    /// Whether there is a script that may define custom elements; looked for when the first one is met.
    has_scripts: OnceCell<bool>,
    /// Whether there is a shadow tree in the markup.
    has_shadow: bool,
    work: Work,
}

#[derive(Debug)]
struct Entry<'h> {
    what: What<'h>,
    parent: Option<usize>,
    /// Whether there is a hyphen in its name.
    has_hyphen: bool,
    /// Whether it is a text that is more than white space.
    says: bool,
    /// The index after the last node inside it; the greatest index while the element is open.
    end: usize,
    /// The line in which it begins, from 1; 0 for a text.
    line: u32,
    state: State,
    /// The role that its author gave it.
    explicit: Option<&'static Role>,
    /// The role that it has.
    role: Option<&'static Role>,
}

#[derive(Debug)]
enum What<'h> {
    Element(&'h scraper::node::Element),
    Text(&'h str),
}

/// Properties that an element has from its ancestors and itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Not rendered, with all that is in it.
    pub(super) unrendered: bool,
    /// `visibility: hidden`, which a descendant may undo.
    pub(super) invisible: bool,
    /// `aria-hidden="true"` on it or an ancestor.
    pub(super) aria_hidden: bool,
    /// `inert` on it or an ancestor.
    pub(super) inert: bool,
    /// Maybe hidden by a style sheet: no rule asks for it, and names may come from it.
    pub(super) styled_away: bool,
    /// In a disabled fieldset.
    pub(super) disabled: bool,
    /// In sectioning content: an article, an aside, a navigation or a section is around it.
    pub(super) sectioned: bool,
    /// In that, in `main`, or in what has the role of one of them: headers and footers are not those of the page.
    pub(super) in_part: bool,
    /// Its namespace is SVG.
    pub(super) svg: bool,
    /// Its namespace is HTML.
    pub(super) html: bool,
}

impl State {
    /// Whether it can be seen, as far as markup and style attributes tell.
    pub(super) fn is_rendered(self) -> bool {
        !self.unrendered && !self.invisible
    }

    /// Whether it is exposed to assistive technology.
    pub(super) fn is_exposed(self) -> bool {
        self.is_rendered() && !self.aria_hidden && !self.inert
    }
}

/// One element of a document.
#[derive(Clone, Copy)]
pub(super) struct Element<'d> {
    pub(super) document: &'d Document<'d>,
    pub(super) index: usize,
}

/// An element's child or descendant.
#[derive(Clone, Copy)]
pub(super) enum Item<'d> {
    Element(Element<'d>),
    /// A text: whether it is more than white space, and what it has from the element around it.
    Text(bool, State),
}

impl<'h> Document<'h> {
    pub(super) fn new(tree: &'h Tree, limits: &Limits) -> Document<'h> {
        let work = Work::new(limits.steps);
        let mut document = Document {
            entries: Vec::new(),
            by_id: HashMap::new(),
            labels: HashMap::new(),
            owners: HashMap::new(),
            hiding: Hiding::of(&tree.html, &work),
            watched: OnceCell::new(),
            maps_in_use: OnceCell::new(),
            passed_over: OnceCell::new(),
            has_scripts: OnceCell::new(),
            has_shadow: false,
            work,
        };
        document.flatten(tree);
        document.tie();
        document
    }

    fn flatten(&mut self, tree: &'h Tree) {
        // What is open: nodes with their place here; what is in a template is no part of the page, and has none.
        let mut open: Vec<(NodeId, Option<usize>)> = Vec::new();
        for node in tree.html.tree.root().descendants().skip(1) {
            let parent = node.parent().map(|parent| parent.id());
            while let Some((_, place)) = open.pop_if(|(id, _)| Some(*id) != parent) {
                self.close(place);
            }
            let within = open.last().map(|(_, place)| *place);
            let place = match (node.value(), within) {
                (_, Some(None)) => None,
                (Node::Element(element), _) if element.name() == "template" => {
                    self.has_shadow |= element.attr("shadowrootmode").is_some();
                    None
                }
                (Node::Element(element), within) => {
                    Some(self.push(What::Element(element), within.flatten(), node.has_children(), tree.line(node.id())))
                }
                (Node::Text(text), Some(within)) => Some(self.push(What::Text(text), within, false, 0)),
                _ => None,
            };
            if node.has_children() {
                open.push((node.id(), place));
            }
        }
        while let Some((_, place)) = open.pop() {
            self.close(place);
        }
    }

    fn close(&mut self, place: Option<usize>) {
        if let Some(index) = place {
            self.entries[index].end = self.entries.len();
        }
    }

    fn push(&mut self, what: What<'h>, parent: Option<usize>, stays_open: bool, line: u32) -> usize {
        let index = self.entries.len();
        let state = parent.map_or_else(State::default, |parent| self.entries[parent].state);
        let is_element = matches!(what, What::Element(_));
        let has_hyphen = matches!(what, What::Element(element) if element.name().contains('-'));
        let says = matches!(what, What::Text(text) if !text.trim().is_empty());
        let end = if stays_open { usize::MAX } else { index + 1 };
        self.entries.push(Entry { what, parent, has_hyphen, says, end, line, state, explicit: None, role: None });
        if is_element {
            let element = Element { document: &*self, index };
            let state = semantics::state(element, state);
            self.entries[index].state = state;
            let element = Element { document: &*self, index };
            let mut roles = element.attr("role").unwrap_or_default().split_ascii_whitespace().take_while(|_| self.work.spend(ROLE));
            let explicit = roles.find_map(Role::of);
            self.entries[index].explicit = explicit;
            let role = semantics::role(Element { document: &*self, index });
            self.entries[index].role = role;
        }
        index
    }

    /// Who refers to whom: ids, labels, owners.
    fn tie(&mut self) {
        let (mut by_id, mut labels, mut owners) = (HashMap::new(), HashMap::<usize, Vec<usize>>::new(), HashMap::new());
        for (index, entry) in self.entries.iter().enumerate() {
            if let What::Element(element) = entry.what
                && let Some(id) = value(element, "id").filter(|id| !id.is_empty() && self.work.read(id))
            {
                by_id.entry(id).or_insert(index);
            }
        }
        self.by_id = by_id;
        for element in self.elements() {
            if element.is("label") {
                let control = match element.attr("for") {
                    Some(id) => self.by_id(id).filter(|target| target.is_labelable()),
                    None => element.descendants().find(|inner| inner.is_labelable()),
                };
                if let Some(control) = control {
                    labels.entry(control.index).or_default().push(element.index);
                }
            }
            // What is not there for assistive technology owns nothing.
            for owned in element.referred("aria-owns").filter(|_| element.state().is_exposed()) {
                owners.entry(owned.index).or_insert(element.index);
            }
        }
        self.labels = labels;
        self.owners = owners;
    }

    /// All elements, in order.
    pub(super) fn elements(&self) -> impl Iterator<Item = Element<'_>> {
        self.elements_in(0..self.entries.len())
    }

    fn elements_in(&self, range: Range<usize>) -> impl Iterator<Item = Element<'_>> {
        let is_element = |index: &usize| matches!(self.entries[*index].what, What::Element(_));
        range.filter(is_element).map(|index| Element { document: self, index }).take_while(|_| self.spend())
    }

    /// The `html` element.
    pub(super) fn root(&self) -> Option<Element<'_>> {
        self.elements().next()
    }

    /// The first element of an id.
    pub(super) fn by_id(&self, id: &str) -> Option<Element<'_>> {
        self.by_id.get(id).map(|&index| Element { document: self, index })
    }

    /// Whether a script of the page that listens for the focus has this word in it: an id or a class, maybe.
    pub(super) fn is_watched_for_focus(&self, word: &str) -> bool {
        self.work.spend(1) && self.watched().contains(word)
    }

    /// Whether a script of the page listens for the focus, of whatever.
    pub(super) fn is_watching_for_focus(&self) -> bool {
        self.work.spend(1) && !self.watched().is_empty()
    }

    fn watched(&self) -> &HashSet<String> {
        self.watched.get_or_init(|| self.entries.iter().flat_map(|entry| self.watched_by(entry)).map(str::to_owned).collect())
    }

    /// The words of a text that is a script and listens for the focus.
    fn watched_by<'e>(&self, entry: &'e Entry<'_>) -> impl Iterator<Item = &'e str> + use<'e> {
        let is_script = |parent: usize| matches!(self.entries[parent].what, What::Element(element) if element.name() == "script");
        let script = match entry.what {
            What::Text(text) if entry.parent.is_some_and(is_script) && listens_for_focus(text) => text,
            _ => "",
        };
        script.split(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '-' | '_')).filter(|word| !word.is_empty())
    }

    /// Whether a script, or a shadow tree in the markup, may make something else of custom elements than they look.
    pub(super) fn may_define_elements(&self) -> bool {
        let runs_script = |element: Element<'_>| is_script(element) || element.attr_names().any(|name| name.starts_with("on"));
        self.has_shadow || *self.has_scripts.get_or_init(|| self.elements().any(runs_script))
    }

    /// Whether a picture that can be seen uses a map: its areas stand in the picture.
    pub(super) fn is_map_in_use(&self, map: Element<'_>) -> bool {
        self.maps_in_use.get_or_init(|| self.find_maps_in_use()).contains(&map.index)
    }

    fn find_maps_in_use(&self) -> HashSet<usize> {
        // unordered: only looked up.
        let mut first_of_name: HashMap<&str, usize> = HashMap::new();
        for map in self.elements().filter(|element| element.is("map")) {
            for name in ["id", "name"].iter().filter_map(|name| map.attr(name)) {
                first_of_name.entry(name).or_insert(map.index);
            }
        }
        let pictures = self.elements().filter(|element| element.is("img") && element.is_rendered() && !element.state().inert);
        let used = pictures.filter_map(|picture| Some(picture.attr("usemap")?.split_once('#')?.1));
        used.filter_map(|name| first_of_name.get(name).copied()).collect()
    }

    /// Whether a radio button is not chosen while another one of its group is (HTML standard, "radio button group"): one comes only to that
    /// one with the tab key.
    pub(super) fn is_passed_over(&self, radio: Element<'_>) -> bool {
        self.passed_over.get_or_init(|| self.find_passed_over()).contains(&radio.index)
    }

    fn find_passed_over(&self) -> HashSet<usize> {
        let group = |radio: Element<'_>| Some((self.form_of(radio).map(|form| form.index), radio.attr("name")?.to_owned()));
        let is_radio = |element: &Element<'_>| element.is("input") && element.attr_is("type", "radio") && element.says("name");
        // unordered: only looked up. Of several that say that they are chosen, the last one is.
        let mut chosen: HashMap<(Option<usize>, String), usize> = HashMap::new();
        let groups: Vec<_> = self.elements().filter(is_radio).filter_map(|radio| Some((radio, group(radio)?))).collect();
        for (radio, group) in groups.iter().filter(|(radio, _)| radio.has("checked")) {
            chosen.insert(group.clone(), radio.index);
        }
        let is_passed_over = |(radio, group): &(Element<'_>, _)| chosen.get(group).is_some_and(|chosen| *chosen != radio.index);
        groups.iter().filter(|radio| is_passed_over(radio)).map(|(radio, _)| radio.index).collect()
    }

    /// The form that a control belongs to: by its `form` attribute, or else the one around it.
    fn form_of<'d>(&'d self, control: Element<'d>) -> Option<Element<'d>> {
        match control.attr("form") {
            Some(id) => self.by_id(id).filter(|form| form.is("form")),
            None => control.ancestors().find(|ancestor| ancestor.is("form")),
        }
    }

    /// Counts one more visit; false when the limit is reached.
    pub(super) fn spend(&self) -> bool {
        self.work.spend(VISIT)
    }

    /// What is left of the steps that it may take.
    pub(super) fn work(&self) -> &Work {
        &self.work
    }
}

/// Whether an element is a script that is run.
fn is_script(element: Element<'_>) -> bool {
    let kind = element.attr("type").unwrap_or_default().trim_ascii().to_ascii_lowercase();
    element.name() == "script" && (matches!(kind.as_str(), "" | "module") || kind.ends_with("javascript") || kind.ends_with("ecmascript"))
}

fn listens_for_focus(script: &str) -> bool {
    ["'focus'", "\"focus\"", "`focus`", "onfocus", "focusin", ".focus(function"].iter().any(|sign| script.contains(sign))
}

fn value<'h>(element: &'h scraper::node::Element, name: &str) -> Option<&'h str> {
    element.attrs().find(|(each, _)| *each == name).map(|(_, value)| value)
}

impl<'d> Element<'d> {
    fn entry(self) -> &'d Entry<'d> {
        &self.document.entries[self.index]
    }

    fn node(self) -> Option<&'d scraper::node::Element> {
        match &self.entry().what {
            What::Element(element) => Some(element),
            What::Text(_) => None,
        }
    }

    /// The place behind everything in it.
    pub(super) fn end(self) -> usize {
        self.entry().end.min(self.document.entries.len())
    }

    fn at(self, index: usize) -> Element<'d> {
        Element { index, ..self }
    }

    /// The line in which it begins, from 1.
    pub(super) fn line(self) -> u32 {
        self.entry().line
    }

    /// Its name, in lower case if it is HTML.
    pub(super) fn name(self) -> &'d str {
        self.node().map_or("", scraper::node::Element::name)
    }

    /// Its namespace, as a URL.
    pub(super) fn namespace(self) -> &'d str {
        self.node().map_or("", |node| &node.name.ns)
    }

    /// Whether it is the HTML element of this name.
    pub(super) fn is(self, name: &str) -> bool {
        self.is_html() && self.name() == name
    }

    /// Whether it is in HTML's namespace.
    pub(super) fn is_html(self) -> bool {
        self.entry().state.html
    }

    /// Whether it is in SVG's namespace.
    pub(super) fn is_svg(self) -> bool {
        self.entry().state.svg
    }

    /// The value of an attribute, as written. Whoever asks may read all of it, and an element may be visited often; and elements that are
    /// opened anew have the same value.
    pub(super) fn attr(self, name: &str) -> Option<&'d str> {
        self.find(name).filter(|value| self.document.work.read(value))
    }

    fn find(self, name: &str) -> Option<&'d str> {
        let node = self.node()?;
        if self.document.work.look_up(node.attrs.len()) { value(node, name) } else { None }
    }

    /// Whether it has an attribute.
    pub(super) fn has(self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether an attribute says more than white space.
    pub(super) fn says(self, name: &str) -> bool {
        self.attr(name).is_some_and(|value| !value.trim().is_empty())
    }

    /// Whether an attribute has this value (in lower case), in any case.
    pub(super) fn attr_is(self, name: &str, value: &str) -> bool {
        self.attr(name).is_some_and(|has| has.trim_ascii().eq_ignore_ascii_case(value))
    }

    /// Its attributes, by name and value.
    pub(super) fn attrs(self) -> impl Iterator<Item = (&'d str, &'d str)> {
        let work = &self.document.work;
        self.node().into_iter().flat_map(scraper::node::Element::attrs).take_while(|(name, value)| work.read(name) && work.read(value))
    }

    /// The names of its attributes.
    pub(super) fn attr_names(self) -> impl Iterator<Item = &'d str> {
        let work = &self.document.work;
        let node = self.node().filter(|node| work.look_up(node.attrs.len()));
        node.into_iter().flat_map(scraper::node::Element::attrs).map(|(name, _)| name)
    }

    /// The elements that an attribute with ids refers to.
    pub(super) fn referred(self, name: &str) -> impl Iterator<Item = Element<'d>> {
        let document = self.document;
        let ids = self.attr(name).unwrap_or_default().split_ascii_whitespace();
        ids.take_while(|_| document.spend()).filter_map(|id| document.by_id(id))
    }

    pub(super) fn parent(self) -> Option<Element<'d>> {
        self.entry().parent.map(|index| self.at(index))
    }

    /// Its ancestors, from its parent up.
    pub(super) fn ancestors(self) -> impl Iterator<Item = Element<'d>> {
        std::iter::successors(self.parent(), |element| element.parent().filter(|_| element.document.spend()))
    }

    /// The elements in it, in order.
    pub(super) fn descendants(self) -> impl Iterator<Item = Element<'d>> {
        self.document.elements_in(self.index + 1..self.end())
    }

    /// Its children, in order.
    pub(super) fn children(self) -> impl Iterator<Item = Element<'d>> {
        self.walk(|_| Visit::Over).filter_map(Item::element)
    }

    /// What is in it, in order; `visit` says of each element whether to look into it.
    pub(super) fn walk(self, mut visit: impl FnMut(Element<'d>) -> Visit) -> impl Iterator<Item = Item<'d>> {
        let (mut next, end) = (self.index + 1, self.end());
        std::iter::from_fn(move || {
            while next < end && self.document.spend() {
                let index = next;
                let element = self.at(index);
                if let What::Text(_) = element.entry().what {
                    next += 1;
                    return Some(Item::Text(element.entry().says, element.state()));
                }
                let visit = visit(element);
                next = if visit == Visit::Into { index + 1 } else { element.end() };
                if visit != Visit::Past {
                    return Some(Item::Element(element));
                }
            }
            None
        })
    }

    pub(super) fn state(self) -> State {
        self.entry().state
    }

    /// Whether it can be seen, as far as the page itself tells.
    pub(super) fn is_rendered(self) -> bool {
        self.state().is_rendered() && !self.state().styled_away
    }

    /// Whether it is exposed to assistive technology.
    pub(super) fn is_exposed(self) -> bool {
        self.state().is_exposed() && !self.state().styled_away
    }

    /// Whether a style sheet may hide it: one of the page by a rule that may match it, or another one by a class that says so. The page as a
    /// whole is never hidden: what hides it at first is undone by a script.
    pub(super) fn may_be_styled_away(self) -> bool {
        let (hiding, work, Some(node)) = (&self.document.hiding, &self.document.work, self.node()) else { return false };
        if matches!(self.name(), "html" | "body") {
            return false;
        }
        // While it is made, its end is open if there is something in it.
        let is_empty = self.entry().end == self.index + 1;
        let ancestors = || self.ancestors().filter_map(Element::node);
        let mut candidates = hiding.candidates(node, work).take_while(|_| !work.is_spent());
        candidates.any(|selector| selector.may_match(node, is_empty, ancestors(), work)) || hiding.is_hidden_by_name(node, work)
    }

    /// Whether a style sheet that stands elsewhere, and is not read, may hide it or what is around it in this other element: one of them
    /// has a class or an id.
    pub(super) fn may_be_hidden_elsewhere(self, outer: Element<'d>) -> bool {
        let mut within = std::iter::once(self).chain(self.ancestors()).take_while(|element| element.index >= outer.index);
        self.document.hiding.has_others() && within.any(|element| element.says("class") || element.says("id"))
    }

    /// The role that its author gave it, whether it has it or not.
    pub(super) fn explicit_role(self) -> Option<&'static Role> {
        self.entry().explicit
    }

    /// The role that it has.
    pub(super) fn role(self) -> Option<&'static Role> {
        self.entry().role
    }

    /// Whether it has the role of this name.
    pub(super) fn has_role(self, name: &str) -> bool {
        self.role().is_some_and(|role| role.name == name)
    }

    /// Whether it is a custom element, by its name.
    pub(super) fn is_custom(self) -> bool {
        self.is_html() && self.has_hyphen()
    }

    /// Whether there is a hyphen in its name, which may be long.
    pub(super) fn has_hyphen(self) -> bool {
        self.entry().has_hyphen
    }

    /// Whether a label can belong to it.
    pub(super) fn is_labelable(self) -> bool {
        match self.name() {
            "input" => self.is_html() && !self.attr_is("type", "hidden"),
            "button" | "meter" | "output" | "progress" | "select" | "textarea" => self.is_html(),
            _ => false,
        }
    }

    /// The label elements that belong to it.
    pub(super) fn labels(self) -> impl Iterator<Item = Element<'d>> {
        let labels = self.document.labels.get(&self.index).into_iter().flatten();
        labels.take_while(move |_| self.document.spend()).map(move |&index| self.at(index))
    }

    /// Who owns it by aria-owns.
    pub(super) fn owner(self) -> Option<Element<'d>> {
        self.document.owners.get(&self.index).map(|&index| self.at(index))
    }
}

/// How a walk goes on at an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visit {
    /// Visit it, and what is inside.
    Into,
    /// Visit it, but not what is inside.
    Over,
    /// Visit neither.
    Past,
}

impl<'d> Item<'d> {
    fn element(self) -> Option<Element<'d>> {
        match self {
            Item::Element(element) => Some(element),
            Item::Text(..) => None,
        }
    }
}
