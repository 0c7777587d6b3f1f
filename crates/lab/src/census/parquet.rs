//! Reader of the Parquet files that exports write, independent of the code that writes them.
//!
//! It follows the format's own description (<https://parquet.apache.org/docs/file-format/>): flat columns of plain values, in data pages of
//! version 1, packed with zstd or not at all.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const MAGIC: &[u8] = b"PAR1";

/// The most bytes of a page when it is unpacked.
const MAX_PAGE: usize = 1 << 30;

/// A value in Thrift's compact protocol.
#[derive(Clone, Debug, PartialEq)]
enum Thrift {
    Number(i64),
    Bytes(Vec<u8>),
    List(Vec<Thrift>),
    Struct(BTreeMap<i64, Thrift>),
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

type Read<T> = Result<T, String>;

impl Reader<'_> {
    fn byte(&mut self) -> Read<u8> {
        let (first, rest) = self.0.split_first().ok_or("it ends too early")?;
        self.0 = rest;
        Ok(*first)
    }

    fn bytes(&mut self, count: usize) -> Read<&[u8]> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(bytes)
    }

    fn varint(&mut self) -> Read<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number is too long".to_owned())
    }

    fn number(&mut self) -> Read<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn value(&mut self, kind: u8) -> Read<Thrift> {
        match kind {
            1 | 2 => Ok(Thrift::Number(i64::from(kind == 1))),
            3 => Ok(Thrift::Number(i64::from(self.byte()?.cast_signed()))),
            4..=6 => Ok(Thrift::Number(self.number()?)),
            8 => {
                let count = self.varint()? as usize;
                Ok(Thrift::Bytes(self.bytes(count)?.to_vec()))
            }
            9 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                (0..count).map(|_| self.value(head & 15)).collect::<Read<_>>().map(Thrift::List)
            }
            12 => self.fields().map(Thrift::Struct),
            other => Err(format!("a value of kind {other}")),
        }
    }

    fn fields(&mut self) -> Read<BTreeMap<i64, Thrift>> {
        let (mut fields, mut last) = (BTreeMap::new(), 0);
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(fields);
            }
            last = if head >> 4 == 0 { self.number()? } else { last + i64::from(head >> 4) };
            let value = self.value(head & 15)?;
            fields.insert(last, value);
        }
    }
}

impl Thrift {
    fn field(&self, number: i64) -> Read<&Thrift> {
        let Thrift::Struct(fields) = self else { return Err("no structure".to_owned()) };
        fields.get(&number).ok_or_else(|| format!("field {number} is not there"))
    }

    fn number(&self, field: i64) -> Read<i64> {
        if let Thrift::Number(number) = self.field(field)? { Ok(*number) } else { Err(format!("field {field} is no number")) }
    }

    fn list(&self, field: i64) -> Read<&[Thrift]> {
        if let Thrift::List(list) = self.field(field)? { Ok(list) } else { Err(format!("field {field} is no list")) }
    }

    fn text(&self, field: i64) -> Read<String> {
        let Thrift::Bytes(bytes) = self.field(field)? else { return Err(format!("field {field} is no text")) };
        String::from_utf8(bytes.clone()).map_err(|why| why.to_string())
    }
}

/// Which of so many values are there: runs of equal bits, or eight of them in a byte.
fn levels(mut from: Reader<'_>, count: usize) -> Read<Vec<bool>> {
    let mut levels = Vec::with_capacity(count);
    while levels.len() < count {
        let head = from.varint()?;
        if head & 1 == 0 {
            let is_there = from.byte()? == 1;
            levels.extend(std::iter::repeat_n(is_there, ((head >> 1) as usize).min(count)));
        } else {
            let bytes = from.bytes((head >> 1) as usize)?;
            levels.extend(bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1)));
        }
    }
    levels.truncate(count);
    Ok(levels)
}

/// Plain values of a physical type; a time is milliseconds since 1970 in UTC.
fn plain(from: &mut Reader<'_>, kind: i64, count: usize) -> Read<Vec<Value>> {
    if kind == 0 {
        let bytes = from.bytes(count.div_ceil(8))?;
        return Ok((0..count).map(|at| json!(bytes[at / 8] >> (at % 8) & 1 == 1)).collect());
    }
    let mut value = || -> Read<Value> {
        let mut eight = [0; 8];
        match kind {
            2 | 5 => eight.copy_from_slice(from.bytes(8)?),
            6 => eight[..4].copy_from_slice(from.bytes(4)?),
            other => return Err(format!("values of type {other}")),
        }
        match kind {
            2 => Ok(json!(i64::from_le_bytes(eight))),
            5 => Ok(json!(f64::from_le_bytes(eight))),
            _ => {
                let text = from.bytes(u64::from_le_bytes(eight) as usize)?;
                String::from_utf8(text.to_vec()).map(Value::String).map_err(|why| why.to_string())
            }
        }
    };
    (0..count).map(|_| value()).collect()
}

