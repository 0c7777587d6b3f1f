//! A made-up large registry, from a seed: blocks, and networks nested in them, as statistics files say it.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeSet,
    fmt::Write,
    io::{BufReader, Read},
    net::{Ipv4Addr, Ipv6Addr},
};

/// Subnets of one block, itself included.
const OF_A_BLOCK: u32 = 100;

/// Of so many blocks, one is IPv6.
const ONE_IN_SIX: u32 = 10;

/// Records of `subnets` different subnets, of holders of which each has about `of_a_holder`; a stream, never in memory as a whole.
pub fn registry(subnets: u32, of_a_holder: u32, seed: u64) -> BufReader<Registry> {
    let blocks = subnets / OF_A_BLOCK;
    let holders = (subnets / of_a_holder).max(1);
    BufReader::new(Registry { random: StdRng::seed_from_u64(seed), blocks, holders, next: 0, text: String::new(), read: 0 })
}

/// See [`registry`].
pub struct Registry {
    random: StdRng,
    blocks: u32,
    holders: u32,
    next: u32,
    text: String,
    read: usize,
}

impl Registry {
    fn block(&mut self) {
        let number = self.next;
        self.next += 1;
        self.text.clear();
        self.read = 0;
        let mut lengths_and_offsets = BTreeSet::from([(16, 0)]);
        while lengths_and_offsets.len() < OF_A_BLOCK as usize {
            // Small networks are the most frequent ones: the larger of two random lengths.
            let length = self.random.random_range(18..=30u32).max(self.random.random_range(18..=30));
            lengths_and_offsets.insert((length, self.random.random_range(0..1u32 << (length - 16))));
        }
        for (length, offset) in lengths_and_offsets {
            let holder = self.random.random_range(0..self.holders);
            let country = ["DE", "FR", "KE", "US", "BR", "JP"][holder as usize % 6];
            let (kind, address, value) = if number.is_multiple_of(ONE_IN_SIX) {
                let first = (0x2a00u128 << 112) | u128::from(number) << 96 | u128::from(offset) << (96 + 16 - length);
                ("ipv6", Ipv6Addr::from_bits(first).to_string(), length + 16)
            } else {
                let first = (number + (1 << 8)) << 16 | offset << (32 - length);
                ("ipv4", Ipv4Addr::from_bits(first).to_string(), 1 << (32 - length))
            };
            // A buffer in memory takes whatever is written.
            let _ = writeln!(self.text, "made|{country}|{kind}|{address}|{value}|20260101|assigned|ORG-{holder}-MADE");
        }
    }
}

impl Read for Registry {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.read == self.text.len() {
            if self.next == self.blocks {
                return Ok(0);
            }
            self.block();
        }
        let rest = &self.text.as_bytes()[self.read..];
        let taken = rest.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&rest[..taken]);
        self.read += taken;
        Ok(taken)
    }
}
