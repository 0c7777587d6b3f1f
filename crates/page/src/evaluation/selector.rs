//! Decides whether a selector of a style sheet may match an element.
//!
//! Names, classes, ids, attributes and ancestors are compared; whatever else a selector requires (places among siblings, what is checked …)
//! counts as met, so that nobody says of an element that it is certainly not meant.
//!
//! What holds only while something is done to a page (`:hover`, `:focus`, `:target`) and what is no element (`::before`) is left out.

use super::work::{VISIT, Work};
use scraper::node::Element;

/// How deep `:is()` and `:not()` may be in one another to be looked into.
const MAX_DEPTH: u32 = 3;

/// So many classes of an element are looked at, so many tests of a compound, and so many choices of `:is()` and `:not()`.
const MAX_PARTS: usize = 100;

/// The steps of a test, which may have to look for an attribute.
const TEST: usize = 2;

/// Longer values of attributes count as being as they must be, in bytes.
const MAX_VALUE: usize = 1000;

/// Classes that scripts give to the root, or take from it, to say that there are scripts.
const OF_SCRIPTS: [&str; 5] = ["js", "no-js", "nojs", "has-js", "js-enabled"];

/// A selector.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selector {
    /// What the element must be.
    subject: Compound,
    /// What some of its ancestors must be, from the outermost one to the innermost.
    around: Vec<Compound>,
}

/// What a selector is looked up by: the rarest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Id,
    Class,
    Name,
    Attribute,
    /// It may match any element.
    Any,
}

/// What one element must be.
#[derive(Debug, Default, PartialEq, Eq)]
struct Compound {
    tests: Vec<Test>,
    /// Whether more is asked for than these tests.
    asks_more: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Test {
    /// The name, in lower case.
    Name(String),
    Class(String),
    Id(String),
    Attribute {
        name: String,
        relation: char,
        value: String,
    },
    /// There is nothing in it.
    Empty,
    /// It is a custom element.
    Custom,
    AnyOf(Vec<Compound>),
    NoneOf(Vec<Compound>),
}

impl Selector {
    /// The selectors of a list that may match something while nobody does anything to the page.
    pub(super) fn list(text: &str, work: &Work) -> Vec<Selector> {
        list(text, 0, work)
    }

    /// Whether it says anything of the element or of what is around it.
    pub(super) fn says_something(&self) -> bool {
        !self.subject.tests.is_empty() || !self.around.is_empty()
    }

    /// Whether it asks nothing of the element: `&` and the like, which within another rule stand for the selectors of that one.
    pub(super) fn is_of_any(&self) -> bool {
        self.subject.tests.is_empty()
    }

    /// By what it is looked up: something that each element it matches has, in lower case.
    pub(super) fn key(&self) -> (Kind, String) {
        let keys = self.subject.tests.iter().map(|test| match test {
            Test::Id(id) => (Kind::Id, id.to_ascii_lowercase()),
            Test::Class(class) => (Kind::Class, class.to_ascii_lowercase()),
            Test::Name(name) => (Kind::Name, name.clone()),
            Test::Attribute { name, .. } => (Kind::Attribute, name.clone()),
            _ => (Kind::Any, String::new()),
        });
        keys.min_by_key(|(kind, _)| *kind).unwrap_or((Kind::Any, String::new()))
    }

    /// Whether it may match an element, with these ancestors from its parent up.
    pub(super) fn may_match<'e>(
        &self,
        element: &Element,
        is_empty: bool,
        ancestors: impl Iterator<Item = &'e Element>,
        work: &Work,
    ) -> bool {
        if !work.spend(VISIT) || !self.subject.may_match(element, is_empty, work) {
            return false;
        }
        let mut wanted = self.around.iter().rev();
        let mut next = wanted.next();
        for ancestor in ancestors {
            match next {
                None => return true,
                Some(compound) if compound.may_match(ancestor, false, work) => next = wanted.next(),
                Some(_) => {}
            }
        }
        next.is_none()
    }
}

/// The value of an attribute.
pub(super) fn attr<'e>(element: &'e Element, name: &str, work: &Work) -> Option<&'e str> {
    let is_looked_for = work.look_up(element.attrs.len()) && work.read(name);
    if is_looked_for { element.attr(name).filter(|value| work.read(value)) } else { None }
}

/// The classes of an element.
pub(super) fn classes<'e>(element: &'e Element, work: &Work) -> impl Iterator<Item = &'e str> {
    attr(element, "class", work).unwrap_or_default().split_ascii_whitespace().take(MAX_PARTS)
}

