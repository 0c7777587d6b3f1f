//! Explains why something is crawled, by whom and when: from the host to its address, its subnet, its owner, its place in a site tree.

use super::{
    never_contacted::{never_contacted, nowhere},
    reason,
};
use crate::{
    crawl::{
        revisits::SLOT,
        site::{Asking, Site},
    },
    delegation::Policy,
    report::View,
    routing::locator::Lookup,
};
use nearcrawl_hierarchy::Path;
use nearcrawl_model::{
    access_point::AccessPoint,
    address::AddressPolicy,
    claim::{Claim, ClaimReason},
    journal::SkipReason,
    record::{RunState, ServerStatus},
    subnet::Subnet,
    time::{Millis, WallTime},
    url::{Host, PageUrl},
    view::{Liveness, OwnershipView, Span, Subject, VisitState, WhyView, counted},
};
use std::net::IpAddr;

/// Why the owner could claim a subnet, in words. A claim does not say by which procedure it was awarded: that one drew an owner is known
/// only where owners are drawn, and by a claim before which nothing was measured.
fn because(claim: &Claim, policy: Policy) -> &'static str {
    match claim.reason {
        ClaimReason::OwnSubnet => "its own address is in the subnet",
        ClaimReason::Awarded if claim.probes > 0 || claim.rtt_us.is_some() => "the delegation round found it nearest",
        ClaimReason::Awarded if policy == Policy::Random => {
            "it was drawn at random among the members, without a probe (delegation.policy = \"random\")"
        }
        ClaimReason::Awarded => "the delegation round chose it, without a probe",
        ClaimReason::OwnerDead => "the previous owner died",
        ClaimReason::Released => "the previous owner released it",
        ClaimReason::Moved => "the previous owner handed it over",
    }
}

/// How many servers at one address are named.
const MAX_NAMED: usize = 5;

