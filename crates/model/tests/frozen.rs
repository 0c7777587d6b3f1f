//! Tests that the encodings of every message, claim and journal row stay as protocol 5 has them.
//!
//! Members of the next release must understand this one's: today's code must write the bytes in `frozen/protocol-5.txt`, and read them as
//! the same values.
//!
//! `make frozen` appends the encodings of values that are new in [`values`]; it changes no line that is there. A line may change only as
//! long as no release has the protocol: delete the file and run it again.

#![expect(clippy::unwrap_used, reason = "a panic is how a test and its helpers fail")]

#[path = "frozen/values.rs"]
mod values;

use serde::{Serialize, de::DeserializeOwned};
use std::{collections::BTreeMap, fmt::Debug};

/// The encodings of the protocol, a line each: name, then hexadecimal digits.
const FROZEN: &str = include_str!("frozen/protocol-5.txt");

/// A value with its name; compared and written without its type.
pub struct Sample {
    name: String,
    bytes: Vec<u8>,
    /// Whether these bytes are read as the value.
    is_read_from: Box<Reader>,
}

impl Sample {
    /// A value of a kind; a kind has several.
    pub fn new<T: Serialize + DeserializeOwned + PartialEq + Debug + 'static>(kind: &str, name: &str, value: T) -> Sample {
        let bytes = postcard::to_stdvec(&value).unwrap();
        let is_read_from = Box::new(move |bytes: &[u8]| postcard::from_bytes::<T>(bytes).as_ref() == Ok(&value));
        Sample { name: format!("{kind}/{name}"), bytes, is_read_from }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len() / 2).map(|byte| u8::from_str_radix(&digits[2 * byte..2 * byte + 2], 16).unwrap()).collect()
}

fn frozen(text: &str) -> BTreeMap<&str, Vec<u8>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap()).map(|(name, digits)| (name, unhex(digits))).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it writes a file when it is told to, and only then")]
fn what_protocol_5_says_is_written_and_read_as_it_was() {
    let samples = values::all();
    let known = frozen(FROZEN);
    let new: Vec<String> = (samples.iter().filter(|sample| !known.contains_key(sample.name.as_str())))
        .map(|sample| format!("{} {}\n", sample.name, hex(&sample.bytes)))
        .collect();
    if std::env::var_os("NEARCRAWL_FREEZE").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/frozen/protocol-5.txt");
        std::fs::write(file, format!("{}{}", FROZEN, new.concat())).unwrap();
        return;
    }
    assert!(new.is_empty(), "these are not frozen yet, run `make frozen`:\n{}", new.concat());
    assert_eq!(samples.len(), known.len(), "each line has a value in values.rs");
    for sample in samples {
        let bytes = &known[sample.name.as_str()];
        assert!(
            hex(&sample.bytes) == hex(bytes),
            "{} is encoded in another way than members of this protocol expect:\n now {}\n was {}",
            sample.name,
            hex(&sample.bytes),
            hex(bytes)
        );
        assert!((sample.is_read_from)(bytes), "{} is read as something else", sample.name);
    }
}

#[test]
fn signatures_of_protocol_5_still_hold() {
    values::check_signatures(&frozen(FROZEN));
}

/// A list that comes last can grow, and what a newer release says behind a value is passed over.
#[test]
fn what_stands_behind_a_message_is_passed_over() {
    for sample in values::all() {
        assert!((sample.is_read_from)(&[sample.bytes.as_slice(), &[0xff; 3]].concat()), "{}", sample.name);
    }
}

/// Whether bytes are read as a value.
type Reader = dyn Fn(&[u8]) -> bool;

/// A kind of message that a newer release has is an error, not another message.
#[test]
fn an_unknown_kind_of_message_is_not_read() {
    use nearcrawl_model::message::{Gossip, Request, Response};
    let unknown = [&[100_u8][..], &[0; 64]].concat();
    assert!(postcard::from_bytes::<Request>(&unknown).is_err());
    assert!(postcard::from_bytes::<Response>(&unknown).is_err());
    assert!(postcard::from_bytes::<Gossip>(&unknown).is_err());
}
