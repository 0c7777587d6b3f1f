//! Decides which owner is asked for what, so that the rows of each server come once, although subnets change hands meanwhile.
//!
//! First each owner is asked for everything, then each for the names of its hosts: one of which nothing is there yet has come to it
//! meanwhile, and is asked for. What owners say is not trusted: they have to go on in order, from one place to a later one, and come to an
//! end. While subnets change hands all owners may answer and some servers be nobody's: then the last consistent totals say how many rows there
//! have to be.

use super::{
    error::{CommandError, Exit},
    owners::{Asked, Place, Source},
};
use nearcrawl_model::{
    access_point::AccessPoint,
    exported::{ExportOf, ExportPlace, ExportedRows, JournalPlace, MissingRow},
    server_rows::{RowsOf, ServerOwner},
    url::Host,
    view::counted,
};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashSet, hash_map::RandomState},
    hash::BuildHasher,
};

/// A row: one JSON object.
pub type Row = Map<String, Value>;

/// How often is looked for what has changed hands.
const LATER_ROUNDS: usize = 3;

/// Rows of one owner that are no rows, before nothing more is taken from it.
const MAX_GARBAGE: u64 = 1_000;

/// Answers without a row, one after the other, before nothing more is taken from an owner.
const MAX_EMPTY: u32 = 10_000;

/// An owner may have so many times as many hosts as it announced, and so many more.
const MORE_HOSTS: u64 = 4;
const MORE_HOSTS_BY: u64 = 10_000;

/// Where rows go.
pub trait Sink {
    /// Takes in a row of a host. False if it is no row.
    fn row(&mut self, owner: AccessPoint, row: Row) -> Result<bool, CommandError>;
    /// The rows of the host are whole.
    fn host_ends(&mut self) -> Result<(), CommandError>;
    /// They are not: takes them back; false if they are written.
    fn host_fails(&mut self) -> Result<bool, CommandError>;
}

/// Hosts of which all rows are there.
#[derive(Default)]
pub struct Hosts {
    hashes: HashSet<u64>,
    hasher: RandomState,
}

impl Hosts {
    pub fn insert(&mut self, host: &Host) {
        self.hashes.insert(self.hasher.hash_one(host.as_str()));
    }

    /// How many there are.
    fn len(&self) -> u64 {
        self.hashes.len() as u64
    }

    pub fn contains(&self, host: &Host) -> bool {
        self.hashes.contains(&self.hasher.hash_one(host.as_str()))
    }
}

/// All that is missing.
#[derive(Default)]
pub struct Missing {
    /// Which owners did not tell all, and why.
    owners: BTreeMap<AccessPoint, String>,
    /// Which servers have rows that are not whole or not there.
    hosts: BTreeMap<Host, String>,
    /// Rows that are none.
    unreadable: u64,
    /// Servers that an owner has, and has no such rows of.
    rowless: Hosts,
    /// Of how many servers rows did not come, of how many; and why, if no owner is to blame.
    short: Option<(u64, u64, Option<String>)>,
}

impl Missing {
    /// As parts of a sentence; of many servers only the first are named.
    pub fn words(&self) -> Vec<String> {
        const NAMED: usize = 5;
        let mut words: Vec<String> = self.short.iter().map(|short| self.count(short)).collect();
        words.extend(self.owners.iter().map(|(owner, why)| format!("{}: {why}", owner.short())));
        words.extend(self.hosts.iter().take(NAMED).map(|(host, why)| format!("{host}: {why}")));
        if self.hosts.len() > NAMED {
            words.push(format!("and of {} servers more", self.hosts.len() - NAMED));
        }
        if self.unreadable > 0 {
            words.push(format!("{} cannot be read", counted(self.unreadable, "row")));
        }
        words
    }

    /// Of how many servers, and of how many owners.
    fn count(&self, (missing, of, why): &(u64, u64, Option<String>)) -> String {
        let owners = (!self.owners.is_empty()).then(|| format!(", of {}", counted(self.owners.len() as u64, "owner")));
        let why = why.as_ref().map(|why| format!(", while owners change: {why}"));
        let of_servers = format!("rows of {missing} of the swarm's {}", counted(*of, "server"));
        [Some(of_servers), owners, why].into_iter().flatten().collect()
    }

