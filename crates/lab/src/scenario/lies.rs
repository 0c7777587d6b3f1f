//! Messages that no honest crawler would send: claims, hand-offs, rows and sums that are not so, with valid keys and signatures.
//!
//! The members that send them go on crawling beside it.

use super::{build::address_in, file::Lie};
use crate::{rng::KeyedRng, swarm::Played};
use ed25519_dalek::SigningKey;
use nearcrawl_core::membership::{Member, Output, Swim, SwimConfig};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, ClaimReason, SignedClaim},
    fetch::{LocatedHost, ProbeTarget},
    journal::{Arrival, JournalEntry, JournalKey, JournalRow, Place, VisitOutcome},
    message::{Gossip, HandOff, Request},
    subnet::Subnet,
    summary::{Counts, RollUp, Summary},
    time::{Moment, WallTime},
    url::{Host, PageUrl},
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Messages a second of a flood: what a real one sends, divided by a hundred, so that it can be simulated.
const FLOOD: u64 = 100;

/// Hosts that are invented each second, and how many of them one message names.
const INVENTED: u32 = 200;
const PARCELS_AT_ONCE: usize = 100;

/// Who lies, at whom, for the how-manieth time.
struct Liar<'a> {
    world: &'a mut Played,
    me: AccessPoint,
    number: usize,
    key: SigningKey,
    draw: KeyedRng,
    round: u64,
}

/// One second of a lie.
pub(super) fn tell(world: &mut Played, number: usize, lie: Lie, round: u64) {
    // Who does not run, or stands still, tells nothing.
    let Some((me, key, _)) = world.signer(number).filter(|(me, ..)| !world.is_frozen(me)) else { return };
    let draw = KeyedRng::new(round).of(number as u64);
    let mut liar = Liar { world, me, number, key, draw, round };
    match lie {
        Lie::Claim => liar.claim(|epoch| epoch + 1),
        Lie::Epoch => liar.claim(|_| u64::MAX),
        // It may have started anew since.
        Lie::DoubleAccept => liar.world.accept_twice(liar.me, true),
        Lie::Address => liar.address(),
        Lie::Hosts => liar.hosts(),
        Lie::Runs => liar.runs(),
        Lie::Journal => liar.journal(),
        Lie::RollUp => liar.roll_up(),
        Lie::Flood => liar.flood(),
        Lie::Dial => {
            liar.elsewhere();
            ghosts(liar.world, number, 5);
        }
        Lie::Probe => liar.probe(),
        // They are what it does with what comes, and what it answers.
        Lie::Forward | Lie::HandOver | Lie::Silence | Lie::Deny => {}
    }
}