/// Whether two names are the same but for their case.
fn is_same(left: &str, right: &str, work: &Work) -> bool {
    left.len() == right.len() && work.read(left) && left.eq_ignore_ascii_case(right)
}

impl Compound {
    /// Each test takes a step, and so does each class that is compared.
    fn may_match(&self, element: &Element, is_empty: bool, work: &Work) -> bool {
        let any_of = |others: &[Compound]| others.iter().any(|other| work.spend(1) && other.may_match(element, is_empty, work));
        let holds = |test: &Test| match test {
            Test::Name(name) => is_same(element.name(), name, work),
            Test::Class(class) => classes(element, work).any(|each| work.spend(1) && is_same(each, class, work)),
            Test::Id(id) => attr(element, "id", work).is_some_and(|has| is_same(has, id, work)),
            Test::Attribute { name, relation, value } => {
                attr(element, name, work).is_some_and(|has| work.read(value) && is_related(has, *relation, value))
            }
            Test::Empty => is_empty,
            Test::Custom => work.read(element.name()) && element.name().contains('-'),
            Test::AnyOf(others) => any_of(others),
            Test::NoneOf(others) => !any_of(others),
        };
        self.tests.iter().all(|test| work.spend(TEST) && holds(test))
    }

    /// Whether it is about the page as a whole, of which a script may say more: whether a menu is open, for instance.
    fn is_of_the_page(&self) -> bool {
        let is_root = |test: &Test| matches!(test, Test::Name(name) if name == "html" || name == "body");
        let is_of_scripts = |test: &Test| matches!(test, Test::Class(class) if OF_SCRIPTS.contains(&class.as_str()));
        self.tests.iter().any(is_root) || (!self.tests.is_empty() && self.tests.iter().all(is_of_scripts))
    }
}

fn is_related(has: &str, relation: char, value: &str) -> bool {
    if relation == ' ' || has.len().max(value.len()) > MAX_VALUE {
        return true;
    }
    let (has, value) = (has.to_ascii_lowercase(), value.to_ascii_lowercase());
    match relation {
        '=' => has == value,
        '~' => has.split_ascii_whitespace().any(|word| word == value),
        '|' => has.strip_prefix(&value).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
        '^' => !value.is_empty() && has.starts_with(&value),
        '$' => !value.is_empty() && has.ends_with(&value),
        '*' => !value.is_empty() && has.contains(&value),
        _ => true,
    }
}

fn list(text: &str, depth: u32, work: &Work) -> Vec<Selector> {
    let mut reader = Reader { rest: text, depth, work };
    let mut selectors = Vec::new();
    loop {
        selectors.extend(reader.selector());
        match reader.behind(',').filter(|_| !work.is_spent()) {
            Some(rest) => reader.rest = rest,
            None => return selectors,
        }
    }
}

/// Reads a list of selectors from its front.
struct Reader<'t> {
    rest: &'t str,
    depth: u32,
    work: &'t Work,
}

impl<'t> Reader<'t> {
    /// The selector up to the next comma; none if it is not valid, or never matches while the page is at rest.
    fn selector(&mut self) -> Option<Selector> {
        let mut selector = Selector::default();
        loop {
            self.skip_space();
            let begin = self.rest.len();
            let compound = self.compound()?;
            let end = self.rest.len();
            self.skip_space();
            let combinator = self.rest.chars().next().filter(|letter| matches!(letter, '>' | '+' | '~'));
            match combinator {
                Some(_) => self.rest = &self.rest[1..],
                None if self.rest.is_empty() || self.rest.starts_with(',') => {
                    selector.subject = compound;
                    return (begin > end).then_some(selector);
                }
                None if end == self.rest.len() => return None,
                None => {}
            }
            // What stands before a sibling is not around it.
            let is_around = !matches!(combinator, Some('+' | '~'));
            if is_around && !compound.tests.is_empty() && !compound.is_of_the_page() {
                selector.around.push(compound);
            }
        }
    }

