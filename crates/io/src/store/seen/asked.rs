//! A batch of questions to the seen set, and its answers once it is known what was known before.

use super::entry::{self, Entry, Remembered};
use nearcrawl_model::{
    fingerprint::Fingerprint,
    seen::{DEEPEST_LEVEL, PageState, SeenAnswer, SeenBatch},
};

/// The pages of a batch, each once, in the order of their codes.
pub(super) struct Asked {
    pub(super) pages: Vec<Page>,
    /// For each question, which page it is about.
    places: Vec<u32>,
}

pub(super) struct Page {
    pub(super) code: u64,
    pub(super) colour: Option<u8>,
    changed: bool,
}

impl Asked {
    /// What a batch asks: the visited page, if there is one, then the questions in order.
    pub(super) fn of(batch: &SeenBatch) -> Asked {
        let visited = batch.visited.iter().map(|visit| visit.page);
        Asked::new(batch.site.0, visited.chain(batch.questions.iter().map(|(page, _)| *page)))
    }

    pub(super) fn new(site: u64, pages: impl Iterator<Item = Fingerprint>) -> Asked {
        let mut order: Vec<(u64, u32)> = pages.map(|page| entry::code(site, page)).zip(0..).collect();
        order.sort_unstable();
        let mut places = vec![0; order.len()];
        let mut pages: Vec<Page> = Vec::with_capacity(order.len());
        for (code, number) in order {
            if pages.last().is_none_or(|last| last.code != code) {
                pages.push(Page { code, colour: None, changed: false });
            }
            places[number as usize] = pages.len() as u32 - 1;
        }
        Asked { pages, places }
    }

    /// Answers the questions, in order, as if asked one after another, and notes what they change.
    pub(super) fn decide(&mut self, batch: &SeenBatch) -> Vec<SeenAnswer> {
        if let Some(visit) = &batch.visited {
            let level = visit.level.min(DEEPEST_LEVEL);
            let level = self.known(0).map_or(level, |before| before.level.min(level));
            self.change(0, Remembered { level, state: PageState::Visited });
        }
        let first = usize::from(batch.visited.is_some());
        let mut answers = Vec::with_capacity(batch.questions.len());
        for (number, (_, level)) in (first..).zip(&batch.questions) {
            let level = (*level).min(DEEPEST_LEVEL);
            let within = if level <= batch.depth { PageState::Waiting } else { PageState::Cut };
            answers.push(match self.known(number) {
                Some(before) if before.level <= level => SeenAnswer::Known,
                Some(before) => {
                    let state = if before.state == PageState::Cut { within } else { before.state };
                    self.change(number, Remembered { level, state });
                    SeenAnswer::Shorter { was: before.state }
                }
                None => {
                    self.change(number, Remembered { level, state: within });
                    SeenAnswer::New
                }
            });
        }
        answers
    }

    pub(super) fn known(&self, number: usize) -> Option<Remembered> {
        self.pages[self.places[number] as usize].colour.map(Remembered::of)
    }

    fn change(&mut self, number: usize, now: Remembered) {
        let page = &mut self.pages[self.places[number] as usize];
        (page.colour, page.changed) = (Some(now.byte()), true);
    }

    /// What is to be remembered now and was not before.
    pub(super) fn changed(&self) -> Vec<Entry> {
        self.pages.iter().filter(|page| page.changed).filter_map(|page| Some(Entry::new(page.code, page.colour?))).collect()
    }
}
