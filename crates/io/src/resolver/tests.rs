//! Tests that the resolver pins what it should, with a real DNS server on loopback that lies, stalls and loops.

use super::*;
use hickory_proto::rr::{Record, rdata::TXT};
use nearcrawl_test_servers::dns::{Dns, Reply, a, aaaa, alias, name};

mod rebinding;

/// The resolver under test, which asks this server.
fn resolver(dns: &Dns, policy: AddressPolicy) -> Resolver {
    let config = ResolverConfig { servers: vec![dns.address], ..ResolverConfig::default() };
    Resolver::new(config, policy).unwrap()
}

fn host(text: &str) -> Host {
    text.parse().unwrap()
}

async fn pinned(dns: &Dns, text: &str) -> Result<(String, Millis), ResolveError> {
    let located = resolver(dns, AddressPolicy::default()).resolve(&host(text), None).await?;
    assert_eq!(located.host, host(text));
    Ok((located.address.to_string(), located.valid_for))
}

#[tokio::test]
async fn the_smallest_allowed_address_is_pinned() {
    let dns = Dns::start(|name, kind| match (name, kind) {
        ("many.test.", RecordType::A) => {
            Reply::Records(["10.0.0.1", "9.9.9.9", "127.0.0.1", "8.8.8.8", "8.8.8.9"].map(|ip| a(name, 300, ip)).into())
        }
        ("six.test.", RecordType::AAAA) => Reply::Records(["2a00::2", "2a00::1", "fd00::1"].map(|ip| aaaa(name, 300, ip)).into()),
        ("mixed.test.", RecordType::A) => Reply::Records(vec![a(name, 300, "192.168.1.1")]),
        ("mixed.test.", RecordType::AAAA) => Reply::Records(vec![aaaa(name, 300, "2a00::7")]),
        ("wrapped.test.", RecordType::AAAA) => Reply::Records(vec![aaaa(name, 300, "::ffff:8.8.4.4")]),
        ("under_score.test.", RecordType::A) => Reply::Records(vec![a(name, 300, "8.8.8.8")]),
        _ => Reply::Records(vec![]),
    })
    .await;
    for (name, want) in [
        ("many.test", "8.8.8.8"),
        ("six.test", "2a00::1"),
        ("mixed.test", "2a00::7"),
        ("wrapped.test", "8.8.4.4"),
        ("under_score.test", "8.8.8.8"),
    ] {
        assert_eq!(pinned(&dns, name).await, Ok((want.into(), 300_000)), "{name}");
    }
}

#[tokio::test]
async fn all_addresses_of_a_family_are_found_whatever_may_be_contacted() {
    let dns = Dns::start(|name, kind| match (name, kind) {
        ("home.test.", RecordType::A) => Reply::Records(["10.0.0.1", "9.9.9.9"].map(|ip| a(name, 300, ip)).into()),
        ("home.test.", RecordType::AAAA) => Reply::Records(vec![]),
        _ => Reply::Code(ResponseCode::ServFail),
    })
    .await;
    let policy = AddressPolicy { own: vec!["9.9.9.9".parse().unwrap()], ..AddressPolicy::default() };
    let resolver = resolver(&dns, policy);
    let found = resolver.every_address(&host("home.test"), Family::Four).await.unwrap();
    assert_eq!(found, ["10.0.0.1", "9.9.9.9"].map(|ip| ip.parse::<IpAddr>().unwrap()));
    assert_eq!(resolver.every_address(&host("home.test"), Family::Six).await, Ok(Vec::new()));
    assert_eq!(resolver.every_address(&host("other.test"), Family::Four).await, Err(ResolveError::ServerFailed));
}

