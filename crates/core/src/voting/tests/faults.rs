//! Faults of a world, drawn by seed, and what must be well again afterwards.

use super::{copies, process::Disk, random::Random, world::World};
use crate::membership::{LeftOut, RosterConfig};
use nearcrawl_model::{access_point::AccessPoint, time::Millis};

/// For how long the network is whole in the end.
const QUIET: Millis = 300_000;

/// By when all must be well after that.
const RECOVERED_WITHIN: Millis = 240_000;

/// Copies and members that come later, at most.
const MOST_MACHINES: usize = 20;

/// What came of one seed.
pub(super) struct Outcome {
    pub(super) wrong: Option<String>,
    pub(super) claims: u64,
    pub(super) lists: u64,
}

/// What ends when.
enum Later {
    Start(usize),
    Thaw(usize),
    Kill(usize),
    Heal,
    Calm,
    FastDisk(usize),
}

/// Plays a seed.
pub(super) fn play(seed: u64, without: Option<LeftOut>, trace: bool) -> Outcome {
    let mut draw = Random::new(seed ^ 0xfa17);
    let replace_voter_after = draw.of(&[60_000, 100_000, 150_000]);
    let config = RosterConfig { replace_voter_after, without, ..RosterConfig::default() };
    let subnets = draw.between(1, 4) as usize;
    let mut world = World::new(seed, config, subnets);
    world.trace = trace;
    let members = draw.of(&[1, 2, 3, 3, 3, 4, 5, 5, 6, 7, 8, 12]);
    for number in 0..members {
        world.add(None);
        world.start(number, number == 0);
    }
    world.network.delay = draw.of(&[5, 50, 300]);
    // With each third seed members move between a few networks. Drawn apart, so that all else is as without it.
    let mut moves = seed.is_multiple_of(3).then(|| Random::new(seed ^ 0x6e65));
    // With each fifth seed a member and a process with a copy of its key stand still together, for longer than a lease. Drawn apart, too.
    let mut copies = (seed % 5 == 2 && members > 1).then(|| Random::new(seed ^ 0x6b65));
    let mut later: Vec<(Millis, Later)> = Vec::new();
    let began = draw.between(20_000, 240_000);
    let ends = began + draw.between(60_000, 500_000);
    let rest = draw.of(&[2_000, 10_000, 40_000]);
    let mut next = began;
    while next < ends && world.seen.wrong.is_none() {
        later.sort_by_key(|(at, _)| *at);
        if later.first().is_some_and(|(at, _)| *at <= next) {
            let (at, what) = later.remove(0);
            world.run(at);
            end(&mut world, what);
            continue;
        }
        world.run(next);
        fault(&mut world, &mut draw, &mut later);
        if let Some(moves) = &mut moves
            && moves.chance(300)
        {
            let (who, network) = (moves.below(world.machines.len() as u64) as usize, moves.below(6) as u8);
            world.machines[who].address = std::net::IpAddr::from([192, 0, network, who as u8]);
        }
        if let Some(copies) = &mut copies
            && copies.chance(200)
        {
            let until = next + copies.between(40_000, 200_000);
            let ends = next + copies.between(100_000, 500_000);
            let stopped = copies::stand_still(&mut world, copies, until);
            later.extend(stopped.into_iter().map(|number| (until, Later::Thaw(number))));
            let copy = if world.machines.len() < MOST_MACHINES { copies::start(&mut world, copies) } else { None };
            later.extend(copy.map(|copy| (ends, Later::Kill(copy))));
        }
        next += 1 + draw.below(2 * rest);
    }
    world.run(ends);
    for (_, what) in later {
        end(&mut world, what);
    }
    recover(&mut world);
    Outcome { wrong: world.seen.wrong, claims: world.seen.claims, lists: world.seen.lists.len() as u64 }
}

fn end(world: &mut World, what: Later) {
    match what {
        Later::Start(number) => world.start(number, false),
        Later::Thaw(number) => world.thaw(number),
        // Those who come for a day become voters only while there are few: then all depends on them, which is said so.
        Later::Kill(number) if !world.machines[number].copy && !is_spared(world, number) => {}
        Later::Kill(number) => {
            world.stop(number);
            world.machines[number].gone = true;
        }
        Later::Heal => {
            world.log(|| "healed".to_owned());
            world.network.sides.clear();
            world.network.cuts.clear();
        }
        Later::Calm => (world.network.lost, world.network.twice, world.network.late) = (0, 0, 0),
        Later::FastDisk(number) => world.machines[number].disk_slow = false,
    }
}

/// Whether the last list still decides without this machine's votes.
pub(super) fn is_spared(world: &World, number: usize) -> bool {
    // Any of the lists that somebody may still go by, so that none is left without its voters.
    let lowest = world.machines.iter().filter_map(|machine| Some(machine.process.as_ref()?.voting.list()?.number)).min();
    let lowest = lowest.unwrap_or(0).saturating_sub(1);
    let accepted = world.machines.iter().filter_map(|machine| machine.process.as_ref()?.voting.ballots.state().accepted.as_ref());
    // A list that was chosen needs its voters, too.
    let accepted: Vec<_> = accepted.map(|(_, list)| list).collect();
    world.seen.lists.range(lowest..).map(|(_, list)| list).chain(accepted).all(|list| {
        let there = |who: &AccessPoint| {
            let mut machines = world.machines.iter().enumerate();
            machines.any(|(other, machine)| machine.who == *who && other != number && !machine.gone && !machine.spent && !machine.copy)
        };
        list.voters.iter().filter(|who| there(who)).count() >= list.quorum()
    })
}

