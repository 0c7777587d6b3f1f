//! Tests that mistakes are explained, and that the defaults hold.

use super::{
    explained::{EXAMPLE, Entry, explained},
    renamed::RENAMED,
    *,
};
use std::{net::SocketAddr, time::Duration};

/// Keys that have no default: the example shows how a value would look. Its comment says "No default", by which the manual and the page know.
const WITHOUT_DEFAULT: [&str; 12] = [
    "swarm = ",
    "pre_shared_key_file",
    "source_address",
    "snapshot",
    "home_port",
    "crawl_per_",
    "crawl_rate",
    "swarm_per_",
    "memory = \"512",
    "disk",
    "hours",
    "time_zone",
];

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("/etc/nearcrawl/test.toml"))
}

fn complaint(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

/// The example with every key switched on, but for those that `skip` names.
fn example_switched_on(skip: &[&str]) -> String {
    let switch = |line: &str| match line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')) {
        Some(key) if !skip.iter().any(|skip| key.starts_with(skip)) => format!("{key}\n"),
        _ => format!("{line}\n"),
    };
    EXAMPLE.lines().map(switch).collect()
}

#[test]
fn malformed_configurations_are_explained() {
    let cases: &[(&str, &[&str])] = &[
        ("[crawl]\ndpeth = 3", &["line 2: crawl.dpeth: there is no such key; did you mean `depth`?"]),
        ("[crawl]\nbackground_colour = 3", &["line 2: crawl.background_colour: there is no such key; nearcrawl.example.toml lists"]),
        ("depth = 3", &["line 1: depth: there is no such key; `depth` belongs under [crawl]"]),
        ("[swarm]\ncontact = \"a@b.org\"", &["swarm.contact: there is no such key; `contact` belongs to the top of the file"]),
        ("\n\n[crwal]\ndepth = 3", &["line 3: crwal: there is no such key; did you mean `crawl`?"]),
        ("crawl = 8", &["line 1: crawl = 8: this is a section: write [crawl] on a line of its own"]),
        (
            "[crawl]\nrevisit = \"7x\"",
            &["line 2: crawl.revisit = \"7x\": write a duration in quotes", "(us, ms, s, m, h or d), like \"45s\""],
        ),
        ("[crawl]\nrevisit = 7", &["crawl.revisit = 7: write a duration in quotes"]),
        ("[crawl]\nrevisit = \"900d\"", &["crawl.revisit = \"900d\": write a duration from \"1s\" to \"365d\""]),
        ("[crawl]\nrevisit = \"99999999999999999999d\"", &["write a duration in quotes"]),
        ("[crawl]\nrevisit = \"300000000000000d\"", &["write a duration in quotes"]),
        ("[crawl]\nmin_delay = \"-1s\"", &["crawl.min_delay = \"-1s\": write a duration in quotes"]),
        ("[crawl]\ndepth = -1", &["line 2: crawl.depth = -1: write a whole number from 0 to 63"]),
        ("[crawl]\ndepth = 64", &["crawl.depth = 64: write a whole number from 0 to 63"]),
        ("[crawl]\ndepth = \"8\"", &["crawl.depth = \"8\": write a whole number from 0 to 63"]),
        ("[crawl]\ndepth = 2.5", &["crawl.depth = 2.5: write a whole number"]),
        ("[crawl]\nmax_parallel = 0", &["crawl.max_parallel = 0: write a whole number from 1 to 10000"]),
        ("[crawl]\nports = [80, 0]", &["crawl.ports = 0: write a whole number from 1 to 65535"]),
        ("[crawl]\nports = []", &["crawl.ports = []: without a port nothing can be crawled"]),
        ("[crawl]\nports = 80", &["crawl.ports = 80: write a list in square brackets"]),
        ("[crawl]\nsource_address = \"eth0\"", &["crawl.source_address = \"eth0\": write an IP address in quotes"]),
        (
            "[crawl]\nallow_ranges = [\"127.0.0.0/8\",\n  \"10.0.0.1/8\"]",
            &["line 3: crawl.allow_ranges = \"10.0.0.1/8\"", "write \"10.0.0.0/8\""],
        ),
        ("[crawl]\nallow_ranges = [\"0.0.0.0/0\"]", &["this would open nearly every special address", "\"127.0.0.0/8\""]),
        ("[crawl]\ndeny_ranges = [\"10.0.0.0\"]", &["crawl.deny_ranges = \"10.0.0.0\": write a range of addresses in quotes"]),
        ("[crawl]\ndeny_hosts = [\"http://a.org/\"]", &["write a host name in quotes", "without http://"]),
        ("[crawl]\nproduct_token = \"my crawler/1\"", &["crawl.product_token = \"my crawler/1\"", "letters, `-` and `_` only"]),
        ("[scope]\nopen = \"yes\"", &["scope.open = \"yes\": write true or false, without quotes"]),
        ("[scope]\nhosts = [\"ke\"]", &["scope.hosts = \"ke\": this is a top-level domain; write it under scope.tlds: [\"ke\"]"]),
        ("[scope]\nhosts = [\"co.ke\"]", &["the names under this public suffix have different owners", "\"example.co.ke\""]),
        ("[scope]\ntlds = [\"example.org\"]", &["write a top-level domain in quotes", "scope.hosts"]),
        (
            "[dns]\nservers = [\"resolver.example.org\"]",
            &["dns.servers = \"resolver.example.org\": write an IP address", "if it is not 53"],
        ),
        ("[dns]\nattempts = 0", &["dns.attempts = 0: write a whole number from 1 to 10"]),
        ("[fetch]\nmax_body_size = \"8MB\"", &["fetch.max_body_size = \"8MB\": write a size in quotes", "(B, KiB, MiB or GiB)"]),
        ("[fetch]\nmax_body_size = \"1B\"", &["fetch.max_body_size = \"1B\": write a size from \"1KiB\" to \"1GiB\""]),
        ("[fetch]\ntotal_timeout = \"2h\"", &["fetch.total_timeout = \"2h\": write a duration from \"10ms\" to \"10m\""]),
        (
            "[swarm]\nlisten = [\"0.0.0.0:4817\"]",
            &["swarm.listen = \"0.0.0.0:4817\": write an IP address and a port", "/ip4/0.0.0.0/tcp/4817"],
        ),
        ("[swarm]\nbootstrap = [\"/ip4/192.0.2.1\"]", &["swarm.bootstrap = \"/ip4/192.0.2.1\": write a multiaddress"]),
        ("[swarm]\nlisten = [\"/dns4/localhost/tcp/4817\"]", &["swarm.listen = \"/dns4/localhost/tcp/4817\": write an IP address"]),
        ("[swarm]\nlisten = [\"/ip4/127.0.0.1/tcp/4817/ws\"]", &["swarm.listen = \"/ip4/127.0.0.1/tcp/4817/ws\": write an IP address"]),
        ("[swarm]\nadvertise = [\"/ip4/192.0.2.1/tcp/0\"]", &["swarm.advertise = \"/ip4/192.0.2.1/tcp/0\": write a multiaddress"]),
        ("[swarm]\nbootstrap = [\"/ip4/192.0.2.1/tcp/4817/ws\"]", &["swarm.bootstrap = ", "write a multiaddress, like"]),
        ("[swarm]\nreaders = \"all\"", &["swarm.readers = \"all\": write \"anybody\" or \"members\""]),
        ("[delegation]\npolicy = \"fast\"", &["delegation.policy = \"fast\": write \"nearcrawl\", \"ipmicra\" or \"random\""]),
        ("[delegation]\nprobe = \"icmp\"", &["delegation.probe = \"icmp\": write \"tcp\" or \"http-head\""]),
        ("[delegation]\nmax_contacts_per_subnet = 16", &["write a whole number from 1 to 15"]),
        (
            "[hierarchy]\nprefixes = [{country = \"KE\"}]",
            &["hierarchy.prefixes = {country = \"KE\"}: write {prefix =", "only prefix must be there"],
        ),
        ("[hierarchy]\nprefixes = [{prefix = \"10.0.0.0/8\", land = \"KE\"}]", &["there is no key `land` here"]),
        ("[hierarchy]\nprefixes = [{prefix = \"10.0.0.0/8\", country = \"Kenya\"}]", &["country: write a country as two capital letters"]),
        ("[hierarchy]\nprefixes = [{prefix = \"10.0.0.0/8\", registry = \"ripe\"}]", &["registry: write one of afrinic, apnic"]),
        ("[hierarchy]\nsources = [{name = \"a\"}]", &["hierarchy.sources = {name = \"a\"}: write {name = \"afrinic\", url = \"https://"]),
        ("[hierarchy]\nsources = [{name = \"../a\", url = \"https://example.org/a\"}]", &["write a name of at most 64"]),
        ("[hierarchy]\nsources = [{name = \"a\", url = \"ftp://example.org/a\"}]", &["write an address that begins with https://"]),
        (
            "[hierarchy]\nsources = [{name = \"a\", url = \"https://a.org/\"}, {name = \"a\", url = \"https://b.org/\"}]",
            &["each with a name of its own"],
        ),
        ("[hierarchy]\nsnapshot = \"a\"\ndelegated = [\"b\"]", &["line 3: hierarchy.delegated = [\"b\"]", "keep one of the two"]),
        ("[timers]\nlease = \"44s\"", &["line 2: timers.lease = \"44s\"", "may not exceed dead_after (45s)"]),
        (
            "[timers]\ndead_after = \"20s\"",
            &["line 2: timers.dead_after = \"20s\": lease and suspicion_timeout together may not exceed dead_after (20s)"],
        ),
        ("[timers]\nping_timeout = \"5s\"", &["timers.ping_timeout = \"5s\": ping_timeout must be shorter than ping_interval (5s)"]),
        (
            "[timers]\nreplace_voter_after = \"40s\"",
            &["line 2: timers.replace_voter_after = \"40s\": replace_voter_after may not be shorter than dead_after (45s)"],
        ),
        ("[api]\nlisten = \"4880\"", &["api.listen = \"4880\": write an IP address and a port in quotes", "\"\" to switch it off"]),
        ("[log]\nlevel = \"chatty\"", &["log.level = \"chatty\": write off, error, warn, info, debug or trace"]),
        ("[log]\njournald = true", &["log.journald = true: write \"auto\", \"always\" or \"never\""]),
        ("[store]\nmemory = \"1MiB\"", &["store.memory = \"1MiB\": write a size from \"8MiB\" to \"16GiB\""]),
        ("contact = \"me\"", &["line 1: contact = \"me\": write your email address or web page in quotes"]),
        (
            "[swarm]\npre_shared_key_file = \"key\"\nbootstrap = [\"/ip4/192.0.2.1/udp/4817/quic-v1\"]",
            &["swarm.bootstrap", "QUIC has no pre-shared key"],
        ),
        ("[dns]\nservers = [\"0.0.0.0\"]", &["dns.servers", "nobody can be asked there"]),
        ("[crawl]\nports = [80, 25]", &["crawl.ports", "the port of another service"]),
        ("[crawl]\nproduct_token = \"Googlebot\"", &["crawl.product_token", "the name of another crawler"]),
        ("page = \"me@x.org\"", &["write the address of the page about your crawler in quotes"]),
        ("contact = \"https://x.org/bot\"\npage = \"https://x.org/bot\"", &["`contact` reaches people"]),
        ("contact = \"a@b.org) evil\"", &["write your email address or web page in quotes"]),
        ("state_dir = \"\"", &["state_dir = \"\": this may not be empty"]),
        ("[crawl]\ndepth 8", &["line 2: depth 8: the line cannot be read as TOML: "]),
        ("contact = me@x.org", &["line 1: contact = me@x.org: the line cannot be read as TOML: a text stands in quotes"]),
        ("[crawl\n", &["line 1: [crawl: the line cannot be read as TOML: the name of a section"]),
        ("[crawl]\ndepth = ten", &["line 2: depth = ten: the line cannot be read as TOML: a text stands in quotes"]),
        ("[crawl]\ndepth = 8\ndepth = 9", &["line 3: depth = 9: the line cannot be read as TOML: duplicate key"]),
    ];
    for (text, expected) in cases {
        let said = complaint(text);
        for part in *expected {
            assert!(said.contains(part), "{text:?} should be told {part:?}, but was told:\n{said}");
        }
        assert!(said.starts_with("/etc/nearcrawl/test.toml has 1 problem:\n  "), "{text:?} was told more than one thing:\n{said}");
    }
}

