//! The roles of WAI-ARIA 1.2, DPUB-ARIA 1.1 and Graphics-ARIA 1.0, and what these vocabularies say of each.
//!
//! Where WAI-ARIA 1.3 (a draft) allows more, it is allowed here: what is reported is to be a failure for everybody.

/// What is known of a role. Lists are words separated by spaces; states and properties stand without `aria-`.
#[derive(Debug)]
pub(super) struct Role {
    /// Its name, in lower case.
    pub(super) name: &'static str,
    /// Whether its accessible name may be its content.
    pub(super) named_by_content: bool,
    /// Whether it may not be named at all.
    pub(super) without_name: bool,
    /// Whether its descendants are presentational: not exposed one by one.
    pub(super) covers_children: bool,
    /// Whether it is a widget: something to be operated.
    pub(super) widget: bool,
    /// States and properties that it must have, those with a default value apart.
    pub(super) required: &'static str,
    /// States and properties that it may have besides the global ones.
    pub(super) supported: &'static str,
    /// Roles one of which must own it.
    pub(super) context: &'static str,
    /// Roles that it may own; empty where it may own any.
    pub(super) owned: &'static str,
}

/// Whether a word is in a list of words.
pub(super) fn names(list: &str, word: &str) -> bool {
    list.split(' ').any(|each| each == word)
}

impl Role {
    /// The role of this name, which may be in any case; none if there is none.
    pub(super) fn of(name: &str) -> Option<&'static Role> {
        let name = name.to_ascii_lowercase();
        ROLES.binary_search_by(|role| role.name.cmp(name.as_str())).ok().map(|at| &ROLES[at])
    }

    /// Whether it takes the meaning from its element.
    pub(super) fn is_presentational(&self) -> bool {
        matches!(self.name, "none" | "presentation")
    }

    /// Whether the element means nothing by itself.
    pub(super) fn is_generic(&self) -> bool {
        self.name == "generic"
    }

    /// Whether it is a link or a kind of link.
    pub(super) fn is_link(&self) -> bool {
        matches!(self.name, "link" | "doc-backlink" | "doc-biblioref" | "doc-glossref" | "doc-noteref")
    }

    /// Whether a property names its element.
    pub(super) fn names(property: &str) -> bool {
        matches!(property, "label" | "labelledby" | "braillelabel")
    }

    /// Whether a state or property is prohibited on it: a name where it may have none, and another word for what it is where it is nothing.
    pub(super) fn prohibits(&self, property: &str) -> bool {
        match property {
            _ if Role::names(property) => self.without_name,
            "roledescription" | "brailleroledescription" => self.is_generic(),
            _ => false,
        }
    }

    /// Whether the user enters or chooses something here: what needs a label.
    pub(super) fn is_form_field(&self) -> bool {
        let fields = "checkbox combobox listbox menuitemcheckbox menuitemradio radio searchbox slider spinbutton switch textbox";
        names(fields, self.name)
    }

    const fn named_by_content(self) -> Role {
        Role { named_by_content: true, ..self }
    }

    const fn without_name(self) -> Role {
        Role { without_name: true, ..self }
    }

    const fn covering_children(self) -> Role {
        Role { covers_children: true, ..self }
    }

    const fn widget(self) -> Role {
        Role { widget: true, ..self }
    }

    const fn requires(self, required: &'static str) -> Role {
        Role { required, ..self }
    }

    const fn supports(self, supported: &'static str) -> Role {
        Role { supported, ..self }
    }

    const fn within(self, context: &'static str) -> Role {
        Role { context, ..self }
    }

    const fn owns(self, owned: &'static str) -> Role {
        Role { owned, ..self }
    }
}

const fn role(name: &'static str) -> Role {
    Role {
        name,
        named_by_content: false,
        without_name: false,
        covers_children: false,
        widget: false,
        required: "",
        supported: "",
        context: "",
        owned: "",
    }
}

