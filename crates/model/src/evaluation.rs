//! Results of the accessibility rules on a page: failures, as far as the markup alone shows them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A rule of the W3C's Accessibility Conformance Testing (ACT), <https://www.w3.org/WAI/standards-guidelines/act/rules/>.
///
/// Journals store a rule as its index here, so new ones go to the end. JSON and metrics use the W3C's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub enum Rule {
    /// Image has non-empty accessible name.
    #[serde(rename = "23a2a8")]
    ImageName,
    /// Image button has non-empty accessible name.
    #[serde(rename = "59796f")]
    ImageButtonName,
    /// SVG element with explicit role has non-empty accessible name.
    #[serde(rename = "7d6734")]
    SvgName,
    /// Object element rendering non-text content has non-empty accessible name.
    #[serde(rename = "8fc3b6")]
    ObjectName,
    /// Button has non-empty accessible name.
    #[serde(rename = "97a4e1")]
    ButtonName,
    /// Link has non-empty accessible name.
    #[serde(rename = "c487ae")]
    LinkName,
    /// Menuitem has non-empty accessible name.
    #[serde(rename = "m6b1q3")]
    MenuItemName,
    /// Summary element has non-empty accessible name.
    #[serde(rename = "2t702h")]
    SummaryName,
    /// Heading has non-empty accessible name.
    #[serde(rename = "ffd0e9")]
    HeadingName,
    /// Form field has non-empty accessible name.
    #[serde(rename = "e086e5")]
    FormFieldName,
    /// Iframe element has non-empty accessible name.
    #[serde(rename = "cae760")]
    FrameName,
    /// HTML page has non-empty title.
    #[serde(rename = "2779a5")]
    PageTitle,
    /// HTML page has lang attribute.
    #[serde(rename = "b5c3f8")]
    PageLanguage,
    /// HTML page lang attribute has valid language tag.
    #[serde(rename = "bf051a")]
    PageLanguageTag,
    /// HTML page lang and xml:lang attributes have matching values.
    #[serde(rename = "5b7ae0")]
    PageLanguagesMatch,
    /// Element with lang attribute has valid language tag.
    #[serde(rename = "de46e4")]
    PartLanguageTag,
    /// Meta viewport allows for zoom.
    #[serde(rename = "b4f0c3")]
    Zoom,
    /// Meta element has no refresh delay.
    #[serde(rename = "bc659a")]
    RefreshDelay,
    /// Meta element has no refresh delay (no exception).
    #[serde(rename = "bisz58")]
    RefreshDelayStrict,
    /// Id attribute value is unique.
    #[serde(rename = "3ea0c8")]
    UniqueId,
    /// Attribute is not duplicated.
    #[serde(rename = "e6952f")]
    UniqueAttribute,
    /// Autocomplete attribute has valid value.
    #[serde(rename = "73f2c2")]
    Autocomplete,
    /// Role attribute has valid value.
    #[serde(rename = "674b10")]
    RoleKnown,
    /// ARIA attribute is defined in WAI-ARIA.
    #[serde(rename = "5f99a7")]
    AriaDefined,
    /// ARIA state or property is permitted.
    #[serde(rename = "5c01ea")]
    AriaPermitted,
    /// ARIA state or property has valid value.
    #[serde(rename = "6a7281")]
    AriaValue,
    /// Element with role attribute has required states and properties.
    #[serde(rename = "4e8ab6")]
    AriaRequired,
    /// ARIA required context role.
    #[serde(rename = "ff89c9")]
    RequiredContext,
    /// ARIA required owned elements.
    #[serde(rename = "bc4a75")]
    RequiredOwned,
    /// Element with aria-hidden has no content in sequential focus navigation.
    #[serde(rename = "6cfa84")]
    HiddenFocus,
    /// Element with presentational children has no focusable content.
    #[serde(rename = "307n5z")]
    PresentationalFocus,
    /// Element marked as decorative is not exposed.
    #[serde(rename = "46ca7f")]
    DecorativeExposed,
    /// Table header cell has assigned cells.
    #[serde(rename = "d0f69e")]
    TableHeaderCells,
    /// Headers attribute specified on a cell refers to cells in the same table element.
    #[serde(rename = "a25f45")]
    TableHeadersAttribute,
}

