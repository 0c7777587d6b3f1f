//! Parquet files: columns as DuckDB and pandas read them (<https://parquet.apache.org/docs/file-format/>), packed with zstd.
//!
//! What is needed of the format is little: plain values, one page for each column of a row group, and a footer in Thrift's compact
//! protocol. The crate that does all of it would add forty seconds of processor time to each build. A row group is what fits into
//! [`GROUP_BYTES`]; the file is written under another name and gets its own when it is whole.

use super::column::{Column, REST, Row, Type, cells};
use nearcrawl_model::time::WallTime;
use serde_json::Value;
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// What the values of a row group take, not packed, and how many rows it has, at most; a row more than that takes.
const GROUP_BYTES: usize = 16 << 20;
const GROUP_ROWS: usize = 128 << 10;

/// How much zstd tries.
const LEVEL: i32 = 3;

const MAGIC: &[u8] = b"PAR1";

/// Numbers of the format: codec and encodings.
const ZSTD: i64 = 6;
const PLAIN: i64 = 0;
const RLE: i64 = 3;

/// The values of a column in a row group.
#[derive(Default)]
struct Values {
    /// Whether each row has a value.
    there: Vec<bool>,
    /// The values, plain.
    plain: Vec<u8>,
    /// Those of flags, which are packed at the end.
    flags: Vec<bool>,
}

/// A column of a row group, as it was written.
struct Chunk {
    at: u64,
    packed: usize,
    unpacked: usize,
}

struct Group {
    rows: usize,
    chunks: Vec<Chunk>,
}

/// A file that is being written.
pub struct Parquet {
    columns: Vec<Column>,
    values: Vec<Values>,
    rows: usize,
    groups: Vec<Group>,
    to: BufWriter<File>,
    at: u64,
    path: PathBuf,
    unfinished: PathBuf,
}

impl Parquet {
    /// Begins a file with these columns, and one for the rest.
    pub fn create(path: &Path, columns: impl IntoIterator<Item = Column>) -> io::Result<Parquet> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        let columns: Vec<Column> = columns.into_iter().chain([super::column::text(REST)]).collect();
        let values = columns.iter().map(|_| Values::default()).collect();
        let mut to = BufWriter::new(File::create(&unfinished)?);
        to.write_all(MAGIC)?;
        let at = MAGIC.len() as u64;
        Ok(Parquet { columns, values, rows: 0, groups: Vec::new(), to, at, path: path.to_owned(), unfinished })
    }

    /// Adds a row, whose keys are the names of the columns in JSON.
    pub fn add(&mut self, mut row: Row) -> io::Result<()> {
        let rest_at = self.columns.len() - 1;
        let cells = cells(&self.columns[..rest_at], &mut row);
        for ((column, values), value) in self.columns.iter().zip(&mut self.values).zip(cells.into_iter().chain([rest(&row)])) {
            values.add(column.holds, value);
        }
        self.rows += 1;
        let bytes: usize = self.values.iter().map(|values| values.plain.len()).sum();
        if bytes >= GROUP_BYTES || self.rows >= GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    /// Ends the file, and gives it its name.
    pub fn finish(mut self) -> io::Result<()> {
        self.write_group()?;
        let footer = self.footer();
        self.to.write_all(&footer)?;
        self.to.write_all(&(footer.len() as u32).to_le_bytes())?;
        self.to.write_all(MAGIC)?;
        self.to.flush()?;
        self.to.get_ref().sync_all()?;
        std::fs::rename(&self.unfinished, &self.path)
    }

    fn write_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut chunks = Vec::with_capacity(self.columns.len());
        for values in &mut self.values {
            let page = std::mem::take(values).page();
            let packed = zstd::bulk::compress(&page, LEVEL)?;
            let mut header = Thrift::default();
            header.int(1, 0).int(2, page.len() as i64).int(3, packed.len() as i64);
            header.begin(5).int(1, self.rows as i64).int(2, PLAIN).int(3, RLE).int(4, RLE).end().stop();
            self.to.write_all(&header.bytes)?;
            self.to.write_all(&packed)?;
            let head = header.bytes.len();
            chunks.push(Chunk { at: self.at, packed: head + packed.len(), unpacked: head + page.len() });
            self.at += (head + packed.len()) as u64;
        }
        self.groups.push(Group { rows: self.rows, chunks });
        self.rows = 0;
        Ok(())
    }

    fn footer(&self) -> Vec<u8> {
        let mut to = Thrift::default();
        to.int(1, 1).list(2, STRUCT, self.columns.len() + 1);
        to.element().text(4, "rows").int(5, self.columns.len() as i64).end();
        for column in &self.columns {
            to.element().int(1, column.holds.physical()).int(3, 1).text(4, column.parquet);
            match column.holds {
                Type::Text | Type::Words => to.int(6, 0).begin(10).begin(1).end().end(),
                Type::Time => to.int(6, 9).begin(10).begin(8).flag(1, true).begin(2).begin(1).end().end().end().end(),
                Type::Int | Type::Flag | Type::Real => &mut to,
            }
            .end();
        }
        to.int64(3, self.groups.iter().map(|group| group.rows as i64).sum());
        to.list(4, STRUCT, self.groups.len());
        for group in &self.groups {
            to.element().list(1, STRUCT, group.chunks.len());
            for (column, chunk) in self.columns.iter().zip(&group.chunks) {
                to.element().int64(2, chunk.at as i64).begin(3).int(1, column.holds.physical());
                to.list(2, INT, 2).number(PLAIN).number(RLE).list(3, TEXT, 1).string(column.parquet);
                to.int(4, ZSTD).int64(5, group.rows as i64).int64(6, chunk.unpacked as i64).int64(7, chunk.packed as i64);
                to.int64(9, chunk.at as i64).end().end();
            }
            to.int64(2, group.chunks.iter().map(|chunk| chunk.unpacked as i64).sum()).int64(3, group.rows as i64).end();
        }
        to.text(6, concat!("nearcrawl version ", env!("CARGO_PKG_VERSION"))).stop();
        to.bytes
    }
}

