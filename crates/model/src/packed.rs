//! Compression of messages.
//!
//! Journal rows and claims repeat themselves: longer messages are packed with zstd.
//!
//! The first byte says how: 0, what follows is the message; 1, it is packed, and says first how long the message is. That is checked before
//! anything is unpacked, so a small message from elsewhere does not become more than its reader allows.

/// Messages of fewer bytes are not packed: it would save less than what it takes.
const MIN_PACKED: usize = 192;

/// How hard zstd tries: higher levels save some hundredths.
const LEVEL: i32 = 3;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// Why packed bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// They are empty, begin with another byte, or are not what zstd writes.
    #[error("the packed message is malformed")]
    Malformed,
    /// The message is longer than allowed, or does not say how long it is.
    #[error("the packed message is longer than allowed")]
    TooLong,
}

/// Packs a message, if that makes it smaller.
pub fn pack(message: &[u8]) -> Vec<u8> {
    let packed = if message.len() < MIN_PACKED { None } else { zstd::bulk::compress(message, LEVEL).ok() };
    let packed = packed.filter(|packed| packed.len() < message.len());
    let (how, bytes) = packed.as_deref().map_or((PLAIN, message), |packed| (ZSTD, packed));
    [&[how], bytes].concat()
}

/// How long the message is that these bytes hold.
///
/// # Errors
///
/// They are malformed, or do not say so.
pub fn unpacked_len(bytes: &[u8]) -> Result<usize, UnpackError> {
    match bytes.split_first() {
        Some((&PLAIN, rest)) => Ok(rest.len()),
        Some((&ZSTD, rest)) => match zstd::zstd_safe::get_frame_content_size(rest) {
            Ok(Some(len)) => usize::try_from(len).map_err(|_| UnpackError::TooLong),
            Ok(None) => Err(UnpackError::TooLong),
            Err(_) => Err(UnpackError::Malformed),
        },
        Some(_) | None => Err(UnpackError::Malformed),
    }
}

/// The message, of at most `largest` bytes.
///
/// # Errors
///
/// It is longer, or these bytes are none.
pub fn unpack(bytes: &[u8], largest: usize) -> Result<Vec<u8>, UnpackError> {
    let len = unpacked_len(bytes)?;
    if len > largest {
        return Err(UnpackError::TooLong);
    }
    match bytes.split_first() {
        Some((&ZSTD, rest)) => zstd::bulk::decompress(rest, len).map_err(|_| UnpackError::Malformed),
        Some((_, rest)) => Ok(rest.to_vec()),
        None => Err(UnpackError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_out_as_it_went_in_and_one_that_repeats_itself_is_smaller_on_the_way() {
        let long: Vec<u8> = (0..40u32).flat_map(|page| format!("http://shop.example/products/{page}.html").into_bytes()).collect();
        for message in [&b""[..], b"short", &[7; MIN_PACKED], &long] {
            let packed = pack(message);
            assert_eq!(unpack(&packed, message.len()).as_deref(), Ok(message));
            assert!(packed.len() <= message.len() + 1);
        }
        assert!(pack(&long).len() < long.len() / 3);
        let noise: Vec<u8> = (0..500u64).map(|n| ((n * n * 2_654_435_761) >> 13) as u8 ^ (n as u8).wrapping_mul(197)).collect();
        assert!(pack(&noise).len() <= noise.len() + 1, "what cannot be packed is sent as it is");
    }

    #[test]
    fn a_small_message_does_not_become_a_large_one() {
        let bomb = pack(&vec![0; 1 << 20]);
        assert!(bomb.len() < 200);
        assert_eq!(unpack(&bomb, (1 << 20) - 1), Err(UnpackError::TooLong));
        // A frame that does not say how long its content is.
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
        std::io::Write::write_all(&mut encoder, &[0; 5_000]).unwrap();
        let unsaid = [vec![ZSTD], encoder.finish().unwrap()].concat();
        assert_eq!(unpack(&unsaid, 1 << 20), Err(UnpackError::TooLong));
    }

    #[test]
    fn nonsense_is_malformed() {
        for bytes in [&b""[..], &[2, 1, 2, 3], &[ZSTD], &[ZSTD, 1, 2, 3, 4, 5, 6, 7, 8, 9]] {
            assert!(unpack(bytes, 1 << 20).is_err(), "{bytes:?}");
        }
        let mut cut = pack(&[7; 4_000]);
        cut.truncate(cut.len() - 3);
        assert_eq!(unpack(&cut, 1 << 20), Err(UnpackError::Malformed));
    }
}