impl Rule {
    /// All rules, in the order of the enumeration.
    pub const ALL: [Rule; 34] = [
        Rule::ImageName,
        Rule::ImageButtonName,
        Rule::SvgName,
        Rule::ObjectName,
        Rule::ButtonName,
        Rule::LinkName,
        Rule::MenuItemName,
        Rule::SummaryName,
        Rule::HeadingName,
        Rule::FormFieldName,
        Rule::FrameName,
        Rule::PageTitle,
        Rule::PageLanguage,
        Rule::PageLanguageTag,
        Rule::PageLanguagesMatch,
        Rule::PartLanguageTag,
        Rule::Zoom,
        Rule::RefreshDelay,
        Rule::RefreshDelayStrict,
        Rule::UniqueId,
        Rule::UniqueAttribute,
        Rule::Autocomplete,
        Rule::RoleKnown,
        Rule::AriaDefined,
        Rule::AriaPermitted,
        Rule::AriaValue,
        Rule::AriaRequired,
        Rule::RequiredContext,
        Rule::RequiredOwned,
        Rule::HiddenFocus,
        Rule::PresentationalFocus,
        Rule::DecorativeExposed,
        Rule::TableHeaderCells,
        Rule::TableHeadersAttribute,
    ];

    /// The W3C's id; the rule's page is `https://www.w3.org/WAI/standards-guidelines/act/rules/ID/`.
    pub fn id(self) -> &'static str {
        self.id_and_name().0
    }

    /// The W3C's title of the rule.
    pub fn name(self) -> &'static str {
        self.id_and_name().1
    }

    fn id_and_name(self) -> (&'static str, &'static str) {
        match self {
            Rule::ImageName => ("23a2a8", "Image has non-empty accessible name"),
            Rule::ImageButtonName => ("59796f", "Image button has non-empty accessible name"),
            Rule::SvgName => ("7d6734", "SVG element with explicit role has non-empty accessible name"),
            Rule::ObjectName => ("8fc3b6", "Object element rendering non-text content has non-empty accessible name"),
            Rule::ButtonName => ("97a4e1", "Button has non-empty accessible name"),
            Rule::LinkName => ("c487ae", "Link has non-empty accessible name"),
            Rule::MenuItemName => ("m6b1q3", "Menuitem has non-empty accessible name"),
            Rule::SummaryName => ("2t702h", "Summary element has non-empty accessible name"),
            Rule::HeadingName => ("ffd0e9", "Heading has non-empty accessible name"),
            Rule::FormFieldName => ("e086e5", "Form field has non-empty accessible name"),
            Rule::FrameName => ("cae760", "Iframe element has non-empty accessible name"),
            Rule::PageTitle => ("2779a5", "HTML page has non-empty title"),
            Rule::PageLanguage => ("b5c3f8", "HTML page has lang attribute"),
            Rule::PageLanguageTag => ("bf051a", "HTML page lang attribute has valid language tag"),
            Rule::PageLanguagesMatch => ("5b7ae0", "HTML page lang and xml:lang attributes have matching values"),
            Rule::PartLanguageTag => ("de46e4", "Element with lang attribute has valid language tag"),
            Rule::Zoom => ("b4f0c3", "Meta viewport allows for zoom"),
            Rule::RefreshDelay => ("bc659a", "Meta element has no refresh delay"),
            Rule::RefreshDelayStrict => ("bisz58", "Meta element has no refresh delay (no exception)"),
            Rule::UniqueId => ("3ea0c8", "Id attribute value is unique"),
            Rule::UniqueAttribute => ("e6952f", "Attribute is not duplicated"),
            Rule::Autocomplete => ("73f2c2", "Autocomplete attribute has valid value"),
            Rule::RoleKnown => ("674b10", "Role attribute has valid value"),
            Rule::AriaDefined => ("5f99a7", "ARIA attribute is defined in WAI-ARIA"),
            Rule::AriaPermitted => ("5c01ea", "ARIA state or property is permitted"),
            Rule::AriaValue => ("6a7281", "ARIA state or property has valid value"),
            Rule::AriaRequired => ("4e8ab6", "Element with role attribute has required states and properties"),
            Rule::RequiredContext => ("ff89c9", "ARIA required context role"),
            Rule::RequiredOwned => ("bc4a75", "ARIA required owned elements"),
            Rule::HiddenFocus => ("6cfa84", "Element with aria-hidden has no content in sequential focus navigation"),
            Rule::PresentationalFocus => ("307n5z", "Element with presentational children has no focusable content"),
            Rule::DecorativeExposed => ("46ca7f", "Element marked as decorative is not exposed"),
            Rule::TableHeaderCells => ("d0f69e", "Table header cell has assigned cells"),
            Rule::TableHeadersAttribute => ("a25f45", "Headers attribute specified on a cell refers to cells in the same table element"),
        }
    }
}

