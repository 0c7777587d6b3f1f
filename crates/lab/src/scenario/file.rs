//! Contents of a scenario's file: what swarm there is, and what happens to it when.
//!
//! Reading it: `read.rs`.

use super::error::Number;
use nearcrawl_model::time::Millis;

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
    Matrix {
        /// Its name, relative to the scenario's file or to the working directory.
        file: String,
        /// The line that names it.
        line: usize,
    },
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
        /// How long; then a jump is taken back, and the rate is 1 again.
        lasts: Option<Millis>,
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
pub struct ClockChange {
    /// Which clock.
    pub clock: Clock,
    /// By how many milliseconds the wall clock jumps, forwards or backwards.
    pub jump: Option<i64>,
    /// How quick the clock is from now on: 0 if it stands still, 1 if it is right.
    pub rate: Option<f64>,
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
    /// It passes on nothing of what others ask each other through it.
    Forward,
    /// As a voter it says to voters of the next list that nothing was decided before, and brings each list that it is brought to all of its
    /// voters, so.
    HandOver,
    /// It does not answer those who ask for the journals that it keeps.
    Silence,
    /// It says that it keeps no journals.
    Deny,
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

    /// Whether it is about connections and messages, and not about members that must be there.
    pub(super) fn is_about_the_network(&self) -> bool {
        matches!(self, Action::Cut { .. } | Action::Partition(..) | Action::Heal | Action::Loss(..) | Action::Limit(..))
    }

    /// The members that are named.
    pub(super) fn named(&self) -> Vec<Number> {
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
