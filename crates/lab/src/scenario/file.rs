//! A scenario's file: what swarm there is, and what happens to it when. An unknown key, verb or value is an error with its line.

use super::{
    error::{Number, ScenarioError},
    keys::Keys,
};
use nearcrawl_model::time::Millis;
use std::collections::BTreeSet;

/// The most members at the start, and the most that join at once.
const MAX_MEMBERS: u32 = 1_000;

/// The most subnets, and the most hosts.
const MAX_SUBNETS: u32 = 50_000;
const MAX_HOSTS: u32 = 200_000;

/// The most claims that one step fills the ownership map with.
const MAX_CLAIMS: u32 = 2_000_000;

/// The longest scenario, in minutes: ten years.
const MAX_MINUTES: u32 = 10 * 366 * 24 * 60;

/// The most connections that a step can leave each member.
const MAX_CONNECTIONS: u32 = 10_000;

/// A swarm and what happens to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Members that are there from the start, numbered from 0.
    pub members: u32,
    /// Subnets in which servers live.
    pub subnets: u32,
    /// Hosts in these subnets.
    pub hosts: u32,
    /// Duration in minutes; twenty quiet ones follow.
    pub minutes: u32,
    /// How far members and servers are from each other.
    pub latency: Latency,
    /// The protocol, or what is left out of it.
    pub rule: Rule,
    /// What happens, in the order of time.
    pub steps: Vec<Step>,
}

/// How far members and servers are from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Latency {
    /// Members and servers have places on a line.
    Spread,
    /// All are 1 ms from each other.
    Equal,
    /// Measured distances, in a file of comma-separated values.
    Matrix(String),
}

/// The protocol, or what is left out of it to show that it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Everything.
    Default,
    /// Owners fetch without a lease.
    NoLease,
    /// A steward alone decides who owns a subnet.
    NoCouncil,
    /// Journals are kept by their owner only.
    NoReplicas,
    /// Members count without having said hello.
    NoHello,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When, since the start.
    pub at: Millis,
    /// Its line in the file.
    pub line: usize,
    /// What happens.
    pub action: Action,
}

/// What happens. Where a duration may be missing, it lasts until the end or until healed.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// New members with keys of their own; with `returns` each comes back so long after its end, with a new key and an empty disk.
    Join {
        /// How many.
        count: u32,
        /// How long each lives.
        lives: Option<Millis>,
        /// How long after its end each comes back.
        returns: Option<Millis>,
    },
    /// Names of members that never existed are told to one member in one datagram.
    Ghost {
        /// How many names.
        count: u32,
        /// The member that sends them; they go to the next one.
        from: Number,
    },
    /// Members are killed, and come back after a while.
    Kill(Vec<Number>, Option<Millis>),
    /// Members leave, and come back after a while.
    Leave(Vec<Number>, Option<Millis>),
    /// Members lose their disks, and come back after a while; at once if nothing is said.
    Wipe(Vec<Number>, Option<Millis>),
    /// An operator says that these members will not come back.
    DeclareLost(Vec<Number>),
    /// Processes stand still while their clocks go on.
    Freeze(Vec<Number>, Option<Millis>),
    /// A second process with the same key and a copy of the disk.
    Clone(Vec<Number>),
    /// No messages between these pairs; none from the first to the second only if `oneway`.
    Cut {
        /// Pairs of members.
        pairs: Vec<(Number, Number)>,
        /// Whether the second still reaches the first.
        oneway: bool,
        /// How long.
        lasts: Option<Millis>,
    },
    /// The network falls into these groups; members in none of them are a group of their own together.
    Partition(Vec<Vec<Number>>, Option<Millis>),
    /// Cuts, partitions and losses end.
    Heal,
    /// This share of all messages is lost, and as many are duplicated or come late.
    Loss(f64, Option<Millis>),
    /// No member keeps more connections.
    Limit(u32, Option<Millis>),
    /// Clocks of members jump, run at another rate, or stand still.
    Clock {
        /// Whose.
        who: Vec<Number>,
        /// What happens to them.
        change: ClockChange,
    },
    /// Something is wrong with members' disks.
    Disk {
        /// Whose.
        who: Vec<Number>,
        /// What is wrong.
        fault: DiskFault,
        /// How long.
        lasts: Option<Millis>,
    },
    /// The names of so many hosts lead to addresses in other subnets from now on.
    MoveHost(u32),
    /// So many subnets without servers were claimed by the members of this moment.
    Claims(u32),
    /// The starting points are named again to these members.
    Seed(Vec<Number>),
    /// Members lie, with valid keys and signatures.
    Lie {
        /// Who.
        who: Vec<Number>,
        /// About what.
        lie: Lie,
        /// How long.
        lasts: Option<Millis>,
    },
}

/// What happens to a member's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClockChange {
    /// The wall clock jumps, forwards or backwards.
    Jump(i64),
    /// A clock runs at this rate.
    Rate(f64, Clock),
    /// The boot clock stands still.
    Still(Option<Millis>),
}