#[tokio::test]
async fn a_host_stays_where_it_was_as_long_as_that_is_among_its_addresses() {
    let dns = Dns::start(|name, kind| match (name, kind) {
        ("many.test.", RecordType::A) => Reply::Records(["10.0.0.1", "9.9.9.9", "8.8.8.8", "8.8.8.9"].map(|ip| a(name, 300, ip)).into()),
        ("six.test.", RecordType::A) => Reply::Records(vec![a(name, 300, "8.8.8.8")]),
        ("six.test.", RecordType::AAAA) => Reply::Records(["2a00::2", "2a00::1"].map(|ip| aaaa(name, 300, ip)).into()),
        _ => Reply::Records(vec![]),
    })
    .await;
    let resolver = resolver(&dns, AddressPolicy::default());
    for (name, was, is) in [
        ("many.test", "9.9.9.9", "9.9.9.9"),
        ("many.test", "8.8.8.9", "8.8.8.9"),
        ("many.test", "1.1.1.1", "8.8.8.8"),
        ("many.test", "10.0.0.1", "8.8.8.8"),
        ("six.test", "2a00::2", "2a00::2"),
        ("six.test", "2a00::3", "8.8.8.8"),
        ("six.test", "8.8.8.8", "8.8.8.8"),
    ] {
        let located = resolver.resolve(&host(name), Some(was.parse().unwrap())).await.unwrap();
        assert_eq!(located.address.to_string(), is, "{name}, which was at {was}");
    }
}

#[tokio::test]
async fn forbidden_addresses_are_never_pinned_unless_the_operator_opened_them() {
    let dns = Dns::start(|name, kind| match kind {
        RecordType::A => Reply::Records(["127.0.0.1", "169.254.169.254", "10.1.1.1"].map(|ip| a(name, 0, ip)).into()),
        _ => Reply::Records(vec![aaaa(name, 0, "::1"), aaaa(name, 0, "fd00:ec2::254")]),
    })
    .await;
    assert_eq!(pinned(&dns, "rebind.test").await, Err(ResolveError::ForbiddenAddress));
    assert_eq!(dns.asked(), 2);
    let laboratory = AddressPolicy { allowed: vec!["127.0.0.0/8".parse().unwrap()], ..AddressPolicy::default() };
    let located = resolver(&dns, laboratory).resolve(&host("rebind.test"), None).await.unwrap();
    assert_eq!(located.address.to_string(), "127.0.0.1");
    // The library knows this one by itself: it must be checked all the same.
    assert_eq!(pinned(&dns, "localhost").await, Err(ResolveError::ForbiddenAddress));
}

#[tokio::test]
async fn a_host_that_is_an_address_is_checked_without_a_question() {
    let dns = Dns::start(|_, _| Reply::Silence).await;
    assert_eq!(pinned(&dns, "8.8.8.8").await, Ok(("8.8.8.8".into(), MAX_PIN)));
    assert_eq!(pinned(&dns, "2a00::1").await, Ok(("2a00::1".into(), MAX_PIN)));
    for special in ["127.0.0.1", "2130706433", "0x7f000001", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "169.254.169.254"] {
        assert_eq!(pinned(&dns, special).await, Err(ResolveError::ForbiddenAddress), "{special}");
    }
    assert_eq!(dns.asked(), 0);
}

#[tokio::test]
async fn failures_are_told_apart() {
    let dns = Dns::start(|name, kind| match (name, kind) {
        ("nowhere.test.", _) => Reply::Code(ResponseCode::NXDomain),
        ("broken.test.", _) => Reply::Code(ResponseCode::ServFail),
        ("refused.test.", _) => Reply::Code(ResponseCode::Refused),
        ("half.test.", RecordType::AAAA) => Reply::Code(ResponseCode::ServFail),
        ("garbage.test.", _) => Reply::Garbage,
        ("silent.test.", _) => Reply::Silence,
        _ => Reply::Records(vec![]),
    })
    .await;
    let config = ResolverConfig { servers: vec![dns.address], timeout: Duration::from_millis(200), ..ResolverConfig::default() };
    let resolver = Resolver::new(config, AddressPolicy::default()).unwrap();
    for (name, want) in [
        ("nowhere.test", vec![ResolveError::NoSuchName]),
        ("empty.test", vec![ResolveError::NoAddress]),
        ("broken.test", vec![ResolveError::ServerFailed]),
        ("refused.test", vec![ResolveError::ServerFailed]),
        ("half.test", vec![ResolveError::ServerFailed]),
        ("silent.test", vec![ResolveError::TimedOut]),
        // Anybody can send garbage, so it may also be ignored until time is up.
        ("garbage.test", vec![ResolveError::ServerFailed, ResolveError::TimedOut]),
    ] {
        let found = tokio::time::timeout(Duration::from_secs(10), resolver.resolve(&host(name), None)).await.expect("the resolver hangs");
        assert!(found.as_ref().is_err_and(|found| want.contains(found)), "{name}: {found:?}");
    }
    assert_eq!(dns.questions().iter().filter(|(name, _, _)| name == "silent.test.").count(), 2, "two attempts");
    assert_eq!(dns.questions().iter().filter(|(name, _, _)| name == "nowhere.test.").count(), 1, "one is enough");
}