    /// None of what does not match while the page is at rest, and of what is too much to be kept.
    fn compound(&mut self) -> Option<Compound> {
        let mut compound = Compound::default();
        self.work.keep_part().then_some(())?;
        while let Some(letter) = self.rest.chars().next() {
            self.work.keep_part().then_some(())?;
            match letter {
                '*' | '&' => self.rest = &self.rest[1..],
                '|' => {
                    // What stood before it is a namespace.
                    compound.tests.clear();
                    self.rest = &self.rest[1..];
                }
                '.' | '#' => {
                    self.rest = &self.rest[1..];
                    let name = self.name();
                    let test = if letter == '.' { Test::Class } else { Test::Id };
                    compound.tests.push(test((!name.is_empty()).then_some(name)?));
                }
                '[' => compound.tests.push(self.attribute()?),
                ':' => self.pseudo(&mut compound)?,
                letter if is_of_name(letter) => compound.tests.push(Test::Name(self.name().to_ascii_lowercase())),
                _ => break,
            }
        }
        compound.asks_more |= compound.tests.len() > MAX_PARTS;
        compound.tests.truncate(MAX_PARTS);
        Some(compound)
    }

    /// A name, without its escapes.
    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(letter) = self.rest.chars().next().filter(|letter| is_of_name(*letter)) {
            self.rest = &self.rest[letter.len_utf8()..];
            if letter == '\\' {
                name.extend(self.escaped());
            } else {
                name.push(letter);
            }
        }
        name
    }

    fn escaped(&mut self) -> Option<char> {
        let digits = self.rest.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        if digits == 0 {
            let letter = self.rest.chars().next()?;
            self.rest = &self.rest[letter.len_utf8()..];
            return Some(letter);
        }
        let code = u32::from_str_radix(&self.rest[..digits], 16).ok();
        self.rest = &self.rest[digits..];
        self.rest = self.rest.strip_prefix([' ', '\t', '\n', '\r']).unwrap_or(self.rest);
        code.and_then(char::from_u32)
    }

    fn attribute(&mut self) -> Option<Test> {
        let inner = self.bracketed()?;
        let (name, behind) = inner.split_at(inner.find(['=', '~', '|', '^', '$', '*']).unwrap_or(inner.len()));
        let name = name.trim().to_ascii_lowercase();
        let relation = behind.chars().next().unwrap_or(' ');
        let value = behind.split_once('=').map_or("", |(_, value)| value.trim());
        let value = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].split(quote).next().unwrap_or_default(),
            _ => value.split_ascii_whitespace().next().unwrap_or_default(),
        };
        Some(Test::Attribute { name, relation, value: value.to_owned() })
    }

    /// A pseudo-class goes to what is asked for; none where something must be done to the page before it matches.
    fn pseudo(&mut self, compound: &mut Compound) -> Option<()> {
        self.rest = &self.rest[1..];
        if self.rest.starts_with(':') {
            return None;
        }
        let name = self.name().to_ascii_lowercase();
        let argument = if self.rest.starts_with('(') { self.bracketed()? } else { "" };
        match name.as_str() {
            "before" | "after" | "first-line" | "first-letter" | "hover" | "active" | "focus" | "focus-within" | "focus-visible"
            | "target" | "visited" | "host" | "host-context" => return None,
            "root" => compound.tests.push(Test::Name("html".to_owned())),
            "empty" => compound.tests.push(Test::Empty),
            "is" | "where" | "matches" | "any" | "-webkit-any" | "-moz-any" if self.depth < MAX_DEPTH => {
                let others: Vec<Compound> =
                    list(argument, self.depth + 1, self.work).into_iter().map(|selector| selector.subject).collect();
                match others.len() > MAX_PARTS {
                    true => compound.asks_more = true,
                    false => compound.tests.push(Test::AnyOf(others)),
                }
            }
            "not" if argument.trim().eq_ignore_ascii_case(":defined") => compound.tests.push(Test::Custom),
            "not" if self.depth < MAX_DEPTH => {
                let is_exact = |selector: &Selector| selector.around.is_empty() && !selector.subject.asks_more;
                let others = list(argument, self.depth + 1, self.work).into_iter().filter(is_exact).map(|selector| selector.subject);
                compound.tests.push(Test::NoneOf(others.filter(|other| !other.tests.is_empty()).take(MAX_PARTS).collect()));
            }
            _ => compound.asks_more = true,
        }
        Some(())
    }

    /// What is in the bracket that begins here; goes behind it.
    fn bracketed(&mut self) -> Option<&'t str> {
        let length = length_of_bracket(self.rest)?;
        let inner = &self.rest[1..length - 1];
        self.rest = &self.rest[length..];
        Some(inner)
    }

    /// What stands behind the next such letter that is in no bracket.
    fn behind(&self, letter: char) -> Option<&'t str> {
        let mut rest = self.rest;
        loop {
            let at = rest.find([letter, '(', '['])?;
            if rest[at..].starts_with(letter) {
                return Some(&rest[at + 1..]);
            }
            rest = &rest[at..];
            rest = &rest[length_of_bracket(rest)?..];
        }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '\\') || !letter.is_ascii()
}