#[test]
fn each_procedure_of_delegation_can_be_chosen() {
    let chosen = |name: &str| parse(&format!("[delegation]\npolicy = \"{name}\"")).unwrap().delegation.policy;
    assert_eq!(
        ["nearcrawl", "ipmicra", "random"].map(chosen),
        [DelegationPolicy::Nearcrawl, DelegationPolicy::Ipmicra, DelegationPolicy::Random]
    );
}

/// Another value than the default for keys that are like others of their section.
const OTHER_VALUES: &str = r#"
    [swarm]
    max_connected = 65
    [crawl]
    max_pages_per_run = 1001
    max_parallel = 65
    max_parallel_per_subnet = 5
    min_delay = "3s"
    product_token = "other"
    max_waiting_urls = 1000001
    [dns]
    min_ttl = "61s"
    [fetch]
    connect_timeout = "11s"
    tls_timeout = "12s"
    head_timeout = "16s"
    idle_timeout = "13s"
    total_timeout = "61s"
    max_body_size = "9MiB"
    max_decoded_size = "10MiB"
    ca_files = ["/etc/ca.pem"]
    [delegation]
    probe_price = "400us"
    max_parallel_rounds = 9
    max_contacts_per_subnet = 14
    requests_per_access = 17
    [timers]
    replace_voter_after = "11m"
    lease = "31s"
    vote_after = "32s"
    ping_interval = "2s"
    ping_timeout = "800ms"
    suspicion_timeout = "6s"