/// Sorted by name. Contexts of DPUB-ARIA's list items are left out: version 1.1 of it deprecates those roles.
static ROLES: [Role; 132] = [
    role("alert"),
    role("alertdialog").supports("modal"),
    role("application").supports("activedescendant expanded"),
    role("article").supports("posinset setsize"),
    role("banner"),
    role("blockquote"),
    role("button").named_by_content().covering_children().widget().supports("expanded pressed"),
    role("caption").without_name().within("figure grid table treegrid"),
    role("cell").named_by_content().within("row").supports("colindex colspan rowindex rowspan"),
    role("checkbox").named_by_content().covering_children().widget().requires("checked").supports("checked expanded readonly required"),
    role("code").without_name(),
    role("columnheader")
        .named_by_content()
        .widget()
        .within("row")
        .supports("colindex colspan expanded readonly required rowindex rowspan selected sort"),
    role("combobox").widget().requires("expanded controls").supports("activedescendant autocomplete expanded readonly required"),
    role("comment").named_by_content().supports("level posinset setsize"),
    role("complementary"),
    role("contentinfo"),
    role("definition"),
    role("deletion").without_name(),
    role("dialog").supports("modal"),
    role("directory"),
    role("doc-abstract").supports("expanded"),
    role("doc-acknowledgments").supports("expanded"),
    role("doc-afterword").supports("expanded"),
    role("doc-appendix").supports("expanded"),
    role("doc-backlink").named_by_content().supports("expanded"),
    role("doc-biblioentry").supports("expanded level posinset setsize"),
    role("doc-bibliography").supports("expanded"),
    role("doc-biblioref").named_by_content().supports("expanded"),
    role("doc-chapter").supports("expanded"),
    role("doc-colophon").supports("expanded"),
    role("doc-conclusion").supports("expanded"),
    role("doc-cover").supports("expanded"),
    role("doc-credit").supports("expanded"),
    role("doc-credits").supports("expanded"),
    role("doc-dedication").supports("expanded"),
    role("doc-endnote").supports("expanded level posinset setsize"),
    role("doc-endnotes").supports("expanded"),
    role("doc-epigraph").supports("expanded"),
    role("doc-epilogue").supports("expanded"),
    role("doc-errata").supports("expanded"),
    role("doc-example").supports("expanded"),
    role("doc-footnote").supports("expanded"),
    role("doc-foreword").supports("expanded"),
    role("doc-glossary").supports("expanded"),
    role("doc-glossref").named_by_content().supports("expanded"),
    role("doc-index").supports("expanded"),
    role("doc-introduction").supports("expanded"),
    role("doc-noteref").named_by_content().supports("expanded"),
    role("doc-notice").supports("expanded"),
    role("doc-pagebreak").supports("expanded orientation valuemax valuemin valuenow valuetext"),
    role("doc-pagefooter").without_name(),
    role("doc-pageheader").without_name(),
    role("doc-pagelist").supports("expanded"),
    role("doc-part").supports("expanded"),
    role("doc-preface").supports("expanded"),
    role("doc-prologue").supports("expanded"),
    role("doc-pullquote"),
    role("doc-qna").supports("expanded"),
    role("doc-subtitle").supports("expanded"),
    role("doc-tip").supports("expanded"),
    role("doc-toc").supports("expanded"),
    role("document"),
    role("emphasis").without_name(),
    role("feed").owns("article"),
    role("figure"),
    role("form"),
    role("generic").without_name(),
    role("graphics-document").supports("expanded"),
    role("graphics-object").named_by_content().supports("activedescendant expanded"),
    role("graphics-symbol").covering_children().supports("expanded"),
    role("grid").widget().owns("row rowgroup caption").supports("activedescendant colcount multiselectable readonly rowcount"),
    role("gridcell")
        .named_by_content()
        .widget()
        .within("row")
        .supports("colindex colspan expanded readonly required rowindex rowspan selected"),
    role("group").supports("activedescendant"),
    role("heading").named_by_content().requires("level").supports("level"),
    role("image").covering_children(),
    role("img").covering_children(),
    role("insertion").without_name(),
    role("link").named_by_content().widget().supports("expanded"),
    role("list").owns("listitem doc-biblioentry doc-endnote"),
    role("listbox").widget().owns("option group").supports("activedescendant expanded multiselectable orientation readonly required"),
    role("listitem").within("list directory").supports("level posinset setsize"),
    role("log"),
    role("main"),
    role("mark"),
    role("marquee"),
    role("math"),
    role("menu").widget().owns("menuitem menuitemcheckbox menuitemradio group separator").supports("activedescendant orientation"),
    role("menubar").widget().owns("menuitem menuitemcheckbox menuitemradio group separator").supports("activedescendant orientation"),
    role("menuitem").named_by_content().widget().within("menu menubar group").supports("expanded posinset setsize"),
    role("menuitemcheckbox")
        .named_by_content()
        .covering_children()
        .widget()
        .requires("checked")
        .within("menu menubar group")
        .supports("checked expanded posinset readonly required setsize"),
    role("menuitemradio")
        .named_by_content()
        .covering_children()
        .widget()
        .requires("checked")
        .within("menu menubar group")
        .supports("checked expanded posinset readonly required setsize"),
    role("meter").covering_children().requires("valuenow").supports("valuemax valuemin valuenow valuetext"),
    role("navigation"),
    role("none"),
    role("note"),
    role("option").named_by_content().covering_children().widget().within("listbox group").supports("checked posinset selected setsize"),
    role("paragraph").without_name(),
    role("presentation"),
    role("progressbar").covering_children().widget().supports("valuemax valuemin valuenow valuetext"),
    role("radio").named_by_content().covering_children().widget().requires("checked").supports("checked posinset setsize"),
    role("radiogroup").widget().supports("activedescendant orientation readonly required"),
    role("region"),
    role("row")
        .named_by_content()
        .widget()
        .within("grid rowgroup table treegrid")
        .owns("cell columnheader gridcell rowheader")
        .supports("activedescendant colindex expanded level posinset rowindex selected setsize"),
    role("rowgroup").named_by_content().within("grid table treegrid").owns("row"),
    role("rowheader")
        .named_by_content()
        .widget()
        .within("row")
        .supports("colindex colspan expanded readonly required rowindex rowspan selected sort"),
    role("scrollbar")
        .covering_children()
        .widget()
        .requires("controls valuenow")
        .supports("orientation valuemax valuemin valuenow valuetext"),
    role("search"),
    role("searchbox").widget().supports("activedescendant autocomplete multiline placeholder readonly required"),
    role("sectionfooter").without_name(),
    role("sectionheader").without_name(),
    role("separator").covering_children().widget().requires("valuenow").supports("orientation valuemax valuemin valuenow valuetext"),
    role("slider").covering_children().widget().requires("valuenow").supports("orientation readonly valuemax valuemin valuenow valuetext"),
    role("spinbutton").widget().supports("activedescendant readonly required valuemax valuemin valuenow valuetext"),
    role("status"),
    role("strong").without_name(),
    role("subscript").without_name(),
    role("suggestion").without_name(),
    role("superscript").without_name(),
    role("switch").named_by_content().covering_children().widget().requires("checked").supports("checked expanded readonly required"),
    role("tab").named_by_content().covering_children().widget().within("tablist").supports("expanded posinset selected setsize"),
    role("table").owns("row rowgroup caption").supports("colcount rowcount"),
    role("tablist").widget().owns("tab").supports("activedescendant level multiselectable orientation"),
    role("tabpanel").widget(),
    role("term"),
    role("textbox").widget().supports("activedescendant autocomplete multiline placeholder readonly required"),
    role("time"),
    role("timer"),
    role("toolbar").supports("activedescendant orientation"),
    role("tooltip").named_by_content(),
    role("tree").widget().owns("treeitem group").supports("activedescendant multiselectable orientation required"),
    role("treegrid")
        .widget()
        .owns("row rowgroup caption")
        .supports("activedescendant colcount multiselectable orientation readonly required rowcount"),
    role("treeitem").named_by_content().widget().within("tree group").supports("checked expanded level posinset selected setsize"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vocabulary_is_sorted_and_speaks_of_roles_it_has() {
        assert!(ROLES.is_sorted_by(|left, right| left.name < right.name));
        for role in &ROLES {
            for other in role.context.split(' ').chain(role.owned.split(' ')).filter(|word| !word.is_empty()) {
                assert!(Role::of(other).is_some(), "{}: {other}", role.name);
            }
            assert!(!(role.named_by_content && role.without_name), "{}", role.name);
        }
        assert_eq!(Role::of("TreeItem").unwrap().context, "tree group");
        assert!(Role::of("widget").is_none(), "abstract roles are not for authors");
    }
}