impl View<'_> {
    /// Why this is crawled by whom, and when. What is not known here is left out. `policy`: what this access point may contact.
    pub fn why(&self, subject: &Subject, policy: &AddressPolicy) -> WhyView {
        let (host, url) = match subject {
            Subject::Url(url) => (Some(url.host()), Some(url)),
            Subject::Host(host) => (Some(host.clone()), None),
            Subject::Address(_) | Subject::Subnet(_) => (None, None),
        };
        let mut view = WhyView { asked: subject.to_string(), host: host.clone(), ..WhyView::default() };
        if let Subject::Subnet(subnet) = subject {
            self.why_subnet(&mut view, *subnet, policy);
            return view;
        }
        let known = match subject {
            Subject::Address(address) => Some(*address),
            _ => host.as_ref().and_then(|host| self.address_of(host).ok()),
        };
        let refused = never_contacted(policy, subject, known);
        if let Some(refused) = refused.as_ref().filter(|refused| refused.everywhere) {
            (view.address, view.answer_text) = (known, refused.text.clone());
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
                self.not_located(&mut view, host.as_ref(), why_not);
                return view;
            }
        };
        let claim = self.ownership.register().around(address);
        let subnet = claim.map_or_else(|| self.context.unit_of(address), |claim| claim.subnet);
        view.address = Some(address);
        self.place(&mut view, address, subnet, claim);
        let name = host.as_ref().map_or_else(|| address.to_string(), Host::to_string);
        let mut sentences = self.refusals(host.as_ref(), Some(address));
        if sentences.is_empty() {
            sentences.extend(refused.map(|refused| refused.text));
        }
        let is_refused = !sentences.is_empty();
        sentences.push(if is_refused { self.belongs(&subnet) } else { self.whose(&subnet, &name) });
        if view.owner_is_me {
            self.of_ours(&mut view, url, (address, subnet), is_refused, &mut sentences);
        }
        self.name_surveys(&mut view, &mut sentences);
        view.answer_text = sentences.join(" ");
        view
    }

    /// How what is in a subnet of ours stands.
    fn of_ours(
        &self,
        view: &mut WhyView,
        url: Option<&PageUrl>,
        (address, subnet): (IpAddr, Subnet),
        is_refused: bool,
        sentences: &mut Vec<String>,
    ) {
        match view.host.clone() {
            Some(host) if is_refused && self.crawl.site(&host).is_none() => {}
            Some(host) => sentences.push(self.here(view, &host, url, is_refused)),
            None => {
                let there = self.crawl.sites().all().filter(|site| site.address == address);
                view.next_visit_in_ms = there.filter_map(|site| self.next_visit(site)).min();
                sentences.push(self.on_record(&subnet, Some(address)));
                if self.replication.awaited(&subnet).is_some() {
                    sentences.push(self.read_back(Some(subnet)));
                }
            }
        }
        if is_refused {
            view.next_visit_in_ms = None;
        } else if self.held_back().is_some() {
            sentences.push(format!("Nothing is fetched at the moment: {}.", self.activity()));
        }
    }

    /// The host of a subject whose place is to be asked for before anything can be said of it.
    pub fn unlocated(&self, subject: &Subject, policy: &AddressPolicy) -> Option<Host> {
        let host = match subject {
            Subject::Url(url) => url.host(),
            Subject::Host(host) => host.clone(),
            Subject::Address(_) | Subject::Subnet(_) => return None,
        };
        let refused = never_contacted(policy, subject, None).is_some_and(|refused| refused.everywhere);
        let known = self.crawl.site(&host).is_some() || host.address().is_some() || self.context.denies(&host, None);
        (!known && !refused && self.routing.locator().lookup(&host, self.context.now.moment) == Lookup::Unknown).then_some(host)
    }

    /// No address of the host is known; if it was looked up and has none, why.
    fn not_located(&self, view: &mut WhyView, host: Option<&Host>, why_not: String) {
        let found = host.map(|host| self.routing.locator().lookup(host, self.context.now.moment));
        if let Some(Lookup::Nowhere(failure)) = found {
            view.no_address_reason = Some(failure);
        }
        let refusals = self.refusals(host, None);
        // Who would crawl what is not asked for matters to nobody.
        view.answer_text = if refusals.is_empty() { why_not } else { refusals.join(" ") };
    }

    /// The address that a host is pinned to, or why none is known.
    fn address_of(&self, host: &Host) -> Result<IpAddr, String> {
        if let Some(address) = self.crawl.site(host).map(|site| site.address).or_else(|| host.address()) {
            return Ok(address);
        }
        match self.routing.locator().lookup(host, self.context.now.moment) {
            Lookup::At(located) => Ok(located.address),
            Lookup::Nowhere(failure) => Err(nowhere(host, failure)),
            Lookup::Later(failure, at) => {
                let again = Span(at.since(self.context.now.moment));
                Err(format!(
                    "It is not known yet who crawls {host}: the look-up of its address failed ({failure}) and is repeated in {again}."
                ))
            }
            Lookup::Unknown if self.routing.locator().looking_up().any(|other| other == host) => {
                Err(format!("It is not known yet who crawls {host}: its address is being looked up."))
            }
            Lookup::Unknown => {
                let steward = self.membership.steward_of_host(host).unwrap_or(self.context.me);
                let whom = if steward == self.context.me { "this access point".to_owned() } else { format!("the access point {steward}") };
                Err(format!(
                    "It is not known here who crawls {host}, because no link to it was found here recently; \
                     {whom} looks its address up for the swarm."
                ))
            }
        }
    }

    /// The same for a subnet, whether it is claimed itself, as part of a larger one, or in parts.
    fn why_subnet(&self, view: &mut WhyView, subnet: Subnet, policy: &AddressPolicy) {
        let claim =
            self.ownership.register().latest(&subnet).map(|held| &held.claim).or_else(|| self.ownership.register().covering(&subnet));
        let unit = self.context.unit_of(subnet.first());
        let within_unit = unit.covers(&subnet);
        let owned = claim.map_or(if within_unit { unit } else { subnet }, |claim| claim.subnet);
        let parts = self.parts_of(&subnet);
        let mut sentences = Vec::new();
        if claim.is_none()
            && parts.is_none()
            && let Some(refused) = never_contacted(policy, &Subject::Subnet(subnet), None)
        {
            view.subnet = Some(subnet);
            view.answer_text = refused.text;
            return;
        }
        self.place(view, subnet.first(), owned, claim);
        if claim.is_none() && parts.is_none() && !within_unit {
            sentences.push(format!(
                "{subnet} has no owner as a whole: subnets are owned as registered, such as {unit}. Ask about an address in it."
            ));
        } else if claim.is_some() || parts.is_none() {
            sentences.push(self.whose(&owned, &subnet.to_string()));
        }
        sentences.extend(parts);
        if view.owner_is_me {
            sentences.push(self.on_record(&owned, None));
            if self.replication.awaited(&owned).is_some() {
                sentences.push(self.read_back(Some(owned)));
            }
        }
        view.answer_text = sentences.join(" ");
    }

    /// Whose the claimed parts of a subnet are, in a sentence, if there are any.
    fn parts_of(&self, subnet: &Subnet) -> Option<String> {
        let parts = self.ownership.register().after(Some(*subnet)).take_while(|claim| subnet.covers(&claim.subnet));
        let owners: Vec<AccessPoint> = parts.filter(|claim| !claim.released).map(|claim| claim.owner).collect();
        let mut named: Vec<String> = Vec::new();
        for owner in &owners {
            let name = if *owner == self.context.me { "this access point".to_owned() } else { owner.short() };
            if !named.contains(&name) {
                named.push(name);
            }
        }
        let more = if named.len() > MAX_NAMED { format!(" and {} more", named.len() - MAX_NAMED) } else { String::new() };
        named.truncate(MAX_NAMED);
        let count = counted(owners.len() as u64, "smaller subnet");
        let belong = if owners.len() == 1 { "belongs" } else { "belong" };
        (!owners.is_empty()).then(|| format!("In {subnet}, {count} {belong} to {}{more}: ask about an address.", named.join(", ")))
    }

    /// Where an address lies and whose that is. What is delegated may be a part of its registered subnet.
    fn place(&self, view: &mut WhyView, address: IpAddr, subnet: Subnet, claim: Option<&Claim>) {
        let path = Path::to(&self.context.hierarchy, address);
        view.path_text = path.lines();
        if path.registered.is_some() && path.subnet != subnet && path.subnet.covers(&subnet) {
            view.path_text.push(format!("part {subnet}"));
        }
        view.subnet = Some(subnet);
        let known = self.known_members();
        view.ownership = claim.map(|claim| OwnershipView::new(claim, |short| known.get(&short).copied()));
        view.history = claim.and_then(|claim| self.migration.history_of(&claim.subnet)).unwrap_or_default();
        for held in &mut view.history {
            held.released_text = held.released_text.take().map(|stored| reason::shown(&stored));
        }
        view.reason_text = claim.map(|claim| because(claim, self.context.settings.policy).to_owned());
        let judgement = claim.and_then(|claim| self.migration.last_judgement(self.context, &claim.subnet));
        view.judgement_text = judgement.map(|stored| reason::shown(&stored));
        view.owner_liveness = claim.and_then(|claim| self.liveness(claim.owner));
        view.owner_is_me = claim.is_some_and(|claim| claim.owner == self.context.me && !claim.released);
    }

    /// Why nothing is asked there, if the configuration or an opt-out says so.
    fn refusals(&self, host: Option<&Host>, address: Option<IpAddr>) -> Vec<String> {
        let denied = host.filter(|host| self.context.settings.scope.denies(host));
        let denial = denied.map(|host| format!("The configuration of this access point denies {host}: no request is sent there."));
        let place = address.filter(|address| denial.is_none() && self.context.denies_at(*address)).map(|address| {
            let asn = self.context.hierarchy.asn_of(address).map_or(String::new(), |asn| format!(" (AS{asn})"));
            format!(
                "The configuration of this access point denies {address}{asn}: it is in a range of crawl.deny_ranges or a system of crawl.deny_asns, \
                 and no request is sent there."
            )
        });
        let site = host.and_then(|host| self.crawl.site(host));
        let is_out = site.is_some_and(|site| self.context.has_taken_out(&site.key.host, &site.tree, site.address));
        let taken_out = site.filter(|_| is_out && denial.is_none() && place.is_none()).map(|site| {
            format!(
                "Its operator took {} out of the scope of this access point: no request is sent there until it is in scope again, or named as a \
                 starting point here.",
                site.key.host
            )
        });
        denial.into_iter().chain(place).chain(taken_out).chain(self.opted_out(host, address)).collect()
    }

    /// Whose a subnet is of which something is not asked for.
    fn belongs(&self, subnet: &Subnet) -> String {
        match self.ownership.register().latest(subnet).map(|held| &held.claim).filter(|claim| !claim.released) {
            Some(claim) if claim.owner == self.context.me => format!("Its subnet {subnet} belongs to this access point."),
            Some(claim) => format!("Its subnet {subnet} belongs to the access point {}.", claim.owner.short()),
            None => format!("Its subnet {subnet} belongs to no member."),
        }
    }

    /// Who crawls what is in a subnet, in a sentence.
    fn whose(&self, subnet: &Subnet, name: &str) -> String {
        match self.ownership.register().latest(subnet).map(|held| &held.claim) {
            Some(claim) if claim.released => {
                format!(
                    "No member crawls {name} right now: {} released its subnet {subnet}, and a successor takes over soon.",
                    claim.owner.short()
                )
            }
            Some(claim) if claim.owner == self.context.me => {
                format!("This access point crawls {name}, because it owns the subnet {subnet}.")
            }
            Some(claim) => self.other_owner(claim, name),
            None if self.delegation.rounds().is_running(subnet) => {
                let how = match self.context.settings.policy {
                    Policy::Random => "a member is drawn for its subnet",
                    Policy::Nearcrawl { .. } | Policy::Ipmicra { .. } => "members are measuring their distance to its subnet",
                };
                format!("No member crawls {name} yet: {how} {subnet}.")
            }
            None if self.delegation.rounds().is_queued(subnet) => {
                format!("No member crawls {name} yet: its subnet {subnet} waits for a delegation round.")
            }
            None => match self.membership.stewards_of(subnet).first() {
                Some(steward) if *steward != self.context.me => {
                    format!(
                        "No member owns its subnet {subnet} yet, as far as is known here; {} finds an owner when a URL in it is named.",
                        steward.short()
                    )
                }
                _ => format!("No member owns its subnet {subnet} yet; an owner is found when a URL in it is named."),
            },
        }
    }

    fn other_owner(&self, claim: &Claim, name: &str) -> String {
        let (owner, subnet) = (claim.owner.short(), claim.subnet);
        let state = match self.liveness(claim.owner) {
            Some(Liveness::Alive) => "details: run `nearcrawl why` on its machine",
            Some(Liveness::Silent) => "it is silent at the moment and keeps the subnet for now",
            Some(Liveness::Dead | Liveness::Left) => "it is dead, and a successor takes over soon",
            None => "this access point has had no contact with it yet",
        };
        format!("The access point {owner} crawls {name}, because it owns the subnet {subnet}; {state}.")
    }

    /// How a host of ours stands, in a sentence; fills in the rest of the view. Of one that is asked nothing it is not said what comes next.
    fn here(&self, view: &mut WhyView, host: &Host, url: Option<&PageUrl>, is_refused: bool) -> String {
        let Some(site) = self.crawl.site(host) else {
            let subnet_is_read = view.subnet.is_some_and(|subnet| !self.replication.is_loading(&subnet));
            return match (subnet_is_read, self.context.may_admit(host)) {
                (false, _) => self.read_back(view.subnet),
                (true, true) => "No URL of it has arrived here yet.".to_owned(),
                (true, false) => "No URL of it has arrived here; it is out of scope: links to it are counted and not followed.".to_owned(),
            };
        };
        view.tree = Some(site.tree.clone());
        view.last_visit_at = site.record.last_visit_at;
        view.facts = site.published().facts;
        if url.is_none() {
            view.failing_pages = site.published().failing_pages;
        }
        view.next_visit_in_ms = self.next_visit(site);
        let (state, words) = match url {
            Some(url) => {
                let (state, words, level) = self.state_of(site, url);
                view.level = level;
                (state, words)
            }
            None => (site.record.state.into(), run_words(site)),
        };
        let page = url.or_else(|| site.frontier.first().map(|waiting| &waiting.url)).or_else(|| site.starts.first());
        view.robots_text = page.and_then(|page| {
            let words = site.robots_says(page)?;
            let about = if url.is_some() { String::new() } else { format!(" ({page})") };
            let age = site.robots_since(page).map(|since| format!(", answered {} ago", self.ago(since)));
            Some(format!("{words}{about}{}", age.unwrap_or_default()))
        });
        let subject = if url.is_some() { "The URL" } else { "Its run" };
        let next = match view.next_visit_in_ms {
            _ if is_refused => "nothing is asked there".to_owned(),
            _ if site.asking.is_some() => "a request is under way".to_owned(),
            Some(millis) if site.record.state == RunState::PausedByBudget => format!("the run goes on in {}", Span(millis)),
            Some(0) => "the next request may be sent now".to_owned(),
            Some(millis) if site.finished() => format!("the next run begins in {}", Span(millis)),
            Some(millis) => format!("pausing between requests, next in {}", Span(millis)),
            None if site.finished() => format!("the next run begins when {} is visited again", site.tree),
            None => "nothing more is fetched in this run".to_owned(),
        };
        let mut sentence = format!("{subject} {words}; {next}.");
        if url.is_none() {
            let changed = site.record.changes.map(|changes| changes.sentence());
            if site.record.held_back.hosts_by_site_limit > 0 && !is_refused {
                let next = Span(site.held.next_day_in(self.context.now.wall));
                sentence += &format!(" The limit of new hosts for a site counts anew in {next}.");
            }
            for told in [site.record.completeness()].into_iter().chain(changed) {
                sentence += &format!(" {told}");
            }
        }
        (view.state, view.state_text) = (Some(state), Some(words));
        sentence
    }

    /// Why the journals of a subnet of ours are not read yet.
    fn read_back(&self, subnet: Option<Subnet>) -> String {
        let awaited = subnet.and_then(|subnet| self.replication.awaited(&subnet)).unwrap_or_default();
        let names: Vec<_> = awaited.iter().map(|member| member.short().to_string()).collect();
        let Some((last, others)) = names.split_last() else { return "Its journal is still being read.".to_owned() };
        let (who, keep) = if others.is_empty() { (last.clone(), "keeps") } else { (format!("{} and {last}", others.join(", ")), "keep") };
        format!(
            "It waits for its journal, which {who} {keep}: one of them has to answer. If none will come back, declare them lost; after 24 h it \
             begins without what only they have."
        )
    }

    /// What became of a URL of a site, as far as is known without looking into the store, and its level.
    fn state_of(&self, site: &Site, url: &PageUrl) -> (VisitState, String, Option<u8>) {
        if let Some(Asking::Page(asked)) = &site.asking
            && asked.url == *url
        {
            return (VisitState::Requested, "is being fetched".to_owned(), Some(asked.level));
        }
        if let Some(read) = site.reading.as_ref().filter(|read| read.url == *url) {
            return (VisitState::Reading, "was fetched and is being parsed".to_owned(), Some(read.level));
        }
        let cut = site.record.cut_by_depth > 0;
        let print = self.context.secret.of(url.as_str());
        if let Some(place) = site.frontier.far().position(|(_, page)| page == print) {
            let ahead = (site.frontier.near().count() + place) as u64;
            return (
                VisitState::Waiting,
                format!("waits, with {} before it", counted(ahead, "URL")),
                site.frontier.far().nth(place).map(|(level, _)| level),
            );
        }
        match site.frontier.get(print) {
            Some(waiting) if site.record.state == RunState::PausedByBudget => {
                (VisitState::PausedByBudget, "waits, but the page budget of this run is used up".to_owned(), Some(waiting.level))
            }
            Some(waiting) => {
                let ahead = site.frontier.near().position(|other| other.fingerprint == waiting.fingerprint).unwrap_or(0) as u64;
                (VisitState::Waiting, format!("waits, with {} before it", counted(ahead, "URL")), Some(waiting.level))
            }
            None if let Some((state, words)) = refused_by_robots(site, url) => (state, words.to_owned(), None),
            None if site.left_out(self.context.secret.of(url.as_str())) => {
                (VisitState::CutByYield, "was left out by the yield rule: too few new external hosts expected".to_owned(), None)
            }
            None if site.starts.contains(url) => {
                (VisitState::NotWaiting, "is a starting URL and was fetched or set aside in this run".to_owned(), Some(0))
            }
            None if cut => (
                VisitState::NotWaiting,
                "does not wait: it was fetched, set aside, cut by the depth limit, or never named".to_owned(),
                None,
            ),
            None => (VisitState::NotWaiting, "does not wait: it was fetched, set aside, or never named".to_owned(), None),
        }
    }

    /// In how long a site may be asked again, in this run or else in the next; none if that is not known here.
    fn next_visit(&self, site: &Site) -> Option<Millis> {
        if site.asking.is_some() {
            return None;
        }
        if site.finished() {
            let home = if site.is_home() { site } else { self.crawl.site(&site.tree).filter(|home| home.is_home())? };
            let due = home.opened.0.saturating_add(self.context.settings.revisit);
            return Some(due.saturating_sub(self.context.now.wall.0));
        }
        if site.record.state == RunState::PausedByBudget && !site.is_busy() {
            return Some(site.resumes_in(self.context.now.wall, SLOT));
        }
        (site.is_busy() || site.wants(&self.context.settings.rules)).then(|| self.rest_of(site.address).unwrap_or(0))
    }

    /// For how long an address rests; none if it was not asked lately.
    fn rest_of(&self, address: IpAddr) -> Option<Millis> {
        self.crawl.fetches().scheduler().not_before(address).map(|until| until.since(self.context.now.moment))
    }

    /// Which servers of ours live in a subnet, or only at one of its addresses.
    fn on_record(&self, subnet: &Subnet, at: Option<IpAddr>) -> String {
        let hosts = self.crawl.sites().within(subnet);
        let there = |host: &&Host| at.is_none_or(|address| self.crawl.site(host).is_some_and(|site| site.address == address));
        let here: Vec<_> = hosts.filter(there).collect();
        if here.is_empty() {
            return format!("No server {} has been named yet.", if at.is_some() { "at this address" } else { "in it" });
        }
        let named: Vec<_> = here.iter().take(MAX_NAMED).map(|host| host.as_str()).collect();
        let more = if here.len() > MAX_NAMED { format!(" and {} more", here.len() - MAX_NAMED) } else { String::new() };
        format!("{} on record here: {}{more}.", counted(here.len() as u64, "server"), named.join(", "))
    }

    fn ago(&self, then: WallTime) -> Span {
        Span(self.context.now.wall.0.saturating_sub(then.0))
    }
}

