//! How is a hierarchy written down? Columns in depth-first order, small numbers as varints: one byte string for one content.

use super::{
    assemble::{Entry, Holder, Material, Origin, Rank},
    prefix::{Prefix, SHORTEST, family_bits},
    tree::{Hierarchy, Place, V6_LENGTH},
};
use sha2::{Digest, Sha256};

/// The content is not what [`encode`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Malformed(pub &'static str);

/// The longest text in a hierarchy (an organisation's name), in bytes.
pub(super) const LONGEST_TEXT: usize = 255;

/// SHA-256.
pub(super) fn content_hash(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Differences to the number before, small ones of either sign short.
fn put_deltas(out: &mut Vec<u8>, values: impl Iterator<Item = u32>) {
    let mut before = 0i64;
    for value in values {
        let delta = i64::from(value) - before;
        put(out, ((delta << 1) ^ (delta >> 63)) as u64);
        before = i64::from(value);
    }
}

/// Writes the content of a hierarchy: all that decides where an address lives and what is known of it.
pub(super) fn encode(hierarchy: &Hierarchy) -> Vec<u8> {
    let mut out = Vec::with_capacity(hierarchy.heads.len() * 8 + hierarchy.organisations.texts.len() * 2);
    put(&mut out, hierarchy.registries.len() as u64);
    hierarchy.registries.iter().for_each(|name| put_text(&mut out, name));
    put(&mut out, hierarchy.places.len() as u64);
    for place in &hierarchy.places {
        put(&mut out, u64::from(place.registry));
        out.extend_from_slice(&place.country);
    }
    let organisations = &hierarchy.organisations;
    put(&mut out, organisations.ends.len() as u64);
    put_deltas(&mut out, organisations.registries.iter().map(|r| u32::from(*r)));
    organisations.asns.iter().for_each(|asn| put(&mut out, u64::from(*asn)));
    (0..organisations.ends.len()).for_each(|o| put_text(&mut out, organisations.texts(o).0));
    (0..organisations.ends.len()).for_each(|o| put_text(&mut out, organisations.texts(o).1));
    put(&mut out, hierarchy.heads.len() as u64);
    out.extend_from_slice(&hierarchy.lengths);
    put_deltas(&mut out, hierarchy.holders.iter().copied());
    put_deltas(&mut out, hierarchy.place_of.iter().map(|p| u32::from(*p)));
    for position in 0..hierarchy.len() {
        let prefix = hierarchy.prefix(position);
        let bytes = prefix.first.to_be_bytes();
        out.extend_from_slice(if prefix.v6 { &bytes } else { &bytes[12..] });
    }
    out
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(head)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = self.bytes(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed("a number is too long"))
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(self.varint()?).map_err(|_| Malformed("a number is too large"))
    }

    /// A count of things that take at least one byte each: never more than bytes are left, so it is safe to reserve.
    fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.small()?;
        if count > self.0.len() { Err(Malformed("it promises more than it holds")) } else { Ok(count) }
    }

    fn text(&mut self) -> Result<String, Malformed> {
        let len = self.small::<usize>()?;
        if len > LONGEST_TEXT {
            return Err(Malformed("a text is too long"));
        }
        String::from_utf8(self.bytes(len)?.to_vec()).map_err(|_| Malformed("a text is not UTF-8"))
    }

    fn deltas(&mut self, count: usize, limit: usize) -> Result<Vec<u32>, Malformed> {
        let mut before = 0i64;
        let mut next = || {
            let coded = self.varint()?;
            let delta = (coded >> 1) as i64 ^ -((coded & 1) as i64);
            before = before.checked_add(delta).ok_or(Malformed("a number is too large"))?;
            let value = u32::try_from(before).map_err(|_| Malformed("a number is too large"))?;
            if (value as usize) < limit { Ok(value) } else { Err(Malformed("it refers to something that it does not hold")) }
        };
        (0..count).map(|_| next()).collect()
    }
}

/// Reads what [`encode`] wrote. The caller must still compare the encoding of what comes out with what went in: that
/// refuses every content that is not in canonical form.
pub(super) fn decode(content: &[u8]) -> Result<Material, Malformed> {
    let mut reader = Reader(content);
    let registries = (0..reader.count()?).map(|_| reader.text()).collect::<Result<Vec<_>, _>>()?;
    let mut places = Vec::new();
    for _ in 0..reader.count()? {
        let registry: u16 = reader.small()?;
        let country = reader.bytes(2)?;
        if usize::from(registry) >= registries.len() || !country.iter().all(u8::is_ascii_uppercase) {
            return Err(Malformed("a country makes no sense"));
        }
        places.push(Place { registry, country: [country[0], country[1]] });
    }
    let count = reader.count()?;
    let registry_of = reader.deltas(count, registries.len().min(usize::from(u16::MAX)))?;
    let asns = (0..count).map(|_| reader.small()).collect::<Result<Vec<u32>, _>>()?;
    let ids = (0..count).map(|_| reader.text()).collect::<Result<Vec<_>, _>>()?;
    let names = (0..count).map(|_| reader.text()).collect::<Result<Vec<_>, _>>()?;
    let holder = |(((registry, asn), id), name): (((u32, u32), String), String)| Holder { registry: registry as u16, id, name, asn };
    let organisations: Vec<Holder> = registry_of.into_iter().zip(asns).zip(ids).zip(names).map(holder).collect();

    let count = reader.count()?;
    let lengths = reader.bytes(count)?;
    let holders = reader.deltas(count, organisations.len())?;
    let place_of = reader.deltas(count, places.len())?;
    let rank = Rank { origin: Origin::Delegated, date: 0 };
    let mut entries = Vec::with_capacity(count);
    for ((length, organisation), place) in lengths.iter().zip(holders).zip(place_of) {
        let v6 = *length >= V6_LENGTH;
        let length = if v6 { length - V6_LENGTH } else { *length };
        let mut number = [0; 16];
        let bytes = if v6 { &mut number[..] } else { &mut number[12..] };
        bytes.copy_from_slice(reader.bytes(bytes.len())?);
        let first = u128::from_be_bytes(number);
        if !(SHORTEST..=family_bits(v6)).contains(&length) {
            return Err(Malformed("a prefix length makes no sense"));
        }
        if first.trailing_zeros() < u32::from(family_bits(v6) - length) {
            return Err(Malformed("a prefix has bits beyond its length"));
        }
        entries.push(Entry { prefix: Prefix { v6, first, length }, place: places[place as usize], organisation, rank });
    }
    if !reader.0.is_empty() {
        return Err(Malformed("something follows its end"));
    }
    Ok(Material { registries, organisations, entries, sources: Vec::new() })
}
