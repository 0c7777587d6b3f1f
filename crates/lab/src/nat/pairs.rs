//! Measures which pairs of daemons meet directly: all kinds of routers in one network, two daemons behind each kind.

use super::{Around, Kind, NatError, NatWorld, Place};
use crate::demo::daemons::Common;
use nearcrawl_model::message::MAX_CIRCUIT_BYTES;
use serde::Serialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fmt::Write,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::{Duration, Instant},
};

/// Members with addresses of their own, through which others are reached.
const HUBS: usize = 2;

/// Daemons behind each kind of router.
const OF_A_KIND: usize = 2;

/// How long it may take until a daemon is a full member, and then until all are connected, and until they have come closer.
const MEMBER_WITHIN: Duration = Duration::from_secs(90);
const CONNECTED_WITHIN: Duration = Duration::from_secs(120);
const SETTLED_WITHIN: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What one daemon fetches from another in the end: as much as a connection through a third member may carry until it is closed.
const HANDED_BYTES: u64 = MAX_CIRCUIT_BYTES;

/// There is nothing to look up.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 65, 255, 53)), 53);

/// What is measured.
#[derive(Clone, Debug)]
pub struct NatPlan {
    /// These kinds.
    pub kinds: Vec<Kind>,
    /// In so many networks, one after another.
    pub rounds: u32,
}

/// What came of one pair of kinds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Behind what one is.
    pub a: &'static str,
    /// And the other.
    pub b: &'static str,
    /// Pairs of daemons.
    pub tries: u32,
    /// Nine of ten of these daemons were full members so many seconds after their start.
    pub member_s_p90: f64,
    /// Pairs that were connected directly in the end.
    pub direct: u32,
    /// Pairs that were connected through a third member.
    pub relayed: u32,
    /// Bytes that one daemon then fetched from the other, the least of all rounds: through the third member if the two were not connected
    /// directly.
    pub handed_bytes: u64,
}

/// All pairs.
#[derive(Clone, Debug, Default)]
pub struct NatTable {
    /// In the order of the kinds.
    pub pairs: Vec<Pair>,
    /// Why bytes did not come, as sentences.
    pub failures: Vec<String>,
}

#[derive(Default)]
struct Tally {
    tries: u32,
    direct: u32,
    relayed: u32,
    handed_bytes: Option<u64>,
}

/// A directory that is removed at the end, unless it is needed to find out what went wrong.
struct Workplace {
    path: PathBuf,
    keep: bool,
}