/// The values of one column in one row group.
fn column(file: &[u8], chunk: &Thrift, is_optional: bool) -> Read<Vec<Value>> {
    let meta = chunk.field(3)?;
    let start = usize::try_from(meta.number(9)?).map_err(|why| why.to_string())?;
    let mut from = Reader(file.get(start..).ok_or("a column lies behind the end")?);
    let mut values = Vec::new();
    while (values.len() as i64) < meta.number(5)? {
        let header = Thrift::Struct(from.fields()?);
        let packed = from.bytes(header.number(3)? as usize)?;
        let page = match meta.number(4)? {
            0 => packed.to_vec(),
            6 => zstd::bulk::decompress(packed, (header.number(2)? as usize).min(MAX_PAGE)).map_err(|why| why.to_string())?,
            other => return Err(format!("packed by method {other}")),
        };
        let count = header.field(5)?.number(1)? as usize;
        let mut page = Reader(&page);
        let there = if is_optional {
            let mut length = [0; 4];
            length.copy_from_slice(page.bytes(4)?);
            levels(Reader(page.bytes(u32::from_le_bytes(length) as usize)?), count)?
        } else {
            vec![true; count]
        };
        let mut plain = plain(&mut page, meta.number(1)?, there.iter().filter(|there| **there).count())?.into_iter();
        values.extend(there.into_iter().map(|there| if there { plain.next() } else { None }.unwrap_or_default()));
    }
    Ok(values)
}

/// All rows of a file.
pub(crate) fn rows(file: &[u8]) -> Read<Vec<Map<String, Value>>> {
    let body = file.strip_prefix(MAGIC).and_then(|file| file.strip_suffix(MAGIC)).ok_or("it is no Parquet file")?;
    let (body, length) = body.split_last_chunk::<4>().ok_or("it has no footer")?;
    let footer = body.len().checked_sub(u32::from_le_bytes(*length) as usize).ok_or("its footer is too long")?;
    let footer = Thrift::Struct(Reader(&body[footer..]).fields()?);
    let schema = &footer.list(2)?[1..];
    let mut rows = Vec::new();
    for group in footer.list(4)? {
        let mut of_group = vec![Map::new(); usize::try_from(group.number(3)?).map_err(|why| why.to_string())?];
        for (chunk, element) in group.list(1)?.iter().zip(schema) {
            let (name, is_optional) = (element.text(4)?, element.number(3)? == 1);
            let values = column(file, chunk, is_optional)?;
            if values.len() != of_group.len() {
                return Err(format!("{name} has {} values in {} rows", values.len(), of_group.len()));
            }
            of_group.iter_mut().zip(values).for_each(|(row, value)| drop(row.insert(name.clone(), value)));
        }
        rows.extend(of_group);
    }
    let told = footer.number(3)?;
    if told == rows.len() as i64 { Ok(rows) } else { Err(format!("{told} rows by its footer, {} in it", rows.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_texts_and_lists_are_read_as_thrift_writes_them() {
        // Field 1: -3; field 3: "ab"; field 19: a list of two numbers; field 20: true.
        let bytes = [0x15, 0x05, 0x28, 0x02, b'a', b'b', 0x09, 0x26, 0x25, 0x02, 0x04, 0x11, 0x00];
        let read = Thrift::Struct(Reader(&bytes).fields().unwrap());
        assert_eq!((read.number(1), read.text(3), read.number(20)), (Ok(-3), Ok("ab".to_owned()), Ok(1)));
        assert_eq!(read.list(19).unwrap(), [Thrift::Number(1), Thrift::Number(2)]);
        assert!(Reader(&bytes[..5]).fields().is_err());
    }

    #[test]
    fn levels_are_runs_or_bits() {
        assert_eq!(levels(Reader(&[0x06, 0x01, 0x03, 0b0000_0101]), 6), Ok(vec![true, true, true, true, false, true]));
        assert!(levels(Reader(&[0x06]), 3).is_err());
    }

    #[test]
    fn what_is_no_file_is_refused() {
        for bytes in [&b""[..], b"PAR1PAR1", b"PAR1\xff\xff\xff\xffPAR1", b"PAR1\x00\x00\x00\x00PAR1"] {
            assert!(rows(bytes).is_err(), "{bytes:?}");
        }
    }
}
