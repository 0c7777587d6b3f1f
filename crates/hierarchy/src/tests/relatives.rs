//! Tests of positions, relatives and names, compared with a slow and obvious reading.

use super::*;
use crate::snapshot::{read_unpacked, unpacked};
use proptest::prelude::*;

/// Records of ranges within a small space, so that they overlap, nest and repeat.
fn records() -> impl Strategy<Value = Vec<String>> {
    let v4 = (0u32..4096, 1u32..700, 0usize..3, 0..5, 0..3).prop_map(|(start, count, cc, holder, registry)| {
        let start = std::net::Ipv4Addr::from_bits((10 << 24) + start * 16);
        format!("r{registry}|C{}|ipv4|{start}|{count}|2000010{}|allocated|h{holder}", ["A", "B", "C"][cc], holder + 1)
    });
    let v6 = (0u128..16, 33u8..=40, 0..3).prop_map(|(n, length, holder)| {
        let start = std::net::Ipv6Addr::from_bits((0x2001_0db8 << 96) | (n << 92)).to_bits() >> (128 - length) << (128 - length);
        format!("r0|CA|ipv6|{}|{length}|20000101|assigned|h{holder}", std::net::Ipv6Addr::from_bits(start))
    });
    let asn = (1u32..20, 1u32..4, 0..5).prop_map(|(first, count, holder)| format!("r0|CA|asn|{first}|{count}|20000101|assigned|h{holder}"));
    let block = "r0|CA|ipv4|10.0.0.0|256|20000101|allocated|h0".to_owned();
    prop::collection::vec(prop_oneof![6 => v4, 1 => v6, 1 => asn], 0..60).prop_map(move |mut r| {
        // At least one block, or the file is refused.
        r.push(block.clone());
        r
    })
}

fn address() -> impl Strategy<Value = IpAddr> {
    let v4 = (0u32..80_000).prop_map(|n| IpAddr::from(((10 << 24) + n).to_be_bytes()));
    let v6 = (0u128..=0xfff).prop_map(|n| IpAddr::from(((0x2001_0db8u128 << 96) | (n << 84)).to_be_bytes()));
    prop_oneof![4 => v4, 1 => v6]
}

/// The longest prefix around an address, by looking at all.
fn naive(hierarchy: &Hierarchy, address: IpAddr) -> Option<Position> {
    positions(hierarchy).filter(|p| hierarchy.subnet(*p).contains(address)).max_by_key(|p| hierarchy.subnet(*p).length())
}

/// What must hold for every hierarchy.
fn check(hierarchy: &Hierarchy) {
    for position in positions(hierarchy) {
        let subnet = hierarchy.subnet(position);
        assert_eq!(hierarchy.position(subnet), Some(position));
        let parent = positions(hierarchy)
            .filter(|p| *p != position && hierarchy.subnet(*p).covers(&subnet))
            .max_by_key(|p| hierarchy.subnet(*p).length());
        assert_eq!(hierarchy.parent(position), parent, "parent of {subnet}");
        let beneath: Vec<u32> = positions(hierarchy).filter(|p| subnet.covers(&hierarchy.subnet(*p))).map(|p| p.0).collect();
        assert_eq!(hierarchy.beneath(position).collect::<Vec<_>>(), beneath, "beneath {subnet}");
        assert!(hierarchy.organisation_members(hierarchy.organisation(position)).any(|p| p == position));
        let children: Vec<Position> = positions(hierarchy).filter(|p| hierarchy.parent(*p) == Some(position)).collect();
        assert_eq!(hierarchy.children(position).collect::<Vec<_>>(), children, "children of {subnet}");
        check_climb(hierarchy, position);
    }
    let members: usize = (0..hierarchy.organisations()).map(|o| hierarchy.organisation_members(OrganisationId(o)).len()).sum();
    assert_eq!(members, hierarchy.len() as usize, "every subnet has one organisation");
}

