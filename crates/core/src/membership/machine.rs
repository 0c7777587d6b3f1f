//! State machine of membership: feeds SWIM, follows the roster, and tells the other machines who came, went and died.

use crate::{
    context::Context,
    event::{Command, PeerCommand},
    membership::{Member, Output, Parting, Roster, Standing, Swim, Verdict, profiles::Profiles, rendezvous},
    pending::Pending,
    signal::Signal,
    voting::lease::NoLease,
};
use nearcrawl_model::{
    access_point::AccessPoint,
    allowance::Rest,
    message::Request,
    profile::{Profile, ToldProfile},
    subnet::Subnet,
    time::{Millis, Moment},
    url::Host,
};
use std::collections::{BTreeMap, BTreeSet};

/// How long a newly started member waits for its swarm before it goes on alone with what it owns (it is one of two then, and the other one
/// is silent).
const LONELY_AFTER: Millis = 60_000;

/// Members whose addresses are remembered: as many as SWIM keeps track of, and as many that are gone.
pub(crate) const MAX_ADDRESSED: usize = 8_192;

/// For how long it is remembered that a member said that it leaves: it says so again and again, and who starts anew or stays does not.
pub(crate) const LEAVES_FOR: Millis = 30_000;

/// The members, as SWIM and the roster know them.
pub(crate) struct Membership {
    swim: Swim,
    roster: Roster,
    /// Where members can be reached, the dead ones too as long as there is room; at most [`MAX_ADDRESSED`].
    addresses: BTreeMap<AccessPoint, Vec<String>>,
    /// When the living last were others than before; none if they never were.
    changed_at: Option<Moment>,
    /// Until when the voters renewed our lease, and why there is none afterwards.
    lease: (Option<Moment>, NoLease),
    /// What members tell of themselves, for people.
    profiles: Profiles,
    /// Members that leave for good, and when they said so last.
    leaving: BTreeMap<AccessPoint, Moment>,
}

/// What happens to the members.
impl Membership {
    /// Begins with this member alone, and with those who were settled at the last stop as missing.
    pub(crate) fn new(swim: Swim, roster: Roster) -> Membership {
        Membership {
            swim,
            roster,
            addresses: BTreeMap::new(),
            changed_at: None,
            lease: (None, NoLease::NoVoters),
            profiles: Profiles::default(),
            leaving: BTreeMap::new(),
        }
    }

    /// The same with a lease that never ends, for tests of other machines.
    #[cfg(test)]
    pub(crate) fn with_lease(swim: Swim, roster: Roster) -> Membership {
        Membership { lease: (Some(Moment(u64::MAX)), NoLease::NoVoters), ..Membership::new(swim, roster) }
    }

    /// Who is there, for tests that say so without SWIM.
    #[cfg(test)]
    pub(crate) fn roster_mut(&mut self) -> &mut Roster {
        &mut self.roster
    }

    /// A member is alive, for tests that say so without SWIM.
    #[cfg(test)]
    pub(crate) fn meet(&mut self, now: Moment, who: AccessPoint) {
        self.roster.up(now, who);
        self.addresses.insert(who, Vec::new());
    }

    /// This access point can be reached at these addresses.
    pub(crate) fn reached_at(&mut self, now: Moment, addresses: Vec<String>) {
        self.swim.readdress(now, addresses);
    }

    /// A connection to a member was made, and it said who it is.
    pub(crate) fn connected(&mut self, cx: &mut Context, access_point: AccessPoint, incarnation: u64, addresses: Vec<String>) {
        self.swim.join(cx.now.moment, Member::new(access_point, incarnation, addresses));
        self.carry_out(cx);
        cx.signal(Signal::MemberConnected(access_point));
    }

