//! Why is this crawled by whom, and when? From the host to its address, its subnet, its owner, its place in a site tree.

use super::super::Crawler;
use crate::{
    logic::{
        locator::Lookup,
        site::{Asking, Site},
    },
    model::{
        access_point::{AccessPoint, ShortId},
        claim::{Answer, Claim, ClaimReason},
        record::{RunState, ServerStatus},
        subnet::Subnet,
        time::{Millis, WallTime},
        url::{Host, PageUrl},
        view::{AnswerView, Liveness, OwnershipView, Span, Subject, WhyView, counted},
    },
};
use std::net::IpAddr;

/// How many servers at one address are named.
const MOST_NAMED: usize = 5;

impl Crawler {
    /// Why this is crawled by whom, and when. What is not known here is left out.
    pub fn why(&self, subject: &Subject) -> WhyView {
        let (host, url) = match subject {
            Subject::Url(url) => (Some(url.host()), Some(url)),
            Subject::Host(host) => (Some(host.clone()), None),
            Subject::Address(_) | Subject::Subnet(_) => (None, None),
        };
        let mut view = WhyView { asked: subject.to_string(), host: host.clone(), ..WhyView::default() };
        if let Subject::Subnet(subnet) = subject {
            self.why_subnet(&mut view, *subnet);
            return view;
        }
        let address = match (subject, &host) {
            (Subject::Address(address), _) => Ok(*address),
            (_, Some(host)) => self.address_of(host),
            (_, None) => Err(String::new()),
        };
        let address = match address {
            Ok(address) => address,
            Err(why_not) => {
                view.sentence = why_not;
                return view;
            }
        };
        let claim = self.ownership.around(address);
        let subnet = claim.map_or_else(|| self.unit_of(address), |claim| claim.subnet);
        view.address = Some(address);
        self.place(&mut view, address, subnet, claim);
        let mut sentences: Vec<String> = host.iter().filter_map(|host| self.denial(host)).collect();
        let name = host.as_ref().map_or_else(|| address.to_string(), Host::to_string);
        sentences.push(self.whose(&subnet, &name));
        if view.owner_is_me {
            match &host {
                Some(host) => sentences.push(self.here(&mut view, host, url)),
                None => {
                    let there = self.sites.values().filter(|site| site.address == address);
                    view.next_visit_in_ms = there.filter_map(|site| self.next_visit(site)).min();
                    sentences.push(self.on_record(&subnet, Some(address)));
                }
            }
            if self.held_back().is_some() {
                sentences.push(format!("Nothing is fetched at the moment: {}.", self.activity()));
            }
        }
        view.sentence = sentences.join(" ");
        view
    }

    /// The host of a subject whose place is to be asked for before anything can be said of it.
    pub fn unlocated(&self, subject: &Subject) -> Option<Host> {
        let host = match subject {
            Subject::Url(url) => url.host(),
            Subject::Host(host) => host.clone(),
            Subject::Address(_) | Subject::Subnet(_) => return None,
        };
        let known = self.sites.contains_key(&host) || host.address().is_some() || self.settings.scope.denies(&host);
        (!known && self.locator.lookup(&host, self.now.moment) == Lookup::Unknown).then_some(host)
    }

    /// The address that a host is pinned to, or why none is known.
    fn address_of(&self, host: &Host) -> Result<IpAddr, String> {
        if let Some(address) = self.sites.get(host).map(|site| site.address).or_else(|| host.address()) {
            return Ok(address);
        }
        match self.locator.lookup(host, self.now.moment) {
            Lookup::At(located) => Ok(located.address),
            Lookup::Nowhere(failure) => Err(format!("Nobody crawls {host}, because it has no usable address: {failure}.")),
            Lookup::Unknown if self.locator.looking_up().any(|other| other == host) => {
                Err(format!("It is not known yet who crawls {host}: its address is being looked up."))
            }
            Lookup::Unknown => {
                let steward = self.steward_of_host(host);
                let whom = if steward == self.me { "this access point".to_owned() } else { format!("the access point {steward}") };
                Err(format!(
                    "It is not known here who crawls {host}, because no link to it was followed from here lately; \
                     {whom} is the one that looks its address up for the swarm."
                ))
            }
        }
    }