impl Drop for Workplace {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Measures with the daemons of this program.
///
/// # Errors
/// There is no virtual network here, or daemons do not become members.
pub async fn measure(plan: &NatPlan, program: PathBuf) -> Result<NatTable, NatError> {
    let path = std::env::temp_dir().join(format!("nearcrawl-nat-{}", std::process::id()));
    let mut workplace = Workplace { path, keep: true };
    let mut failures = Vec::new();
    let (mut times, mut tallies) = (BTreeMap::<Kind, Vec<f64>>::new(), BTreeMap::<(Kind, Kind), Tally>::new());
    for round in 0..plan.rounds {
        let directory = workplace.path.join(format!("round-{round}"));
        std::fs::create_dir_all(&directory).map_err(|source| NatError::Directory { path: directory.clone(), source })?;
        let common = Common { directory, registries: Vec::new(), name_server: NOBODY, range: String::new(), program: program.clone() };
        failures.extend(one_round(&plan.kinds, common, &mut times, &mut tallies).await?);
    }
    workplace.keep = false;
    let mut pairs = Vec::new();
    for (number, a) in plan.kinds.iter().enumerate() {
        for b in &plan.kinds[number..] {
            let tally = tallies.remove(&(*a, *b)).unwrap_or_default();
            let both = times.iter().filter(|(kind, _)| *kind == a || *kind == b).flat_map(|(_, times)| times.iter().copied());
            let (member_s_p90, Tally { tries, direct, relayed, handed_bytes }) = (p90(both.collect()), tally);
            let handed_bytes = handed_bytes.unwrap_or(0);
            pairs.push(Pair { a: a.name(), b: b.name(), tries, member_s_p90, direct, relayed, handed_bytes });
        }
    }
    Ok(NatTable { pairs, failures })
}

fn p90(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = (times.len() * 9).div_ceil(10).saturating_sub(1);
    times.get(at).map_or(0.0, |time| (time * 10.0).round() / 10.0)
}

async fn one_round(
    kinds: &[Kind],
    common: Common,
    times: &mut BTreeMap<Kind, Vec<f64>>,
    tallies: &mut BTreeMap<(Kind, Kind), Tally>,
) -> Result<Vec<String>, NatError> {
    let hubs = (0..HUBS).map(|number| Place { name: format!("hub{number}"), kind: Kind::Open });
    let behind = kinds.iter().flat_map(|kind| (0..OF_A_KIND).map(|number| Place { name: format!("{}{number}", kind.name()), kind: *kind }));
    let places: Vec<Place> = hubs.chain(behind).collect();
    let mut world = NatWorld::start(common, &places, Around::default())?;
    for (number, place) in places.iter().enumerate() {
        world.join(place).await?;
        // The first one is alone until the second comes, so nobody can say whether it is reached.
        if number > 0 {
            let time = world.until(&place.name, MEMBER_WITHIN, NatWorld::is_full(place.kind, number + 1)).await?;
            if number >= HUBS {
                times.entry(place.kind).or_default().push(time.as_secs_f64());
            }
        }
    }
    let all = places.len() - 1;
    for place in &places {
        world.until(&place.name, CONNECTED_WITHIN, |status| status["reachability"]["members_connected"] == all).await?;
    }
    settle(&world, &places).await;
    count(&world, &places, tallies)?;
    let failures = hand_over(&world, &places, tallies)?;
    world.stop().await;
    Ok(failures)
}

/// Which pairs are connected directly, and which through a third member.
fn count(world: &NatWorld, places: &[Place], tallies: &mut BTreeMap<(Kind, Kind), Tally>) -> Result<(), NatError> {
    for (number, a) in places.iter().enumerate().skip(HUBS) {
        let relayed = relayed(world, a)?;
        for b in &places[number + 1..] {
            let tally = tallies.entry((a.kind, b.kind)).or_default();
            tally.tries += 1;
            let through_another = world.daemons.get(&b.name).is_some_and(|at| relayed.contains(&at.daemon.access_point));
            *(if through_another { &mut tally.relayed } else { &mut tally.direct }) += 1;
        }
    }
    Ok(())
}

/// One daemon of each kind fetches [`HANDED_BYTES`] from one of each kind, through a third member if there is such a pair. Says why bytes did not come.
fn hand_over(world: &NatWorld, places: &[Place], tallies: &mut BTreeMap<(Kind, Kind), Tally>) -> Result<Vec<String>, NatError> {
    let mut chosen = BTreeMap::<(Kind, Kind), (&Place, String, bool)>::new();
    for (number, a) in places.iter().enumerate().skip(HUBS) {
        let relayed = relayed(world, a)?;
        for b in &places[number + 1..] {
            let Some(of) = world.daemons.get(&b.name).map(|at| at.daemon.access_point.clone()) else { continue };
            let is_relayed = relayed.contains(&of);
            let known = chosen.entry((a.kind, b.kind)).or_insert_with(|| (a, of.clone(), is_relayed));
            if is_relayed && !known.2 {
                *known = (a, of, is_relayed);
            }
        }
    }
    let mut failures = Vec::new();
    for (kinds, (a, of, _)) in chosen {
        let measured = world.ask(&a.name, &["measure", &of, "--bytes", &format!("{HANDED_BYTES}B")]).unwrap_or_else(|why| {
            failures.push(why.to_string());
            Value::Null
        });
        let came = |way: &str| measured[way].as_u64().unwrap_or(0);
        let came = came("relayed_bytes") + came("direct_bytes");
        let handed = &mut tallies.entry(kinds).or_default().handed_bytes;
        *handed = Some(handed.map_or(came, |least| least.min(came)));
    }
    Ok(failures)
}

/// The members to which this daemon has no direct connection.
fn relayed(world: &NatWorld, place: &Place) -> Result<Vec<String>, NatError> {
    let status = world.ask(&place.name, &["status"])?;
    let relayed = status["reachability"]["members_relayed"].as_array().cloned().unwrap_or_default();
    Ok(relayed.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Waits until those are connected directly that can be, for a while.
async fn settle(world: &NatWorld, places: &[Place]) {
    let began = Instant::now();
    while began.elapsed() < SETTLED_WITHIN {
        let waiting = places.iter().any(|a| {
            let relayed = relayed(world, a).unwrap_or_default();
            let may_meet = |b: &&Place| b.kind.meets(a.kind) && b.name != a.name;
            places.iter().filter(may_meet).filter_map(|b| world.daemons.get(&b.name)).any(|b| relayed.contains(&b.daemon.access_point))
        });
        if !waiting {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl NatTable {
    /// Whether all is as it must be: full members within 30 s, 95 of 100 pairs that can meet do, and 64 MiB came from each kind to each.
    pub fn holds(&self) -> bool {
        let kind = |name: &str| Kind::ALL.into_iter().find(|kind| kind.name() == name);
        let meets = |pair: &Pair| kind(pair.a).zip(kind(pair.b)).is_some_and(|(a, b)| a.meets(b));
        self.pairs.iter().all(|pair| {
            let direct = !meets(pair) || pair.direct * 100 >= pair.tries * 95;
            let handed = pair.tries == 0 || pair.handed_bytes >= HANDED_BYTES;
            pair.member_s_p90 <= 30.0 && direct && pair.direct + pair.relayed == pair.tries && handed
        })
    }

    /// As JSON: a list of pairs.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(&self.pairs).unwrap_or_default() + "\n"
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text =
            format!("{:<16}{:<16}{:>6}{:>12}{:>8}{:>9}{:>13}\n", "a", "b", "tries", "member p90", "direct", "relayed", "handed over");
        for Pair { a, b, tries, member_s_p90, direct, relayed, handed_bytes } in &self.pairs {
            let handed = handed_bytes >> 20;
            let _ = writeln!(text, "{a:<16}{b:<16}{tries:>6}{member_s_p90:>10.1} s{direct:>8}{relayed:>9}{handed:>9} MiB");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(a: Kind, b: Kind, direct: u32, relayed: u32, member_s_p90: f64) -> Pair {
        Pair { a: a.name(), b: b.name(), tries: 4, member_s_p90, direct, relayed, handed_bytes: HANDED_BYTES }
    }

    #[test]
    fn pairs_that_can_meet_must_and_others_need_not() {
        let holds = |pair| NatTable { pairs: vec![pair], ..NatTable::default() }.holds();
        assert!(holds(pair(Kind::PortRestricted, Kind::PortRestricted, 4, 0, 9.0)));
        assert!(!holds(pair(Kind::PortRestricted, Kind::PortRestricted, 3, 1, 9.0)));
        assert!(holds(pair(Kind::Symmetric, Kind::NoUdp, 0, 4, 9.0)) && !holds(pair(Kind::Symmetric, Kind::NoUdp, 0, 4, 31.0)));
        assert!(!holds(pair(Kind::Symmetric, Kind::NoUdp, 0, 3, 9.0)), "one pair is not connected at all");
        let handed = |bytes| Pair { handed_bytes: bytes, ..pair(Kind::Symmetric, Kind::Symmetric, 0, 4, 9.0) };
        assert!(holds(handed(HANDED_BYTES)) && !holds(handed(HANDED_BYTES - 1)), "not all of it came");
        assert_eq!(p90((1..=10).map(f64::from).collect()), 9.0);
    }
}