/// The version of the rule set: it grows with each change by which a page may have other failures than before. A page that was evaluated by
/// another version is fetched and evaluated anew in the next run.
pub const RULE_SET: u32 = 5;

/// Why a page was not evaluated: a limit on the cost of one page was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// It has more bytes than are evaluated.
    #[error("it is longer than the limit of evaluation")]
    TooLong,
    /// A tag has more attributes than are read, or the root element gathered as many, or all elements together have more than are kept.
    #[error("a tag, or all its elements together, have more attributes than the limit")]
    TooManyAttributes,
    /// Its elements lie deeper in one another than is followed.
    #[error("its elements are nested deeper than the limit")]
    TooDeep,
    /// It has more elements than are looked at.
    #[error("it has more elements than the limit")]
    TooManyElements,
    /// Building the tree took too long.
    #[error("building its tree took too long")]
    TooSlow,
    /// Its elements refer to one another more than is followed, its style sheets have more selectors than are kept, or to compare both, or to
    /// read what is repeated, takes more steps than the limit.
    #[error("its elements and style sheets have more references and selectors than the limit")]
    TooEntangled,
    /// It is no HTML, whatever the server called it.
    #[error("it is not HTML")]
    NotHtml,
}

/// The result of evaluating one page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Evaluation {
    /// How many elements (or attributes, or tags) fail each rule; rules without a failure are not in it. That a rule is not in it does not mean
    /// that the page complies with it: markup alone does not show everything.
    #[schema(value_type = BTreeMap<String, u32>)]
    pub failures: BTreeMap<Rule, u32>,
    /// How many elements were looked at.
    pub elements: u32,
    /// Why the page was not evaluated; none if it was.
    pub gate: Option<Gate>,
}

impl Evaluation {
    /// The result for a page that was not evaluated, for this reason.
    pub fn refused(gate: Gate) -> Evaluation {
        Evaluation { gate: Some(gate), ..Evaluation::default() }
    }

    /// All failures together.
    pub fn total(&self) -> u64 {
        self.failures.values().map(|count| u64::from(*count)).sum()
    }
}

/// An evaluation with its duration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluated {
    /// The result.
    pub evaluation: Evaluation,
    /// How long it took, in microseconds: part of the access, like the download. 0 if it is the one of an earlier run, of the same page.
    pub took_us: u32,
    /// The version of the rule set that it was done by.
    pub rules: u32,
    /// The lines, from 1, in which the first element begins that fails each of its rules, in their order; empty if that is not known.
    pub lines: Vec<u32>,
}

/// Sums over evaluated pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EvaluationCounts {
    /// Pages that were evaluated.
    pub pages: u64,
    /// Pages that were not evaluated, by reason.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub refused: BTreeMap<Gate, u64>,
    /// Elements that were looked at.
    pub elements: u64,
    /// Failures that were detected, by rule. No failure detected does not mean that there is none.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub failures: BTreeMap<Rule, u64>,
    /// Pages with a detected failure.
    pub failing: u64,
    /// Time it took, in milliseconds in JSON; nothing of pages that kept the result of an earlier run, because they had not changed.
    #[serde(rename = "took_ms", with = "millis_in_json", default)]
    #[schema(value_type = f64)]
    pub took_us: u64,
}