    /// The same for a subnet, whether it is claimed itself, as part of a larger one, or in parts.
    fn why_subnet(&self, view: &mut WhyView, subnet: Subnet) {
        let claim = self.ownership.latest(&subnet).map(|held| &held.claim).or_else(|| self.ownership.covering(&subnet));
        let owned = claim.map_or(subnet, |claim| claim.subnet);
        self.place(view, subnet.first(), owned, claim);
        let mut sentences = Vec::new();
        let parts = self.parts_of(&subnet);
        if claim.is_some() || parts.is_none() {
            sentences.push(self.whose(&owned, &subnet.to_string()));
        }
        sentences.extend(parts);
        if view.owner_is_me {
            sentences.push(self.on_record(&owned, None));
        }
        view.sentence = sentences.join(" ");
    }

    /// Whose the claimed parts of a subnet are, in a sentence, if there are any.
    fn parts_of(&self, subnet: &Subnet) -> Option<String> {
        let parts = self.ownership.after(Some(*subnet)).take_while(|claim| subnet.covers(&claim.subnet));
        let owners: Vec<AccessPoint> = parts.filter(|claim| !claim.released).map(|claim| claim.owner).collect();
        let mut named: Vec<String> = Vec::new();
        for owner in &owners {
            let name = if *owner == self.me { "this access point".to_owned() } else { owner.short() };
            if !named.contains(&name) {
                named.push(name);
            }
        }
        let more = if named.len() > MOST_NAMED { format!(" and {} more", named.len() - MOST_NAMED) } else { String::new() };
        named.truncate(MOST_NAMED);
        let count = counted(owners.len() as u64, "smaller subnet");
        (!owners.is_empty()).then(|| format!("In {subnet}, {count} belong to {}{more}: ask about an address.", named.join(", ")))
    }

    /// Where an address lives and whose that is. What is delegated may be a part of its registered subnet.
    fn place(&self, view: &mut WhyView, address: IpAddr, subnet: Subnet, claim: Option<&Claim>) {
        let path = self.hierarchy.path(address);
        view.path = path.lines();
        if path.registered.is_some() && path.subnet != subnet && path.subnet.covers(&subnet) {
            view.path.push(format!("part {subnet}"));
        }
        view.subnet = Some(subnet);
        view.ownership = claim.map(OwnershipView::from);
        view.history = claim.and_then(|claim| self.history_of(&claim.subnet)).unwrap_or_default();
        view.judged = claim.and_then(|claim| self.last_judgement(&claim.subnet));
        view.answers = claim.map(|claim| self.answers_of(claim)).unwrap_or_default();
        view.owner_liveness = claim.and_then(|claim| self.liveness(claim.owner));
        view.owner_is_me = claim.is_some_and(|claim| claim.owner == self.me && !claim.released);
    }

    /// Who was asked before a claim was made, and what they measured.
    fn answers_of(&self, claim: &Claim) -> Vec<AnswerView> {
        let named = |short: ShortId| {
            let known = self.incarnations.keys().chain([&self.me, &claim.owner]).find(|who| ShortId::from(**who) == short);
            known.map_or_else(|| short.to_string(), AccessPoint::to_string)
        };
        let own = claim.rtt_us.filter(|_| claim.reason != ClaimReason::OwnSubnet);
        let own = own.map(|rtt_us| Answer { rtt_us, prober: claim.owner.into() });
        let mut answers: Vec<_> = claim.answers.iter().copied().chain(own).collect();
        answers.sort_unstable();
        answers.into_iter().map(|Answer { rtt_us, prober }| AnswerView { access_point: named(prober), rtt_us }).collect()
    }

    fn denial(&self, host: &Host) -> Option<String> {
        let denied = self.settings.scope.denies(host);
        denied.then(|| format!("The configuration of this access point denies {host}: it asks nothing there."))
    }

