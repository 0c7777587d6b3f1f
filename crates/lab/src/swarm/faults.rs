//! Faults of a simulated swarm: cuts, losses and limits of the network, processes that stand still, wrong clocks, bad disks, liars.
//!
//! Faults name members by number, so that they hold for whoever runs under it. All randomness comes from keys of its own: what is not
//! switched on draws nothing.

use super::{
    clocks::{Clocks, wall_time},
    sim_event::SimEvent,
};
use nearcrawl_core::event::StoreCommand;
use nearcrawl_model::{
    access_point::AccessPoint,
    message::{Request, Response},
    time::{Millis, Moment, Now, WallTime},
    vote::{BallotAnswer, BallotRequest, HandedOver},
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a batch of writes takes on a slow disk.
const SLOW_WRITE: Millis = 5_000;

/// Members that lie by what they do with others' questions, or by what they leave out of their own.
#[derive(Default)]
pub(crate) struct Liars {
    /// They pass on nothing of what others ask each other through them.
    pub(crate) drops: BTreeSet<u32>,
    /// They tell voters of the next list that nothing was decided before.
    pub(crate) hides: BTreeSet<u32>,
    /// They do not answer those who ask for journals.
    pub(crate) silent: BTreeSet<u32>,
    /// They say that they have no journals.
    pub(crate) denies: BTreeSet<u32>,
}

impl Liars {
    /// What a member asks, as it lies.
    pub(super) fn asks(&self, number: u32, request: &mut Request) {
        if let Request::Ballot(request) = request
            && let BallotRequest::Install { before, .. } = request.as_mut()
            && self.hides.contains(&number)
        {
            *before = HandedOver::default();
        }
    }

    /// What it answers.
    pub(super) fn answers(&self, number: u32, response: &mut Response) {
        match response {
            Response::Ballot(answer) if self.hides.contains(&number) => {
                if let BallotAnswer::Accepted(_, before) | BallotAnswer::Decided(_, before) = answer.as_mut() {
                    *before = HandedOver::default();
                }
            }
            Response::Held { subnets, .. } if self.denies.contains(&number) => subnets.clear(),
            Response::Recalled(rows, next) if self.denies.contains(&number) => {
                rows.clear();
                *next = None;
            }
            _ => {}
        }
    }

    /// Whether it leaves a question without an answer.
    pub(super) fn is_silent(&self, number: u32, request: &Request) -> bool {
        self.silent.contains(&number) && matches!(request, Request::Holds(_) | Request::Recall(..))
    }

    /// Whom it brings a list of voters that it is brought, before others do, as if nothing had been decided; and what it says.
    pub(super) fn brings(&self, number: u32, me: AccessPoint, request: &Request) -> Vec<(AccessPoint, Request)> {
        let Request::Ballot(request) = request else { return Vec::new() };
        let BallotRequest::Install { list, before } = request.as_ref() else { return Vec::new() };
        // What another liar brings is not brought once more.
        if !self.hides.contains(&number) || *before == HandedOver::default() {
            return Vec::new();
        }
        let empty = BallotRequest::Install { list: list.clone(), before: HandedOver::default() };
        let others = list.list.voters.iter().filter(|voter| **voter != me);
        others.map(|voter| (*voter, Request::Ballot(Box::new(empty.clone())))).collect()
    }
}

/// What is wrong at present.
#[derive(Default)]
pub(super) struct Faults {
    /// Pairs without messages from the first to the second, by the step that cut them.
    pub(super) cuts: BTreeMap<u64, Vec<(u32, u32)>>,
    /// The same pairs, together.
    pub(super) cut: BTreeSet<(u32, u32)>,
    /// The part of the network that each member is in; those who are not named are in part 0.
    pub(super) parts: BTreeMap<u32, usize>,
    /// The share of messages that come twice, and of those that come late.
    pub(super) disorder: f64,
    /// The most connections of each member.
    pub(super) limit: Option<usize>,
    pub(super) liars: Liars,
    /// Processes that stand still, with what they have not taken in yet.
    pub(super) frozen: BTreeMap<AccessPoint, VecDeque<SimEvent>>,
    pub(super) clocks: BTreeMap<u32, Clocks>,
    /// Members whose disks are slow.
    pub(super) slow: BTreeSet<u32>,
    /// Members whose disks are full, with the writes that wait, each with its process.
    pub(super) full: BTreeMap<u32, Vec<(AccessPoint, u64, StoreCommand)>>,
    /// Processes that ended, or did not start, because their disks are damaged, until the scenario has looked.
    pub(super) ended_damaged: Vec<AccessPoint>,
    /// Processes with a copied key, by the number of the member that they are copies of.
    pub(super) clones: Vec<(u32, AccessPoint)>,
    /// Keys so far, by number.
    pub(super) generations: BTreeMap<u32, u64>,
    /// Messages take as long as the way between their members is.
    pub(super) delays_by_distance: bool,
    /// Copies of rows are acknowledged, but not kept.
    pub(super) no_copies: bool,
}

impl Faults {
    pub(super) fn clocks(&self, number: u32, now: Now) -> Now {
        match self.clocks.get(&number) {
            None => now,
            Some(clocks) => Now { moment: Moment(clocks.boot.at(now.moment)), wall: WallTime(clocks.wall.at(now.moment)) },
        }
    }

    /// Whether a member's wall clock shows another time than it is, by more than a second.
    pub(super) fn wall_clock_is_wrong(&self, number: u32, now: Moment) -> bool {
        self.clocks.get(&number).is_some_and(|clocks| clocks.wall.at(now).abs_diff(wall_time(now)) > 1_000)
    }

    /// When a member's boot clock shows this.
    pub(super) fn moment_of(&self, number: u32, shown: Moment, now: Moment) -> Moment {
        self.clocks.get(&number).map_or(shown, |clocks| clocks.boot.when(shown.0, now))
    }

    pub(super) fn write_takes(&self, number: u32) -> Option<Millis> {
        self.slow.contains(&number).then_some(SLOW_WRITE)
    }

    pub(super) fn disk_is_full(&self, number: u32) -> bool {
        self.full.contains_key(&number)
    }

    /// A process ended: nothing waits for it any more.
    pub(super) fn stopped(&mut self, who: &AccessPoint) {
        self.frozen.remove(who);
        for writes in self.full.values_mut() {
            writes.retain(|(of, ..)| of != who);
        }
    }

    /// The cuts changed.
    pub(super) fn gather_cuts(&mut self) {
        self.cut = self.cuts.values().flatten().copied().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::SigningKey;
    use nearcrawl_model::{
        message::Proposal,
        replica::StoreId,
        vote::{AcceptedRow, SignedList, sign_installed},
    };

    const LIAR: u32 = 3;
    const HONEST: u32 = 4;

    fn point(number: u8) -> AccessPoint {
        AccessPoint([number; 32])
    }

    fn handed_over() -> HandedOver {
        let row = AcceptedRow { subnet: "20.0.1.0/24".parse().unwrap(), epoch: 1, owner: point(9), term: 1 };
        HandedOver { rows: vec![row], ended: vec![(point(9), 1)], replicas: Vec::new() }
    }

    #[test]
    fn who_hides_what_was_decided_says_so_wherever_it_is_asked_and_to_all_voters_as_soon_as_it_knows_of_a_list() {
        let liars = Liars { hides: [LIAR].into(), ..Liars::default() };
        let mut list = SignedList::founded_by(&SigningKey::from_bytes(&[1; 32]));
        list.list.voters = vec![point(3), point(4), point(5)];
        let by = sign_installed(&list.list, &SigningKey::from_bytes(&[1; 32]));
        let install = Request::Ballot(Box::new(BallotRequest::Install { list, before: handed_over() }));
        let decided = Response::Ballot(Box::new(BallotAnswer::Decided(2, handed_over())));
        let accepted = Response::Ballot(Box::new(BallotAnswer::Accepted(by, handed_over())));
        for number in [LIAR, HONEST] {
            let mut asked = install.clone();
            liars.asks(number, &mut asked);
            let mut answers = [decided.clone(), accepted.clone()];
            answers.iter_mut().for_each(|answer| liars.answers(number, answer));
            let hidden = asked != install && answers[0] != decided && answers[1] != accepted;
            let told = asked == install && answers == [decided.clone(), accepted.clone()];
            assert!(if number == LIAR { hidden } else { told }, "{number}");
            let brought = liars.brings(number, point(3), &install);
            let to: Vec<_> = brought.iter().map(|(to, _)| *to).collect();
            assert_eq!(to, if number == LIAR { vec![point(4), point(5)] } else { Vec::new() });
            assert!(brought.iter().all(|(_, request)| liars.brings(LIAR, point(4), request).is_empty()), "once");
        }
    }

    #[test]
    fn who_is_silent_about_journals_answers_everything_else_and_who_denies_them_has_none() {
        let liars = Liars { silent: [LIAR].into(), denies: [LIAR].into(), ..Liars::default() };
        let subnet = "20.0.1.0/24".parse().unwrap();
        let other =
            Request::Propose(Proposal { list: 1, term: 1, process: 1, claims: Vec::new(), releases: Vec::new(), parts: Vec::new() });
        for (request, silent) in [(Request::Holds(vec![subnet]), true), (Request::Recall(subnet, None), true), (other, false)] {
            assert_eq!((liars.is_silent(LIAR, &request), liars.is_silent(HONEST, &request)), (silent, false), "{request:?}");
        }
        for number in [LIAR, HONEST] {
            let mut held = Response::Held { store: StoreId(1), subnets: vec![subnet] };
            liars.answers(number, &mut held);
            let has = number == HONEST;
            assert_eq!(held, Response::Held { store: StoreId(1), subnets: if has { vec![subnet] } else { Vec::new() } });
        }
    }
}
