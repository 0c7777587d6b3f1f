//! Selects the rows that belong to a survey.

use crate::cli::error::{CommandError, Exit};
use nearcrawl_model::{
    access_point::AccessPoint,
    survey::{SurveyMark, SurveyRef, SurveyView},
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
        self.survey.as_ref().map_or(Ok(()), |survey| is_one(survey, &self.creators))
    }
}

fn is_one(survey: &SurveyRef, creators: &BTreeSet<AccessPoint>) -> Result<(), CommandError> {
    if creators.len() < 2 {
        return Ok(());
    }
    let names: Vec<_> = creators.iter().map(|creator| format!("{}@{}", survey.name, creator.short())).collect();
    Err(CommandError::new(Exit::Data, format!("several members have a survey {}", survey.name))
        .hint(format!("say which: {}", names.join(" or "))))
}

/// The survey that a name leads to among those that a daemon knows of, with its whole creator. The name as it is given if there is none: rows
/// will say.
///
/// # Errors
///
/// Several creators have a survey of this name.
pub fn one_of(survey: &SurveyRef, known: &[SurveyView]) -> Result<SurveyRef, CommandError> {
    let creators: BTreeSet<AccessPoint> = known.iter().filter(|of| survey.fits(&of.name, &of.creator)).map(|of| of.creator).collect();
    is_one(survey, &creators)?;
    let creator = creators.first().map(ToString::to_string).or_else(|| survey.creator.clone());
    Ok(SurveyRef { name: survey.name.clone(), creator })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::api::fake;
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
    fn a_name_leads_to_one_survey_with_its_whole_creator_or_to_the_question_which() {
        let view = |name: &str, creator: u8| SurveyView { name: name.to_owned(), creator: AccessPoint([creator; 32]), ..fake::survey() };
        let (known, whole) =
            ([view("unis", 1), view("museums", 1), view("unis", 2), view("museums@x", 3)], AccessPoint([2; 32]).to_string());
        let of = |name: &str| one_of(&name.parse().unwrap(), &known).map(|survey| survey.to_string());
        assert_eq!(of("museums"), Ok(format!("museums@{}", AccessPoint([1; 32]))));
        assert_eq!(of(&format!("unis@{}", &whole[whole.len() - 8..])), Ok(format!("unis@{whole}")));
        assert_eq!((of("archives"), of("archives@abc")), (Ok("archives".to_owned()), Ok("archives@abc".to_owned())));
        let which = of("unis").unwrap_err();
        assert!(which.exit == Exit::Data && which.hint.unwrap().starts_with("say which: unis@"));
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