#[tokio::test]
async fn chains_are_followed_for_eight_aliases_and_loops_are_not() {
    /// `n<i>.long.test` is an alias of `n<i+1>…` until `n<last>` has an address.
    fn chain(name: &str, last: usize) -> Vec<Record> {
        let Some((number, rest)) = name.strip_prefix('n').and_then(|rest| rest.split_once('.')) else { return vec![] };
        let first: usize = number.parse().unwrap();
        let mut records: Vec<_> = (first..last).map(|n| alias(&format!("n{n}.{rest}"), 300, &format!("n{}.{rest}", n + 1))).collect();
        records.push(a(&format!("n{last}.{rest}"), 300, "8.8.8.8"));
        records
    }
    let dns = Dns::start(|name, kind| match (name, kind) {
        ("www.test.", RecordType::A) => Reply::Records(vec![alias(name, 300, "cdn.test."), a("cdn.test.", 90, "8.8.8.8")]),
        ("far.test.", _) => Reply::Records(vec![alias(name, 300, "near.test.")]),
        ("near.test.", RecordType::A) => Reply::Records(vec![a(name, 300, "8.8.4.4")]),
        ("dead.test.", _) => Reply::Records(vec![alias(name, 300, "empty.test.")]),
        ("self.test.", _) => Reply::Records(vec![alias(name, 300, "self.test.")]),
        ("ping.test.", _) => Reply::Records(vec![alias(name, 300, "pong.test.")]),
        ("pong.test.", _) => Reply::Records(vec![alias(name, 300, "ping.test.")]),
        (name, RecordType::A) if name.ends_with("eight.test.") => Reply::Records(chain(name, 8)),
        (name, RecordType::A) if name.ends_with("nine.test.") => Reply::Records(chain(name, 9)),
        (name, _) if name.ends_with("deep.test.") => {
            let records = chain(name, 100);
            Reply::Records(records[..1].to_vec())
        }
        _ => Reply::Records(vec![]),
    })
    .await;
    assert_eq!(pinned(&dns, "www.test").await, Ok(("8.8.8.8".into(), 90_000)), "the shortest time to live of the chain");
    assert_eq!(pinned(&dns, "far.test").await, Ok(("8.8.4.4".into(), 300_000)));
    assert_eq!(pinned(&dns, "n0.eight.test").await, Ok(("8.8.8.8".into(), 300_000)));
    for (name, want) in [
        ("dead.test", ResolveError::NoAddress),
        ("n0.nine.test", ResolveError::Looping),
        ("n0.deep.test", ResolveError::Looping),
        ("self.test", ResolveError::Looping),
        ("ping.test", ResolveError::Looping),
    ] {
        assert_eq!(pinned(&dns, name).await, Err(want), "{name}");
    }
}

#[tokio::test]
async fn the_time_to_live_is_kept_within_bounds() {
    let dns = Dns::start(|name, _| {
        let ttl = name.trim_end_matches(".test.").trim_start_matches('t').parse().unwrap();
        Reply::Records(vec![a(name, ttl, "8.8.8.8"), a(name, ttl.max(1000), "9.9.9.9")])
    })
    .await;
    for (ttl, want) in [(0, 60_000), (59, 60_000), (61, 61_000), (86_400, 86_400_000), (604_801, MAX_PIN), (2_147_483_647, MAX_PIN)] {
        assert_eq!(pinned(&dns, &format!("t{ttl}.test")).await, Ok(("8.8.8.8".into(), want)), "{ttl}");
    }
    let config = ResolverConfig { servers: vec![dns.address], shortest_pin: 86_400_000, ..ResolverConfig::default() };
    let located = Resolver::new(config, AddressPolicy::default()).unwrap().resolve(&host("t61.test"), None).await.unwrap();
    assert_eq!(located.valid_for, 86_400_000, "the operator may ask for more");
}