    /// Rows of so many servers are there. The owners announced so many, which counts if one of them does not tell its own; and while owners
    /// change the last consistent totals have so many.
    fn compare(&mut self, there: u64, announced: u64, in_transition: Option<(u64, String)>) {
        let announced = if self.owners.is_empty() { 0 } else { announced };
        let expected = in_transition.as_ref().map_or(0, |(servers, _)| *servers).max(announced);
        let missing = expected.saturating_sub(there);
        self.short = (missing > 0).then(|| (missing, expected, in_transition.map(|(_, why)| why)));
    }
}

/// An export under way.
pub struct Walk<'a, S> {
    pub source: &'a mut Source,
    pub what: Asked,
    pub sink: &'a mut S,
    /// What is there.
    pub seen: Hosts,
    pub missing: Missing,
}

/// What is taken from an owner at a time.
struct Course<'h> {
    owner: AccessPoint,
    /// Only this host is wanted.
    only: Option<&'h Host>,
    /// The host whose rows come, and whether they are left out because they are there.
    host: Option<(Host, bool)>,
    hosts: u64,
    most_hosts: u64,
    garbage: u64,
    empty: u32,
}

/// What has to be done next.
enum Step {
    On(Option<ExportPlace>),
    End,
    Wrong(&'static str),
}

impl<S: Sink> Walk<'_, S> {
    /// Asks everybody, behind this place.
    pub async fn walk(&mut self, mut owners: Vec<ServerOwner>, place: Place) -> Result<(), CommandError> {
        owners.sort_by_key(|owner| owner.access_point);
        let before = self.source.in_transition().await;
        for owner in &owners {
            let from = match &place {
                Some((last, _)) if owner.access_point < *last => continue,
                Some((last, host)) if owner.access_point == *last => Some(ExportPlace { host: host.clone(), within: None }),
                _ => None,
            };
            self.owner(owner, from, None).await?;
        }
        let announced: u64 = owners.iter().map(|owner| owner.servers).fold(0, u64::saturating_add);
        for _ in 0..LATER_ROUNDS {
            let owners = self.source.owners().await.unwrap_or_else(|_| owners.clone());
            let mut found = false;
            for owner in &owners {
                found |= self.came_later(owner).await?;
            }
            // Of who owns nothing any more others have everything, and all that they own by now was asked for; unless nobody has it yet.
            let all_came = self.seen.len() + self.missing.rowless.len() >= announced;
            self.missing.owners.retain(|who, _| !all_came || owners.iter().any(|owner| owner.access_point == *who));
            if !found {
                break;
            }
        }
        // A server may have been nobody's when the one was asked, and is the other's when that had answered.
        let in_transition = self.source.in_transition().await.into_iter().chain(before).max_by_key(|(servers, _)| *servers);
        self.missing.compare(self.seen.len() + self.missing.rowless.len(), announced, in_transition);
        Ok(())
    }

    /// Takes from an owner the hosts that are not there yet; whether there were any. Only if its list of hosts came to its end, and the rows of
    /// each came, nothing of it is missing any more.
    async fn came_later(&mut self, owner: &ServerOwner) -> Result<bool, CommandError> {
        let (mut from, mut before, mut found, mut hosts) = (None::<ExportPlace>, None::<Host>, false, 0);
        let most_hosts = most_hosts(owner);
        loop {
            let piece = match self.source.piece(Asked::Export(ExportOf::Hosts), owner.access_point, from.as_ref()).await {
                Ok(piece) => piece,
                Err(why) => {
                    // Who could not be asked before is named; what another one has of it meanwhile is there.
                    let why = || format!("whether all is there is not known: {why}");
                    self.missing.owners.entry(owner.access_point).or_insert_with(why);
                    return Ok(found);
                }
            };
            hosts += piece.rows.len() as u64;
            for host in piece.rows.iter().filter_map(|row| row.parse::<Host>().ok()) {
                if !self.seen.contains(&host) && before.as_ref().is_none_or(|before| *before < host) {
                    found = true;
                    let (place, only) = match self.what {
                        Asked::Export(_) => {
                            let within = Some(JournalPlace { run: 0, sequence: 0, part: 0 });
                            (Some(ExportPlace { host: host.clone(), within }), Some(&host))
                        }
                        // An answer has hundreds of rows: all from there on are asked for together.
                        Asked::Servers(_) => (before.clone().map(|host| ExportPlace { host, within: None }), None),
                    };
                    let is_whole = self.owner(owner, place, only).await?;
                    if is_whole && only.is_none() {
                        self.missing.owners.remove(&owner.access_point);
                    }
                    // Who fails is not asked for each further host.
                    if !is_whole || only.is_none() {
                        return Ok(found);
                    }
                    if !self.seen.contains(&host) {
                        self.missing.rowless.insert(&host);
                    }
                }
                before = Some(host);
            }
            let wrong = match &piece.next {
                None => {
                    self.missing.owners.remove(&owner.access_point);
                    return Ok(found);
                }
                Some(next) if !next.is_behind(from.as_ref()) => "its hosts do not advance",
                Some(_) if hosts > most_hosts => "it tells of more hosts than it can have",
                Some(_) => {
                    from = piece.next;
                    continue;
                }
            };
            self.missing.owners.insert(owner.access_point, wrong.to_owned());
            return Ok(found);
        }
    }

