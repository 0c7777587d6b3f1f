//! Fuzz targets for the files that a hierarchy is made from, and for those that members exchange.
//!
//! They cover registries' and compilers' tables, snapshots, images, manifests.

use nearcrawl_hierarchy::{
    Builder, Change, Diff, Format, FurtherPrefix, Gathering, Hierarchy, Label, Manifest, ReadError, ReadReport, RoutedUse, pack, unpack,
    with_further,
};
use sha2::{Digest, Sha256};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Arc, LazyLock},
};

crate::targets!("hierarchy":
    delegated,
    whois,
    networks,
    routes,
    countries,
    any_format,
    snapshot,
    image,
    manifest,
    further,
);

/// Two blocks in one country and one in another, as a base to which tables add networks.
static BASE: LazyLock<Hierarchy> = LazyLock::new(|| {
    let mut builder = Builder::new();
    for (prefix, country, organisation) in
        [("9.0.0.0/16", "KE", "museum"), ("9.1.0.0/16", "TZ", "library"), ("2001:db8::/32", "KE", "museum")]
    {
        let prefix = prefix.parse().expect("a prefix");
        let further = FurtherPrefix { prefix, country: country.into(), organisation: organisation.into(), registry: "afrinic".into() };
        builder.add_prefix(&further).expect("it can be added");
    }
    builder.finish().expect("it is a hierarchy")
});

/// A table is read or refused, and of what was read there is a hierarchy that survives being packed and being mapped.
fn table(bytes: &[u8], read: impl Fn(&mut Builder) -> Result<ReadReport, ReadError>) {
    for overrule in [false, true] {
        let mut builder = Builder::new().overrule(overrule);
        let report = read(&mut builder);
        if let Ok(report) = &report {
            assert!(report.used <= bytes.len() as u64, "{report:?}");
        }
        let Ok(hierarchy) = builder.finish() else { continue };
        assert!(report.is_ok() || hierarchy.is_empty(), "a refused file left {} subnets behind", hierarchy.len());
        check(&hierarchy);
    }
}

/// What holds of every hierarchy.
fn check(hierarchy: &Hierarchy) {
    let opened = Hierarchy::open(Arc::new(hierarchy.image().to_vec())).expect("its image can be opened");
    assert_eq!((opened.hash(), opened.len()), (hierarchy.hash(), hierarchy.len()));
    for address in probes(hierarchy) {
        let found = hierarchy.locate(address);
        assert_eq!(found, opened.locate(address));
        assert!(hierarchy.subnet_of(address).contains(address) && hierarchy.unit_of(address).contains(address));
        if let Some(position) = found {
            let subnet = hierarchy.subnet(position);
            assert!(subnet.contains(address) && hierarchy.position(subnet) == Some(position));
            let organisation = hierarchy.organisation(position);
            assert!(hierarchy.organisation_members(organisation).any(|member| member == position));
            let named = (hierarchy.organisation_name(organisation), hierarchy.country(position), hierarchy.registry(position));
            assert_eq!(named, (opened.organisation_name(organisation), opened.country(position), opened.registry(position)));
        }
    }
}

/// The corners of the address space, and the first address of some subnets.
fn probes(hierarchy: &Hierarchy) -> Vec<IpAddr> {
    let mut all = vec![
        IpAddr::V4(Ipv4Addr::from_bits(0)),
        IpAddr::V4(Ipv4Addr::from_bits(u32::MAX)),
        IpAddr::V6(Ipv6Addr::from_bits(0)),
        IpAddr::V6(Ipv6Addr::from_bits(u128::MAX)),
    ];
    let addresses = (0..=255_u8).map(|octet| IpAddr::V4(Ipv4Addr::new(octet, 0, 0, 1)));
    all.extend(addresses.filter_map(|address| hierarchy.locate(address)).map(|position| hierarchy.subnet(position).first()));
    all
}

fn delegated(bytes: &[u8]) {
    table(bytes, |builder| builder.read_delegated("fuzz", bytes));
}

fn of_format(bytes: &[u8], format: Format) {
    table(bytes, |builder| builder.read("fuzz", bytes, format, RoutedUse::NamesAndNetworks));
}

fn whois(bytes: &[u8]) {
    of_format(bytes, Format::Whois);
}

fn networks(bytes: &[u8]) {
    of_format(bytes, Format::Networks);
}

fn routes(bytes: &[u8]) {
    of_format(bytes, Format::Routes);
    table(bytes, |builder| builder.read("fuzz", bytes, Format::Routes, RoutedUse::Names));
}