#[tokio::test]
async fn names_are_absolute_and_no_more_than_sixteen_addresses_are_looked_at() {
    let dns = Dns::start(|name, kind| match (name, kind) {
        ("single.", RecordType::A) => Reply::Records(vec![a(name, 300, "8.8.8.8")]),
        // Too many for a datagram: they come over TCP.
        ("thousand.test.", RecordType::A) => {
            Reply::Records((0..1000).map(|n| a(name, 300, &format!("9.0.{}.{}", 3 - n / 256, 255 - n % 256))).collect())
        }
        // The smallest comes last: it is not looked at.
        ("crowd.test.", RecordType::A) => Reply::Records((0..20).map(|n| a(name, 300, &format!("9.0.0.{}", 50 - n))).collect()),
        _ => Reply::Code(ResponseCode::NXDomain),
    })
    .await;
    assert_eq!(pinned(&dns, "single").await.map(|pin| pin.0), Ok("8.8.8.8".into()));
    assert_eq!(pinned(&dns, "crowd.test").await.map(|pin| pin.0), Ok("9.0.0.35".into()));
    assert_eq!(pinned(&dns, "thousand.test").await.map(|pin| pin.0), Ok("9.0.3.240".into()));
    assert_eq!(pinned(&dns, "nothing.test").await, Err(ResolveError::NoSuchName));
    let names: Vec<_> = dns.questions().iter().map(|asked| asked.0.clone()).collect();
    assert_eq!(
        names,
        ["single.", "crowd.test.", "thousand.test.", "nothing.test."],
        "no search domain, no second family where the first sufficed"
    );
}

#[tokio::test]
async fn an_answer_under_a_wrong_id_is_not_believed() {
    let dns = Dns::start(|name, _| Reply::WrongIdFirst(vec![a(name, 300, "8.8.8.8")])).await;
    let found = pinned(&dns, "target.test").await;
    assert_ne!(found.as_ref().map(|pin| pin.0.as_str()), Ok("6.6.6.6"), "{found:?}");
}

#[tokio::test]
async fn questions_come_from_the_configured_address() {
    let dns = Dns::start(|name, _| Reply::Records(vec![a(name, 300, "8.8.8.8")])).await;
    let source: IpAddr = "127.0.0.79".parse().unwrap();
    let config = ResolverConfig { servers: vec![dns.address], source_address: Some(source), ..ResolverConfig::default() };
    Resolver::new(config, AddressPolicy::default()).unwrap().resolve(&host("x.test"), None).await.unwrap();
    assert_eq!(dns.questions()[0].2, source);
}

#[tokio::test]
async fn texts_are_told_apart_from_no_texts_and_from_no_answer() {
    let text = |owner: &str, parts: &[&str]| {
        let parts = parts.iter().map(|part| (*part).to_owned()).collect();
        Record::from_rdata(name(owner), 60, RData::TXT(TXT::new(parts)))
    };
    let dns = Dns::start(move |name, kind| match (name, kind) {
        ("_nearcrawl.two.test.", RecordType::TXT) => Reply::Records(vec![text(name, &["no-", "crawl"]), text(name, &["v=spf1"])]),
        ("_nearcrawl.none.test.", RecordType::TXT) => Reply::Records(vec![]),
        ("_nearcrawl.broken.test.", _) => Reply::Code(ResponseCode::ServFail),
        _ => Reply::Code(ResponseCode::NXDomain),
    })
    .await;
    let resolver = resolver(&dns, AddressPolicy::default());
    assert_eq!(resolver.texts("_nearcrawl.two.test").await, Ok(vec!["no-crawl".to_owned(), "v=spf1".to_owned()]));
    assert_eq!(resolver.texts("_nearcrawl.none.test").await, Ok(Vec::new()));
    assert_eq!(resolver.texts("_nearcrawl.gone.test").await, Ok(Vec::new()));
    assert_eq!(resolver.texts("_nearcrawl.broken.test").await, Err(ResolveError::ServerFailed));
}