    /// Takes all rows of an owner from a place on, or those of one host; whether they came to their end.
    async fn owner(&mut self, owner: &ServerOwner, mut from: Option<ExportPlace>, only: Option<&Host>) -> Result<bool, CommandError> {
        let most_hosts = most_hosts(owner);
        let mut course = Course { owner: owner.access_point, only, host: None, hosts: 0, most_hosts, garbage: 0, empty: 0 };
        let wrong = loop {
            let piece = match self.source.piece(self.what, course.owner, from.as_ref()).await {
                Ok(piece) => piece,
                Err(why) => break why,
            };
            match self.piece(&mut course, from.as_ref(), piece)? {
                Step::On(next) => from = next,
                Step::End => {
                    self.host_ends(&mut course)?;
                    self.missing.unreadable += course.garbage;
                    return Ok(true);
                }
                Step::Wrong(why) => break why.to_owned(),
            }
        };
        self.host_fails(&mut course, &wrong)?;
        self.missing.unreadable += course.garbage;
        self.missing.owners.insert(owner.access_point, wrong);
        Ok(false)
    }

    /// Takes in an answer.
    fn piece(&mut self, course: &mut Course<'_>, from: Option<&ExportPlace>, piece: ExportedRows) -> Result<Step, CommandError> {
        if piece.next.as_ref().is_some_and(|next| !next.is_behind(from)) {
            return Ok(Step::Wrong("its rows do not advance"));
        }
        course.empty = if piece.rows.is_empty() { course.empty + 1 } else { 0 };
        for row in &piece.rows {
            let read = serde_json::from_str::<Value>(row).ok().and_then(|row| if let Value::Object(row) = row { Some(row) } else { None });
            let host = read.as_ref().and_then(|row| row.get("host")?.as_str()?.parse::<Host>().ok());
            let (Some(row), Some(host)) = (read, host) else {
                course.garbage += 1;
                continue;
            };
            let earlier = |place: &ExportPlace| host < place.host || (host == place.host && place.within.is_none());
            if from.is_some_and(earlier) || course.host.as_ref().is_some_and(|(before, _)| host < *before) {
                return Ok(Step::Wrong("its rows are out of order"));
            }
            if course.only.is_some_and(|only| host != *only) {
                return Ok(Step::End);
            }
            if course.host.as_ref().is_none_or(|(before, _)| *before != host) {
                self.host_ends(course)?;
                let is_there = self.seen.contains(&host);
                course.host = Some((host, is_there));
                course.hosts += 1;
            }
            self.row(course, row)?;
        }
        if course.garbage > MAX_GARBAGE || course.empty > MAX_EMPTY || course.hosts > course.most_hosts {
            return Ok(Step::Wrong("it tells more than it can have"));
        }
        let Some(next) = piece.next else { return Ok(Step::End) };
        if course.only.is_some_and(|only| next.host != *only || next.within.is_none()) {
            return Ok(Step::End);
        }
        let is_left_out = course.host.as_ref().is_some_and(|(host, is_there)| *is_there && *host == next.host);
        let within = next.within.filter(|_| !is_left_out);
        Ok(Step::On(Some(ExportPlace { within, ..next })))
    }

    fn row(&mut self, course: &mut Course<'_>, mut row: Row) -> Result<(), CommandError> {
        if course.host.as_ref().is_none_or(|(_, is_there)| *is_there) {
            return Ok(());
        }
        if row.contains_key("missing_text") && matches!(self.what, Asked::Export(_)) {
            let why = serde_json::from_value::<MissingRow>(Value::Object(row)).map(|missing| missing.missing_text);
            return self.host_fails(course, &why.unwrap_or_else(|_| "its owner does not tell it".to_owned()));
        }
        row.insert("access_point".to_owned(), Value::String(course.owner.to_string()));
        if !self.sink.row(course.owner, row)? {
            course.garbage += 1;
        } else if matches!(self.what, Asked::Servers(_)) {
            // One row is all there is of a host.
            self.sink.host_ends()?;
            if let Some((host, is_there)) = &mut course.host {
                self.seen.insert(host);
                *is_there = true;
            }
        }
        Ok(())
    }

