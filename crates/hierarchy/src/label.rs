//! Label of a snapshot file, readable without unpacking it: it stands in front, in a frame that zstd skips.
//!
//! ```text
//! 0x184D2A5E u32 · length u32 · "NCRAWLLA" · version u32 · hash 32 · subnets u32 · newest source u32 (YYYYMMDD)
//! ```
//!
//! Numbers are little-endian. The label is unchecked: it serves to find a hierarchy that was unpacked before, and whoever unpacks the
//! file compares it with the result.

/// One of the magic numbers of zstd's skippable frames.
const SKIPPED: u32 = 0x184D_2A5E;

const MAGIC: &[u8; 8] = b"NCRAWLLA";

/// Grows when the label's meaning changes; other versions are no label.
const VERSION: u32 = 1;

/// Bytes of a label with the frame around it.
pub(super) const LABEL_LENGTH: usize = 60;

/// What a snapshot file states about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Hash of the content.
    pub hash: [u8; 32],
    /// How many subnets.
    pub subnets: u32,
    /// The latest date of its sources as YYYYMMDD, 0 unknown.
    pub built: u32,
}

impl Label {
    /// The label of a snapshot file; none if it has none.
    pub fn of(file: &[u8]) -> Option<Label> {
        let label = file.first_chunk::<LABEL_LENGTH>()?;
        let number = |at: usize| label[at..at + 4].iter().rev().fold(0, |n, b| n << 8 | u32::from(*b));
        if number(0) != SKIPPED || number(4) as usize != LABEL_LENGTH - 8 || &label[8..16] != MAGIC || number(16) != VERSION {
            return None;
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(&label[20..52]);
        Some(Label { hash, subnets: number(52), built: number(56) })
    }

    /// The bytes that go in front of a snapshot file.
    pub(super) fn to_bytes(self) -> [u8; LABEL_LENGTH] {
        let mut label = [0; LABEL_LENGTH];
        label[..4].copy_from_slice(&SKIPPED.to_le_bytes());
        label[4..8].copy_from_slice(&(LABEL_LENGTH as u32 - 8).to_le_bytes());
        label[8..16].copy_from_slice(MAGIC);
        label[16..20].copy_from_slice(&VERSION.to_le_bytes());
        label[20..52].copy_from_slice(&self.hash);
        label[52..56].copy_from_slice(&self.subnets.to_le_bytes());
        label[56..].copy_from_slice(&self.built.to_le_bytes());
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_read_back_and_zstd_skips_it() {
        let label = Label { hash: [7; 32], subnets: 236_280, built: 20_181_013 };
        let file = [&label.to_bytes()[..], &zstd::bulk::compress(b"content", 1).unwrap()].concat();
        assert_eq!(Label::of(&file), Some(label));
        assert_eq!(zstd::stream::decode_all(&file[..]).unwrap(), b"content");
    }

    #[test]
    fn other_bytes_are_no_label() {
        let label = Label { hash: [7; 32], subnets: 1, built: 0 }.to_bytes();
        for at in 0..20 {
            let mut other = label;
            other[at] ^= 1;
            assert_eq!(Label::of(&other), None, "byte {at}");
        }
        assert_eq!(Label::of(&label[..59]), None);
        assert_eq!(Label::of(b""), None);
    }
}