/// How long the bracket is with which a text begins; none if it is not closed. Quotes and escapes are passed over.
fn length_of_bracket(text: &str) -> Option<usize> {
    let (mut open, mut quote, mut is_escaped) = (0_u32, None, false);
    for (at, byte) in text.bytes().enumerate() {
        match (byte, quote) {
            _ if is_escaped => is_escaped = false,
            (b'\\', _) => is_escaped = true,
            (_, Some(mark)) if byte == mark => quote = None,
            (_, Some(_)) => {}
            (b'"' | b'\'', None) => quote = Some(byte),
            (b'(' | b'[', None) => open += 1,
            (b')' | b']', None) => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Selector, Work};
    use scraper::{ElementRef, Html};

    /// Whether a selector may match the element of the id `x`.
    fn matches(selectors: &str, page: &str) -> bool {
        let html = Html::parse_document(page);
        let element = html.tree.nodes().filter_map(ElementRef::wrap).find(|element| element.value().attr("id") == Some("x")).unwrap();
        let ancestors = || element.ancestors().filter_map(|node| node.value().as_element());
        let work = Work::default();
        let list = Selector::list(selectors, &work);
        list.iter().any(|selector| selector.may_match(element.value(), !element.has_children(), ancestors(), &work))
    }

    #[test]
    fn what_may_be_meant_matches() {
        let page = "<body class=home><div class='m n' role=tab><p id=x class='h md:hidden' data-a='One two'>y</p></div>";
        for selector in [
            "p",
            "*",
            ".h",
            ".H#x",
            "p.h, b",
            "b, p.h",
            ".m .h",
            ".m>.h",
            "body .h",
            "body.open .h",
            ".js .h",
            ".home .m p",
            "[data-a]",
            "[data-a='one two']",
            "[data-a~=two]",
            "[data-a^=On]",
            "[data-a*=' ' i]",
            "[data-a$=\"o\"]",
            "div[role=tab] > p:first-child",
            ".md\\:hidden",
            "\\70",
            "b + p",
            "input:checked ~ .m .h",
            ":is(.a, .h)",
            "p:not(.a)",
            "p:not(.a .h)",
            "p:not(:nth-child(2))",
            ".m > *",
            "svg|p",
            "p:is([title=')'], .h)",
        ] {
            assert!(matches(selector, page), "{selector}");
        }
    }

    #[test]
    fn what_is_certainly_not_meant_does_not_match() {
        let page = "<body class=home><div class='m n'><p id=x class=h data-a=b>y</p></div>";
        for selector in [
            "b",
            ".g",
            ".h.g",
            ".k .h",
            ".h .m",
            ".m .n .h",
            "[data-b]",
            "[data-a=c]",
            "p:hover",
            ".m:hover .h",
            "p::before",
            "p:after",
            "p:empty",
            "p:not(.h)",
            "p:not(b, .h)",
            ":is(.a, b)",
            ":not(:defined)",
            "",
            ",",
            ".",
            "50%",
            "p!",
            "p:is(.h",
            "[data-a",
        ] {
            assert!(!matches(selector, page), "{selector}");
        }
        assert!(matches("p:empty", "<p id=x></p>") && matches(":not(:defined)", "<x-y id=x>z</x-y>"));
    }

    #[test]
    fn each_test_and_each_class_takes_a_step() {
        let takes_more = |selector: &str, attributes: &str, steps: usize| {
            let html = Html::parse_document(&format!("<p {attributes}>y</p>"));
            let element = html.tree.nodes().filter_map(ElementRef::wrap).find(|element| element.value().name() == "p").unwrap();
            let list = Selector::list(selector, &Work::default());
            let work = Work::new(steps);
            list[0].may_match(element.value(), false, std::iter::empty(), &work);
            work.is_spent()
        };
        let tests = "[a]".repeat(100);
        assert!(takes_more(&tests, "a", 150) && !takes_more(&tests, "a", 400));
        // 50 choices are compared with 100 classes each, and the attribute is read as often.
        let (choices, classes) = (format!(":not({})", ".z,".repeat(50)), format!("class='{}'", "y ".repeat(100)));
        assert!(takes_more(&choices, &classes, 5_000) && !takes_more(&choices, &classes, 9_000));
        let long = "x".repeat(900);
        let (choices, class) = (format!(":not({})", format!(".{long}z,").repeat(50)), format!("class={long}y"));
        assert!(takes_more(&choices, &class, 15_000) && !takes_more(&choices, &class, 25_000));
    }
}