impl Liar<'_> {
    /// A host of somebody else: its name, address, the owner of its subnet and the claim.
    fn target(&self) -> Option<(Host, IpAddr, Claim)> {
        let hosts = self.world.hosts();
        let at = self.draw.of(0).below(hosts.len() as u64) as usize;
        let mut turned = hosts.iter().cycle().skip(at).take(hosts.len());
        let view = self.world.process(&self.me)?.view();
        turned.find_map(|(host, address)| {
            let claim = view.claim_around(*address).filter(|claim| claim.owner != self.me && !claim.released)?;
            Some((host.clone(), *address, claim.clone()))
        })
    }

    fn hand_off(&mut self, to: AccessPoint, host: Host, address: IpAddr, place: Option<Place>, run: u32) {
        let Ok(url) = PageUrl::parse(&format!("http://{host}/")) else { return };
        let host = LocatedHost { host, address, valid_for: 7 * 86_400_000 };
        let parcel = HandOff { host, arrivals: vec![Arrival { url, place, run }] };
        self.world.inject(self.me, to, Request::HandOff(vec![parcel]));
    }

    fn signed(&self, subnet: Subnet, epoch: u64) -> SignedClaim {
        let (owner, reason) = (self.me, ClaimReason::OwnerDead);
        let (rtt_us, runner_up, answers) = (Some(0), None, Vec::new());
        SignedClaim::sign(&Claim { subnet, epoch, owner, rtt_us, runner_up, probes: 0, reason, released: false, answers }, &self.key)
    }

    fn claim(&mut self, epoch: impl Fn(u64) -> u64) {
        let Some((.., claim)) = self.target() else { return };
        let proof = self.signed(claim.subnet, epoch(claim.epoch));
        self.world.inject_gossip(self.me, &Gossip::Claims(vec![proof]));
    }

    fn address(&mut self) {
        let Some((_, address, claim)) = self.target() else { return };
        let Ok(host) = format!("bank{}.test", self.round).parse() else { return };
        self.hand_off(claim.owner, host, address, None, 1);
    }

    fn hosts(&mut self) {
        let Some((_, address, claim)) = self.target() else { return };
        let mut parcels = Vec::new();
        for number in 0..INVENTED {
            let Ok(host) = format!("x{}-{}-{number}.invalid", self.number, self.round).parse::<Host>() else { return };
            let Ok(url) = PageUrl::parse(&format!("http://{host}/")) else { return };
            let host = LocatedHost { host, address, valid_for: 7 * 86_400_000 };
            parcels.push(HandOff { host, arrivals: vec![Arrival { url, place: None, run: 1 }] });
        }
        for parcels in parcels.chunks(PARCELS_AT_ONCE) {
            self.world.inject(self.me, claim.owner, Request::HandOff(parcels.to_vec()));
        }
    }

    fn runs(&mut self) {
        let Some((host, address, claim)) = self.target() else { return };
        let place = Place { tree: host.without_www(), level: 1, hops: 0 };
        self.hand_off(claim.owner, host, address, Some(place), 1_000 + self.round as u32);
    }

    fn journal(&mut self) {
        let Some((host, _, claim)) = self.target() else { return };
        let Ok(url) = PageUrl::parse(&format!("http://{host}/")) else { return };
        let visited = JournalEntry::Visited {
            url,
            level: 0,
            at: WallTime(1_700_000_000_000),
            outcome: VisitOutcome::Status(404),
            took: 1,
            first_byte_us: None,
            bytes: 0,
            software: None,
            children: Vec::new(),
            found: Vec::new(),
            outgoing: Vec::new(),
            beyond_scope: Vec::new(),
            rest: None,
        };
        let Ok(entry) = postcard::to_stdvec(&visited) else { return };
        for run in 1..=2 {
            let key = JournalKey { subnet: claim.subnet, host: host.clone(), run };
            let row = JournalRow { key, sequence: 1, entry: entry.clone() };
            for (_, process) in self.world.running_processes() {
                if process != self.me {
                    self.world.inject(self.me, process, Request::Keep(vec![row.clone()]));
                }
            }
        }
    }

    /// Sums in the name of an honest member, newer than its own.
    fn roll_up(&mut self) {
        let others: Vec<_> = self.world.running_processes().into_iter().filter(|(number, _)| *number != self.number).collect();
        let Some((_, victim)) = others.get(self.draw.of(1).below(others.len().max(1) as u64) as usize).copied() else { return };
        let Some(crawler) = self.world.process(&self.me) else { return };
        let owner = self.world.name_of(victim);
        let digest = crawler.view().digest_of(&owner);
        let total = Counts { servers: 1, pages: 1_000_000, ..Counts::default() };
        self.gossip_sums(owner, digest, total);
    }

    fn gossip_sums(&mut self, owner: AccessPoint, claims_digest: u64, total: Counts) {
        let roll_up = RollUp {
            owner,
            version: u64::MAX - 1_000_000 + self.round,
            claims_digest,
            subnets: 1,
            sure_of: 1_000_000,
            busy_permille: 0,
            price_permille: 1_000,
            summary: Summary { total, ..Summary::default() },
        };
        self.world.inject_gossip(self.me, &Gossip::RollUp(Box::new(roll_up)));
    }

    /// Sums of members that do not exist.
    fn flood(&mut self) {
        for number in 0..FLOOD {
            let owner = stranger(self.draw.of(2).of(number));
            self.gossip_sums(owner, 0, Counts::default());
        }
    }

    /// Says that an honest member has started anew, with the greatest number, at the address of something else. As with [`ghosts`], it is
    /// what the liar would send if it had heard so.
    fn elsewhere(&mut self) {
        let others: Vec<_> = self.world.running_processes().into_iter().filter(|(number, _)| *number != self.number).collect();
        let Some((victim, process)) = others.get(self.draw.of(4).below(others.len().max(1) as u64) as usize).copied() else { return };
        let Some((_, _, incarnation)) = self.world.signer(self.number) else { return };
        let (me, now) = (self.me, self.world.now());
        let mut sender = Swim::new(Member::new(me, incarnation, vec![format!("/sim/{}", self.number)]), SwimConfig::default(), 1);
        let claimed = Member::new(self.world.name_of(process), (1 << 40) + self.round, vec!["/ip4/10.0.0.1/tcp/22".to_owned()]);
        ask_to_be_let_in(&mut sender, claimed, now);
        sender.drain().for_each(drop);
        for (number, process) in others.into_iter().filter(|(number, _)| *number != victim) {
            let Some((_, _, incarnation)) = self.world.signer(number) else { continue };
            ask_to_be_let_in(&mut sender, Member::new(process, incarnation, vec![format!("/sim/{number}")]), now);
            for output in sender.drain().collect::<Vec<_>>() {
                if let Output::Send { to, bytes, .. } = output
                    && to == process
                {
                    self.world.inject(me, to, Request::Swim(bytes));
                }
            }
        }
    }

    /// Has addresses probed at which nobody named a server.
    fn probe(&mut self) {
        let address = address_in(self.draw.of(3).below(1 << 15) as u32, 249);
        let Ok(host) = format!("victim{}.test", self.round).parse() else { return };
        let target = ProbeTarget { address: SocketAddr::new(address, 80), host, secure: false };
        let subnet = Subnet::around(address, 24);
        for (number, process) in self.world.running_processes() {
            if number != self.number {
                self.world.inject(self.me, process, Request::FindOwner(subnet, target.clone()));
            }
        }
    }
}

