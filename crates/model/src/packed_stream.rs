//! Compression of the messages of one stream: each refers to what was sent on that stream before.
//!
//! Two members say much the same to each other again and again: their keys, the subnets and hosts of their journals, sums of which a few
//! numbers changed. Both ends of a stream keep the last [`WINDOW`] bytes that were said on it in one direction, and a message names the
//! places in there of what it repeats (as in LZ77). So a ping of SWIM, which consists of two keys and addresses, takes some ten bytes.
//!
//! A message is a row of steps: a byte with two numbers of four bits, so many bytes that are new, and how far back the bytes are that
//! follow them, and how many these are. Each number is in the byte if it is less than 15, else the rest of it follows in groups of seven
//! bits. The result is packed once more ([`super::packed`]) if it is long.

use super::packed::{UnpackError, pack, unpack};

/// How far back a message may refer, in bytes.
const WINDOW: usize = 16 << 10;

/// Fewer bytes than this are not worth a reference.
const MIN_REPEATED: usize = 4;

/// A number of four bits that says: the rest of it follows.
const MORE: usize = 15;

/// Places of each four bytes that are remembered by the packing end.
const PLACES: usize = 4;
const SLOTS_BITS: u32 = 11;

/// No place.
const NOWHERE: u16 = u16::MAX;

/// How long the steps of a message can be: new bytes and a byte with two numbers for each fifteen of them at most.
fn longest_steps(message: usize) -> usize {
    message.saturating_add(message / 8).saturating_add(16)
}

/// What was said on a stream lately.
#[derive(Debug, Default)]
struct Said {
    bytes: Vec<u8>,
}

impl Said {
    /// Forgets what no message may refer to any more, if there is enough of it. Returns whether places changed.
    fn tidy(&mut self) -> bool {
        let over = self.bytes.len() > 2 * WINDOW;
        if over {
            self.bytes.drain(..self.bytes.len() - WINDOW);
        }
        over
    }
}

/// The end of a stream at which messages are said.
#[derive(Debug)]
pub struct Packer {
    said: Said,
    places: Vec<[u16; PLACES]>,
}

impl Default for Packer {
    fn default() -> Self {
        Packer { said: Said::default(), places: vec![[NOWHERE; PLACES]; 1 << SLOTS_BITS] }
    }
}

impl Packer {
    /// Packs the next message of the stream. It must be the next that the other end unpacks.
    pub fn pack(&mut self, message: &[u8]) -> Vec<u8> {
        if self.said.tidy() {
            self.index();
        }
        // What is longer pushes out all that was said before anyway, and places are numbered with 16 bits.
        let begin = self.said.bytes.len();
        let mut steps = Vec::with_capacity(message.len() / 2 + 16);
        if message.len() > WINDOW {
            write_step(&mut steps, message, 0, 0);
        } else {
            self.said.bytes.extend_from_slice(message);
            self.write_steps(begin, &mut steps);
        }
        if message.len() > WINDOW {
            self.said.bytes.clear();
            self.said.bytes.extend_from_slice(&message[message.len() - WINDOW..]);
            self.index();
        }
        pack(&steps)
    }

    /// Writes what was said from this place on.
    fn write_steps(&mut self, begin: usize, steps: &mut Vec<u8>) {
        let (mut at, mut new) = (begin, begin);
        while at < self.said.bytes.len() {
            let (back, length) = self.longest_before(at);
            let next = at + length.max(1);
            if length >= MIN_REPEATED {
                write_step(steps, &self.said.bytes[new..at], back, length);
                new = next;
            }
            (at..next).for_each(|place| self.remember(place));
            at = next;
        }
        if new < at || begin == at {
            write_step(steps, &self.said.bytes[new..at], 0, 0);
        }
    }

    /// How far back the longest piece is that is repeated from this place on, and how long it is.
    fn longest_before(&self, at: usize) -> (usize, usize) {
        let Some(slot) = slot_of(&self.said.bytes, at) else { return (0, 0) };
        let bytes = &self.said.bytes;
        let mut longest = (0, 0);
        for place in self.places[slot].iter().filter(|place| **place != NOWHERE).map(|place| usize::from(*place)) {
            let back = at - place;
            // A piece that ends before the longest one so far does, or with it, is not longer.
            let may_be_longer = bytes.get(at + longest.1).is_some_and(|next| bytes[place + longest.1] == *next);
            if back > WINDOW || !may_be_longer {
                continue;
            }
            let length = common_length(&bytes[place..], &bytes[at..]);
            if length > longest.1 {
                longest = (back, length);
            }
        }
        longest
    }