    /// A member sent a membership datagram. Returns the one that is sent back to it, if one is.
    pub(crate) fn receive(&mut self, cx: &mut Context, from: AccessPoint, bytes: &[u8]) -> Option<Vec<u8>> {
        let left = self.swim.left_aside();
        if self.swim.receive(cx.now.moment, from, bytes).is_err() {
            cx.refuse("membership datagrams");
        } else {
            self.goes_on(cx, from);
        }
        if self.swim.left_aside() > left {
            cx.refuse("membership datagrams that say of members what only these could say");
        }
        let mut outputs: Vec<_> = self.swim.drain().collect();
        let back = outputs.iter().position(|output| matches!(output, Output::Send { to, .. } if *to == from));
        let back = back.map(|back| outputs.remove(back));
        self.carry_out_these(cx, outputs);
        let Some(Output::Send { to, addresses, bytes }) = back else { return None };
        self.know(cx, to, addresses);
        Some(bytes)
    }

    /// A member said something directly, be it an answer to us or not. A departure announced before that was not its own.
    pub(crate) fn heard(&mut self, cx: &mut Context, who: AccessPoint, answered: bool) {
        self.swim.heard(cx.now.moment, who, answered);
        self.carry_out(cx);
        self.goes_on(cx, who);
    }

    /// A process with a copy of a member's key may have ended in its name.
    fn goes_on(&mut self, cx: &mut Context, who: AccessPoint) {
        if self.roster.is_past_its_last_words(cx.now.moment, &who) && self.swim.is_up(&who) {
            self.roster.up(cx.now.moment, who);
            self.changed(cx);
        }
    }

    /// A member did not answer what it was asked directly.
    pub(crate) fn unanswered(&mut self, now: Moment, who: &AccessPoint) {
        self.swim.unanswered(now, who);
    }

    /// A member says that it stops, and whether for good.
    pub(crate) fn farewell(&mut self, cx: &mut Context, from: AccessPoint, leaving: bool) {
        self.roster.farewell(cx.now.moment, from, leaving);
        self.changed(cx);
    }

    /// A member says that it is about to leave for good. Whether that is new.
    pub(crate) fn says_that_it_leaves(&mut self, now: Moment, from: AccessPoint) -> bool {
        self.roster.standings().contains_key(&from) && self.leaving.insert(from, now).is_none()
    }

    /// This access point may be a member no more: it counts as gone for good.
    pub(crate) fn exclude(&mut self, cx: &mut Context, who: AccessPoint) {
        self.roster.exclude(cx.now.moment, who);
        self.changed(cx);
    }

    /// This access point may be a member again. SWIM may have found it alive before that was known.
    pub(crate) fn readmit(&mut self, cx: &mut Context, who: AccessPoint) {
        let found = self.swim.members().find(|member| member.access_point == who).cloned();
        self.carry_out_these(cx, found.map(Output::Up).into_iter().collect());
    }

    /// The voters renewed our lease until then, or did not.
    pub(crate) fn leased(&mut self, until: Option<Moment>, why_not: NoLease) {
        self.lease = (until, why_not);
    }

    /// Has SWIM probe, and gives up who has been silent for too long.
    pub(crate) fn tick(&mut self, cx: &mut Context) {
        let now = cx.now.moment;
        self.swim.tick(now);
        self.carry_out(cx);
        self.leaving.retain(|member, said| now.since(*said) < LEAVES_FOR && self.roster.standings().contains_key(member));
        for Verdict::Dead(gone) in self.roster.tick(cx.now.moment) {
            self.changed(cx);
            cx.signal(Signal::MemberDied(gone));
        }
    }

    /// What this access point tells of itself from now on.
    pub(crate) fn tell_profile(&mut self, mine: Profile) {
        self.profiles.tell(mine);
    }

    /// A member told of itself.
    pub(crate) fn profile_told(&mut self, cx: &mut Context, told: ToldProfile) {
        self.profiles.hear(cx, told);
    }

    /// Tells of itself, if it is time.
    pub(crate) fn tick_profiles(&mut self, cx: &mut Context) {
        self.profiles.tick(cx, self.roster.live());
    }

    /// Carries out what SWIM wants and notes what it found out.
    fn carry_out(&mut self, cx: &mut Context) {
        let outputs = self.swim.drain().collect();
        self.carry_out_these(cx, outputs);
    }

