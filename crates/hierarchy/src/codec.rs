//! Encoding of a hierarchy: columns in depth-first order, small numbers as varints; one byte string for one content.

use super::{
    columns::{Columns, Organisations},
    holders::Holder,
    layout::Section,
    limits::{MAX_ORGANISATIONS, MAX_SUBNETS, MAX_TEXT},
    prefix::{Prefix, V6_LENGTH},
    source::Place,
    verify::well_formed,
    view::View,
};
use sha2::{Digest, Sha256};

/// The content is not what [`encode`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Malformed(pub &'static str);

/// The SHA-256 of the content.
pub(super) fn content_hash(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}

/// A buffered writer: passes its bytes on when there are enough of them.
struct Out<F: FnMut(&[u8])> {
    buffer: Vec<u8>,
    sink: F,
}

/// Bytes that are handed on at once.
const ENOUGH: usize = 64 << 10;

impl<F: FnMut(&[u8])> Out<F> {
    fn bytes(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > ENOUGH {
            (self.sink)(&self.buffer);
            self.buffer.clear();
        }
        self.buffer.extend_from_slice(bytes);
    }

    fn number(&mut self, mut value: u64) {
        let mut varint = [0; 10];
        let mut length = 0;
        while value >= 0x80 {
            varint[length] = value as u8 | 0x80;
            length += 1;
            value >>= 7;
        }
        varint[length] = value as u8;
        self.bytes(&varint[..=length]);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    /// Differences to the number before, small ones of either sign short.
    fn deltas(&mut self, values: impl Iterator<Item = u32>) {
        let mut before = 0i64;
        for value in values {
            let delta = i64::from(value) - before;
            self.number(((delta << 1) ^ (delta >> 63)) as u64);
            before = i64::from(value);
        }
    }
}

/// Writes the content of a hierarchy, piece by piece: all that decides where an address lies and what is known of it.
pub(super) fn encode(view: &View, sink: impl FnMut(&[u8])) {
    let mut out = Out { buffer: Vec::with_capacity(ENOUGH), sink };
    out.number(view.registries.len() as u64);
    view.registries.iter().for_each(|name| out.text(name));
    out.number(u64::from(view.counts.places));
    for place in (0..view.counts.places as usize).map(|i| view.place(i)) {
        out.number(u64::from(place.registry));
        out.bytes(&place.country);
    }
    let organisations = view.counts.organisations as usize;
    out.number(organisations as u64);
    out.deltas(view.section::<u16>(Section::HolderRegistries).iter().map(|r| u32::from(*r)));
    view.section::<u32>(Section::Asns).iter().for_each(|asn| out.number(u64::from(*asn)));
    (0..organisations).for_each(|o| out.text(view.texts(o).0));
    (0..organisations).for_each(|o| out.text(view.texts(o).1));
    out.number(u64::from(view.counts.subnets));
    view.section::<u8>(Section::Lengths).chunks(ENOUGH / 2).for_each(|lengths| out.bytes(lengths));
    out.deltas(view.section::<u32>(Section::Holders).iter().copied());
    out.deltas(view.section::<u16>(Section::PlaceOf).iter().map(|p| u32::from(*p)));
    for position in 0..view.counts.subnets {
        let prefix = view.prefix(position);
        let bytes = prefix.first.to_be_bytes();
        out.bytes(if prefix.v6 { &bytes } else { &bytes[12..] });
    }
    (out.sink)(&out.buffer);
}

/// The hash of the content of a hierarchy, and its length.
pub(super) fn measure(view: &View) -> ([u8; 32], u64) {
    let (mut hasher, mut length) = (Sha256::new(), 0);
    encode(view, |bytes| {
        hasher.update(bytes);
        length += bytes.len() as u64;
    });
    (hasher.finalize().into(), length)
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

    fn text(&mut self) -> Result<&'a str, Malformed> {
        let len = self.small::<usize>()?;
        if len > MAX_TEXT {
            return Err(Malformed("a text is too long"));
        }
        std::str::from_utf8(self.bytes(len)?).map_err(|_| Malformed("a text is not UTF-8"))
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

/// Reads what [`encode`] wrote. The caller must still check the structure of what comes out, and compare its hash with that of what
/// went in: that refuses every content that is not in canonical form.
pub(super) fn decode(content: &[u8]) -> Result<Columns, Malformed> {
    let mut reader = Reader(content);
    let registries = (0..reader.count()?).map(|_| reader.text().map(str::to_owned)).collect::<Result<Vec<_>, _>>()?;
    let places = (0..reader.count()?).map(|_| reader.place(registries.len())).collect::<Result<Vec<_>, _>>()?;
    let organisations = reader.organisations(registries.len())?;
    let mut columns = Columns { registries, places, organisations, ..Columns::default() };
    reader.subnets(&mut columns)?;
    if !reader.0.is_empty() {
        return Err(Malformed("something follows its end"));
    }
    Ok(columns)
}

impl Reader<'_> {
    fn place(&mut self, registries: usize) -> Result<Place, Malformed> {
        let registry: u16 = self.small()?;
        let country = self.bytes(2)?;
        if usize::from(registry) >= registries || !country.iter().all(u8::is_ascii_uppercase) {
            return Err(Malformed("a country makes no sense"));
        }
        Ok(Place { registry, country: [country[0], country[1]] })
    }

    fn organisations(&mut self, registries: usize) -> Result<Organisations, Malformed> {
        let count = self.count()?;
        if count > MAX_ORGANISATIONS {
            return Err(Malformed("it has more organisations than a hierarchy may have"));
        }
        let registry_of = self.deltas(count, registries.min(usize::from(u16::MAX)))?;
        let asns = (0..count).map(|_| self.small()).collect::<Result<Vec<u32>, _>>()?;
        // Names come after all ids: a second reader walks through them beside the first.
        let mut names = Reader(self.0);
        for _ in 0..count {
            names.text()?;
        }
        let mut organisations = Organisations::default();
        organisations.reserve(count);
        for (registry, asn) in registry_of.into_iter().zip(asns) {
            let (id, name) = (self.text()?, names.text()?);
            organisations.push(Holder { registry: registry as u16, id, name, asn });
        }
        *self = names;
        Ok(organisations)
    }

    fn subnets(&mut self, columns: &mut Columns) -> Result<(), Malformed> {
        let count = self.count()?;
        if count > MAX_SUBNETS {
            return Err(Malformed("it has more subnets than a hierarchy may have"));
        }
        let lengths = self.bytes(count)?;
        let long = lengths.iter().filter(|length| **length >= V6_LENGTH).count();
        let holders = self.deltas(count, columns.organisations.registries.len())?;
        let place_of = self.deltas(count, columns.places.len().min(usize::from(u16::MAX)))?;
        columns.reserve(count, long);
        for ((length, organisation), place) in lengths.iter().zip(holders).zip(place_of) {
            let v6 = *length >= V6_LENGTH;
            let length = if v6 { length - V6_LENGTH } else { *length };
            let mut number = [0; 16];
            let bytes = if v6 { &mut number[..] } else { &mut number[12..] };
            bytes.copy_from_slice(self.bytes(bytes.len())?);
            let prefix = Prefix { v6, first: u128::from_be_bytes(number), length };
            if !well_formed(&prefix) {
                return Err(Malformed("a subnet is no prefix"));
            }
            columns.push(prefix, organisation, place as u16);
        }
        Ok(())
    }
}