/// What keeps a URL from being asked for, if its robots.txt does.
fn refused_by_robots(site: &Site, url: &PageUrl) -> Option<(VisitState, &'static str)> {
    Some(match site.robots_refusal(url)? {
        SkipReason::RobotsUnavailable => {
            (VisitState::RobotsUnavailable, "is not requested: robots.txt could not be had, which counts as a refusal of everything")
        }
        SkipReason::CrawlDelay => {
            (VisitState::RefusedByCrawlDelay, "is not requested: robots.txt demands a longer pause between requests than is waited")
        }
        _ => (VisitState::RefusedByRobots, "is not requested: robots.txt forbids it"),
    })
}

/// How a run stands, in words.
fn run_words(site: &Site) -> String {
    let pages = counted(site.record.pages, "page");
    let waiting = counted(site.frontier.len() as u64, "URL");
    let trouble = match (site.record.status, site.record.main_failure()) {
        (ServerStatus::Down, Some(failure)) => format!(", because {failure}"),
        (ServerStatus::Refused, _) => ", because it refuses crawlers".to_owned(),
        (ServerStatus::Robots, _) => ", because its robots.txt keeps this crawler out".to_owned(),
        (ServerStatus::RobotsUnavailable, _) => ", because its robots.txt could not be had, which counts as a refusal".to_owned(),
        _ => String::new(),
    };
    match site.record.state {
        _ if site.is_busy() => format!("is running: {pages} fetched, {waiting} waiting"),
        RunState::Running => format!("is running: {pages} fetched, {waiting} waiting"),
        RunState::Complete => format!("is complete: {pages} fetched{trouble}"),
        RunState::CutByDepth => {
            format!("is complete: {pages} fetched, {} beyond the depth limit left out", counted(site.record.cut_by_depth, "URL"))
        }
        RunState::CutByYield => {
            let left_out = counted(site.record.cut_by_yield, "URL");
            format!("is complete: {pages} fetched, {left_out} left out by the yield rule")
        }
        RunState::HeldBack => format!("is complete but for what limits hold back: {pages} fetched{trouble}"),
        RunState::PausedByBudget => format!("has used up its page budget: {pages} fetched, {waiting} waiting"),
    }
}