fn check_climb(hierarchy: &Hierarchy, position: Position) {
    let steps = hierarchy.climb(position);
    let mut inside = position.0..position.0 + 1;
    for step in &steps {
        assert!(step.range.start <= inside.start && inside.end <= step.range.end, "{steps:?} at {position:?}");
        inside = step.range.clone();
    }
    assert!(steps.windows(2).all(|w| w[0].kind <= w[1].kind));
    assert_eq!(steps.last(), Some(&Step { kind: StepKind::Root, range: 0..hierarchy.len() }));
    // Everything in a group has the outermost block's holder, country and registry in common.
    let top_of = |p| std::iter::successors(Some(p), |p| hierarchy.parent(*p)).last().unwrap();
    let top = top_of(position);
    let alike = |kind, p: Position| match kind {
        StepKind::Organisation => {
            hierarchy.organisation(p) == hierarchy.organisation(top) && hierarchy.country(p) == hierarchy.country(top)
        }
        StepKind::Country => hierarchy.registry(p) == hierarchy.registry(top) && hierarchy.country(p) == hierarchy.country(top),
        StepKind::Registry => hierarchy.registry(p) == hierarchy.registry(top),
        StepKind::Nested | StepKind::Root => true,
    };
    for step in steps.iter().filter(|s| !matches!(s.kind, StepKind::Nested | StepKind::Root)) {
        for other in positions(hierarchy) {
            let expected = alike(step.kind, top_of(other))
                && (step.kind != StepKind::Organisation || hierarchy.registry(top_of(other)) == hierarchy.registry(top));
            assert_eq!(step.range.contains(&other.0), expected, "{step:?} and {other:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn addresses_live_in_the_longest_prefix(records in records(), addresses in prop::collection::vec(address(), 200)) {
        let hierarchy = of(&records.join("\n"));
        for address in addresses {
            prop_assert_eq!(hierarchy.locate(address), naive(&hierarchy, address), "{}", address);
            let (subnet, unit) = (hierarchy.subnet_of(address), hierarchy.unit_of(address));
            prop_assert!(subnet.covers(&unit) && unit.contains(address));
            let longest = if address.is_ipv4() { 24 } else { 48 };
            prop_assert_eq!(unit.length(), subnet.length().max(longest), "{} in {}", address, subnet);
        }
    }

    #[test]
    fn every_relative_is_where_a_slow_search_finds_it(records in records()) {
        check(&of(&records.join("\n")));
    }

    #[test]
    fn the_order_of_records_does_not_matter(records in records(), seed in any::<u64>()) {
        let mut shuffled = records.clone();
        shuffled.sort_by_key(|r| nearcrawl_model::fingerprint::FingerprintKey([seed as u8; 16]).of(r));
        prop_assert_eq!(of(&records.join("\n")).hash(), of(&shuffled.join("\n")).hash());
    }

    #[test]
    fn snapshots_come_back_as_they_were(records in records()) {
        let hierarchy = of(&records.join("\n"));
        let back = read_unpacked(&unpacked(&hierarchy)).unwrap();
        prop_assert_eq!(back.hash(), hierarchy.hash());
        prop_assert_eq!(Stats::of(&back), Stats::of(&hierarchy));
    }
}

#[test]
fn real_files_in_any_order_give_one_hash_and_other_content_another() {
    let build = |first: &str, second: &str| {
        let mut builder = Builder::new();
        builder.read_delegated("1", first.as_bytes()).unwrap();
        builder.read_delegated("2", second.as_bytes()).unwrap();
        builder.finish().unwrap()
    };
    let hash = build(AFRINIC, RIPE).hash();
    assert_eq!(build(RIPE, AFRINIC).hash(), hash);
    assert_eq!(build(AFRINIC, &(RIPE.to_owned() + "\r\n\r\n# read again\n")).hash(), hash);
    assert_ne!(of(AFRINIC).hash(), hash);
}

#[test]
fn nested_networks_of_real_routes_have_the_blocks_holder() {
    let hierarchy = real();
    let nested: Vec<Position> = positions(&hierarchy).filter(|p| hierarchy.parent(*p).is_some()).collect();
    assert!(nested.len() > 50, "{} nested networks", nested.len());
    for position in nested {
        let parent = hierarchy.parent(position).unwrap();
        assert_eq!(hierarchy.organisation(position), hierarchy.organisation(parent));
        assert_eq!(hierarchy.country(position), hierarchy.country(parent));
    }
    for address in ["41.90.64.1", "41.139.200.7", "102.0.5.1", "196.201.214.200", "2c0f:fe38::1", "9.9.9.9"].map(ip) {
        assert_eq!(hierarchy.locate(address), naive(&hierarchy, address), "{address}");
    }
    let stats = Stats::of(&hierarchy);
    assert!(stats.height >= 5 && stats.height <= 8, "IPMicra expects at most 8, this has {}", stats.height);
    assert_eq!(stats.subnets, stats.blocks + stats.nested);
}

#[test]
fn routes_nest_inside_blocks_never_cover_them_and_stand_alone_elsewhere() {
    let mut builder = Builder::new();
    let block = "lab|KE|ipv4|10.0.0.0|65536|20000101|allocated|a\n";
    builder.read_delegated("block", block.as_bytes()).unwrap();
    // Wider than the block, the block itself, inside it, and elsewhere.
    let routes = "10.0.0.0,10.1.255.255,1,w\n10.0.0.0,10.0.255.255,2,s\n10.0.4.0,10.0.7.255,3,i\n11.0.0.0,11.0.0.255,4,e\n";
    builder.read_asn_csv("routes", routes.as_bytes(), RoutedUse::NamesAndNetworks).unwrap();
    let hierarchy = builder.finish().unwrap();
    let found: Vec<String> = positions(&hierarchy).map(|p| hierarchy.subnet(p).to_string()).collect();
    assert_eq!(found, ["10.0.0.0/16", "10.0.4.0/22", "11.0.0.0/24"]);
    let elsewhere = hierarchy.organisation_record(hierarchy.organisation(Position(2)));
    assert_eq!((elsewhere.registry, elsewhere.id, elsewhere.name, elsewhere.asn), ("other", "AS4", Some("e"), Some(4)));
}

#[test]
fn organisations_are_called_as_their_smallest_named_as() {
    let records =
        "lab|KE|ipv4|10.0.0.0|256|20000101|allocated|a\nlab|KE|asn|700|3|20000101|allocated|a\nlab|KE|asn|90|1|20000101|allocated|a\n";
    let build = |routes: &str| {
        let mut builder = Builder::new();
        builder.read_asn_csv("routes", routes.as_bytes(), RoutedUse::Names).unwrap();
        builder.read_delegated("records", records.as_bytes()).unwrap();
        builder.finish().unwrap()
    };
    let hierarchy = build("1.0.0.0,1.0.0.255,702,\"The \"\"Best\"\", Ltd\"\n1.0.1.0,1.0.1.255,701,Alpha\n");
    let record = hierarchy.organisation_record(OrganisationId(0));
    assert_eq!((record.name, record.asn), (Some("Alpha"), Some(90)));
    let hierarchy = build("1.0.0.0,1.0.0.255,702,\"The \"\"Best\"\", Ltd\"\n");
    assert_eq!(hierarchy.organisation_name(OrganisationId(0)), "The \"Best\", Ltd");
    let hierarchy = build("1.0.0.0,1.0.0.255,1,Other\n");
    assert_eq!(hierarchy.organisation_name(OrganisationId(0)), "a");
}

#[test]
fn an_organisation_in_two_countries_is_one_with_all_its_members() {
    let hierarchy = of(
        "lab|KE|ipv4|10.0.0.0|256|20000101|allocated|a\nlab|KE|ipv4|10.0.1.0|256|20000101|allocated|b\nlab|UG|ipv4|10.0.2.0|256|20000101|allocated|a\n",
    );
    let (kenya, uganda) = (hierarchy.locate(ip("10.0.0.1")).unwrap(), hierarchy.locate(ip("10.0.2.1")).unwrap());
    assert_eq!(hierarchy.organisation(kenya), hierarchy.organisation(uganda));
    assert_eq!(hierarchy.organisation_members(hierarchy.organisation(kenya)).collect::<Vec<_>>(), [kenya, uganda]);
    assert_eq!(hierarchy.climb(kenya)[0], Step { kind: StepKind::Organisation, range: 0..1 });
    assert_eq!(hierarchy.climb(kenya)[1], Step { kind: StepKind::Country, range: 0..2 });
}

#[test]
fn of_two_holders_of_one_prefix_the_later_is_believed() {
    let old = "lab|KE|ipv4|10.0.0.0|256|20000101|allocated|old\n";
    let new = "lab|UG|ipv4|10.0.0.0|256|20100101|allocated|new\n";
    for text in [format!("{old}{new}"), format!("{new}{old}")] {
        let hierarchy = of(&text);
        assert_eq!((hierarchy.len(), hierarchy.organisations()), (1, 1));
        assert_eq!(hierarchy.organisation_name(OrganisationId(0)), "new");
        assert_eq!(hierarchy.country(Position(0)), "UG");
    }
}

#[test]
fn a_block_within_anothers_hangs_beneath_it_and_keeps_its_own_holder() {
    let hierarchy = of("lab|KE|ipv4|10.0.0.0|65536|20000101|allocated|isp\nother|UG|ipv4|10.0.4.0|1024|20000101|assigned|customer\n");
    let customer = hierarchy.locate(ip("10.0.5.1")).unwrap();
    assert_eq!(hierarchy.subnet(hierarchy.parent(customer).unwrap()), subnet("10.0.0.0/16"));
    assert_eq!((hierarchy.registry(customer), hierarchy.country(customer)), ("other", "UG"));
    assert_eq!(hierarchy.organisation_name(hierarchy.organisation(customer)), "customer");
}

#[test]
fn addresses_without_a_block_live_in_implicit_subnets() {
    let hierarchy = empty();
    assert_eq!(hierarchy.subnet_of(ip("198.51.100.77")), subnet("198.51.100.0/24"));
    assert_eq!(hierarchy.subnet_of(ip("2001:db8:1:2::3")), subnet("2001:db8:1::/48"));
    assert_eq!(hierarchy.subnet_of(ip("::ffff:198.51.100.77")), subnet("198.51.100.0/24"), "a mapped address is the IPv4 address");
    assert_eq!(hierarchy.locate(ip("198.51.100.77")), None);
    assert!(Path::to(&hierarchy, ip("198.51.100.77")).to_string().contains("implicit subnet 198.51.100.0/24"));
}

#[test]
fn the_unit_of_an_address_is_its_subnet_or_the_part_around_it() {
    let hierarchy = of("lab|KE|ipv4|10.0.0.0|65536|20000101|allocated|isp\n\
         lab|KE|ipv4|10.0.4.16|16|20000101|assigned|customer\n\
         lab|KE|ipv6|2001:db8::|32|20000101|allocated|isp\n");
    assert_eq!(hierarchy.unit_of(ip("10.0.3.7")), subnet("10.0.3.0/24"));
    assert_eq!(hierarchy.unit_of(ip("::ffff:10.0.3.7")), subnet("10.0.3.0/24"));
    assert_eq!(hierarchy.unit_of(ip("10.0.4.17")), subnet("10.0.4.16/28"));
    assert_eq!(hierarchy.unit_of(ip("10.0.4.40")), subnet("10.0.4.0/24"), "beside the smaller one");
    assert_eq!(hierarchy.unit_of(ip("2001:db8:7:8::1")), subnet("2001:db8:7::/48"));
    assert_eq!(hierarchy.unit_of(ip("198.51.100.77")), subnet("198.51.100.0/24"));
}

#[test]
fn a_path_names_every_level() {
    let path = Path::to(&real(), ip("41.90.64.1")).to_string();
    for part in ["registry afrinic", "country KE", "organisation Safaricom", "block 41.90.0.0/16", "← its subnet"] {
        assert!(path.contains(part), "{part} is missing:\n{path}");
    }
}

#[test]
fn of_two_lengths_of_one_range_of_as_numbers_the_longer_names_in_either_order() {
    let block = "lab|KE|ipv4|10.0.0.0|256|20000101|allocated|a\n";
    let (short, long) = ("lab|KE|asn|700|1|20000101|allocated|a\n", "lab|KE|asn|700|3|20000101|allocated|a\n");
    for records in [format!("{block}{short}{long}"), format!("{block}{long}{short}")] {
        let mut builder = Builder::new();
        builder.read_delegated("records", records.as_bytes()).unwrap();
        builder.read_asn_csv("routes", "1.0.0.0,1.0.0.255,702,Alpha\n".as_bytes(), RoutedUse::Names).unwrap();
        assert_eq!(builder.finish().unwrap().organisation_name(OrganisationId(0)), "Alpha");
    }
}

#[test]
fn an_organisation_that_registries_spell_differently_has_one_name_and_stays_one_of_each_registry() {
    let lab = "lab|KE|ipv4|10.0.0.0|256|20000101|allocated|a\nlab|KE|asn|700|2|20000101|allocated|a\nlab|KE|ipv4|10.0.1.0|256|20000101|allocated|b\nlab|KE|asn|710|1|20000101|allocated|b\n";
    let other = "other|UG|ipv4|11.0.0.0|256|20000101|allocated|a\nother|UG|asn|720|1|20000101|allocated|a\n";
    let routes = "1.0.0.0,1.0.0.255,700,Example Netz GmbH\n1.0.1.0,1.0.1.255,710,Example Netz AG\n1.0.2.0,1.0.2.255,720,\"EXAMPLE-NETZ, G.m.b.H.\"\n";
    let build = |files: [&str; 2]| {
        let mut builder = Builder::new();
        files.iter().for_each(|file| drop(builder.read_delegated("records", file.as_bytes()).unwrap()));
        builder.read_asn_csv("routes", routes.as_bytes(), RoutedUse::Names).unwrap();
        builder.finish().unwrap()
    };
    let hierarchy = build([lab, other]);
    let of = |address: &str| hierarchy.organisation(hierarchy.locate(ip(address)).unwrap());
    let name = |address: &str| hierarchy.organisation_name(of(address));
    assert_eq!(name("10.0.0.1"), name("11.0.0.1"), "two registries' spellings of one name");
    assert_eq!(name("10.0.1.1"), "Example Netz AG", "another company");
    assert_ne!(of("10.0.0.1"), of("11.0.0.1"), "an equal id of another registry is another holder");
    assert_eq!(hierarchy.hash(), build([other, lab]).hash(), "in any order");
    // What is added to it later changes no name.
    let further =
        FurtherPrefix { prefix: subnet("12.0.0.0/24"), country: String::new(), organisation: String::new(), registry: String::new() };
    let added = with_further(&hierarchy, &[further]).unwrap();
    assert_eq!(added.organisation_name(added.organisation(added.locate(ip("11.0.0.1")).unwrap())), name("11.0.0.1"));
}