/// A key that nobody has.
fn stranger(draw: KeyedRng) -> AccessPoint {
    let mut bytes = [0; 32];
    for (part, chunk) in (0..).zip(bytes.chunks_exact_mut(8)) {
        chunk.copy_from_slice(&draw.of(part).bits().to_be_bytes());
    }
    AccessPoint(SigningKey::from_bytes(&bytes).verifying_key().to_bytes())
}

/// What a member would send that wants to be let in, with whatever it says of itself.
fn ask_to_be_let_in(sender: &mut Swim, member: Member, now: Moment) {
    let (who, mut swim) = (member.access_point, Swim::new(member, SwimConfig::default(), 2));
    swim.join(now, sender.me().clone());
    for output in swim.drain().collect::<Vec<_>>() {
        if let Output::Send { bytes, .. } = output {
            // It is well-formed, for it was made here.
            let _ = sender.receive(now, who, &bytes);
        }
    }
}

/// One membership datagram of a member names others that never existed, as many of them as it has room for. It is what the member would
/// send if these had asked to be let in and the receiver asked who is there.
pub(super) fn ghosts(world: &mut Played, from: usize, count: u32) {
    let Some((me, _, incarnation)) = world.signer(from) else { return };
    let others = world.running_processes();
    let next = others.iter().find(|(number, _)| *number > from).or_else(|| others.iter().find(|(number, _)| *number != from));
    let Some((number, to)) = next.copied() else { return };
    let Some((_, _, their_incarnation)) = world.signer(number) else { return };
    let config = SwimConfig { max_members: 4_096 + count as usize, ..SwimConfig::default() };
    let known = |process: AccessPoint, number: usize, incarnation| Member::new(process, incarnation, vec![format!("/sim/{number}")]);
    let now = world.now();
    let mut sender = Swim::new(known(me, from, incarnation), config, 1);
    let draw = KeyedRng::new(now.0).of(from as u64);
    for ghost in 0..count {
        let address = Ipv4Addr::from(0x0a00_0001 + ghost);
        ask_to_be_let_in(&mut sender, Member::new(stranger(draw.of(ghost.into())), 1, vec![format!("/ip4/{address}/tcp/22")]), now);
    }
    // What it answered to the ghosts goes nowhere.
    sender.drain().for_each(drop);
    ask_to_be_let_in(&mut sender, known(to, number, their_incarnation), now);
    let told: Vec<_> = sender.drain().collect();
    for output in told {
        if let Output::Send { to: receiver, bytes, .. } = output
            && receiver == to
        {
            world.inject(me, to, Request::Swim(bytes));
        }
    }
}
