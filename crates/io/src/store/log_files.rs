//! Checks RocksDB's log files before a database is opened, since RocksDB takes damage for their end.
//!
//! After a power cut the last record of a write-ahead log may be torn, so RocksDB reads it up to the first record that is not whole, and
//! drops the rest without an error: one flipped bit could so undo all rows, claims and votes that were synced behind it. The manifest has
//! the same format. Here a record that is not whole is told apart: a torn one is cut off by the end of the file, or the file ends in
//! zeros that were never written; anything else is damage.
//!
//! A file consists of blocks of 32 KiB. A record is a header (checksum, length, type) and that many bytes, and lies within a block;
//! what is longer is divided. Fewer bytes than a header has at the end of a block are not used.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

/// Bytes of a block.
const BLOCK: usize = 32 << 10;

/// Bytes of a header: checksum, length, type.
const HEADER: usize = 7;

/// Bytes of a header in a file that was used before: it names the file's number, too.
const RECYCLED_HEADER: usize = 11;

/// So many zeros at the end of a file were never written: a sector.
const UNWRITTEN: usize = 512;

/// What is wrong with the log files of the database in `directory`: its write-ahead logs and the manifest in use. None if nothing is.
///
/// # Errors
/// A file cannot be read.
pub(super) fn damage(directory: &Path) -> io::Result<Option<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    // A manifest that is not named is not read by RocksDB either; if CURRENT is damaged itself, the opening says so.
    let manifest = fs::read_to_string(directory.join("CURRENT")).unwrap_or_default();
    for entry in entries {
        let path = entry?.path();
        let is_log = path.extension().is_some_and(|end| end == "log");
        if (is_log || path.file_name().is_some_and(|name| name == manifest.trim_end()))
            && let Some(at) = first_damage(File::open(&path)?)?
        {
            let name = path.file_name().unwrap_or_default().display();
            return Ok(Some(format!("{name} has a record at byte {at} that does not match its checksum")));
        }
    }
    Ok(None)
}

/// Where the first damaged record of a file begins.
fn first_damage(mut file: impl Read) -> io::Result<Option<u64>> {
    let (mut block, mut next) = (Vec::new(), Vec::new());
    file.by_ref().take(BLOCK as u64).read_to_end(&mut block)?;
    let mut begin = 0;
    // The end of a block, if it is where a record without a sound one after it begins.
    let mut doubtful = None;
    while !block.is_empty() {
        next.clear();
        file.by_ref().take(BLOCK as u64).read_to_end(&mut next)?;
        if let Some(at) = doubtful.filter(|_| block.iter().any(|byte| *byte != 0)) {
            return Ok(Some(at));
        }
        match in_block(&block, next.is_empty()) {
            Found::Whole => {}
            Found::Unwritten(at) => doubtful = doubtful.or(Some(begin + at as u64)),
            Found::Damaged(at) => return Ok(Some(begin + at as u64)),
        }
        begin += block.len() as u64;
        std::mem::swap(&mut block, &mut next);
    }
    Ok(None)
}

/// What a block holds.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// Nothing but whole records, and perhaps a torn one at the end of the file.
    Whole,
    /// From here on zeros that were never written, if all further blocks are zeros, too.
    Unwritten(usize),
    /// A damaged record, which begins here.
    Damaged(usize),
}

/// Looks at the records of one block; `last`: the file ends with it.
fn in_block(block: &[u8], last: bool) -> Found {
    let mut at = 0;
    while let Some(record) = Record::at(block, at) {
        if record.is_whole() {
            at += record.header + record.length;
            continue;
        }
        let zeros = block.iter().rev().take_while(|byte| **byte == 0).count();
        let cut_off = last && record.is_cut_off() && !record.is_all_there() && !any_whole_record(block, at + 1);
        return match () {
            () if cut_off => Found::Whole,
            () if zeros >= UNWRITTEN || zeros == block.len() - at => Found::Unwritten(at),
            () => Found::Damaged(at),
        };
    }
    Found::Whole
}

/// Whether a whole record begins anywhere from here on: then what is before it was written before, and is not the torn end.
fn any_whole_record(block: &[u8], from: usize) -> bool {
    (from..block.len()).filter_map(|at| Record::at(block, at)).any(|record| record.length > 0 && record.is_whole())
}

/// A record as its header has it.
struct Record<'a> {
    checksum: u32,
    length: usize,
    /// Bytes of the header.
    header: usize,
    /// From the type on, which the checksum covers, to the end of the block.
    rest: &'a [u8],
}