    fn carry_out_these(&mut self, cx: &mut Context, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Send { to, addresses, bytes } => {
                    self.know(cx, to, addresses);
                    cx.ask(to, Pending::Swim, Request::Swim(bytes));
                }
                // SWIM may hear of it from members that do not know yet.
                Output::Up(member) if cx.excluded.contains_key(&member.access_point) => {}
                Output::Up(member) => {
                    let who = member.access_point;
                    self.know(cx, who, member.addresses);
                    if !self.roster.standings().contains_key(&who) {
                        self.profiles.member_came();
                        cx.signal(Signal::MemberCame(who));
                    }
                    self.roster.up(cx.now.moment, who);
                    self.changed(cx);
                }
                Output::Down(who) => {
                    // Who found it out had no answer for so long already.
                    let unheard = cx.settings.membership.unheard();
                    self.roster.down(cx.now.moment.before(unheard), who);
                    self.changed(cx);
                }
                Output::Renewed(_) => {}
            }
        }
    }

    pub(crate) fn know(&mut self, cx: &mut Context, access_point: AccessPoint, addresses: Vec<String>) {
        if !self.addresses.contains_key(&access_point) && self.addresses.len() >= MAX_ADDRESSED && !self.forget_one_gone() {
            return cx.refuse("addresses of members beyond the limit");
        }
        let known = self.addresses.entry(access_point).or_default();
        if !addresses.is_empty() && *known != addresses {
            known.clone_from(&addresses);
            cx.commands.push_back(Command::Peers(PeerCommand::Know { access_point, addresses }));
        }
    }

    /// Forgets where one member can be reached that is a member no more; false if there is none such.
    fn forget_one_gone(&mut self) -> bool {
        let gone = self.addresses.keys().find(|who| !self.roster.standings().contains_key(who)).copied();
        gone.is_some_and(|gone| self.addresses.remove(&gone).is_some())
    }

    /// The living are others than before: replicas and stewards may have changed.
    fn changed(&mut self, cx: &mut Context) {
        self.changed_at = Some(cx.now.moment);
        cx.signal(Signal::MembersChanged);
    }
}

/// What others ask of it.
impl Membership {
    /// Who is alive, this access point included.
    pub(crate) fn live(&self) -> &[AccessPoint] {
        self.roster.live()
    }

    /// The other members, live and silent.
    pub(crate) fn standings(&self) -> &BTreeMap<AccessPoint, Standing> {
        self.roster.standings()
    }

    /// Members of the last day that are none any more: how, and since when they said nothing.
    pub(crate) fn parted(&self) -> &BTreeMap<AccessPoint, (Parting, Moment)> {
        self.roster.parted()
    }

    /// The members that are counted on, this access point included.
    pub(crate) fn settled(&self, now: Moment) -> BTreeSet<AccessPoint> {
        self.roster.settled(now)
    }

    /// Whether a member has said lately that it is about to leave for good.
    pub(crate) fn is_about_to_leave(&self, now: Moment, who: &AccessPoint) -> bool {
        self.leaving.get(who).is_some_and(|said| now.since(*said) < LEAVES_FOR)
    }

    /// How many these are.
    pub(crate) fn count_settled(&self, now: Moment) -> usize {
        self.roster.count_settled(now)
    }

    /// Whether this access point holds a lease, so that a claim may be made.
    pub(crate) fn may_claim(&self, now: Moment) -> bool {
        self.no_lease(now).is_none()
    }

    /// Whether it has held a lease since its start.
    pub(crate) fn had_lease(&self) -> bool {
        self.lease.0.is_some()
    }

    /// Why this access point must not fetch, if it holds no lease: others may be taking over.
    pub(crate) fn no_lease(&self, now: Moment) -> Option<NoLease> {
        let (until, why_not) = self.lease;
        until.is_none_or(|until| now >= until).then_some(why_not)
    }