"#;

/// A `[timers]` section with a value under each of the names that were replaced.
const OLD_TIMERS: &str = r#"
[timers]
pair_patience = "11m"
fence_after = "31s"
stable_after = "32s"
probe_every = "2s"
probe_timeout = "800ms"
suspect_for = "6s"
"#;

#[test]
fn each_timer_of_before_is_told_its_name_of_now_and_causes_no_other_problem() {
    let said = complaint(OLD_TIMERS);
    let mut expected = vec![format!("/etc/nearcrawl/test.toml has {} problems:", RENAMED.len())];
    expected.extend((3..).zip(RENAMED).map(|(line, (old, now))| format!("  line {line}: timers.{old}: `{old}` is called `{now}` now")));
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    let renamed = RENAMED.iter().fold(OLD_TIMERS.to_owned(), |text, (old, now)| text.replace(&format!("{old} ="), &format!("{now} =")));
    let (timers, tried) = (parse(&renamed).unwrap().timers, parse(OTHER_VALUES).unwrap().timers);
    assert_eq!(timers, tried);
    assert!(!complaint("[swarm]\nprobe_every = \"2s\"").contains("is called"), "in another section it was no name");
}

#[test]
fn keys_are_read_into_what_they_are_called() {
    let mut expected = Config::default();
    expected.swarm.max_connected = 65;
    expected.crawl.max_pages_per_run = Some(1001);
    expected.crawl.max_parallel = 65;
    expected.crawl.max_parallel_per_subnet = 5;
    expected.crawl.min_delay = Duration::from_secs(3);
    expected.crawl.product_token = "other".to_owned();
    expected.crawl.max_waiting_urls = 1_000_001;
    expected.dns.min_ttl = Duration::from_secs(61);
    expected.fetch.connect_timeout = Duration::from_secs(11);
    expected.fetch.tls_timeout = Duration::from_secs(12);
    expected.fetch.head_timeout = Duration::from_secs(16);
    expected.fetch.idle_timeout = Duration::from_secs(13);
    expected.fetch.total_timeout = Duration::from_secs(61);
    expected.fetch.max_body_size = 9 << 20;
    expected.fetch.max_decoded_size = 10 << 20;
    expected.fetch.ca_files = vec!["/etc/ca.pem".into()];
    expected.delegation.probe_price = Duration::from_micros(400);
    expected.delegation.max_parallel_rounds = 9;
    expected.delegation.max_contacts_per_subnet = 14;
    expected.delegation.migration.requests_per_access = 17;
    expected.timers.replace_voter_after = Duration::from_secs(660);
    expected.timers.lease = Duration::from_secs(31);
    expected.timers.vote_after = Duration::from_secs(32);
    expected.timers.ping_interval = Duration::from_secs(2);
    expected.timers.ping_timeout = Duration::from_millis(800);
    expected.timers.suspicion_timeout = Duration::from_secs(6);
    assert_eq!(parse(OTHER_VALUES).unwrap(), expected);
}