    fn remember(&mut self, place: usize) {
        if let (Some(slot), Ok(place)) = (slot_of(&self.said.bytes, place), u16::try_from(place)) {
            let [first, second, third, _] = self.places[slot];
            self.places[slot] = [place, first, second, third];
        }
    }

    fn index(&mut self) {
        self.places.fill([NOWHERE; PLACES]);
        (0..self.said.bytes.len()).for_each(|place| self.remember(place));
    }
}

/// With how many equal bytes these two begin.
fn common_length(one: &[u8], other: &[u8]) -> usize {
    let eights = one.chunks_exact(8).zip(other.chunks_exact(8)).take_while(|(one, other)| one == other).count();
    let rest = one[8 * eights..].iter().zip(&other[8 * eights..]);
    8 * eights + rest.take_while(|(one, other)| one == other).count()
}

/// Where places of the four bytes at this place are remembered; none if there are fewer.
fn slot_of(bytes: &[u8], place: usize) -> Option<usize> {
    let four = bytes.get(place..)?.first_chunk::<MIN_REPEATED>()?;
    Some((u32::from_le_bytes(*four).wrapping_mul(0x9e37_79b1) >> (u32::BITS - SLOTS_BITS)) as usize)
}

/// Writes one step; `length` is 0 if nothing repeated follows.
fn write_step(steps: &mut Vec<u8>, new: &[u8], back: usize, length: usize) {
    // 0 says that nothing follows.
    let repeated = if length == 0 { 0 } else { length - MIN_REPEATED + 1 };
    steps.push((new.len().min(MORE) << 4 | repeated.min(MORE)) as u8);
    write_rest(steps, new.len());
    write_rest(steps, repeated);
    steps.extend_from_slice(new);
    if repeated > 0 {
        write_number(steps, back);
    }
}

fn write_rest(steps: &mut Vec<u8>, number: usize) {
    if let Some(rest) = number.checked_sub(MORE) {
        write_number(steps, rest);
    }
}

fn write_number(steps: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        steps.push(number as u8 | 0x80);
        number >>= 7;
    }
    steps.push(number as u8);
}

/// The end of a stream at which messages are heard.
#[derive(Debug, Default)]
pub struct Unpacker {
    said: Said,
}

impl Unpacker {
    /// Unpacks the next message of the stream, of at most `largest` bytes.
    ///
    /// # Errors
    ///
    /// It is longer, or these bytes are none. What follows on this stream cannot be understood any more then.
    pub fn unpack(&mut self, bytes: &[u8], largest: usize) -> Result<Vec<u8>, UnpackError> {
        let steps = unpack(bytes, longest_steps(largest))?;
        self.said.tidy();
        let begin = self.said.bytes.len();
        let mut rest = &steps[..];
        while let Some((numbers, behind)) = rest.split_first() {
            rest = behind;
            let new = read_rest(&mut rest, usize::from(numbers >> 4))?;
            let repeated = read_rest(&mut rest, usize::from(numbers & 15))?;
            let (bytes, behind) = rest.split_at_checked(new).ok_or(UnpackError::Malformed)?;
            rest = behind;
            self.said.bytes.extend_from_slice(bytes);
            if repeated > 0 {
                let back = read_number(&mut rest)?;
                self.repeat(back, repeated + MIN_REPEATED - 1, begin + largest)?;
            }
        }
        if self.said.bytes.len() - begin > largest {
            return Err(UnpackError::TooLong);
        }
        Ok(self.said.bytes[begin..].to_vec())
    }

    /// Says once more what was said so far back, up to this place at most.
    fn repeat(&mut self, back: usize, length: usize, end: usize) -> Result<(), UnpackError> {
        let here = self.said.bytes.len();
        let from = here.checked_sub(back).filter(|_| (1..=WINDOW).contains(&back)).ok_or(UnpackError::Malformed)?;
        if here.saturating_add(length) > end {
            return Err(UnpackError::TooLong);
        }
        // It may reach into what it writes.
        for place in from..from + length {
            self.said.bytes.push(self.said.bytes[place]);
        }
        Ok(())
    }
}