    /// Whether no member has turned up although this access point, a member, has waited for long enough. One that is there is waited for,
    /// however long its map takes.
    pub(crate) fn is_long_alone(&self, cx: &Context) -> bool {
        let waited = cx.settings.member && cx.now.moment.since(cx.started) >= LONELY_AFTER;
        waited && self.roster.standings().len() < 2 && self.roster.standings().values().all(|other| other.silent_since.is_some())
    }

    /// When the living last were others than before; none if they never were.
    pub(crate) fn changed_at(&self) -> Option<Moment> {
        self.changed_at
    }

    /// Members that were heard of at any time, but for this one.
    pub(crate) fn known(&self) -> impl Iterator<Item = &AccessPoint> + Clone {
        self.addresses.keys()
    }

    /// Whether a member was ever heard of.
    pub(crate) fn knows(&self, who: &AccessPoint) -> bool {
        self.addresses.contains_key(who)
    }

    /// Where another member can be reached.
    pub(crate) fn addresses_of(&self, who: &AccessPoint) -> &[String] {
        self.addresses.get(who).map(Vec::as_slice).unwrap_or_default()
    }

    /// Where this access point can be reached.
    pub(crate) fn own_addresses(&self) -> &[String] {
        &self.swim.me().addresses
    }

    /// What a member told of itself; of this access point, what it tells.
    pub(crate) fn profile_of(&self, cx: &Context, who: &AccessPoint) -> Profile {
        if *who == cx.me { self.profiles.mine().clone() } else { self.profiles.of(who).cloned().unwrap_or_default() }
    }

    /// Where members can be reached, all together.
    pub(crate) fn all_addresses(&self) -> impl Iterator<Item = &String> {
        self.addresses.values().flatten()
    }

    /// How many members SWIM keeps track of.
    pub(crate) fn tracked(&self) -> usize {
        self.swim.members().count()
    }

    /// Which of the living looks up a host; none if there are none.
    pub(crate) fn steward_of_host(&self, host: &Host) -> Option<AccessPoint> {
        rendezvous::steward(rendezvous::key_hash(host.as_str()), self.live())
    }

    /// The living, in the order in which they keep copies of an owner's journals.
    pub(crate) fn replicas_of(&self, owner: &AccessPoint) -> Vec<AccessPoint> {
        rendezvous::order(rendezvous::key_hash(&owner.to_string()), self.live())
    }

    /// The living, in the order in which they serve a subnet.
    pub(crate) fn stewards_of(&self, subnet: &Subnet) -> Vec<AccessPoint> {
        rendezvous::stewards_of(subnet, self.live())
    }
}

