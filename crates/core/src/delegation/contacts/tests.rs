//! Tests that no member gets more contacts out of a swarm than it allows, by mistake or on purpose.

use super::{chain::BrokenChain, *};
use ed25519_dalek::SigningKey;
use nearcrawl_model::receipt::Receipt;

const NOW: WallTime = WallTime(1_790_000_000_000);
const DAY: u64 = 86_400_000;

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn member(number: u8) -> AccessPoint {
    AccessPoint(key(number).verifying_key().to_bytes())
}

fn subnet() -> Subnet {
    "192.0.2.0/24".parse().unwrap()
}

/// One honest member with its record of contacts.
struct Honest {
    number: u8,
    book: Contacts,
    probed: Vec<WallTime>,
}

impl Honest {
    fn new(number: u8) -> Honest {
        Honest { number, book: Contacts::default(), probed: Vec::new() }
    }

    /// Asked to probe, with these receipts to show.
    fn asked(&mut self, subnet: Subnet, shown: &[SignedReceipt], now: WallTime) -> Result<SignedReceipt, Declined> {
        let me = member(self.number);
        let chain = Chain::open(subnet, shown, |_| true).map_err(|_| Declined::BrokenChain)?;
        self.book.take(me, subnet, &chain, MAX_CONTACTS, now)?;
        self.probed.push(now);
        let signed = receipt(self.number, subnet, shown, now);
        let all = [shown, std::slice::from_ref(&signed)].concat();
        let chain = Chain::open(subnet, &all, |_| true).unwrap();
        self.book.extended(subnet, &chain, &all, now);
        Ok(signed)
    }

    /// The same one after a start: only what was stored is known.
    fn restarted(mut self, now: WallTime) -> Honest {
        let mut book = Contacts::default();
        for (_, page) in self.book.changed_pages() {
            book.recall(&page, now);
        }
        Honest { book, ..self }
    }
}

fn receipt(number: u8, subnet: Subnet, before: &[SignedReceipt], at: WallTime) -> SignedReceipt {
    let receipt = Receipt {
        subnet,
        address: (subnet.first(), 80).into(),
        prober: member(number),
        steward: member(99),
        sequence: before.len() as u16,
        before: before.last().map_or([0; 16], SignedReceipt::id),
        rtt_us: Some(10_000),
        at,
    };
    SignedReceipt::sign(&receipt, &key(number))
}

fn chain_of(numbers: impl IntoIterator<Item = u8>) -> Vec<SignedReceipt> {
    let mut chain = Vec::new();
    for number in numbers {
        let next = receipt(number, subnet(), &chain, NOW);
        chain.push(next);
    }
    chain
}

#[test]
fn a_chain_must_hold_together() {
    let good = chain_of(1..=4);
    let open = |signed: &[SignedReceipt]| Chain::open(subnet(), signed, |_| true);
    assert_eq!(open(&good).unwrap().len(), 4);
    assert_eq!(open(&good[1..]), Err(BrokenChain::OutOfSequence(0)));
    assert_eq!(open(&[good[0].clone(), good[2].clone()]), Err(BrokenChain::OutOfSequence(1)));
    let mut bent = good.clone();
    bent[2].bytes[40] ^= 1;
    assert!(matches!(open(&bent), Err(BrokenChain::Forged(2))));
    assert_eq!(open(&chain_of([1, 2, 1])), Err(BrokenChain::Twice(2)));
    assert_eq!(open(&chain_of(1..=16)), Err(BrokenChain::TooLong));
    assert_eq!(Chain::open("192.0.3.0/24".parse().unwrap(), &good, |_| true), Err(BrokenChain::OtherSubnet(0)));
    assert_eq!(Chain::open(subnet(), &good, |who| *who != member(3)), Err(BrokenChain::Stranger(2)));
}

#[test]
fn an_honest_procedure_ends_at_fifteen_contacts() {
    let mut members: Vec<_> = (1..=20).map(Honest::new).collect();
    let mut chain = Vec::new();
    let mut refused = 0;
    for asked in &mut members {
        match asked.asked(subnet(), &chain, NOW) {
            Ok(receipt) => chain.push(receipt),
            Err(why) => {
                assert_eq!(why, Declined::SubnetBudget);
                refused += 1;
            }
        }
    }
    assert_eq!((chain.len(), refused), (15, 5));
    // A month later it may begin anew.
    assert!(members[3].asked(subnet(), &[], WallTime(NOW.0 + 31 * DAY)).is_ok());
}