#[test]
fn a_file_in_which_every_line_is_wrong_does_not_flood_the_terminal() {
    for text in ["word\n".repeat(500), format!("[crawl]\n{}", (0..500).map(|n| format!("key{n} = 1\n")).collect::<String>())] {
        let said = complaint(&text);
        assert!(said.starts_with("/etc/nearcrawl/test.toml has 500 problems:\n  line "), "{said}");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 32, "{said}");
        assert!(lines[31].starts_with("  and 470 more, from line 3") && lines[31].ends_with("on: mend these first"), "{said}");
    }
    let said = complaint(&format!("[crawl]\n{}", (0..30).map(|n| format!("key{n} = 1\n")).collect::<String>()));
    assert!(said.lines().count() == 31 && !said.contains("more"), "{said}");
}

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_the_lines() {
    let said = complaint("[timers]\ndead_after = \"soon\"\n[crawl]\ndpeth = 3\ndepth = 99\n[dsn]\nservers = []\n");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 5, "{said}");
    assert_eq!(lines[0], "/etc/nearcrawl/test.toml has 4 problems:");
    assert!(lines[1].starts_with("  line 2: timers.dead_after"));
    assert!(lines[2].starts_with("  line 4: crawl.dpeth"));
    assert!(lines[3].starts_with("  line 5: crawl.depth = 99"));
    assert!(lines[4].starts_with("  line 6: dsn: there is no such key; did you mean `dns`?"));
}

