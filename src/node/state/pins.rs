//! Subnets that the operator keeps here.
//!
//! A pin is stored before it is said and before it holds; what is asked for while something is being stored is stored after that.

use crate::node::query::Reply;
use nearcrawl_model::{subnet::Subnet, view::PinView};
use std::collections::BTreeSet;

/// Subnets that may be pinned.
pub const MAX_PINS: usize = 10_000;

/// Requests that may wait until it is stored.
const MAX_WAITING: usize = 64;

/// The subnets that stay.
#[derive(Debug, Default)]
pub struct Pins {
    /// As they hold and are stored.
    held: BTreeSet<Subnet>,
    /// As they are being stored, and who is answered then.
    storing: Option<(BTreeSet<Subnet>, Vec<Pin>)>,
    waiting: Vec<Pin>,
}

/// A subnet is to be pinned, or not any more.
#[derive(Debug)]
pub struct Pin {
    /// Which.
    pub subnet: Subnet,
    /// Whether it is to stay.
    pub pinned: bool,
    /// Where the answer goes.
    pub reply: Reply<PinView>,
}

impl Pin {
    fn answer(self, refused: Option<&str>) {
        let PinView { subnet, pinned, refused_text } =
            PinView { subnet: self.subnet, pinned: self.pinned == refused.is_none(), refused_text: refused.map(str::to_owned) };
        // A caller that has stopped waiting is no error.
        let _ = self.reply.send(PinView { subnet, pinned, refused_text });
    }
}

impl Pins {
    /// At a start, with what is stored.
    pub fn begin(stored: BTreeSet<Subnet>) -> Pins {
        Pins { held: stored, ..Pins::default() }
    }

    /// Those that hold.
    pub fn held(&self) -> &BTreeSet<Subnet> {
        &self.held
    }

    /// An operator asks. What is to be stored now, if anything is.
    pub fn ask(&mut self, pin: Pin) -> Option<BTreeSet<Subnet>> {
        if self.waiting.len() >= MAX_WAITING {
            pin.answer(Some("the disk does not answer; try again later"));
            return None;
        }
        self.waiting.push(pin);
        self.due()
    }

    fn due(&mut self) -> Option<BTreeSet<Subnet>> {
        if self.storing.is_some() || self.waiting.is_empty() {
            return None;
        }
        let mut next = self.held.clone();
        let mut asked = Vec::new();
        for pin in self.waiting.drain(..) {
            match pin.pinned {
                true if next.len() >= MAX_PINS && !next.contains(&pin.subnet) => {
                    pin.answer(Some("as many subnets are pinned as may be; unpin others first"));
                    continue;
                }
                true => next.insert(pin.subnet),
                false => next.remove(&pin.subnet),
            };
            asked.push(pin);
        }
        self.storing = Some((next.clone(), asked));
        Some(next)
    }

    /// It was stored, or could not be. Whether others hold now, and what is to be stored next.
    pub fn has_stored(&mut self, stored: Result<(), String>) -> (bool, Option<BTreeSet<Subnet>>) {
        let Some((next, asked)) = self.storing.take() else { return (false, self.due()) };
        let changed = stored.is_ok() && self.held != next;
        if stored.is_ok() {
            self.held = next;
        }
        let refused = stored.err().map(|why| format!("it could not be stored: {why}"));
        asked.into_iter().for_each(|pin| pin.answer(refused.as_deref()));
        (changed, self.due())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    fn pin(subnet: &str, pinned: bool) -> (Pin, oneshot::Receiver<PinView>) {
        let (reply, answer) = oneshot::channel();
        (Pin { subnet: subnet.parse().unwrap(), pinned, reply }, answer)
    }

    #[test]
    fn a_pin_is_stored_before_it_holds_and_what_cannot_be_stored_is_said() {
        let mut pins = Pins::default();
        let ((first, mut told), (second, mut later)) = (pin("192.0.2.0/24", true), pin("198.51.100.0/24", true));
        let stored = pins.ask(first).unwrap();
        assert!(pins.ask(second).is_none() && pins.held().is_empty() && told.try_recv().is_err());
        let (changed, next) = pins.has_stored(Ok(()));
        assert!(changed && pins.held() == &stored && told.try_recv().unwrap().refused_text.is_none());
        assert_eq!(next.unwrap().len(), 2);
        assert_eq!(pins.has_stored(Err("the disk is full".to_owned())), (false, None));
        let refused = later.try_recv().unwrap();
        assert!(!refused.pinned && refused.refused_text.unwrap().contains("the disk is full"));
        let (gone, mut told) = pin("192.0.2.0/24", false);
        assert_eq!(pins.ask(gone), Some(BTreeSet::new()));
        assert!(pins.has_stored(Ok(())).0 && pins.held().is_empty() && !told.try_recv().unwrap().pinned);
    }
}