    /// Who crawls what lives in a subnet, in a sentence.
    fn whose(&self, subnet: &Subnet, name: &str) -> String {
        match self.ownership.latest(subnet).map(|held| &held.claim) {
            Some(claim) if claim.released => {
                format!(
                    "Nobody crawls {name} right now: {} gave its subnet {subnet} back, and the next in line takes over soon.",
                    claim.owner.short()
                )
            }
            Some(claim) if claim.owner == self.me => format!("This access point crawls {name}, because it owns the subnet {subnet}."),
            Some(claim) => self.somebody(claim, name),
            None if self.procedures.contains_key(subnet) => {
                format!("Nobody crawls {name} yet: members are being asked how near they are to its subnet {subnet}.")
            }
            None if self.settle_queue.iter().any(|(queued, _)| queued == subnet) => {
                format!("Nobody crawls {name} yet: its subnet {subnet} waits for its turn to be given to the nearest member.")
            }
            None => match self.stewards_of(subnet).first() {
                Some(steward) if *steward != self.me => {
                    format!(
                        "Nobody owns its subnet {subnet} yet, as far as is known here; {} finds an owner when a URL in it is named.",
                        steward.short()
                    )
                }
                _ => format!("Nobody owns its subnet {subnet} yet; an owner is found when a URL in it is named."),
            },
        }
    }

    fn somebody(&self, claim: &Claim, name: &str) -> String {
        let (owner, subnet) = (claim.owner.short(), claim.subnet);
        let state = match self.liveness(claim.owner) {
            Some(Liveness::Alive) => "ask there for more",
            Some(Liveness::Silent) => "it does not answer at the moment and keeps the subnet for now",
            Some(Liveness::Dead) => "it was given up, and the next in line takes over soon",
            None => "this access point has not met it yet",
        };
        format!("The access point {owner} crawls {name}, because it owns the subnet {subnet}; {state}.")
    }

    /// How a host of ours stands, in a sentence; fills in the rest of the view.
    fn here(&self, view: &mut WhyView, host: &Host, url: Option<&PageUrl>) -> String {
        let Some(site) = self.sites.get(host) else {
            let subnet_is_read = view.subnet.is_some_and(|subnet| !self.loading.contains_key(&subnet));
            return match (subnet_is_read, self.settings.scope.admits(host)) {
                (false, _) => "What happened there before is still being read.".to_owned(),
                (true, true) => "No URL of it has arrived here yet.".to_owned(),
                (true, false) => {
                    "No URL of it has arrived here; it is out of scope, so links to it are counted and not followed.".to_owned()
                }
            };
        };
        view.tree = Some(site.tree.clone());
        view.last_visit = site.record.last_visit;
        view.next_visit_in_ms = self.next_visit(site);
        let state = match url {
            Some(url) => {
                let (state, level) = self.state_of(site, url);
                view.level = level;
                state
            }
            None => run_words(site),
        };
        let page = url.or_else(|| site.frontier.first().map(|waiting| &waiting.url)).or_else(|| site.starts.first());
        view.robots = page.and_then(|page| {
            let words = site.robots_says(page)?;
            let about = if url.is_some() { String::new() } else { format!(" ({page})") };
            let age = site.robots_since(page).map(|since| format!(", answered {} ago", self.ago(since)));
            Some(format!("{words}{about}{}", age.unwrap_or_default()))
        });
        let subject = if url.is_some() { "The URL" } else { "Its run" };
        let next = match view.next_visit_in_ms {
            _ if site.asking.is_some() => "the server is being asked now".to_owned(),
            Some(0) => "its turn is next".to_owned(),
            Some(millis) if site.finished() => format!("the next run begins in {}", Span(millis)),
            Some(millis) => format!("the server is left alone for another {}", Span(millis)),
            None if site.finished() => format!("the next run begins when {} is visited again", site.tree),
            None => "nothing more is asked in this run".to_owned(),
        };
        let mut sentence = format!("{subject} {state}; {next}.");
        if url.is_none() {
            let changed = site.record.changes.map(|changes| changes.sentence());
            for told in [site.record.completeness()].into_iter().chain(changed) {
                sentence += &format!(" {told}");
            }
        }
        view.state = Some(state);
        sentence
    }