/// Which clock of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The one that shows dates.
    Wall,
    /// The one that counts since the machine was started, and decides.
    Boot,
}

/// What is wrong with a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// Each write takes seconds.
    Slow,
    /// There is no room left.
    Full,
    /// Some stored values are changed; the store notices when it reads them.
    Damaged,
}

/// What a member lies about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// It claims subnets that nobody awarded to it.
    Claim,
    /// It claims with epochs far ahead.
    Epoch,
    /// It accepts two claims for one subnet and epoch.
    DoubleAccept,
    /// It hands hosts over at addresses that are not theirs.
    Address,
    /// It hands over hosts that do not exist.
    Hosts,
    /// It asks for runs that are not due.
    Runs,
    /// It writes into journals that it does not own.
    Journal,
    /// It tells sums that it never had.
    RollUp,
    /// It sends as much as it can.
    Flood,
    /// It names addresses of members that are not members'.
    Dial,
    /// It has others probe addresses.
    Probe,
}

impl Scenario {
    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its line.
    pub fn read(text: &str) -> Result<Scenario, ScenarioError> {
        let root = Keys::root(text)?;
        let mut keys = Keys::new(text, root.get_ref());
        let mut scenario = Scenario {
            members: keys.number("members", 1..=MAX_MEMBERS)?,
            subnets: keys.number("subnets", 1..=MAX_SUBNETS)?,
            hosts: keys.number("hosts", 1..=MAX_HOSTS)?,
            minutes: keys.number("minutes", 1..=MAX_MINUTES)?,
            latency: match keys.text("latency")? {
                None | Some("spread") => Latency::Spread,
                Some("equal") => Latency::Equal,
                Some(file) => Latency::Matrix(file.to_owned()),
            },
            rule: keys.choice("rule", &RULES)?.unwrap_or(Rule::Default),
            steps: Vec::new(),
        };
        for table in keys.tables("at")? {
            scenario.steps.push(step(text, table)?);
        }
        keys.finish()?;
        scenario.steps.sort_by_key(|step| step.at);
        scenario.check()?;
        Ok(scenario)
    }

    /// Every member that is named exists by then, and nothing happens after the end.
    fn check(&self) -> Result<(), ScenarioError> {
        let mut members = self.members;
        for step in &self.steps {
            let refuse = |message: String| Err(ScenarioError { line: step.line, message });
            if step.at > Millis::from(self.minutes) * 60_000 {
                return refuse(format!("this is after the end: the scenario lasts {} minutes", self.minutes));
            }
            if let Action::Join { count, .. } = step.action {
                members += count;
            }
            if let Some(unknown) = step.action.named().into_iter().find(|number| *number >= members) {
                return refuse(format!("there is no member {unknown} by then: they are numbered 0 to {}", members - 1));
            }
            if let Action::Partition(groups, _) = &step.action {
                let all: Vec<_> = groups.iter().flatten().collect();
                if all.iter().collect::<BTreeSet<_>>().len() < all.len() {
                    return refuse("a member can be in one group only".to_owned());
                }
            }
            if let Action::MoveHost(count) = step.action
                && count > self.hosts
            {
                return refuse(format!("there are only {} hosts", self.hosts));
            }
        }
        Ok(())
    }
}

impl Action {
    /// What it is called in the file.
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Action::Join { .. } => "join",
            Action::Ghost { .. } => "ghost",
            Action::Kill(..) => "kill",
            Action::Leave(..) => "leave",
            Action::Wipe(..) => "wipe",
            Action::DeclareLost(_) => "declare-lost",
            Action::Freeze(..) => "freeze",
            Action::Clone(_) => "clone",
            Action::Cut { oneway: false, .. } => "cut",
            Action::Cut { oneway: true, .. } => "oneway",
            Action::Partition(..) => "partition",
            Action::Heal => "heal",
            Action::Loss(..) => "loss",
            Action::Limit(..) => "limit",
            Action::Clock { .. } => "clock",
            Action::Disk { .. } => "disk",
            Action::MoveHost(_) => "move-host",
            Action::Claims(_) => "claims",
            Action::Seed(_) => "seed",
            Action::Lie { .. } => "lie",
        }
    }

    /// The members that are named.
    fn named(&self) -> Vec<Number> {
        match self {
            Action::Ghost { from, .. } => vec![*from],
            Action::Kill(who, _)
            | Action::Leave(who, _)
            | Action::Wipe(who, _)
            | Action::DeclareLost(who)
            | Action::Freeze(who, _)
            | Action::Clone(who)
            | Action::Seed(who)
            | Action::Clock { who, .. }
            | Action::Disk { who, .. }
            | Action::Lie { who, .. } => who.clone(),
            Action::Cut { pairs, .. } => pairs.iter().flat_map(|(one, other)| [*one, *other]).collect(),
            Action::Partition(groups, _) => groups.concat(),
            Action::Join { .. } | Action::Heal | Action::Loss(..) | Action::Limit(..) | Action::MoveHost(_) | Action::Claims(_) => {
                Vec::new()
            }
        }
    }
}

