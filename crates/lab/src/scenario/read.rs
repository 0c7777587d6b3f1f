//! Reads a scenario's file.
//!
//! An unknown key, verb or value is an error with its line.

use super::{
    error::ScenarioError,
    file::{Action, Clock, ClockChange, DiskFault, Latency, Lie, Rule, Scenario, Step},
    keys::Keys,
};
use nearcrawl_model::time::Millis;
use std::collections::BTreeSet;

/// The most members at the start, and the most that join at once.
const MAX_MEMBERS: u32 = 1_000;

/// The most members that ever join, all steps together.
const MAX_MEMBERS_EVER: u32 = 10_000;

/// How often the members of one step return under new keys, all together.
const MAX_RETURNS: u64 = 100_000;

/// The shortest time for which who joins stays, in milliseconds.
const MIN_LIFE: Millis = 1_000;

/// The most subnets, and the most hosts.
const MAX_SUBNETS: u32 = 50_000;
const MAX_HOSTS: u32 = 200_000;

/// The most claims that all steps together fill the ownership map with.
const MAX_CLAIMS: u32 = 2_000_000;

/// The longest scenario, in minutes: ten years.
const MAX_MINUTES: u32 = 10 * 366 * 24 * 60;

/// The most connections that a step can leave each member.
const MAX_CONNECTIONS: u32 = 10_000;

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
                Some(file) => Latency::Matrix { file: file.to_owned(), line: keys.line_of("latency") },
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
        let end = Millis::from(self.minutes) * 60_000;
        let (mut members, mut claims) = (self.members, 0_u32);
        for step in &self.steps {
            let refuse = |message: String| Err(ScenarioError { line: step.line, message });
            if step.at > end {
                return refuse(format!("this is after the end: the scenario lasts {} minutes", self.minutes));
            }
            if let Action::Join { count, lives, returns } = step.action {
                members += count;
                if let (Some(lives), Some(returns)) = (lives, returns)
                    && (end - step.at) / (lives + returns) * Millis::from(count) > MAX_RETURNS
                {
                    return refuse(format!(
                        "members can return {MAX_RETURNS} times in all: fewer members, or longer `lives` and `returns`"
                    ));
                }
                if members > MAX_MEMBERS_EVER {
                    return refuse(format!("at most {MAX_MEMBERS_EVER} members can ever join"));
                }
            }
            if let Action::Claims(count) = step.action {
                claims = claims.saturating_add(count);
                if claims > MAX_CLAIMS {
                    return refuse(format!("all steps together fill the map with at most {MAX_CLAIMS} claims"));
                }
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

const RULES: [(&str, Rule); 5] = [
    ("default", Rule::Default),
    ("no-lease", Rule::NoLease),
    ("no-council", Rule::NoCouncil),
    ("no-replicas", Rule::NoReplicas),
    ("no-hello", Rule::NoHello),
];

const LIES: [(&str, Lie); 15] = [
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
    ("forward", Lie::Forward),
    ("hand-over", Lie::HandOver),
    ("silence", Lie::Silence),
    ("deny", Lie::Deny),
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
        "join" => join(&mut keys)?,
        "ghost" => Action::Ghost { count: keys.number("who", 1..=MAX_MEMBERS)?, from: keys.member("from")?.unwrap_or(0) },
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
        "clock" => Action::Clock { who: keys.members("who")?, change: clock_change(&mut keys)?, lasts: keys.duration("for")? },
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
            let lie = keys
                .choice("lie", &LIES)?
                .ok_or_else(|| keys.wrong("lie", &format!("say about what: {}", LIES.map(|(name, _)| name).join(", "))))?;
            Action::Lie { who, lie, lasts: keys.duration("for")? }
        }
        _ => return Err(keys.wrong("do", &format!("nothing is called {verb:?}; there are {VERBS}"))),
    };
    keys.finish()?;
    Ok(Step { at, line, action })
}

/// Reads who joins, for how long, and after how long they come again.
fn join(keys: &mut Keys<'_>) -> Result<Action, ScenarioError> {
    let count = keys.number("who", 1..=MAX_MEMBERS)?;
    let (lives, returns) = (keys.duration("lives")?, keys.duration("returns")?);
    if lives.is_none() && returns.is_some() {
        return Err(keys.wrong("returns", "who never goes does not return: say with lives = \"10m\" when they go"));
    }
    if lives.is_some_and(|lives| lives < MIN_LIFE) {
        return Err(keys.wrong("lives", "write at least \"1s\""));
    }
    Ok(Action::Join { count, lives, returns })
}

/// Reads what happens to a clock: `jump` and `rate` of the one that `clock` names, or nothing but `clock = "boot"`: then it stands still.
fn clock_change(keys: &mut Keys<'_>) -> Result<ClockChange, ScenarioError> {
    let named = keys.choice("clock", &[("wall", Clock::Wall), ("boot", Clock::Boot)])?;
    let clock = named.unwrap_or(Clock::Wall);
    match (keys.signed_duration("jump")?, keys.rate("rate")?) {
        (None, None) if clock == Clock::Wall => {
            Err(keys.wrong("clock", "say one of: jump = \"400d\", rate = 1.01, or clock = \"boot\" with for = \"10s\""))
        }
        (None, None) => Ok(ClockChange { clock, jump: None, rate: Some(0.0) }),
        (Some(_), _) if clock == Clock::Boot => Err(keys.wrong("jump", "the boot clock never jumps; it stands still, or has a rate")),
        (jump, rate) => Ok(ClockChange { clock, jump, rate }),
    }
}