#[test]
fn a_lying_steward_gets_each_member_to_probe_once_and_not_more() {
    // It shows nothing, or some of what it has, or what it made up with its own keys, again and again, for 29 days.
    let mut members: Vec<_> = (1..=11).map(Honest::new).collect();
    let mut got: Vec<SignedReceipt> = Vec::new();
    let mut why = BTreeMap::<Declined, usize>::new();
    for day in 0..29 {
        let now = WallTime(NOW.0 + day * DAY);
        for (asked, member) in members.iter_mut().enumerate() {
            let shown = match day % 4 {
                0 => Vec::new(),
                1 => got.iter().take(1).cloned().collect(),
                2 => vec![receipt(50, subnet(), &[], now)],
                _ => got.get(asked).cloned().into_iter().collect(),
            };
            match member.asked(subnet(), &shown, now) {
                Ok(receipt) => got.push(receipt),
                Err(refusal) => *why.entry(refusal).or_default() += 1,
            }
        }
        if day == 10 {
            members = members.into_iter().map(|member| member.restarted(now)).collect();
        }
    }
    let contacts: usize = members.iter().map(|member| member.probed.len()).sum();
    assert_eq!(contacts, 11, "one of each honest member: 33 connects, fewer than 45");
    assert!(members.iter().all(|member| member.probed.len() == 1));
    for refusal in [Declined::ProbedAlready, Declined::ForkedChain] {
        assert!(why.contains_key(&refusal), "{why:?}");
    }
}

#[test]
fn what_is_left_out_or_contradicted_is_told_apart() {
    let mut asked = Honest::new(7);
    let chain = chain_of([1, 2]);
    asked.asked(subnet(), &chain, NOW).unwrap();
    let mut other = Honest::new(8);
    let whole = asked.book.chain(&subnet());
    assert_eq!(whole.len(), 3, "kept for a steward who comes later");
    other.asked(subnet(), &whole, NOW).unwrap();
    assert_eq!(other.asked(subnet(), &whole[..2], NOW), Err(Declined::ChainTooShort));
    assert_eq!(other.asked(subnet(), &chain_of([1, 3, 4, 5]), NOW), Err(Declined::ForkedChain));
    let whole = other.book.chain(&subnet());
    assert_eq!(other.asked(subnet(), &whole, NOW), Err(Declined::ProbedAlready));
}

#[test]
fn small_subnets_of_one_block_share_its_budget() {
    let mut asked = Honest::new(1);
    let mut contacts = 0;
    for number in 0..64u8 {
        let small = Subnet::around(IpAddr::from([192, 0, 2, number * 4]), 30);
        match asked.asked(small, &[], NOW) {
            Ok(_) => contacts += 1,
            Err(why) => assert_eq!(why, Declined::BlockBudget),
        }
    }
    assert_eq!(contacts, MAX_IN_BLOCK);
    let mut asked = asked.restarted(NOW);
    assert_eq!(asked.asked("192.0.2.248/30".parse().unwrap(), &[], NOW), Err(Declined::BlockBudget), "a start is no reset");
}

#[test]
fn contacts_of_ones_own_accord_share_the_budgets_of_searches_and_keep_nobody_from_taking_part_in_one() {
    let mut asked = Honest::new(1);
    let me = member(1);
    asked.book.take_alone(me, subnet(), 3, NOW).unwrap();
    let found = asked.asked(subnet(), &[], NOW).unwrap();
    asked.book.take_alone(me, subnet(), 3, NOW).unwrap();
    assert_eq!(asked.book.take_alone(me, subnet(), 3, NOW), Err(Declined::SubnetBudget));
    assert_eq!(asked.asked(subnet(), &[found], NOW), Err(Declined::ProbedAlready), "a search has it probed once");
    let mut asked = asked.restarted(NOW);
    assert_eq!(asked.book.take_alone(me, subnet(), 3, NOW), Err(Declined::SubnetBudget), "a start is no reset");
    let later = WallTime(NOW.0 + 31 * DAY);
    assert_eq!(asked.book.take_alone(me, subnet(), 3, later), Ok(()));
    for number in 0..MAX_IN_BLOCK as u8 {
        let small = Subnet::around(IpAddr::from([198, 51, 100, number * 4]), 30);
        asked.book.take_alone(me, small, 15, NOW).unwrap();
    }
    assert_eq!(asked.book.take_alone(me, "198.51.100.252/30".parse().unwrap(), 15, NOW), Err(Declined::BlockBudget));
}

#[test]
fn the_book_forgets_after_thirty_days_and_not_before() {
    let mut book = Contacts::default();
    let none = Chain::default();
    book.take(member(1), subnet(), &none, 15, NOW).unwrap();
    book.tidy(WallTime(NOW.0 + 29 * DAY));
    assert_eq!((book.len(), book.most()), (1, 1));
    assert_eq!(book.take(member(1), subnet(), &none, 15, WallTime(NOW.0 + 29 * DAY)), Err(Declined::ProbedAlready));
    book.tidy(WallTime(NOW.0 + 31 * DAY));
    assert!(book.is_empty());
    assert_eq!(book.take(member(1), subnet(), &none, 15, WallTime(NOW.0 + 31 * DAY)), Ok(()));
}

#[test]
fn receipts_that_are_made_up_without_end_do_not_fill_the_memory() {
    let mut book = Contacts::default();
    for round in 0..10u8 {
        let shown = chain_of(15 * round..15 * (round + 1));
        let chain = Chain::open(subnet(), &shown, |_| true).unwrap();
        assert_eq!(book.take(member(200), subnet(), &chain, MAX_CONTACTS, NOW), Err(Declined::SubnetBudget));
    }
    assert_eq!(book.most(), MAX_NOTED);
    assert_eq!(book.blocks[&subnet()].len(), MAX_NOTED_IN_BLOCK);
}
