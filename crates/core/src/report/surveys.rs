//! What can be read of surveys? Which there are, whether one may be made or changed, and to which a host belongs.

use super::View;
use crate::crawl::site::Site;
use nearcrawl_model::{
    access_point::AccessPoint,
    survey::{Place, SignedSurvey, SurveyMark, SurveyPlan, SurveyRef, SurveyState, SurveyView, survey_id},
    view::WhyView,
};

impl View<'_> {
    /// All surveys, those that run first, by name; without their lists.
    pub fn surveys(&self) -> Vec<SurveyView> {
        let of = |kept| SurveyView::new(kept, &self.context.me, self.context.now.wall);
        let mut views: Vec<_> = self.surveys.register().all().map(|kept| of(&kept.survey)).collect();
        views.sort_by(|one, other| (one.state, &one.name, one.creator).cmp(&(other.state, &other.name, other.creator)));
        views
    }

    /// The survey that people call so, with its list. Of several of one name it is our own.
    ///
    /// # Errors
    ///
    /// There is none, or there are several, as a sentence.
    pub fn survey(&self, wanted: &SurveyRef) -> Result<SurveyView, String> {
        let fits: Vec<_> = self.surveys.register().all().filter(|kept| wanted.fits(&kept.survey.plan.name, &kept.survey.creator)).collect();
        let ours = fits.iter().find(|kept| kept.survey.creator == self.context.me);
        let found = match (&fits[..], ours) {
            ([], _) => return Err(format!("this access point knows of no survey {wanted}")),
            (_, Some(found)) | ([found], None) => found,
            (several, None) => {
                let names: Vec<_> =
                    several.iter().map(|kept| format!("{}@{}", kept.survey.plan.name, kept.survey.creator.short())).collect();
                return Err(format!("{wanted} may be {}: say which", names.join(" or ")));
            }
        };
        let view = SurveyView::new(&found.survey, &self.context.me, self.context.now.wall);
        Ok(SurveyView { entries: found.survey.plan.entries.clone(), ..view })
    }

    /// The version of a survey that is stored here; none if there is none.
    pub fn survey_revision(&self, creator: &AccessPoint, name: &str) -> Option<u64> {
        self.surveys.register().get(&survey_id(creator, name)).map(|kept| kept.survey.revision)
    }

    /// A new survey of our own, signed, to be given to the crawler.
    ///
    /// # Errors
    ///
    /// Why it may not be made, as a sentence.
    pub fn new_survey(&self, plan: SurveyPlan) -> Result<SignedSurvey, String> {
        self.surveys.drafted(self.context, plan)
    }

    /// A survey of our own in another state, signed, to be given to the crawler.
    ///
    /// # Errors
    ///
    /// Why it may not be changed, as a sentence.
    pub fn changed_survey(&self, name: &str, state: SurveyState) -> Result<SignedSurvey, String> {
        self.surveys.changed(self.context, name, state)
    }

    /// Says to which surveys the host belongs that was asked about, and if none of them wants it any more, that.
    pub(super) fn name_surveys(&self, view: &mut WhyView, sentences: &mut Vec<String>) {
        let Some(host) = view.host.clone() else { return };
        let tree = view.tree.clone().unwrap_or_else(|| host.without_www());
        let nowhere = Place { country: "ZZ", organisation: "", asn: None };
        let place = view.address.map_or(nowhere, |address| self.context.place_of(address));
        let surveys = self.context.wishes.having(&host, &tree, &place);
        if surveys.is_empty() {
            return;
        }
        let now = self.context.now.wall;
        let names = surveys.iter().map(|kept| match kept.survey.state_at(now) {
            SurveyState::Running => kept.survey.plan.name.clone(),
            state => format!("{} ({state})", kept.survey.plan.name),
        });
        let names = names.collect::<Vec<_>>().join(", ");
        sentences.push(format!("It belongs to {}: {names}.", if surveys.len() == 1 { "the survey" } else { "the surveys" }));
        if self.crawl.site(&host).is_some_and(|site| site.wishes.is_unwanted) {
            sentences.push("Nothing is asked there, because nobody else wants it.".to_owned());
        }
        view.surveys = surveys.into_iter().map(|kept| kept.mark(&host, &tree)).collect();
    }

    /// The surveys that a site belongs to.
    pub(super) fn surveys_of(&self, site: &Site) -> Vec<SurveyMark> {
        let place = self.context.place_of(site.address);
        let surveys = self.context.wishes.having(&site.key.host, &site.tree, &place);
        surveys.into_iter().map(|kept| kept.mark(&site.key.host, &site.tree)).collect()
    }
}