#[test]
fn a_long_or_dirty_value_does_not_flood_the_message() {
    let said = complaint(&format!("[crawl]\nrevisit = \"\"\"\n\u{1b}[31m{}\"\"\"", "x".repeat(5000)).replace('\u{1b}', "e"));
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.contains('…') && said.len() < 400, "{said}");
}

#[test]
fn no_file_and_an_empty_file_give_the_defaults() {
    let default = Config::load(None).unwrap();
    assert_eq!(default, Config::default());
    assert_eq!(default, parse("").unwrap());
    assert_eq!(default.crawl.depth, 8);
    assert_eq!(default.crawl.max_pages_per_run, Some(1000));
    assert_eq!((default.crawl.max_new_hosts_per_site, default.crawl.max_new_hosts_per_domain), (Some(500), Some(50)));
    assert_eq!(default.swarm.listen, ["/ip4/0.0.0.0/tcp/4817", "/ip4/0.0.0.0/udp/4817/quic-v1"]);
    assert_eq!(default.api.listen, Some(SocketAddr::from(([127, 0, 0, 1], 4880))));
    assert_eq!(default.timers.dead_after, Duration::from_secs(45));
}

#[test]
fn the_example_names_every_key_and_shows_the_defaults() {
    let untouched = parse(EXAMPLE).unwrap();
    assert_eq!(untouched, Config::default(), "the example as it is must change nothing");

    let text = example_switched_on(&[]);
    let (root, mistakes) = DeTable::parse_recoverable(&text);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let mut reader = Reader::new(&text, root.get_ref(), Path::new("/"));
    Config::read(&mut reader);
    for (section, key) in reader.known() {
        let table = if section.is_empty() { root.get_ref() } else { root.get_ref()[*section].get_ref().as_table().unwrap() };
        assert!(table.contains_key(*key), "nearcrawl.example.toml lacks {section}.{key}");
    }
    let problems: Vec<String> =
        reader.finish().iter().map(ToString::to_string).filter(|problem| !problem.contains("keep one of the two")).collect();
    assert!(problems.is_empty(), "{problems:?}");

    let mut on = parse(&example_switched_on(&WITHOUT_DEFAULT)).unwrap();
    on.state_dir = Config::default().state_dir;
    assert_eq!(on, Config::default(), "a value in the example is not the default");
}

