//! Tests that only correct snapshots are opened, and that configured prefixes are added to them.

use super::*;
use crate::{
    codec::{content_hash, encode},
    snapshot::{read_unpacked, seal, unpacked},
};

fn content(hierarchy: &Hierarchy) -> Vec<u8> {
    let mut content = Vec::new();
    encode(hierarchy.view(), |bytes| content.extend_from_slice(bytes));
    content
}

/// A small hierarchy with everything in it: both families, nested networks, two registries.
fn small() -> Hierarchy {
    of(
        "lab|KE|ipv4|10.0.0.0|65536|20000101|allocated|a\nlab|UG|ipv4|10.0.4.0|1024|20000101|assigned|b\nother|KE|ipv6|2001:db8::|32|20000101|allocated|c\n",
    )
}

#[test]
fn the_world_in_the_program_can_be_read() {
    let world = crate::world().unwrap();
    let stats = Stats::of(&world);
    assert!(stats.subnets > 450_000 && stats.organisations > 120_000, "{stats}");
    // The sixth is "other": blocks whose country is known, but not by which registry they were delegated.
    assert_eq!(stats.registries.len(), 6);
    assert!(stats.height <= 8, "IPMicra expects at most 8 levels");
    assert!(stats.memory_bytes < 30 << 20, "{} bytes", stats.memory_bytes);
    let position = world.locate(ip("41.90.0.1")).unwrap();
    assert_eq!((world.registry(position), world.country(position)), ("afrinic", "KE"));
    assert_eq!(world.organisation_name(world.organisation(position)), "Safaricom Limited");
    assert_eq!(world.climb(position).last().unwrap().range, 0..world.len());
    assert!(WORLD_LIMIT > std::mem::size_of_val(crate::world::WORLD));
}

/// What the snapshot may add to the program.
const WORLD_LIMIT: usize = 6 << 20;

#[test]
fn a_snapshot_comes_back_with_hash_and_sources() {
    let mut builder = Builder::new();
    builder.read_delegated("afrinic", AFRINIC.as_bytes()).unwrap();
    let hierarchy = builder.finish().unwrap();
    let back = unpack(&pack(&hierarchy)).unwrap();
    assert_eq!(back.hash(), hierarchy.hash());
    assert_eq!(back.sources(), hierarchy.sources());
    assert_eq!(back.sources().len(), 1);
    assert!(positions(&back).all(|p| back.subnet(p) == hierarchy.subnet(p)));
}

#[test]
fn every_flipped_bit_is_noticed() {
    let hierarchy = small();
    // What says that there is a label and how long it is; without, the rest is a snapshot without a label.
    const LABEL_HEAD: usize = 20;
    for (bytes, from, open) in
        [(pack(&hierarchy), LABEL_HEAD, unpack as fn(&[u8]) -> Result<Hierarchy, SnapshotError>), (unpacked(&hierarchy), 0, read_unpacked)]
    {
        // Each bit of the packed frame, one of each byte in the label.
        for bit in (from * 8..bytes.len() * 8).filter(|bit| from == 0 || *bit >= 60 * 8 || bit % 8 == bit / 8 % 8) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // Some bits of a zstd frame mean nothing: then what comes out must be what went in.
            if let Ok(opened) = open(&flipped) {
                assert_eq!(unpacked(&opened), unpacked(&hierarchy), "bit {bit}");
            }
        }
    }
}

#[test]
fn every_shortened_or_lengthened_snapshot_is_refused() {
    let (packed, unpacked) = (pack(&small()), unpacked(&small()));
    for cut in 0..packed.len() {
        assert!(unpack(&packed[..cut]).is_err(), "cut at {cut}");
    }
    for cut in 0..unpacked.len() {
        assert!(read_unpacked(&unpacked[..cut]).is_err(), "cut at {cut}");
    }
    assert!(unpack(&[&packed[..], b"more"].concat()).is_err());
    assert!(read_unpacked(&[&unpacked[..], b"more"].concat()).is_err());
}

#[test]
fn forged_content_with_a_right_checksum_is_no_tree_of_its_own() {
    let hierarchy = small();
    let content = content(&hierarchy);
    let mut believed = 0;
    for at in 0..content.len() {
        for change in [1u8, 0x7f, 0x80, 0xff] {
            let mut forged = content.clone();
            forged[at] ^= change;
            // Either it makes no sense, or it is another well-formed hierarchy with another hash.
            if let Ok(opened) = read_unpacked(&seal(1, &forged, &[0])) {
                assert_eq!(opened.hash(), content_hash(&forged));
                assert_ne!(opened.hash(), hierarchy.hash());
                believed += 1;
            }
        }
        assert!(read_unpacked(&seal(1, &content[..at], &[0])).is_err(), "content cut at {at}");
    }
    assert!(believed > 0, "a changed letter of a name is still a hierarchy");
}