fn read_rest(steps: &mut &[u8], number: usize) -> Result<usize, UnpackError> {
    if number < MORE { Ok(number) } else { Ok(MORE + read_number(steps)?) }
}

fn read_number(steps: &mut &[u8]) -> Result<usize, UnpackError> {
    let mut number = 0;
    for group in 0..4 {
        let (byte, behind) = steps.split_first().ok_or(UnpackError::Malformed)?;
        *steps = behind;
        number |= usize::from(byte & 0x7f) << (7 * group);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(UnpackError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LARGEST: usize = 64 << 10;

    /// Messages as they come out at the other end, and how long they are on their way.
    fn through(messages: &[Vec<u8>]) -> (Vec<Vec<u8>>, Vec<usize>) {
        let (mut packer, mut unpacker) = (Packer::default(), Unpacker::default());
        let packed: Vec<_> = messages.iter().map(|message| packer.pack(message)).collect();
        let lengths = packed.iter().map(Vec::len).collect();
        (packed.iter().map(|bytes| unpacker.unpack(bytes, LARGEST).unwrap()).collect(), lengths)
    }

    #[test]
    fn what_was_said_before_takes_a_few_bytes() {
        let noise = |seed: u64| (0..40u64).map(move |n| (seed.wrapping_add(n).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53) as u8);
        let keys: Vec<u8> = noise(1).chain(noise(100)).collect();
        let ping = |number: u8| [&keys[..40], &[number, 7], &keys[40..]].concat();
        let messages: Vec<_> = (0..4).map(ping).collect();
        let (out, lengths) = through(&messages);
        assert_eq!(out, messages);
        assert!(lengths[0] >= 82 && lengths[1..].iter().all(|length| *length <= 10), "{lengths:?}");
    }

    #[test]
    fn long_messages_and_many_of_them_come_out_as_they_went_in() {
        let long = |seed: u64, length: u64| (0..length).map(|n| ((n ^ seed).wrapping_mul(2_654_435_761) >> 22) as u8 % 40).collect();
        let lengths = [0, 1, 5, 3_000, 16_384, 16_385, 65_536, 3, 16_383, 40_000, 2];
        let messages: Vec<Vec<u8>> = (0..100).map(|n| long(n / 3, lengths[n as usize % lengths.len()])).collect();
        assert_eq!(through(&messages).0, messages);
        let zeros = vec![vec![0; 16_000], vec![0; 16_000], Vec::new()];
        let (out, lengths) = through(&zeros);
        assert_eq!(out, zeros);
        assert!(lengths.iter().all(|length| *length < 10), "{lengths:?}");
    }

    #[test]
    fn a_message_becomes_no_longer_than_allowed_and_refers_to_nothing_that_was_not_said() {
        let mut packer = Packer::default();
        let bomb = packer.pack(&vec![0; WINDOW]);
        assert_eq!(Unpacker::default().unpack(&bomb, WINDOW - 1), Err(UnpackError::TooLong));
        assert_eq!(Unpacker::default().unpack(&bomb, WINDOW).map(|message| message.len()), Ok(WINDOW));
        let later = packer.pack(&[0; 100]);
        assert_eq!(Unpacker::default().unpack(&later, 100), Err(UnpackError::Malformed), "nothing was said there");
        assert_eq!(Unpacker::default().unpack(&packer.pack(&[1, 2, 3]), 2), Err(UnpackError::TooLong));
    }

    proptest! {
        #[test]
        fn any_messages_come_out_as_they_went_in(messages in prop::collection::vec(prop::collection::vec(0u8..6, 0..3_000), 0..40)) {
            prop_assert_eq!(&through(&messages).0, &messages);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut unpacker = Unpacker::default();
            let _ = unpacker.unpack(&bytes, 1_000);
            if let Ok(message) = unpacker.unpack(&[&[0], &bytes[..]].concat(), 1_000) {
                prop_assert!(message.len() <= 1_000);
            }
        }
    }
}