/// Why nothing is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// On the way out.
    Stopping,
    /// It is no member, and why.
    NotAdmitted(String),
    /// Without a lease.
    NoLease(NoLease),
    /// The ownership map has not been compared with any member yet.
    NotJoined,
    /// Too many URLs wait for their owners.
    OutboxFull,
    /// The disk has no room.
    DiskFull,
    /// The operator does not let it.
    Resting(Rest),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(number: usize) -> AccessPoint {
        let mut key = [7; 32];
        key[..8].copy_from_slice(&number.to_be_bytes());
        AccessPoint(key)
    }

    #[test]
    fn addresses_of_members_that_are_gone_make_room_and_those_of_the_others_stay() {
        let mut cx = Context::of_test(1);
        let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
        let roster = Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &BTreeSet::new());
        let mut members = Membership::new(swim, roster);
        let address = |number: usize| vec![format!("/ip4/192.0.2.1/tcp/{number}")];
        members.roster.up(cx.now.moment, member(0));
        for number in 0..MAX_ADDRESSED + 100 {
            members.know(&mut cx, member(number), address(number));
        }
        assert_eq!(members.known().count(), MAX_ADDRESSED);
        assert_eq!(members.addresses_of(&member(0)), address(0), "it is a member");
        assert_eq!(members.addresses_of(&member(MAX_ADDRESSED + 99)), address(MAX_ADDRESSED + 99), "and this may become one");
        assert!(cx.counters.refused.is_empty());
        let all: Vec<AccessPoint> = members.known().copied().collect();
        let started = Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &all.into_iter().collect());
        members.roster = started;
        members.know(&mut cx, member(MAX_ADDRESSED + 100), address(1));
        assert!(!members.knows(&member(MAX_ADDRESSED + 100)), "all the others are members");
        assert_eq!(cx.counters.refused["addresses of members beyond the limit"], 1);
    }

    #[test]
    fn one_of_two_goes_on_alone_after_a_minute_unless_the_other_is_there() {
        let mut cx = Context::of_test(1);
        cx.settings.member = true;
        let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
        let roster = Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &BTreeSet::new());
        let (mut members, other) = (Membership::new(swim, roster), AccessPoint([20; 32]));
        cx.now.moment = Moment(LONELY_AFTER);
        assert!(members.is_long_alone(&cx));
        members.meet(cx.now.moment, other);
        cx.now.moment = Moment(100 * LONELY_AFTER);
        assert!(!members.is_long_alone(&cx), "its map is still being compared");
        members.roster_mut().down(cx.now.moment, other);
        assert!(members.is_long_alone(&cx));
    }

    #[test]
    fn who_says_that_it_leaves_does_so_as_long_as_it_says_so_again_and_strangers_are_not_remembered() {
        let mut cx = Context::of_test(1);
        let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), 1);
        let roster = Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &BTreeSet::new());
        let mut members = Membership::new(swim, roster);
        members.meet(cx.now.moment, member(1));
        assert!(!members.says_that_it_leaves(cx.now.moment, member(2)) && members.leaving.is_empty(), "it is no member");
        assert!(members.says_that_it_leaves(cx.now.moment, member(1)));
        let again = Moment(LEAVES_FOR - 1);
        assert!(!members.says_that_it_leaves(again, member(1)), "that is known");
        assert!(members.is_about_to_leave(Moment(2 * LEAVES_FOR - 2), &member(1)));
        assert!(!members.is_about_to_leave(Moment(2 * LEAVES_FOR - 1), &member(1)), "it stayed, or has started anew");
        members.farewell(&mut cx, member(1), true);
        members.tick(&mut cx);
        assert!(members.leaving.is_empty());
    }

    /// Two members that pass each other's datagrams on for so many seconds.
    fn run_for(seconds: u64, sides: &mut [(Context, Membership); 2]) {
        for _ in 0..seconds * 10 {
            for this in [0, 1] {
                let (cx, members) = &mut sides[this];
                cx.now.moment = cx.now.moment.after(100);
                members.tick(cx);
                let sent = cx.take_commands();
                for command in sent {
                    let Command::Peers(PeerCommand::Ask { request: Request::Swim(bytes), .. }) = command else { continue };
                    let from = sides[this].0.me;
                    let (cx, members) = &mut sides[1 - this];
                    let Some(back) = members.receive(cx, from, &bytes) else { continue };
                    let from = sides[1 - this].0.me;
                    let (cx, members) = &mut sides[this];
                    members.receive(cx, from, &back);
                }
            }
        }
    }

    #[test]
    fn a_farewell_in_the_name_of_one_that_goes_on_is_soon_forgotten() {
        let mut sides = [1, 2].map(|number| {
            let cx = Context::of_test(number);
            let swim = Swim::new(Member::new(cx.me, 1, Vec::new()), cx.settings.membership.clone(), number.into());
            let roster = Roster::new(cx.me, cx.settings.roster.clone(), cx.now.moment, &BTreeSet::new());
            (cx, Membership::new(swim, roster))
        });
        let other = sides[1].0.me;
        let (cx, members) = &mut sides[0];
        members.connected(cx, other, 1, Vec::new());
        run_for(20, &mut sides);
        let is_live = |sides: &[(Context, Membership); 2]| sides[0].1.live().contains(&other);
        assert!(is_live(&sides));
        let (cx, members) = &mut sides[0];
        members.farewell(cx, other, false);
        run_for(2, &mut sides);
        assert!(!is_live(&sides), "its last words are still under way");
        run_for(10, &mut sides);
        assert!(is_live(&sides));
    }
}