#[test]
fn the_example_says_which_keys_have_no_default() {
    for entry in explained() {
        let Entry::Keys { section, keys, meaning } = entry else { continue };
        for (key, value) in keys {
            let has_none = WITHOUT_DEFAULT.iter().any(|skip| format!("{key} = {value}").starts_with(skip));
            assert_eq!(meaning.contains("No default: "), has_none, "{section}.{key} = {value}: {meaning}");
        }
    }
}

#[test]
fn values_are_understood() {
    let config = parse(
        r#"
        contact = "mailto:crawl@museum.ke"
        state_dir = "state"
        [crawl]
        max_pages_per_run = 0
        max_new_hosts_per_site = 0
        max_new_hosts_per_domain = 7
        revisit = "1h"
        min_delay = "200ms"
        source_address = "127.10.0.1"
        allow_ranges = ["127.0.0.0/8", "fd00::/8"]
        deny_hosts = ["Example.ORG"]
        depth = 0x0a
        [scope]
        tlds = [".KE", "test"]
        hosts = ["museum.ke", "127.16.0.1", "localhost"]
        [dns]
        servers = ["127.0.0.1:5353", "192.0.2.53", "2001:db8::53", "[2001:db8::53]:5353"]
        [fetch]
        max_body_size = "64 KiB"
        [hierarchy]
        delegated = ["registry.txt", "/srv/other.txt"]
        prefixes = [{prefix = "10.1.0.0/16", organisation = "Museum"}]
        [api]
        listen = ""
        [log]
        level = "info,nearcrawl::io=debug"
        "#,
    )
    .unwrap();
    assert_eq!(config.state_dir, Path::new("/etc/nearcrawl/state"));
    assert_eq!(config.contact.as_deref(), Some("mailto:crawl@museum.ke"));
    assert_eq!(config.crawl.max_pages_per_run, None);
    assert_eq!((config.crawl.max_new_hosts_per_site, config.crawl.max_new_hosts_per_domain), (None, Some(7)));
    assert_eq!(config.crawl.revisit, Duration::from_secs(3600));
    assert_eq!(config.crawl.min_delay, Duration::from_millis(200));
    assert_eq!(config.crawl.source_address, Some("127.10.0.1".parse().unwrap()));
    assert_eq!(config.crawl.allow_ranges, ["127.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()]);
    assert_eq!(config.crawl.deny_hosts, ["example.org".parse().unwrap()]);
    assert_eq!(config.crawl.depth, 10);
    assert_eq!(config.scope.tlds, ["ke", "test"]);
    assert_eq!(config.scope.hosts.len(), 3);
    let servers: Vec<String> = config.dns.servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["127.0.0.1:5353", "192.0.2.53:53", "[2001:db8::53]:53", "[2001:db8::53]:5353"]);
    assert_eq!(config.fetch.max_body_size, 65_536);
    assert_eq!(config.hierarchy.delegated, [Path::new("/etc/nearcrawl/registry.txt"), Path::new("/srv/other.txt")]);
    assert_eq!(config.hierarchy.prefixes[0].prefix, "10.1.0.0/16".parse().unwrap());
    assert_eq!(config.hierarchy.prefixes[0].country, None);
    assert_eq!(config.api.listen, None);
    assert_eq!(config.user_agent(), format!("nearcrawl/{} (+mailto:crawl@museum.ke)", env!("CARGO_PKG_VERSION")));
    let paged = parse("contact = \"crawl@museum.ke\"\npage = \"https://museum.ke/crawler\"").unwrap();
    assert_eq!(paged.user_agent(), format!("nearcrawl/{} (+https://museum.ke/crawler; crawl@museum.ke)", env!("CARGO_PKG_VERSION")));
}

#[test]
fn crawling_strangers_needs_a_contact() {
    let ready = |text: &str| parse(text).unwrap().ready_to_run();
    assert_eq!(ready(""), Err(NotReady::NoContact));
    assert_eq!(ready("contact = \"\""), Err(NotReady::NoContact));
    assert_eq!(ready("contact = \"https://museum.ke/crawler\""), Ok(()));
    for placeholder in ["you@example.org", "mailto:me@mail.example.com", "https://example.net/crawler", "http://bot.example/"] {
        let said = complaint(&format!("contact = \"{placeholder}\""));
        assert!(said.contains("from the documentation"), "{said}");
    }
    let zeros = format!("contact = \"a@museum.ke\"\n[admission]\nswarm = \"{}\"", "0".repeat(64));
    assert_eq!(ready(&zeros), Err(NotReady::NoRootKey));
    let source = |address: &str| ready(&format!("contact = \"a@museum.ke\"\n[crawl]\nsource_address = \"{address}\""));
    assert_eq!(source("127.0.0.77"), Ok(()));
    let foreign = source("192.0.2.10").unwrap_err().to_string();
    assert!(foreign.starts_with("crawl.source_address = \"192.0.2.10\": this is not an address of this machine"), "{foreign}");
    let opened = "[crawl]\nallow_ranges = [\"127.0.0.0/8\"]\n";
    assert_eq!(ready(opened), Err(NotReady::NoContact), "opening a range does not close the web");
    assert_eq!(ready(&format!("{opened}[dns]\nservers = [\"127.0.0.1:5353\"]")), Ok(()));
    assert_eq!(ready(&format!("{opened}[dns]\nservers = [\"127.0.0.1\", \"192.0.2.53\"]")), Err(NotReady::NoContact));
    assert_eq!(ready(&format!("{opened}[scope]\nhosts = [\"127.1.2.3\"]")), Ok(()));
    assert_eq!(ready(&format!("{opened}[scope]\nhosts = [\"127.1.2.3\", \"example.org\"]")), Err(NotReady::NoContact));
    assert_eq!(ready(&format!("{opened}[scope]\nhosts = [\"127.1.2.3\"]\ntlds = [\"ke\"]")), Err(NotReady::NoContact));
}

#[test]
fn risky_choices_are_warned_of() {
    let warnings = |text: &str| parse(text).unwrap().warnings().join("\n");
    let known = "contact = \"a@b.org\"\n";
    assert_eq!(warnings(known), "");
    assert!(warnings(&format!("{known}[crawl]\nsource_address = \"127.0.0.1\"")).contains("loopback address"));
    assert!(warnings(&format!("{known}[crawl]\ndeny_tlds = [\"ke\"]\n[scope]\ntlds = [\"ke\"]")).contains("both have \"ke\""));
    assert!(warnings(&format!("{known}[swarm]\nlisten = [\"/ip4/0.0.0.0/tcp/0\"]")).contains("another port at each start"));
    let at_443 = format!("{known}[swarm]\nlisten = [\"/ip4/0.0.0.0/tcp/443\"]\n");
    assert!(warnings(&at_443).contains("/tcp/443\": below 1024"));
    assert_eq!(warnings(&format!("{at_443}advertise = [\"/ip4/192.0.2.1/tcp/443\"]")), "");
    assert!(warnings("contact = \"https://b.org/bot\"").contains("set `page` to it"));
    assert_eq!(warnings("contact = \"https://b.org/me\"\npage = \"https://b.org/bot\""), "");
    assert!(warnings(&format!("{known}[api]\nlisten = \"0.0.0.0:4880\"")).contains("can be reached from other machines"));
    assert!(warnings(&format!("{known}[crawl]\nallow_ranges = [\"10.0.0.0/8\"]")).contains("meant for laboratories"));
    let of_data_centre = format!("{known}[crawl]\nallow_ranges = [\"2a00:1:2:3::/64\"]\n");
    assert_eq!(warnings(&of_data_centre), "", "what is there is public");
    let named = format!("{of_data_centre}[dns]\nservers = [\"[2a00:1:2:3::53]:53\"]").replace(known, "");
    assert_eq!(parse(&named).unwrap().ready_to_run(), Err(NotReady::NoContact), "it is no laboratory");
    assert!(warnings(&format!("{known}[delegation]\npolicy = \"random\"")).contains("draws the owner of each subnet"));
    assert!(warnings(&format!("{known}[allowance]\ncrawl_rate = \"32KiB\"")).contains("lower crawl.max_parallel"));
    assert_eq!(warnings(&format!("{known}[allowance]\ncrawl_rate = \"64KiB\"")), "");
    assert!(warnings(&format!("{known}[crawl]\nmin_delay = \"100ms\"")).contains("below the pauses that nearcrawl promises"));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("none.toml");
    let said = Config::load(Some(&missing)).unwrap_err().to_string();
    assert!(said.contains("there is no configuration") && said.contains("none.toml"), "{said}");

    let said = Config::load(Some(directory.path())).unwrap_err().to_string();
    assert!(said.contains("cannot be read"), "{said}");

    let large = directory.path().join("large.toml");
    fs::write(&large, "#".repeat(2 << 20)).unwrap();
    assert!(Config::load(Some(&large)).unwrap_err().to_string().contains("at most 1048576"));

    let good = directory.path().join("good.toml");
    fs::write(&good, "state_dir = \"here\"").unwrap();
    assert_eq!(Config::load(Some(&good)).unwrap().state_dir, directory.path().join("here"));
}

#[test]
fn the_state_directory_depends_on_who_starts_the_daemon() {
    let nobody = Surroundings::default();
    let user = Surroundings { home: Some("/home/ann".into()), ..nobody.clone() };
    let root = Surroundings { root: true, ..user.clone() };
    let service = Surroundings { state_directory: Some("/var/lib/private/nearcrawl:/var/lib/other".into()), ..root.clone() };
    let xdg = Surroundings { state_home: Some("/home/ann/state".into()), ..user.clone() };
    assert_eq!(nobody.state_dir(), Path::new("/var/lib/nearcrawl"));
    assert_eq!(user.state_dir(), Path::new("/home/ann/.local/state/nearcrawl"));
    assert_eq!(xdg.state_dir(), Path::new("/home/ann/state/nearcrawl"));
    assert_eq!(root.state_dir(), Path::new("/var/lib/nearcrawl"));
    assert_eq!(service.state_dir(), Path::new("/var/lib/private/nearcrawl"));
}

#[test]
fn the_daemon_takes_the_configuration_of_the_demonstration() {
    use nearcrawl_lab::demo::{
        daemons::Common,
        world::{DEPTH, WEB_PORT},
    };
    let common = Common {
        directory: std::env::temp_dir(),
        registries: vec!["/srv/with \"quotes\"/delegated-a".into(), "/srv/delegated-b".into()],
        name_server: "127.16.250.53:5300".parse().unwrap(),
        range: "127.16.0.0/16".to_owned(),
        program: "/bin/sh".into(),
    };
    let member = nearcrawl_model::access_point::AccessPoint([7; 32]);
    for bootstrap in [None, Some(format!("/ip4/127.16.48.1/tcp/4817/p2p/{member}"))] {
        let text = common.configuration("127.16.0.1".parse().unwrap(), bootstrap.as_deref());
        let config = Config::parse(&text, Path::new("demo.toml")).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((config.crawl.depth, config.crawl.ports.as_slice()), (DEPTH, [WEB_PORT].as_slice()));
        config.ready_to_run().unwrap_or_else(|why| panic!("{why}"));
    }
}
