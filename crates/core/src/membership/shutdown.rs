//! Orderly shutdown: finish what is under way, see it stored and copied, release what is held, announce the departure.

use crate::{
    context::Context,
    event::{Command, PeerCommand},
    membership::Membership,
    ownership::Ownership,
    signal::Signal,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::Claim,
    ids::QuestionId,
    message::{Gossip, Request},
    time::{Millis, Moment},
};

/// How long a daemon that stops waits for its replicas, and one that leaves for what else is unfinished.
const PARTING_TIMEOUT: Millis = 15_000;

/// How long a leaver keeps what is its own, so that those that leave at the same time hear of one another: a replica that leaves, too, is
/// replaced before what it has copies of is released.
const HEARS_OTHERS: Millis = 3_000;

/// Within that time it says so again after so long, for a message may be lost.
const TELLS_AGAIN: Millis = 1_000;

/// And from then on after so long: others remember it for [`LEAVES_FOR`](super::machine::LEAVES_FOR).
const REMINDS: Millis = 10_000;

/// How long a leaver that holds a lease waits until its replicas have its journals, which may have to be copied anew because others leave, too;
/// and a voter until the others have agreed on a list without it: else they would need it.
const LEAVING_TIMEOUT: Millis = 120_000;

/// The same once it is told to stop, whenever it began to leave. The process ends 40 s after that, done or not.
const STOPPED_TIMEOUT: Millis = 30_000;

/// A lease that is over and not renewed within so long is another's: the voters let others take over.
const LEASE_COMES_BACK: Millis = 45_000;

/// How far this access point is on its way out.
#[derive(Default)]
pub(crate) struct Shutdown {
    since: Option<Moment>,
    /// When it was told to stop.
    stopped: Option<Moment>,
    /// When the others were last told that it leaves.
    told: Option<Moment>,
    /// When what it held was released.
    released: Option<Moment>,
    /// When it held a lease last, since it began to go.
    leased: Option<Moment>,
    leaving: bool,
    finished: bool,
}

/// What the other machines have not finished yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished {
    /// Fetches, bodies, or questions to the seen set.
    pub(crate) fetching: bool,
    /// Journal rows that are not stored, or that replicas lack.
    pub(crate) journals: bool,
    /// Whether voters do not know yet who has all that was recorded.
    pub(crate) naming: bool,
    /// URLs whose owners have not taken them in.
    pub(crate) outgoing: bool,
    /// Whether this access point is on the list of voters, and others remain that may be on it.
    pub(crate) voter: bool,
    /// Whether the others need its vote for the list that is better without it.
    pub(crate) needed: bool,
    /// Whether another process with this key may go on, in whose name a departure would be announced.
    pub(crate) copy: bool,
}

impl Shutdown {
    /// The daemon stops, to come back.
    pub(crate) fn drain(&mut self, now: Moment) {
        self.stopped.get_or_insert(now);
    }

    /// The operator wants us to leave permanently.
    pub(crate) fn leave(&mut self, now: Moment) {
        if !self.leaving {
            self.leaving = true;
            self.since = Some(now);
        }
    }

