//! Is this the file that the registry meant? Registries publish MD5 sums beside their files: good against accidents, not against forgers.

use std::io::{self, Read};

/// How far each step of a round turns its word.
const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// Takes in one block of 64 bytes (RFC 1321, section 3.4).
fn digest(state: &mut [u32; 4], block: &[u8; 64]) {
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let [mut a, mut b, mut c, mut d] = *state;
    for step in 0..64usize {
        let (mixed, word) = match step / 16 {
            0 => ((b & c) | (!b & d), step),
            1 => ((d & b) | (!d & c), 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        // The constants are those of the sine, as the RFC defines them.
        let sine = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
        let sum = a.wrapping_add(mixed).wrapping_add(sine).wrapping_add(words[word % 16]);
        (a, d, c) = (d, c, b);
        b = b.wrapping_add(sum.rotate_left(TURNS[step / 16][step % 4]));
    }
    for (part, new) in state.iter_mut().zip([a, b, c, d]) {
        *part = part.wrapping_add(new);
    }
}

/// The MD5 sum of everything that can be read, in hexadecimal.
pub(super) fn sum(mut input: impl Read) -> io::Result<String> {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut length: u64 = 0;
    let mut buffer = Vec::with_capacity(64 << 10);
    loop {
        buffer.clear();
        let read = input.by_ref().take(64 << 10).read_to_end(&mut buffer)?;
        length += read as u64;
        let end = read < 64 << 10;
        if end {
            buffer.push(0x80);
            buffer.resize((buffer.len() + 8).next_multiple_of(64) - 8, 0);
            buffer.extend_from_slice(&(length * 8).to_le_bytes());
        }
        buffer.as_chunks::<64>().0.iter().for_each(|block| digest(&mut state, block));
        if end {
            return Ok(state.iter().flat_map(|part| part.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect());
        }
    }
}

/// The sum in a file beside the file: the first word of 32 hexadecimal digits, as both `md5` and `md5sum` write it.
pub(super) fn said(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| word.len() == 32 && word.bytes().all(|b| b.is_ascii_hexdigit())).map(str::to_ascii_lowercase).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_rfc() {
        let cases = [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("12345678901234567890123456789012345678901234567890123456789012345678901234567890", "57edf4a22be3c955ac49da2e2107b67a"),
        ];
        for (text, expected) in cases {
            assert_eq!(sum(text.as_bytes()).unwrap(), expected);
        }
        // Blocks, buffers and their ends; from md5sum.
        assert_eq!(sum(&[b'x'; 64 << 10][..]).unwrap(), "598bf98d5c865461aef3eaa8d95a0fd9");
    }

    #[test]
    fn sums_are_found_however_they_are_written() {
        let sum = "0CC175B9C0F1B6A831C399E269772661";
        for text in [format!("{sum}  delegated\n"), format!("MD5 (delegated-apnic-extended-latest) = {sum}\n"), sum.to_owned()] {
            assert_eq!(said(&text).unwrap(), sum.to_lowercase());
        }
        assert_eq!(said("<html>not found</html>"), None);
    }
}