fn fault(world: &mut World, draw: &mut Random, later: &mut Vec<(Millis, Later)>) {
    let now = world.now;
    let who = draw.below(world.machines.len() as u64) as usize;
    let runs = world.machines[who].process.is_some();
    let lasts = draw.of(&[1_000, 10_000, 40_000, 100_000, 300_000]);
    let lasts = 1 + draw.below(lasts);
    match draw.below(16) {
        0..=2 if runs => {
            world.stop(who);
            later.push((now + lasts, Later::Start(who)));
        }
        3 if runs && is_spared(world, who) => end(world, Later::Kill(who)),
        4 if runs && is_spared(world, who) => {
            world.log(|| format!("{who} is wiped"));
            world.stop(who);
            world.machines[who].disk = Disk::default();
            world.machines[who].spent = true;
            later.push((now + 1 + lasts / 4, Later::Start(who)));
        }
        5 | 6 if runs => {
            world.log(|| format!("{who} stands still for {lasts}"));
            world.machines[who].frozen = true;
            later.push((now + lasts, Later::Thaw(who)));
        }
        7 if world.machines.len() < MOST_MACHINES => {
            let new = world.add(None);
            world.start(new, false);
            if draw.chance(600) {
                later.push((now + 1 + lasts / 2, Later::Kill(new)));
            }
        }
        8 | 9 => {
            let sides = draw.between(2, 3);
            world.network.sides = (0..world.machines.len()).map(|number| (number, draw.below(sides))).collect();
            world.log(|| format!("parted for {lasts}: {:?}", world.network.sides));
            later.push((now + lasts, Later::Heal));
        }
        10 => {
            let other = draw.below(world.machines.len() as u64) as usize;
            world.network.cuts.insert((who, other));
            later.push((now + lasts, Later::Heal));
        }
        11 | 12 => {
            world.network.lost = draw.of(&[0, 50, 300]);
            world.network.twice = draw.of(&[0, 100, 300]);
            world.network.late = draw.of(&[0, 50, 200]);
            world.log(|| "messages are lost, doubled, late".to_owned());
            later.push((now + lasts, Later::Calm));
        }
        13 => {
            world.machines[who].disk_slow = true;
            later.push((now + lasts, Later::FastDisk(who)));
        }
        14 if runs && is_spared(world, who) => {
            world.log(|| format!("{who} leaves"));
            world.machines[who].spent = true;
            world.machines[who].process.as_mut().unwrap().leave();
        }
        // With a copy of the only voter there would be two swarms, and nobody who could notice.
        15 if world.machines.len() < MOST_MACHINES
            && !world.machines[who].gone
            && is_spared(world, who)
            && world.seen.lists.last_key_value().is_some_and(|(_, list)| list.voters.len() > 1) =>
        {
            let copy = copies::start_of(world, who);
            later.push((now + lasts, Later::Kill(copy)));
        }
        _ => {}
    }
}

/// All that is not gone for good runs, and reaches the others: after a while all must be well.
pub(super) fn recover(world: &mut World) {
    let began = world.now;
    world.log(|| "whole".to_owned());
    end(world, Later::Heal);
    end(world, Later::Calm);
    for number in 0..world.machines.len() {
        end(world, Later::FastDisk(number));
        if world.machines[number].frozen {
            world.thaw(number);
        }
        world.start(number, false);
    }
    world.run(began + QUIET);
    let well_by = world.now + RECOVERED_WITHIN;
    while world.seen.wrong.is_none() {
        match is_well(world) {
            None => return,
            Some(what) if world.now >= well_by => return world.is_wrong(what),
            Some(_) => world.run(world.now + 5_000),
        }
    }
}

/// What is not well.
fn is_well(world: &World) -> Option<String> {
    let running = world.machines.iter().enumerate().filter_map(|(number, machine)| Some((number, machine.process.as_ref()?)));
    let running: Vec<_> = running.filter(|(_, process)| !process.is_leaving()).collect();
    let number = |process: &super::process::Process| process.voting.list().map(|list| list.number);
    let (first, process) = running.first()?;
    for (other, there) in &running {
        if number(process) != number(there) {
            return Some(format!("{first} goes by list {:?}, {other} by list {:?}", number(process), number(there)));
        }
        if !there.holds_lease() {
            for (number, process) in &running {
                world.log(|| format!("{number}: {}", process.standing()));
            }
            return Some(format!("{other} has no lease: {}", there.voting.lease(there.cx.me).1));
        }
    }
    world.subnets.iter().find_map(|subnet| {
        let owners: Vec<_> =
            running.iter().filter(|(_, process)| process.fetches().is_some_and(|(_, mine)| mine.contains(subnet))).collect();
        (owners.len() != 1).then(|| {
            running.iter().for_each(|(number, process)| world.log(|| format!("{number} {subnet}: {}", process.opinion(subnet))));
            format!("{subnet} has {} owners, and should have one", owners.len())
        })
    })
}