#[test]
fn refusals_say_what_is_wrong() {
    let content = content(&small());
    let refusal = |bytes: &[u8]| read_unpacked(bytes).unwrap_err();
    assert_eq!(refusal(b"a text that is no snapshot"), SnapshotError::NotASnapshot);
    assert_eq!(refusal(&seal(2, &content, &[0])), SnapshotError::Version(2));
    assert_eq!(refusal(&seal(1, &[0xff; 40], &[0])), SnapshotError::Malformed("a number is too long"));
    assert_eq!(refusal(&seal(1, &[0xff, 0xff, 0x03], &[0])), SnapshotError::Malformed("it promises more than it holds"));
    assert!(matches!(refusal(&seal(1, &content, &[9])), SnapshotError::Malformed(_)), "sources that cannot be read");
    assert_eq!(unpack(b"").unwrap_err(), SnapshotError::Compression);
    assert_eq!(unpack(b"not zstd").unwrap_err(), SnapshotError::Compression);
}

#[test]
fn a_bomb_is_not_unpacked() {
    let bomb = {
        let mut encoder = zstd::stream::read::Encoder::new(std::io::Read::take(std::io::repeat(0), 300 << 20), 1).unwrap();
        let mut packed = Vec::new();
        std::io::Read::read_to_end(&mut encoder, &mut packed).unwrap();
        packed
    };
    assert!(bomb.len() < 1 << 20);
    let SnapshotError::TooLarge(most) = unpack(&bomb).unwrap_err() else { panic!("unpacked") };
    assert!(most < 101 * bomb.len() as u64 + (1 << 20), "no more than a hundred times what was sent is unpacked");
}

#[test]
fn a_label_is_believed_only_if_it_is_right() {
    let (one, other) = (pack(&small()), pack(&empty()));
    assert_eq!(Label::of(&one), Some(small().label()));
    assert_eq!(unpack(&[&one[..60], &other[60..]].concat()).unwrap_err(), SnapshotError::Label);
    assert_eq!(unpack(&one[60..]).unwrap().hash(), small().hash(), "there need be none");
    assert_eq!(world().unwrap().label(), Label::of(crate::world::WORLD).unwrap());
}

fn further(prefix: &str, country: &str, organisation: &str, registry: &str) -> FurtherPrefix {
    FurtherPrefix { prefix: subnet(prefix), country: country.into(), organisation: organisation.into(), registry: registry.into() }
}

#[test]
fn further_prefixes_are_subnets_like_others_and_change_the_hash() {
    let base = small();
    assert_eq!(with_further(&base, &[]).unwrap().hash(), base.hash());
    let extras = [
        further("127.10.0.0/16", "ke", "lab", "made-up"),
        further("10.0.4.0/25", "", "", ""),
        further("fd00::/64", "UG", "lab", "made-up"),
    ];
    let wider = with_further(&base, &extras).unwrap();
    assert_eq!(wider.len(), base.len() + 3);
    assert_ne!(wider.hash(), base.hash());
    let backwards: Vec<FurtherPrefix> = extras.iter().rev().cloned().collect();
    assert_eq!(with_further(&base, &backwards).unwrap().hash(), wider.hash(), "their order does not matter");

    let loopback = wider.locate(ip("127.10.3.4")).unwrap();
    assert_eq!((wider.registry(loopback), wider.country(loopback)), ("made-up", "KE"));
    let members: Vec<Subnet> = wider.organisation_members(wider.organisation(loopback)).map(|p| wider.subnet(p)).collect();
    assert_eq!(members, [subnet("127.10.0.0/16"), subnet("fd00::/64")]);
    let nested = wider.locate(ip("10.0.4.1")).unwrap();
    assert_eq!(wider.subnet(wider.parent(nested).unwrap()), subnet("10.0.4.0/22"));
    assert_eq!((wider.registry(nested), wider.country(nested)), ("local", "ZZ"));
}

#[test]
fn a_further_prefix_replaces_what_was_known_of_the_same_subnet() {
    let changed = with_further(&small(), &[further("10.0.4.0/22", "RW", "mine", "")]).unwrap();
    assert_eq!(changed.len(), small().len());
    let position = changed.locate(ip("10.0.4.1")).unwrap();
    assert_eq!(changed.country(position), "RW");
    assert_eq!(changed.organisation_name(changed.organisation(position)), "mine");
    assert_eq!(changed.organisations(), small().organisations(), "the previous holder held nothing else");
}

#[test]
fn further_prefixes_that_make_no_sense_are_refused_by_name() {
    let refused = |f: FurtherPrefix| with_further(&small(), &[f]).unwrap_err().to_string();
    assert!(refused(further("0.0.0.0/0", "", "", "")).contains("0.0.0.0/0 is too short"));
    assert!(refused(further("127.0.0.0/8", "Kenya", "", "")).contains("\"Kenya\" is no country"));
    assert!(refused(further("127.0.0.0/8", "", &"x".repeat(65), "")).contains("64 bytes"));
    assert!(refused(further("127.0.0.0/8", "", "", "My Registry")).contains("\"My Registry\" is no registry"));
}

#[test]
fn nesting_without_end_is_refused() {
    let chain: Vec<FurtherPrefix> = (8..=32).map(|length| further(&format!("127.0.0.0/{length}"), "", "x", "")).collect();
    let refusal = with_further(&empty(), &chain).unwrap_err();
    assert!(matches!(refusal, WithFurtherError::Assembly(AssemblyError::Nesting(_))), "{refusal}");
    assert!(with_further(&empty(), &chain[..=crate::limits::MAX_NESTING]).is_ok());
}