    /// Whether this access point is about to leave, permanently or not.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_draining() || self.leaving
    }

    /// Whether it leaves permanently.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Whether it goes to come back.
    pub(crate) fn is_draining(&self) -> bool {
        self.stopped.is_some()
    }

    /// Whether nothing is sent to owners any more: what is ours is being released, or all is done.
    pub(crate) fn is_over(&self) -> bool {
        self.released.is_some() || self.finished
    }

    /// Whether it still has something to wait for.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_stopping() && !self.finished
    }

    /// On the way out: waits for what is unfinished, has what is held released, announces the departure.
    pub(crate) fn tick(&mut self, cx: &mut Context, unfinished: Unfinished, ownership: &Ownership, members: &Membership) {
        if !self.is_waiting() {
            return;
        }
        let now = cx.now.moment;
        let waited = now.since(*self.since.get_or_insert(now));
        let patient = waited < PARTING_TIMEOUT;
        let others: Vec<_> = members.live().iter().copied().filter(|member| *member != cx.me).collect();
        if self.leaving && !others.is_empty() {
            self.tell(cx, &others, waited, unfinished.copy);
            if waited < HEARS_OTHERS {
                return;
            }
        }
        // Without a lease nothing is recorded and no voter hears who has it, and alone there is nobody who could have it. A lease that is not
        // renewed in time for once comes back.
        let may_release = members.may_claim(now);
        self.leased = if may_release { Some(now) } else { self.leased };
        let leased = !others.is_empty() && self.leased.is_some_and(|at| now.since(at) < LEASE_COMES_BACK);
        let copied = !(unfinished.journals || self.leaving && leased && unfinished.naming);
        let stopped_for = self.stopped.filter(|_| self.leaving).map_or(0, |at| now.since(at));
        let timeout = if self.leaving && leased { LEAVING_TIMEOUT } else { PARTING_TIMEOUT };
        let copying = (!copied || self.leaving && leased && !may_release) && waited < timeout && stopped_for < PARTING_TIMEOUT;
        if copying || patient && (unfinished.fetching || self.leaving && unfinished.outgoing) {
            return;
        }
        // Who is stopped before it could hand over what it has keeps it, on its disk: it may be started again.
        let leaves = self.leaving && (copied || stopped_for == 0 || self.released.is_some());
        if leaves && self.goes_on_releasing(cx, (waited, stopped_for), unfinished, ownership, members) {
            return;
        }
        for to in others.into_iter().filter(|_| !unfinished.copy) {
            let (question, request) = (QuestionId::NO_ANSWER, Request::Farewell(leaves));
            cx.commands.push_back(Command::Peers(PeerCommand::Ask { to, question, request }));
        }
        self.finished = true;
        cx.commands.push_back(Command::Finished);
    }

    /// Says that this access point leaves, if it is time: the replicas of another one that leaves may be replaced before it is gone.
    fn tell(&mut self, cx: &mut Context, others: &[AccessPoint], waited: Millis, copy: bool) {
        let now = cx.now.moment;
        let pause = if waited < HEARS_OTHERS { TELLS_AGAIN } else { REMINDS };
        if !copy && self.told.is_none_or(|at| now.since(at) >= pause) {
            self.told = Some(now);
            cx.tell_all(others, Gossip::Leaving);
        }
    }

    /// Has what is held released. Whether that, or what others need of a leaver, goes on; it has waited for so long, and for so long since it
    /// was told to stop.
    fn goes_on_releasing(
        &mut self,
        cx: &mut Context,
        (waited, stopped_for): (Millis, Millis),
        unfinished: Unfinished,
        ownership: &Ownership,
        members: &Membership,
    ) -> bool {
        let now = cx.now.moment;
        // Without a lease, what we held may be another's by now, be it another process with our key.
        if self.released.is_none() && members.may_claim(now) {
            let held = ownership.register().held_by(&cx.me).filter_map(|subnet| ownership.register().claim(&subnet).cloned());
            let held: Vec<_> = held.map(|claim| Claim { released: true, ..claim }).collect();
            if !held.is_empty() {
                self.released = Some(now);
                cx.signal(Signal::Claim(held));
                return true;
            }
        }
        // Others that leave, too, have to be heard of before it is known what list would be better.
        let needed = unfinished.needed && waited < LEAVING_TIMEOUT;
        let telling = ownership.is_telling() && now.since(self.released.or(self.since).unwrap_or(now)) < PARTING_TIMEOUT;
        (needed || telling || waited < PARTING_TIMEOUT && unfinished.voter) && stopped_for < STOPPED_TIMEOUT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::{Member, Roster, Swim};
    use crate::voting::lease::NoLease;
    use nearcrawl_model::claim::{ClaimReason, SignedClaim};
    use std::collections::BTreeSet;

    const OTHER: AccessPoint = AccessPoint([20; 32]);

    const DONE: Unfinished =
        Unfinished { fetching: false, journals: false, naming: false, outgoing: false, voter: false, needed: false, copy: false };

    /// A member that owns a subnet.
    struct Played {
        cx: Context,
        shutdown: Shutdown,
        ownership: Ownership,
        members: Membership,
        released: bool,
    }

    impl Played {
        fn new(leased: bool, others: &[AccessPoint]) -> Played {
            let cx = Context::of_test(1);
            let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
            let roster = Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &BTreeSet::new());
            let mut members = if leased { Membership::with_lease(swim, roster) } else { Membership::new(swim, roster) };
            others.iter().for_each(|other| members.meet(cx.now.moment, *other));
            let mut ownership = Ownership::new(cx.now.moment, true);
            let claim = Claim {
                subnet: "9.0.0.0/24".parse().unwrap(),
                epoch: 1,
                owner: cx.me,
                rtt_us: None,
                runner_up: None,
                probes: 0,
                reason: ClaimReason::Awarded,
                released: false,
                answers: Vec::new(),
            };
            let proof = SignedClaim::sign(&claim, &cx.key);
            assert!(ownership.merge(claim, proof).is_some());
            Played { cx, shutdown: Shutdown::default(), ownership, members, released: false }
        }

        /// Goes on for so many seconds at most. Returns what others were told, each with the second; ends when it says that it has finished.
        fn run(&mut self, seconds: u64, unfinished: Unfinished) -> Vec<(u64, Request)> {
            let mut told = Vec::new();
            for _ in 0..seconds * 10 {
                self.shutdown.tick(&mut self.cx, unfinished, &self.ownership, &self.members);
                for signal in std::mem::take(&mut self.cx.signals) {
                    let Signal::Claim(claims) = signal else { panic!("{signal:?}") };
                    self.released = true;
                    for claim in claims {
                        let proof = SignedClaim::sign(&claim, &self.cx.key);
                        assert!(self.ownership.merge(claim, proof).is_some());
                    }
                }
                let second = self.cx.now.moment.0 / 1_000;
                for command in self.cx.take_commands() {
                    match command {
                        Command::Peers(PeerCommand::Ask { to: OTHER, request, .. }) => told.push((second, request)),
                        Command::Finished => {}
                        other => panic!("{other:?}"),
                    }
                }
                if !self.shutdown.is_waiting() {
                    break;
                }
                self.cx.now.moment = self.cx.now.moment.after(100);
            }
            told
        }
    }

    fn leaving() -> Request {
        Request::Tell(Box::new(Gossip::Leaving))
    }

    #[test]
    fn a_leaver_tells_the_others_before_it_releases_what_it_has_and_again_while_it_waits() {
        let mut played = Played::new(true, &[OTHER]);
        played.shutdown.leave(played.cx.now.moment);
        let told = played.run(100, DONE);
        assert_eq!(told, [(0, leaving()), (1, leaving()), (2, leaving()), (3, Request::Farewell(true))]);
        assert!(played.released);
        let mut played = Played::new(true, &[OTHER]);
        played.shutdown.leave(played.cx.now.moment);
        let told = played.run(25, Unfinished { journals: true, ..DONE });
        assert_eq!(told, [0, 1, 2, 12, 22].map(|second| (second, leaving())));
        let mut copied = Played::new(true, &[OTHER]);
        copied.shutdown.leave(copied.cx.now.moment);
        assert_eq!(copied.run(100, Unfinished { copy: true, ..DONE }), [], "nothing in the name of one that goes on");
    }

    #[test]
    fn who_leaves_waits_for_voters_that_hear_who_has_its_journals_as_long_as_it_holds_a_lease_and_is_not_alone() {
        let ends_after = |leased, others: &[AccessPoint]| {
            let mut played = Played::new(leased, others);
            played.shutdown.leave(played.cx.now.moment);
            played.run(200, Unfinished { naming: true, ..DONE });
            assert_eq!(played.released, leased);
            played.cx.now.moment.0 / 1_000
        };
        assert_eq!([ends_after(true, &[OTHER]), ends_after(false, &[OTHER]), ends_after(true, &[])], [120, 3, 0]);
    }

    #[test]
    fn a_leaver_whose_lease_is_renewed_late_waits_and_releases_all_the_same() {
        let lapse = |played: &mut Played| played.members.leased(Some(Moment(1)), NoLease::NoVoters);
        let renew = |played: &mut Played| played.members.leased(Some(Moment(u64::MAX)), NoLease::NoVoters);
        let mut played = Played::new(true, &[OTHER]);
        played.shutdown.leave(played.cx.now.moment);
        played.run(40, Unfinished { journals: true, ..DONE });
        lapse(&mut played);
        played.run(5, Unfinished { journals: true, ..DONE });
        played.run(5, DONE);
        assert!(played.shutdown.is_waiting() && !played.released, "its copies are not lost, and its subnets wait for its word");
        renew(&mut played);
        assert_eq!(played.run(5, DONE).pop(), Some((50, Request::Farewell(true))));
        assert!(played.released);
        let mut lost = Played::new(true, &[OTHER]);
        lost.shutdown.leave(lost.cx.now.moment);
        lost.run(20, Unfinished { journals: true, ..DONE });
        lapse(&mut lost);
        lost.run(50, Unfinished { journals: true, ..DONE });
        assert!(!lost.shutdown.is_waiting() && !lost.released, "others have taken over by now");
    }

    #[test]
    fn who_leaves_and_is_told_to_stop_releases_what_is_copied_and_ends_in_time() {
        let ends = |unfinished: Unfinished| {
            let mut played = Played::new(true, &[OTHER]);
            played.shutdown.leave(played.cx.now.moment);
            played.run(10, unfinished);
            played.shutdown.drain(played.cx.now.moment);
            let last = played.run(200, unfinished).pop();
            (played.released, last)
        };
        assert_eq!(ends(Unfinished { needed: true, ..DONE }), (true, Some((40, Request::Farewell(true)))));
        assert_eq!(ends(Unfinished { journals: true, ..DONE }), (false, Some((25, Request::Farewell(false)))), "it may come back with it");
    }

    #[test]
    fn a_release_is_told_before_the_leaver_is_gone_however_long_it_took_to_come_to_it() {
        let mut played = Played::new(true, &[OTHER]);
        played.shutdown.leave(played.cx.now.moment);
        played.run(60, Unfinished { journals: true, ..DONE });
        let claim = played.ownership.register().held_by(&played.cx.me).next().and_then(|subnet| played.ownership.register().claim(&subnet));
        let claim = claim.cloned().unwrap();
        let proof = SignedClaim::sign(&claim, &played.cx.key);
        // It is being stored.
        played.ownership.store_own(&mut played.cx, vec![proof]);
        played.cx.take_commands();
        played.run(5, DONE);
        assert!(played.released && played.shutdown.is_waiting());
        played.run(20, DONE);
        assert!(!played.shutdown.is_waiting(), "not for ever");
    }
}
