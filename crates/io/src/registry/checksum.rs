//! Checks files against the MD5 sums that registries publish beside them: they detect accidents, not forgery.

use md5::{Digest, Md5};
use std::io::{self, Read};

/// The MD5 sum of everything that can be read, in hexadecimal.
pub(super) fn sum(mut input: impl Read) -> io::Result<String> {
    let mut digest = Md5::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            Ok(length) => digest.update(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
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