#[tokio::test]
async fn questions_keep_to_their_rate_repeated_ones_included_and_their_bytes_are_counted() {
    let dns = Dns::start(|name, kind| match kind {
        RecordType::A => Reply::Records(vec![a(name, 300, "8.8.8.8")]),
        _ => Reply::Records(vec![]),
    })
    .await;
    let wire: std::sync::Arc<crate::fetcher::Wire> = Default::default();
    // Many look-ups wait longer for their turn than an answer may take.
    let config = ResolverConfig {
        servers: vec![dns.address],
        timeout: Duration::from_millis(300),
        attempts: 1,
        per_second: Some(20),
        ..ResolverConfig::default()
    };
    let resolver = Resolver::counted_by(config, AddressPolicy::default(), wire.clone()).unwrap();
    let begun = std::time::Instant::now();
    let names: Vec<Host> = (0..40).map(|number| host(&format!("h{number}.test"))).collect();
    let found = futures::future::join_all(names.iter().map(|name| resolver.resolve(name, None))).await;
    assert!(found.iter().all(Result::is_ok), "{found:?}");
    assert!(begun.elapsed() >= Duration::from_millis(39 * 50), "{:?}", begun.elapsed());
    let (sent, delayed) = resolver.questions();
    assert_eq!((sent, dns.asked()), (40, 40));
    assert!((38..=39).contains(&delayed), "{delayed}");
    // Some 30 bytes of a question, 45 of an answer, and 42 of headers for each.
    assert!((40 * 145..40 * 230).contains(&wire.moved()), "{}", wire.moved());
    // Without an answer the question is repeated; that takes turns, too.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = ResolverConfig {
        servers: vec![silent.local_addr().unwrap()],
        timeout: Duration::from_millis(50),
        attempts: 2,
        per_second: Some(4),
        ..ResolverConfig::default()
    };
    let resolver = Resolver::new(config, AddressPolicy::default()).unwrap();
    let (begun, names) = (std::time::Instant::now(), &names[..4]);
    let lost = futures::future::join_all(names.iter().map(|name| resolver.resolve(name, None))).await;
    assert!(lost.iter().all(|found| *found == Err(ResolveError::TimedOut)), "{lost:?}");
    let (sent, _) = resolver.questions();
    assert!(sent > 4, "{sent}");
    // The last repetition goes out without anybody behind it.
    assert!(begun.elapsed() >= Duration::from_millis(250) * (u32::try_from(sent).unwrap() - 2), "{sent} in {:?}", begun.elapsed());
}

/// Members' names are asked of the configured name servers, too, and who is not there is no matter of a key.
#[tokio::test]
async fn names_of_members_are_looked_up_where_the_operator_said() {
    let dns = Dns::start(|name, kind| match (name, kind) {
        ("member.test.", RecordType::A) => Reply::Records(vec![a(name, 60, "127.0.0.1")]),
        ("member.test.", _) => Reply::Records(Vec::new()),
        _ => Reply::Code(ResponseCode::NXDomain),
    })
    .await;
    let reader = crate::swarm::ReaderConfig { name_servers: vec![dns.address], ..Default::default() };
    let refused = async |address: &str| {
        crate::swarm::Reader::connect(&reader, address, Duration::from_secs(20)).await.err().map(|why| why.to_string()).unwrap_or_default()
    };
    let there = refused("/dns4/member.test/tcp/9").await;
    assert!(there.contains("nothing listens at that port"), "{there}");
    let nowhere = refused("/dns4/other.test/tcp/9").await;
    assert!(nowhere.contains("there is no such name"), "{nowhere}");
    assert!(dns.questions().iter().any(|(name, ..)| name == "member.test."));
    assert_eq!(addresses("member.test.", &[dns.address]).await.unwrap(), ["127.0.0.1".parse::<IpAddr>().unwrap()]);
}
