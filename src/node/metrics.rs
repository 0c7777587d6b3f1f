//! Metrics for a monitoring system: counters and gauges by name, taken over from a [`StatusView`].

use nearcrawl_model::{
    allowance::AllowanceView,
    receipt::MAX_CONTACTS,
    view::{DelegationView, LimitView, MessagesView, MigrationView, State, StatusView},
};
use prometheus_client::{
    encoding::text::encode,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};
use std::sync::atomic::{AtomicU64, Ordering};

/// The one label that most families have: what their series differ in, and the value.
type Labels = [(&'static str, String); 1];

/// A ratio, where 1 is the whole or the usual.
type Ratio = Gauge<f64, AtomicU64>;

/// All metrics, with the registry that writes them out.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    info: Family<[(&'static str, String); 2], Gauge>,
    uptime: Gauge,
    state: Family<Labels, Gauge>,
    members: Family<Labels, Gauge>,
    subnets_owned: Gauge,
    subnets_claimed: Gauge,
    servers: Gauge,
    waiting: Gauge,
    outgoing: Gauge,
    connections: Gauge,
    pages: Counter,
    requests: Counter,
    bytes: Counter,
    not_modified: Counter,
    failed: Counter,
    failures: Family<Labels, Counter>,
    unresolved: Family<Labels, Counter>,
    probes: Counter,
    lookups: Counter,
    lookups_repeated: Counter,
    dns_questions: Counter,
    dns_questions_delayed: Counter,
    budget_used: Family<Labels, Gauge>,
    budget_max: Family<Labels, Gauge>,
    metered_line: Family<Labels, Gauge>,
    delegated: Family<Labels, Counter>,
    delegated_by_probes: Family<Labels, Counter>,
    probes_for_others: Counter,
    probes_declined: Family<Labels, Counter>,
    probes_declined_by_others: Family<Labels, Counter>,
    takeovers: Counter,
    passive_timings: Counter,
    observations: Gauge,
    members_measured: Gauge,
    accesses_judged: Counter,
    handovers: Family<Labels, Counter>,
    handovers_refused: Family<Labels, Counter>,
    busy: Ratio,
    price: Ratio,
    cache_entries: Family<Labels, Gauge>,
    cache_hits: Family<Labels, Counter>,
    cache_misses: Family<Labels, Counter>,
    store: Family<Labels, Gauge>,
    refusals: Family<Labels, Counter>,
    messages: Family<Labels, Counter>,
    message_bytes: Family<Labels, Counter>,
    limit_used: Family<Labels, Gauge>,
    limit_max: Family<Labels, Gauge>,
    tasks_running: Family<Labels, Gauge>,
    tasks_started: Family<Labels, Counter>,
    task_panics: Family<Labels, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics::new()
    }
}

