//! Selects the rows that belong to a survey.

use crate::cli::error::{CommandError, Exit};
use nearcrawl_model::{
    access_point::AccessPoint,
    survey::{SurveyMark, SurveyRef},
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Lets the rows of one survey pass, or all.
#[derive(Clone, Debug)]
pub struct SurveyFilter {
    survey: Option<SurveyRef>,
    creators: BTreeSet<AccessPoint>,
}

impl SurveyFilter {
    /// Those of this survey; all, if it is none.
    pub fn new(survey: Option<&SurveyRef>) -> SurveyFilter {
        SurveyFilter { survey: survey.cloned(), creators: BTreeSet::new() }
    }

    /// What the survey says of a host that has these; none if it does not belong to it.
    pub fn find(&mut self, marks: &[SurveyMark]) -> Option<SurveyMark> {
        let survey = self.survey.as_ref()?;
        let found: Vec<_> = marks.iter().filter(|mark| survey.fits(&mark.name, &mark.creator)).collect();
        self.creators.extend(found.iter().map(|mark| mark.creator));
        found.first().map(|mark| (*mark).clone())
    }

    /// Whether a host that has these passes.
    pub fn passes(&mut self, marks: &[SurveyMark]) -> bool {
        self.survey.is_none() || self.find(marks).is_some()
    }

    /// A row as it is exported: with its labels by this survey. With `as_text`, surveys and labels are plain text, for a cell of a table.
    /// None if it does not belong to the survey.
    pub fn row(&mut self, mut row: Map<String, Value>, as_text: bool) -> Option<Map<String, Value>> {
        if self.survey.is_none() && !as_text {
            return Some(row);
        }
        let marks = row.get("surveys").cloned().unwrap_or_default();
        let marks: Vec<SurveyMark> = serde_json::from_value(marks).unwrap_or_default();
        if self.survey.is_some() {
            let mark = self.find(&marks)?;
            let text = || mark.label_texts().collect::<Vec<_>>().join("; ");
            let labels = if as_text { Value::String(text()) } else { serde_json::to_value(&mark.labels).unwrap_or_default() };
            row.insert("labels".to_owned(), labels);
        }
        if as_text {
            let names = marks.iter().map(|mark| mark.name.as_str()).collect::<Vec<_>>().join("; ");
            row.insert("surveys".to_owned(), Value::String(names));
        }
        Some(row)
    }

    /// Says at the end whether the rows were of one survey.
    ///
    /// # Errors
    ///
    /// Several creators have a survey of this name.
    pub fn finish(&self) -> Result<(), CommandError> {
        let Some(survey) = self.survey.as_ref().filter(|_| self.creators.len() > 1) else { return Ok(()) };
        let names: Vec<_> = self.creators.iter().map(|creator| format!("{}@{}", survey.name, creator.short())).collect();
        Err(CommandError::new(Exit::Data, format!("several members have a survey {}", survey.name))
            .hint(format!("say which: {}", names.join(" or "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(names: &[(&str, u8)]) -> Map<String, Value> {
        let mark = |(name, creator): &(&str, u8)| {
            let labels = [("sector".to_owned(), ["university".to_owned()].into())].into();
            SurveyMark { name: (*name).to_owned(), creator: AccessPoint([*creator; 32]), labels }
        };
        let row = json!({ "host": "a.ke", "surveys": names.iter().map(mark).collect::<Vec<_>>() });
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn rows_of_a_survey_pass_with_their_labels() {
        let mut filter = SurveyFilter::new(Some(&"unis".parse().unwrap()));
        assert_eq!(filter.row(row(&[("museums", 1)]), false), None);
        let passed = filter.row(row(&[("museums", 1), ("unis", 2)]), false).unwrap();
        assert_eq!((&passed["labels"], passed["surveys"].as_array().unwrap().len()), (&json!({ "sector": ["university"] }), 2));
        let passed = filter.row(row(&[("museums", 1), ("unis", 2)]), true).unwrap();
        assert_eq!((&passed["labels"], &passed["surveys"]), (&json!("sector=university"), &json!("museums; unis")));
        assert!(filter.finish().is_ok() && SurveyFilter::new(None).row(row(&[]), false).is_some());
        filter.row(row(&[("unis", 3)]), false);
        assert!(filter.finish().unwrap_err().hint.unwrap().starts_with("say which: unis@"), "two members have one of this name");
    }
}