    /// What became of a URL of a site, as far as is known without looking into the store, and its level.
    fn state_of(&self, site: &Site, url: &PageUrl) -> (String, Option<u8>) {
        if let Some(Asking::Page(asked)) = &site.asking
            && asked.url == *url
        {
            return ("is being asked for".to_owned(), Some(asked.level));
        }
        if let Some(read) = site.reading.as_ref().filter(|read| read.url == *url) {
            return ("came and is being read".to_owned(), Some(read.level));
        }
        let cut = site.record.cut_by_depth > 0;
        let print = self.secret.of(url.as_str());
        if let Some(place) = site.frontier.far().position(|(_, page)| page == print) {
            let ahead = (site.frontier.near().count() + place) as u64;
            return (format!("waits, with {} before it", counted(ahead, "URL")), site.frontier.far().nth(place).map(|(level, _)| level));
        }
        match site.frontier.get(print) {
            Some(waiting) if site.record.state == RunState::PausedByBudget => {
                ("waits, but the page budget of this run is spent".to_owned(), Some(waiting.level))
            }
            Some(waiting) => {
                let ahead = site.frontier.near().position(|other| other.fingerprint == waiting.fingerprint).unwrap_or(0) as u64;
                (format!("waits, with {} before it", counted(ahead, "URL")), Some(waiting.level))
            }
            None if site.left_out(self.secret.of(url.as_str())) => {
                ("was left out, because too few new external hosts were to be expected of it".to_owned(), None)
            }
            None if site.starts.contains(url) => ("is a starting URL and was asked for or set aside in this run".to_owned(), Some(0)),
            None if cut => ("does not wait: it was asked for, set aside, cut by the depth, or never named".to_owned(), None),
            None => ("does not wait: it was asked for, set aside, or never named".to_owned(), None),
        }
    }

    /// In how long a site may be asked again, in this run or else in the next; none if that is not known here.
    fn next_visit(&self, site: &Site) -> Option<Millis> {
        if site.asking.is_some() {
            return None;
        }
        if site.finished() {
            let home = if site.is_home() { site } else { self.sites.get(&site.tree).filter(|home| home.is_home())? };
            let due = home.opened.0.saturating_add(self.settings.revisit);
            return Some(due.saturating_sub(self.now.wall.0));
        }
        (site.is_busy() || site.wants(&self.settings.rules)).then(|| self.rest_of(site.address).unwrap_or(0))
    }

    /// For how long an address rests; none if it was not asked lately.
    fn rest_of(&self, address: IpAddr) -> Option<Millis> {
        self.front.not_before(address).map(|until| until.since(self.now.moment))
    }

    /// Which servers of ours live in a subnet, or only at one of its addresses.
    fn on_record(&self, subnet: &Subnet, at: Option<IpAddr>) -> String {
        let hosts = self.by_subnet.get(subnet).into_iter().flatten();
        let there = |host: &&Host| at.is_none_or(|address| self.sites.get(*host).is_some_and(|site| site.address == address));
        let here: Vec<_> = hosts.filter(there).collect();
        if here.is_empty() {
            return format!("No server {} has been named yet.", if at.is_some() { "at this address" } else { "in it" });
        }
        let named: Vec<_> = here.iter().take(MOST_NAMED).map(|host| host.as_str()).collect();
        let more = if here.len() > MOST_NAMED { format!(" and {} more", here.len() - MOST_NAMED) } else { String::new() };
        format!("{} on record here: {}{more}.", counted(here.len() as u64, "server"), named.join(", "))
    }

    fn ago(&self, then: WallTime) -> Span {
        Span(self.now.wall.0.saturating_sub(then.0))
    }
}

/// How a run stands, in words.
fn run_words(site: &Site) -> String {
    let pages = counted(site.record.pages, "page");
    let waiting = counted(site.frontier.len() as u64, "URL");
    let trouble = match (site.record.status, site.record.main_failure()) {
        (ServerStatus::Down, Some(failure)) => format!(", because {failure}"),
        (ServerStatus::Refused, _) => ", because it refuses us".to_owned(),
        _ => String::new(),
    };
    match site.record.state {
        _ if site.is_busy() => format!("goes on: {pages} fetched, {waiting} left"),
        RunState::Running => format!("goes on: {pages} fetched, {waiting} left"),
        RunState::Complete => format!("is complete: {pages} fetched{trouble}"),
        RunState::CutByDepth => {
            format!("is complete: {pages} fetched, {} beyond the depth left out", counted(site.record.cut_by_depth, "URL"))
        }
        RunState::CutByYield => {
            let left_out = counted(site.record.cut_by_yield, "URL");
            format!("is complete: {pages} fetched, {left_out} left out of which too few new external hosts were to be expected")
        }
        RunState::PausedByBudget => format!("has spent its page budget: {pages} fetched, {waiting} left"),
    }
}