fn countries(bytes: &[u8]) {
    of_format(bytes, Format::Countries);
}

/// As `hierarchy build` reads a file: by what it looks like.
fn any_format(bytes: &[u8]) {
    if let Some(format) = Format::of(&bytes[..bytes.len().min(4096)]) {
        of_format(bytes, format);
    }
}

/// A snapshot that is taken is written again as what it is. The bytes are tried as a file, as what a file unpacks to without its checksum,
/// and as changes to that (place and value).
fn snapshot(bytes: &[u8]) {
    let _ = Label::of(bytes);
    check_snapshot(bytes);
    check_snapshot(&packed(bytes));
    let mut changed = UNPACKED.clone();
    change(&mut changed, bytes);
    check_snapshot(&packed(&changed));
}

fn check_snapshot(file: &[u8]) {
    let Ok(hierarchy) = unpack(file) else { return };
    check(&hierarchy);
    let again = unpack(&pack(&hierarchy)).expect("what was packed can be unpacked");
    assert_eq!((again.hash(), again.sources(), again.built()), (hierarchy.hash(), hierarchy.sources(), hierarchy.built()));
    assert!(!Change::between(&hierarchy, &again).is_doubtful());
    let _ = Diff::between(&hierarchy, &BASE);
}

/// What the snapshot of the base unpacks to, without the checksum.
static UNPACKED: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let file = pack(&BASE);
    let mut unpacked = zstd::decode_all(&file[..]).expect("it was just packed");
    unpacked.truncate(unpacked.len() - 32);
    unpacked
});

/// A file with the right checksum, without a label.
fn packed(unpacked: &[u8]) -> Vec<u8> {
    let checksum = Sha256::digest(unpacked);
    zstd::encode_all(&[unpacked, checksum.as_slice()].concat()[..], 1).expect("it can be packed")
}

/// Changes single bytes: three bytes of place, one of value each.
fn change(bytes: &mut [u8], changes: &[u8]) {
    let length = bytes.len();
    for [high, middle, low, value] in changes.as_chunks::<4>().0 {
        bytes[u32::from_be_bytes([0, *high, *middle, *low]) as usize % length] = *value;
    }
}

/// An image with some of its bytes changed (place and value), cut off, or whole: it is refused, or is a hierarchy. Otherwise the bytes are
/// an image themselves.
fn image(bytes: &[u8]) {
    if let Ok(hierarchy) = Hierarchy::open(Arc::new(bytes.to_vec())) {
        check(&hierarchy);
    }
    let mut changed = BASE.image().to_vec();
    let length = changed.len();
    change(&mut changed, bytes);
    let same = changed == BASE.image();
    match Hierarchy::open(Arc::new(changed.clone())) {
        Ok(hierarchy) => check(&hierarchy),
        Err(_) => assert!(!same),
    }
    if let Some(cut) = bytes.first() {
        changed.truncate(length * usize::from(*cut) / 256);
        assert!(Hierarchy::open(Arc::new(changed)).is_err());
    }
}

/// Chunks are taken in any order, and only those that the manifest names.
fn manifest(bytes: &[u8]) {
    if let Ok(manifest) = postcard::from_bytes::<Manifest>(bytes) {
        assert_eq!(postcard::from_bytes(&postcard::to_stdvec(&manifest).expect("it can be written")).as_ref(), Ok(&manifest));
        if let Ok(mut gathering) = Gathering::new(manifest.clone()) {
            assert_eq!(gathering.missing().count(), manifest.chunks());
            assert!(gathering.put(0, bytes.to_vec()).is_err() || manifest.accepts(0, bytes));
            assert!(gathering.put(manifest.chunks(), Vec::new()).is_err());
        }
    }
    let own = Manifest::of([1; 32], bytes);
    let Ok(mut gathering) = Gathering::new(own) else { return };
    gathering.put(0, bytes.to_vec()).expect("its own chunk");
    assert_eq!(gathering.finish().as_deref(), Ok(bytes));
}

/// Further prefixes of a configuration, as they are typed: prefix, country, organisation, registry, a line each.
fn further(bytes: &[u8]) {
    let mut lines = std::str::from_utf8(bytes).unwrap_or_default().split('\n').map(str::to_owned);
    let Some(Ok(prefix)) = lines.next().map(|line| line.parse()) else { return };
    let [country, organisation, registry] = [(); 3].map(|()| lines.next().unwrap_or_default());
    if let Ok(hierarchy) = with_further(&BASE, &[FurtherPrefix { prefix, country, organisation, registry }]) {
        check(&hierarchy);
    }
}