/// Microseconds that JSON has as milliseconds; between members and on disk they stay what they are.
mod millis_in_json {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(micros: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.serialize_f64(*micros as f64 / 1000.0) } else { micros.serialize(serializer) }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        if deserializer.is_human_readable() {
            f64::deserialize(deserializer).map(|millis| (millis * 1000.0).round() as u64)
        } else {
            u64::deserialize(deserializer)
        }
    }
}

impl EvaluationCounts {
    /// Counts one page.
    pub fn count(&mut self, evaluation: &Evaluation, took_us: u32) {
        let mut page = EvaluationCounts { took_us: u64::from(took_us), ..EvaluationCounts::default() };
        match evaluation.gate {
            Some(gate) => page.refused = BTreeMap::from([(gate, 1)]),
            None => {
                page.pages = 1;
                page.failing = u64::from(!evaluation.failures.is_empty());
                page.elements = u64::from(evaluation.elements);
                page.failures = evaluation.failures.iter().map(|(rule, count)| (*rule, u64::from(*count))).collect();
            }
        }
        self.add(&page);
    }

    /// All failures together.
    pub fn detected(&self) -> u64 {
        self.failures.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Adds another's sums, saturating: exaggerated values of a member cannot overflow.
    pub fn add(&mut self, other: &EvaluationCounts) {
        self.join(other, u64::saturating_add);
    }

    /// Subtracts sums that were added before.
    pub fn subtract(&mut self, other: &EvaluationCounts) {
        self.join(other, u64::saturating_sub);
        self.refused.retain(|_, count| *count > 0);
        self.failures.retain(|_, count| *count > 0);
    }

    fn join(&mut self, other: &EvaluationCounts, join: impl Fn(u64, u64) -> u64) {
        self.pages = join(self.pages, other.pages);
        self.elements = join(self.elements, other.elements);
        self.failing = join(self.failing, other.failing);
        self.took_us = join(self.took_us, other.took_us);
        for (gate, count) in &other.refused {
            let sum = self.refused.entry(*gate).or_default();
            *sum = join(*sum, *count);
        }
        for (rule, count) in &other.failures {
            let sum = self.failures.entry(*rule).or_default();
            *sum = join(*sum, *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_told_by_their_ids() {
        assert_eq!(
            serde_json::to_string(&Rule::ALL.map(|rule| (rule, 1)).into_iter().collect::<BTreeMap<_, _>>()).unwrap().len(),
            34 * 11 + 1
        );
        for (place, rule) in Rule::ALL.into_iter().enumerate() {
            assert_eq!(serde_json::to_string(&rule).unwrap(), format!("\"{}\"", rule.id()));
            assert_eq!(postcard::to_stdvec(&rule).unwrap(), [u8::try_from(place).unwrap()], "{rule:?} has kept its number");
            assert_eq!(rule.id().len(), 6);
        }
    }

    #[test]
    fn what_is_added_can_be_taken_back() {
        let one = Evaluation { failures: BTreeMap::from([(Rule::LinkName, 2), (Rule::PageTitle, 1)]), elements: 10, gate: None };
        let mut sum = EvaluationCounts::default();
        sum.count(&one, 700);
        sum.count(&Evaluation::refused(Gate::TooDeep), 50);
        sum.count(&Evaluation { elements: 5, ..Evaluation::default() }, 100);
        assert_eq!((sum.pages, sum.failing, sum.elements, sum.detected(), sum.took_us), (2, 1, 15, 3, 850));
        assert_eq!(sum.refused, BTreeMap::from([(Gate::TooDeep, 1)]));
        let all = sum.clone();
        let mut twice = all.clone();
        twice.add(&all);
        twice.subtract(&all);
        assert_eq!(twice, all);
        twice.subtract(&all);
        assert_eq!(twice, EvaluationCounts::default());
    }
}