impl Record<'_> {
    /// The record that begins here; none if no header has room.
    fn at(block: &[u8], at: usize) -> Option<Record<'_>> {
        let (&[a, b, c, d, low, high, kind], _) = block.get(at..)?.split_first_chunk::<HEADER>()?;
        let header = if matches!(kind, 5..=8 | 11 | 131) { RECYCLED_HEADER } else { HEADER };
        let (checksum, length) = (u32::from_le_bytes([a, b, c, d]), usize::from(u16::from_le_bytes([low, high])));
        Some(Record { checksum, length, header, rest: &block[at + HEADER - 1..] })
    }

    /// Bytes that the checksum covers if the length is right.
    fn covered(&self) -> usize {
        self.header - (HEADER - 1) + self.length
    }

    /// Whether the block ends before it.
    fn is_cut_off(&self) -> bool {
        self.covered() > self.rest.len()
    }

    fn is_whole(&self) -> bool {
        self.rest.get(..self.covered()).is_some_and(|bytes| masked(crc32c(bytes)) == self.checksum)
    }

    /// Whether it is whole if it goes as far as the block, so that only its length is wrong.
    fn is_all_there(&self) -> bool {
        masked(crc32c(self.rest)) == self.checksum
    }
}

/// A checksum as it is stored.
fn masked(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli).
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| TABLE[usize::from(sum as u8 ^ byte)] ^ (sum >> 8))
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let (mut sum, mut bit) = (index as u32, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0x82f6_3b78 } else { sum >> 1 };
            bit += 1;
        }
        table[index] = sum;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
        let covered = [&[kind], payload].concat();
        let length = u16::try_from(payload.len()).unwrap().to_le_bytes();
        [&masked(crc32c(&covered)).to_le_bytes()[..], &length, &covered].concat()
    }

    /// A file of records that fill a little more than two blocks, divided as RocksDB divides them.
    fn records() -> Vec<u8> {
        let mut file = Vec::new();
        for number in 0..500u32 {
            let whole: Vec<u8> = (0..20 + number % 300).map(|at| (at * 7 + number) as u8 | 1).collect();
            let mut left = &whole[..];
            while !left.is_empty() {
                let room = BLOCK - file.len() % BLOCK;
                if room <= HEADER {
                    file.resize(file.len() + room, 0);
                    continue;
                }
                let (piece, rest) = left.split_at(left.len().min(room - HEADER));
                let kind = match (left.len() == whole.len(), rest.is_empty()) {
                    (true, true) => 1,
                    (true, false) => 2,
                    (false, false) => 3,
                    (false, true) => 4,
                };
                file.extend(record(kind, piece));
                left = rest;
            }
        }
        assert!(file.len() > 2 * BLOCK && file.len() < 3 * BLOCK, "{}", file.len());
        file
    }

    fn damage_of(bytes: &[u8]) -> Option<u64> {
        first_damage(bytes).unwrap()
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_found() {
        let sound = records();
        assert_eq!(damage_of(&sound), None);
        let unused = |at: usize| sound[at..at.next_multiple_of(BLOCK).min(sound.len())].iter().all(|byte| *byte == 0);
        let mut found = 0;
        for bit in (0..sound.len() * 8).step_by(97).chain((sound.len() - 100) * 8..sound.len() * 8) {
            let mut flipped = sound.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let damage = damage_of(&flipped);
            assert!(damage.is_some() || unused(bit / 8), "bit {} of byte {} of {}", bit % 8, bit / 8, sound.len());
            found += usize::from(damage.is_some());
        }
        assert!(found > 5_000, "{found}");
    }

    #[test]
    fn a_torn_end_and_an_unwritten_one_are_no_damage() {
        let sound = records();
        for cut in (0..sound.len()).step_by(211).chain(sound.len() - 300..sound.len()) {
            assert_eq!(damage_of(&sound[..cut]), None, "cut at {cut}");
        }
        for zeros in [600, BLOCK, 2 * BLOCK] {
            let mut unwritten = sound.clone();
            unwritten.resize(sound.len() + zeros, 0);
            assert_eq!(damage_of(&unwritten), None, "{zeros} zeros behind");
            let from = sound.len() - 250;
            unwritten[from..].fill(0);
            assert_eq!(damage_of(&unwritten), None, "{zeros} zeros and more");
        }
        // A hole with something written behind it is none.
        let mut hole = sound.clone();
        hole[1_000..2 * BLOCK].fill(0);
        assert!(damage_of(&hole).is_some());
    }
}