impl Metrics {
    /// Registers all metrics, with zero values.
    pub fn new() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::with_prefix("nearcrawl"),
            info: Family::default(),
            uptime: Gauge::default(),
            state: Family::default(),
            members: Family::default(),
            subnets_owned: Gauge::default(),
            subnets_claimed: Gauge::default(),
            servers: Gauge::default(),
            waiting: Gauge::default(),
            outgoing: Gauge::default(),
            connections: Gauge::default(),
            pages: Counter::default(),
            requests: Counter::default(),
            bytes: Counter::default(),
            not_modified: Counter::default(),
            failed: Counter::default(),
            failures: Family::default(),
            unresolved: Family::default(),
            probes: Counter::default(),
            lookups: Counter::default(),
            lookups_repeated: Counter::default(),
            dns_questions: Counter::default(),
            dns_questions_delayed: Counter::default(),
            budget_used: Family::default(),
            budget_max: Family::default(),
            metered_line: Family::default(),
            delegated: Family::default(),
            delegated_by_probes: Family::default(),
            probes_for_others: Counter::default(),
            probes_declined: Family::default(),
            probes_declined_by_others: Family::default(),
            takeovers: Counter::default(),
            passive_timings: Counter::default(),
            observations: Gauge::default(),
            members_measured: Gauge::default(),
            accesses_judged: Counter::default(),
            handovers: Family::default(),
            handovers_refused: Family::default(),
            busy: Gauge::default(),
            price: Gauge::default(),
            cache_entries: Family::default(),
            cache_hits: Family::default(),
            cache_misses: Family::default(),
            store: Family::default(),
            refusals: Family::default(),
            messages: Family::default(),
            message_bytes: Family::default(),
            limit_used: Family::default(),
            limit_max: Family::default(),
            tasks_running: Family::default(),
            tasks_started: Family::default(),
            task_panics: Family::default(),
        };
        metrics.register();
        metrics
    }

    /// Names every metric and says what it is: one line for each.
    fn register(&mut self) {
        let r = &mut self.registry;
        r.register("access_point_info", "The access point's id and version, always 1", self.info.clone());
        r.register_with_unit("uptime", "Time since the daemon started", Unit::Seconds, self.uptime.clone());
        r.register("state", "1 for the present state, 0 for the others, by state", self.state.clone());
        r.register("members", "Members of the swarm, this one included, by liveness", self.members.clone());
        r.register("subnets_owned", "Subnets that this access point owns", self.subnets_owned.clone());
        r.register("subnets_claimed", "Subnets that have an owner, as far as known here", self.subnets_claimed.clone());
        r.register("servers", "Servers with a record or a waiting URL here", self.servers.clone());
        r.register("waiting_urls", "URLs in the frontiers of this access point", self.waiting.clone());
        r.register("outgoing_urls", "URLs that other owners have not acknowledged yet", self.outgoing.clone());
        r.register("open_connections", "Open connections to web servers", self.connections.clone());
        r.register("pages", "HTML pages fetched", self.pages.clone());
        r.register("requests", "Requests sent to web servers, robots.txt included", self.requests.clone());
        r.register_with_unit("fetched", "Bytes of bodies over the wire", Unit::Bytes, self.bytes.clone());
        r.register(
            "not_modified_pages",
            "Pages that the server said are unchanged since the previous run (304)",
            self.not_modified.clone(),
        );
        r.register("failed_requests", "Requests without a usable answer", self.failed.clone());
        r.register("failures", "Requests without a usable answer, robots.txt included, by reason", self.failures.clone());
        r.register("unresolved_names", "Names looked up that have no usable address, by reason", self.unresolved.clone());
        r.register("probes", "Probes of servers made, for this access point and for others", self.probes.clone());
        r.register("dns_lookups", "Host names looked up in the DNS", self.lookups.clone());
        r.register(
            "dns_lookups_repeated",
            "Look-ups in the DNS that failed for the moment and are repeated",
            self.lookups_repeated.clone(),
        );
        r.register("dns_questions", "Questions sent to name servers, repeated ones included", self.dns_questions.clone());
        let help = "Questions to name servers that waited for their turn";
        r.register("dns_questions_delayed", help, self.dns_questions_delayed.clone());
        r.register("budget_used_bytes", "Bytes moved in this day or month, or of memory in use, by budget", self.budget_used.clone());
        r.register("budget_max_bytes", "How many they may be, by budget; without a limit there is no line", self.budget_max.clone());
        let help =
            "1 while the line is metered and nothing is asked of servers, by the interface of the default route; else there is no line";
        r.register("metered_line", help, self.metered_line.clone());
        r.register("delegated_subnets", "Subnets given an owner by a search run here, by policy", self.delegated.clone());
        let help = "Subnets given an owner by a search run here, by the number of probes that it took";
        r.register("delegated_subnets_by_probes", help, self.delegated_by_probes.clone());
        r.register("probes_for_others", "Probes made for other stewards", self.probes_for_others.clone());
        r.register(
            "probes_declined",
            "Probes that other stewards asked for and that were not made, by reason",
            self.probes_declined.clone(),
        );
        r.register(
            "probes_declined_by_others",
            "Probes that other members were asked for and did not make, by reason",
            self.probes_declined_by_others.clone(),
        );
        r.register(
            "takeovers_without_probe",
            "Subnets taken over on the strength of earlier measurements, without a probe",
            self.takeovers.clone(),
        );
        r.register("passive_timings", "Downloads that showed a subnet to be nearer than was known", self.passive_timings.clone());
        r.register("distance_observations", "Measurements in the model of distances", self.observations.clone());
        r.register("members_measured", "Members to which the round-trip time was measured", self.members_measured.clone());
        r.register("accesses_judged", "Accesses to subnets that the migration rule judged", self.accesses_judged.clone());
        r.register("handovers", "Hand-overs of subnets to and from other owners, by outcome", self.handovers.clone());
        r.register("handovers_refused", "Offers of subnets that other members refused, by reason", self.handovers_refused.clone());
        let help = "Requests under way over the last minute as a share of the most that may be";
        r.register_with_unit("busy", help, ratio(), self.busy.clone());
        let help = "What a second of this member's time costs in the choice of an owner; 1 for an unloaded member";
        r.register_with_unit("price", help, ratio(), self.price.clone());
        r.register("cache_entries", "Entries of a cache of recently seen URLs, by cache", self.cache_entries.clone());
        r.register("cache_hits", "Lookups that found the URL in the cache, by cache", self.cache_hits.clone());
        r.register("cache_misses", "Lookups that did not find the URL in the cache, by cache", self.cache_misses.clone());
        r.register_with_unit("store", "Size of a database on disk, by database", Unit::Bytes, self.store.clone());
        r.register("messages", "Messages sent to members, answers among them, by kind", self.messages.clone());
        let help = "Bytes of messages to members as encoded, before they are packed, by kind";
        r.register_with_unit("message", help, Unit::Bytes, self.message_bytes.clone());
        r.register("refusals", "Refused input and requests, by class", self.refusals.clone());
        r.register("limit_used", "Present size of something limited, by limit", self.limit_used.clone());
        r.register("limit_max", "Greatest size of something limited, by limit", self.limit_max.clone());
        r.register("tasks_running", "Background tasks that run now, by kind", self.tasks_running.clone());
        r.register("tasks_started", "Background tasks started since the daemon started, by kind", self.tasks_started.clone());
        r.register("task_panics", "Background tasks that panicked, by kind: each is a fault of nearcrawl", self.task_panics.clone());
    }

    fn update_budgets(&self, allowance: &AllowanceView) {
        count(&self.dns_questions, allowance.dns_questions);
        count(&self.dns_questions_delayed, allowance.dns_questions_delayed);
        let budgets = [
            ("crawl-day", allowance.day_bytes, allowance.day_limit_bytes),
            ("crawl-month", allowance.month_bytes, allowance.month_limit_bytes),
            ("swarm-day", allowance.swarm_day_bytes, allowance.swarm_day_limit_bytes),
            ("readers-day", allowance.readers_day_bytes, allowance.readers_day_limit_bytes),
            ("swarm-month", allowance.swarm_month_bytes, None),
            ("memory", allowance.memory_bytes, allowance.memory_limit_bytes),
            ("disk", allowance.disk_bytes, allowance.disk_limit_bytes),
        ];
        self.metered_line.clear();
        allowance.metered_interface.iter().for_each(|interface| set(&self.metered_line.get_or_create(&label("interface", interface)), 1));
        for (budget, used, limit) in budgets {
            set(&self.budget_used.get_or_create(&label("budget", budget)), used);
            limit.iter().for_each(|limit| set(&self.budget_max.get_or_create(&label("budget", budget)), *limit));
        }
    }

    fn update_messages(&self, messages: &[MessagesView]) {
        for of_kind in messages {
            let kind = label("kind", &of_kind.kind);
            count(&self.messages.get_or_create(&kind), of_kind.sent);
            count(&self.message_bytes.get_or_create(&kind), of_kind.encoded_bytes);
        }
    }

    /// Copies the sizes of what is limited into the metrics.
    pub fn update_limits(&self, limits: &[LimitView]) {
        for limit in limits {
            set(&self.limit_used.get_or_create(&label("limit", &limit.name)), limit.used);
            set(&self.limit_max.get_or_create(&label("limit", &limit.name)), limit.max);
        }
    }

    /// Copies the values of a status into the metrics.
    pub fn update(&self, status: &StatusView) {
        // The classes that a family has may change from one status to the next: old series must not stay.
        self.info.clear();
        let who = [("access_point", status.access_point.to_string()), ("version", status.version.clone())];
        set(&self.info.get_or_create(&who), 1);
        set(&self.uptime, status.uptime_ms / 1000);
        // One series for each state, of which one is 1.
        for state in State::ALL {
            set(&self.state.get_or_create(&label("state", state.name())), u64::from(state == status.state));
        }
        let members = [("alive", status.members.alive), ("silent", status.members.silent), ("dead", status.members.dead)];
        for (name, count) in members {
            set(&self.members.get_or_create(&label("liveness", name)), count);
        }
        set(&self.subnets_owned, status.subnets_owned);
        set(&self.subnets_claimed, status.subnets_claimed);
        set(&self.servers, status.servers);
        set(&self.waiting, status.waiting_urls);
        set(&self.outgoing, status.outgoing_urls);
        set(&self.connections, status.open_connections);
        count(&self.pages, status.work.pages);
        count(&self.requests, status.work.requests);
        count(&self.bytes, status.work.bytes);
        count(&self.not_modified, status.work.not_modified);
        count(&self.failed, status.work.failed);
        for (failure, times) in &status.failures {
            count(&self.failures.get_or_create(&label("reason", &failure.word())), *times);
        }
        for (failure, times) in &status.unresolved {
            count(&self.unresolved.get_or_create(&label("reason", &failure.word())), *times);
        }
        count(&self.probes, status.work.probes);
        count(&self.lookups, status.work.lookups);
        count(&self.lookups_repeated, status.work.lookups_repeated);
        self.update_budgets(&status.allowance);
        self.update_delegation(&status.delegation);
        self.update_migration(&status.migration);
        for cache in &status.caches {
            let place = label("cache", &cache.place);
            set(&self.cache_entries.get_or_create(&place), cache.entries);
            count(&self.cache_hits.get_or_create(&place), cache.hits);
            count(&self.cache_misses.get_or_create(&place), cache.misses);
        }
        set(&self.store.get_or_create(&label("part", "state")), status.store.state_bytes);
        set(&self.store.get_or_create(&label("part", "cache")), status.store.cache_bytes);
        for (class, refused) in &status.refusals {
            count(&self.refusals.get_or_create(&label("class", class)), *refused);
        }
        self.update_messages(&status.messages);
        self.update_limits(&status.limits);
        for task in &status.tasks {
            let kind = label("kind", &task.name);
            set(&self.tasks_running.get_or_create(&kind), task.running);
            count(&self.tasks_started.get_or_create(&kind), task.started);
            count(&self.task_panics.get_or_create(&kind), task.panicked);
        }
    }

    fn update_delegation(&self, delegation: &DelegationView) {
        count(&self.delegated.get_or_create(&label("policy", &delegation.policy)), delegation.delegated);
        // From none to all there may be, so that every series is there from the start.
        for probes in 0..=MAX_CONTACTS as u16 {
            let delegated = delegation.delegated_by_probes.get(&probes).copied().unwrap_or(0);
            count(&self.delegated_by_probes.get_or_create(&label("probes", &probes.to_string())), delegated);
        }
        count(&self.probes_for_others, delegation.probes_for_others);
        for (why, declined) in &delegation.declined {
            count(&self.probes_declined.get_or_create(&label("reason", why)), *declined);
        }
        for (why, refused) in &delegation.declined_by_others {
            count(&self.probes_declined_by_others.get_or_create(&label("reason", why)), *refused);
        }
        count(&self.takeovers, delegation.takeovers_without_probe);
        count(&self.passive_timings, delegation.passive_timings);
        set(&self.observations, delegation.observations);
        set(&self.members_measured, delegation.members_measured);
    }

    fn update_migration(&self, migration: &MigrationView) {
        count(&self.accesses_judged, migration.judged);
        let ends = [
            ("offered", migration.offered),
            ("released", migration.released),
            ("called-off", migration.called_off),
            ("received", migration.received),
        ];
        for (end, times) in ends {
            count(&self.handovers.get_or_create(&label("outcome", end)), times);
        }
        for (why, refused) in &migration.refused {
            count(&self.handovers_refused.get_or_create(&label("reason", why)), *refused);
        }
        self.busy.set(migration.busy_ratio);
        self.price.set(migration.price_ratio);
    }

    /// Everything in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail; should an encoder ever refuse, a half text must not pass for a whole one.
        if encode(&mut text, &self.registry).is_err() { String::new() } else { text }
    }
}

fn label(name: &'static str, value: &str) -> Labels {
    [(name, value.to_owned())]
}

/// The base unit of a share: `_ratio`, where 1 is the whole.
fn ratio() -> Unit {
    Unit::Other("ratio".to_owned())
}

fn set(gauge: &Gauge, value: u64) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}

/// Counters are kept where they grow; here they are only copied.
fn count(counter: &Counter, value: u64) {
    counter.inner().store(value, Ordering::Relaxed);
}