const RULES: [(&str, Rule); 5] = [
    ("default", Rule::Default),
    ("no-lease", Rule::NoLease),
    ("no-council", Rule::NoCouncil),
    ("no-replicas", Rule::NoReplicas),
    ("no-hello", Rule::NoHello),
];

const LIES: [(&str, Lie); 11] = [
    ("claim", Lie::Claim),
    ("epoch", Lie::Epoch),
    ("double-accept", Lie::DoubleAccept),
    ("address", Lie::Address),
    ("hosts", Lie::Hosts),
    ("runs", Lie::Runs),
    ("journal", Lie::Journal),
    ("roll-up", Lie::RollUp),
    ("flood", Lie::Flood),
    ("dial", Lie::Dial),
    ("probe", Lie::Probe),
];

const FAULTS: [(&str, DiskFault); 3] = [("slow", DiskFault::Slow), ("full", DiskFault::Full), ("damaged", DiskFault::Damaged)];

/// The verbs of `do`, for messages.
const VERBS: &str = "join, ghost, kill, leave, wipe, declare-lost, freeze, clone, cut, oneway, partition, heal, loss, limit, clock, disk, \
move-host, claims, seed, lie";

/// Reads one `[[at]]`.
fn step(text: &str, table: &toml::Spanned<toml::de::DeValue<'_>>) -> Result<Step, ScenarioError> {
    let mut keys = Keys::of(text, table)?;
    let line = keys.line();
    let at = keys.duration("t")?.ok_or_else(|| keys.wrong("t", "say when, like t = \"10m\""))?;
    let verb = keys.text("do")?.ok_or_else(|| keys.wrong("do", &format!("say what happens: {VERBS}")))?;
    let action = match verb {
        "join" => {
            Action::Join { count: keys.number("who", 1..=MAX_MEMBERS)?, lives: keys.duration("lives")?, returns: keys.duration("returns")? }
        }
        "ghost" => Action::Ghost { count: keys.number("who", 1..=MAX_MEMBERS)?, from: keys.number("from", 0..=u32::MAX)? },
        "kill" => Action::Kill(keys.members("who")?, keys.duration("for")?),
        "leave" => Action::Leave(keys.members("who")?, keys.duration("for")?),
        "wipe" => Action::Wipe(keys.members("who")?, keys.duration("for")?),
        "declare-lost" => Action::DeclareLost(keys.members("who")?),
        "freeze" => Action::Freeze(keys.members("who")?, keys.duration("for")?),
        "clone" => Action::Clone(keys.members("who")?),
        "cut" | "oneway" => Action::Cut { pairs: keys.pairs("who")?, oneway: verb == "oneway", lasts: keys.duration("for")? },
        "partition" => Action::Partition(keys.groups("who")?, keys.duration("for")?),
        "heal" => Action::Heal,
        "loss" => Action::Loss(keys.share("who")?, keys.duration("for")?),
        "limit" => Action::Limit(keys.number("who", 0..=MAX_CONNECTIONS)?, keys.duration("for")?),
        "clock" => Action::Clock { who: keys.members("who")?, change: clock_change(&mut keys)? },
        "disk" => {
            let who = keys.members("who")?;
            let fault = keys.choice("what", &FAULTS)?.ok_or_else(|| keys.wrong("what", "say what is wrong: slow, full or damaged"))?;
            Action::Disk { who, fault, lasts: keys.duration("for")? }
        }
        "move-host" => Action::MoveHost(keys.number("who", 1..=MAX_HOSTS)?),
        "claims" => Action::Claims(keys.number("who", 1..=MAX_CLAIMS)?),
        "seed" => Action::Seed(keys.members("who")?),
        "lie" => {
            let who = keys.members("who")?;
            let lie = keys.choice("lie", &LIES)?.ok_or_else(|| keys.wrong("lie", "say about what"))?;
            Action::Lie { who, lie, lasts: keys.duration("for")? }
        }
        _ => return Err(keys.wrong("do", &format!("nothing is called {verb:?}; there are {VERBS}"))),
    };
    keys.finish()?;
    Ok(Step { at, line, action })
}

/// Reads what happens to a clock: `jump`, `rate`, or the boot clock that stands still.
fn clock_change(keys: &mut Keys<'_>) -> Result<ClockChange, ScenarioError> {
    let clock = keys.choice("clock", &[("wall", Clock::Wall), ("boot", Clock::Boot)])?.unwrap_or(Clock::Wall);
    let (jump, rate, lasts) = (keys.signed_duration("jump")?, keys.rate("rate")?, keys.duration("for")?);
    match (jump, rate, clock) {
        (Some(jump), None, Clock::Wall) if lasts.is_none() => Ok(ClockChange::Jump(jump)),
        (None, Some(rate), clock) if lasts.is_none() => Ok(ClockChange::Rate(rate, clock)),
        (None, None, Clock::Boot) => Ok(ClockChange::Still(lasts)),
        _ => Err(keys.wrong("clock", "say one of: jump = \"400d\" (wall clock), rate = 1.01, or clock = \"boot\" with for = \"10s\"")),
    }
}