/// What has no column, if there is anything.
fn rest(row: &Row) -> Value {
    if row.is_empty() { Value::Null } else { Value::String(Value::Object(row.clone()).to_string()) }
}

impl Values {
    /// A value that the column cannot hold is none: its owner says something else than this version knows.
    fn add(&mut self, holds: Type, value: Value) {
        let there = match (holds, value) {
            (_, Value::Null) => false,
            (Type::Text | Type::Words, value) => {
                let text = if let Value::String(text) = value { text } else { value.to_string() };
                self.plain.extend((text.len() as u32).to_le_bytes());
                self.plain.extend(text.as_bytes());
                true
            }
            (Type::Int, value) => self.number(value.as_i64()),
            (Type::Time, value) => {
                let time = value.as_str().and_then(|text| text.parse::<WallTime>().ok());
                self.number(time.and_then(|time| i64::try_from(time.0).ok()))
            }
            (Type::Real, value) => {
                let number = value.as_f64();
                self.plain.extend(number.map(f64::to_le_bytes).into_iter().flatten());
                number.is_some()
            }
            (Type::Flag, value) => {
                self.flags.extend(value.as_bool());
                value.is_boolean()
            }
        };
        self.there.push(there);
    }

    fn number(&mut self, number: Option<i64>) -> bool {
        self.plain.extend(number.map(i64::to_le_bytes).into_iter().flatten());
        number.is_some()
    }

    /// A data page: which rows have a value, then the values.
    fn page(self) -> Vec<u8> {
        let bits = |flags: &[bool]| -> Vec<u8> {
            let byte = |bits: &[bool]| bits.iter().enumerate().fold(0, |byte, (place, bit)| byte | u8::from(*bit) << place);
            flags.chunks(8).map(byte).collect()
        };
        let there = bits(&self.there);
        let mut levels = Vec::new();
        varint(&mut levels, (there.len() as u64) << 1 | 1);
        levels.extend(there);
        let mut page = (levels.len() as u32).to_le_bytes().to_vec();
        page.extend(levels);
        page.extend(self.plain);
        page.extend(bits(&self.flags));
        page
    }
}

impl Type {
    /// The number of the type in the format.
    fn physical(self) -> i64 {
        match self {
            Type::Flag => 0,
            Type::Int | Type::Time => 2,
            Type::Real => 5,
            Type::Text | Type::Words => 6,
        }
    }
}

/// Types of Thrift's compact protocol.
const INT: u8 = 5;
const INT64: u8 = 6;
const TEXT: u8 = 8;
const STRUCT: u8 = 12;

/// Writes structs in Thrift's compact protocol.
#[derive(Default)]
struct Thrift {
    bytes: Vec<u8>,
    /// The number of the last field, and those of the structs around.
    last: i16,
    around: Vec<i16>,
}

impl Thrift {
    fn field(&mut self, number: i16, kind: u8) -> &mut Thrift {
        // No struct here skips fifteen fields.
        self.bytes.push(((number - self.last) as u8) << 4 | kind);
        self.last = number;
        self
    }

    fn number(&mut self, number: i64) -> &mut Thrift {
        varint(&mut self.bytes, (number << 1 ^ number >> 63) as u64);
        self
    }

    fn int(&mut self, field: i16, number: i64) -> &mut Thrift {
        self.field(field, INT).number(number)
    }

    fn int64(&mut self, field: i16, number: i64) -> &mut Thrift {
        self.field(field, INT64).number(number)
    }

    fn flag(&mut self, field: i16, flag: bool) -> &mut Thrift {
        self.field(field, if flag { 1 } else { 2 })
    }

    fn string(&mut self, text: &str) -> &mut Thrift {
        varint(&mut self.bytes, text.len() as u64);
        self.bytes.extend(text.as_bytes());
        self
    }

    fn text(&mut self, field: i16, text: &str) -> &mut Thrift {
        self.field(field, TEXT).string(text)
    }

    fn list(&mut self, field: i16, kind: u8, length: usize) -> &mut Thrift {
        self.field(field, 9);
        if length < 15 {
            self.bytes.push((length as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            varint(&mut self.bytes, length as u64);
        }
        self
    }

    /// A struct in a field.
    fn begin(&mut self, field: i16) -> &mut Thrift {
        self.field(field, STRUCT).element()
    }

    /// A struct in a list.
    fn element(&mut self) -> &mut Thrift {
        self.around.push(std::mem::take(&mut self.last));
        self
    }

    fn end(&mut self) -> &mut Thrift {
        self.stop();
        self.last = self.around.pop().unwrap_or(0);
        self
    }

    fn stop(&mut self) {
        self.bytes.push(0);
    }
}

fn varint(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}