    /// The rows of a host are whole, if they were taken.
    fn host_ends(&mut self, course: &mut Course<'_>) -> Result<(), CommandError> {
        let Some((host, is_there)) = course.host.take() else { return Ok(()) };
        if !is_there {
            self.sink.host_ends()?;
            self.missing.hosts.remove(&host);
            self.seen.insert(&host);
        }
        Ok(())
    }

    /// The rest of a host's rows is not to be had: it is left out, and may come from another owner.
    fn host_fails(&mut self, course: &mut Course<'_>, why: &str) -> Result<(), CommandError> {
        let Some((host, is_there)) = course.host.as_mut() else { return Ok(()) };
        if std::mem::replace(is_there, true) {
            return Ok(());
        }
        let taken_back = self.sink.host_fails()?;
        if !taken_back {
            // It must not come twice.
            self.seen.insert(host);
        }
        let why = if taken_back { why.to_owned() } else { format!("its rows are not whole: {why}") };
        self.missing.hosts.insert(host.clone(), why);
        Ok(())
    }
}

/// Asks all owners for the rows of their servers, and passes each on with its owner; of what is no row `take` says false. Returns what is
/// missing, and why.
pub async fn each_row(source: &mut Source, rows: RowsOf, take: impl FnMut(AccessPoint, &str) -> bool) -> Result<Vec<String>, CommandError> {
    let owners = source.owners().await?;
    let (what, mut sink) = (Asked::Servers(rows), Each(take));
    let mut walk = Walk { source, what, sink: &mut sink, seen: Hosts::default(), missing: Missing::default() };
    walk.walk(owners, None).await?;
    Ok(walk.missing.words())
}

/// Passes rows on as they come.
struct Each<F>(F);

impl<F: FnMut(AccessPoint, &str) -> bool> Sink for Each<F> {
    fn row(&mut self, owner: AccessPoint, row: Row) -> Result<bool, CommandError> {
        Ok((self.0)(owner, &Value::Object(row).to_string()))
    }

    fn host_ends(&mut self) -> Result<(), CommandError> {
        Ok(())
    }

    fn host_fails(&mut self) -> Result<bool, CommandError> {
        // One row is all there is of a server.
        Ok(true)
    }
}

/// The error behind what was printed, if servers are missing from it.
pub fn not_whole(missing: &[String]) -> Option<CommandError> {
    (!missing.is_empty()).then(|| {
        CommandError::new(Exit::Unavailable, format!("servers are missing: {}", missing.join("; ")))
            .hint("ask again when all members answer")
    })
}

fn most_hosts(owner: &ServerOwner) -> u64 {
    owner.servers.saturating_mul(MORE_HOSTS).saturating_add(MORE_HOSTS_BY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_no_owner_has_are_missing_while_owners_change_and_are_counted() {
        let said = |owners: &[u8], there, announced, in_transition: Option<u64>| {
            let owners = owners.iter().map(|byte| (AccessPoint([*byte; 32]), "it does not answer".to_owned())).collect();
            let mut missing = Missing { owners, ..Missing::default() };
            let why = "2 subnets change hands".to_owned();
            missing.compare(there, announced, in_transition.map(|servers| (servers, why)));
            missing.words()
        };
        assert_eq!(said(&[], 69, 69, Some(100)), ["rows of 31 of the swarm's 100 servers, while owners change: 2 subnets change hands"]);
        assert!(said(&[], 100, 100, Some(100)).is_empty() && said(&[], 101, 100, Some(100)).is_empty(), "they are all there");
        assert!(said(&[], 69, 80, None).is_empty(), "totals that are heard later than rows were read say nothing");
        let of_one = said(&[1], 69, 80, None);
        assert_eq!((of_one.len(), of_one[0].as_str()), (2, "rows of 11 of the swarm's 80 servers, of 1 owner"));
        assert_eq!(
            said(&[1, 2], 0, 1, Some(5))[0],
            "rows of 5 of the swarm's 5 servers, of 2 owners, while owners change: 2 subnets change hands"
        );
    }
}
