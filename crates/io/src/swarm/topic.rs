//! Filters gossip by topic: only that of our own swarm is looked at.
//!
//! What is about something else costs no memory: gossipsub would keep it for a while before anybody is asked.

use super::messages::{SwarmCounters, count};
use libp2p::gossipsub::{AllowAllSubscriptionFilter, DataTransform, MaxCountSubscriptionFilter, Message, RawMessage, TopicHash};
use nearcrawl_model::message::MAX_GOSSIP;
use std::{
    io,
    sync::{Arc, OnceLock},
};

/// Topics that a peer may say it listens to: members have one, that of their swarm.
const MAX_TOPICS: usize = 4;

/// What peers may say of topics that they listen to.
pub(super) type Subscriptions = MaxCountSubscriptionFilter<AllowAllSubscriptionFilter>;

/// A few topics a peer.
pub(super) fn subscriptions() -> Subscriptions {
    MaxCountSubscriptionFilter {
        filter: AllowAllSubscriptionFilter::default(),
        max_subscribed_topics: MAX_TOPICS,
        max_subscriptions_per_request: 2 * MAX_TOPICS,
    }
}

/// The topic of our swarm, once it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnTopic {
    topic: Arc<OnceLock<TopicHash>>,
    counters: Arc<SwarmCounters>,
}

impl OwnTopic {
    /// None is known yet.
    pub(super) fn new(counters: Arc<SwarmCounters>) -> OwnTopic {
        OwnTopic { topic: Arc::default(), counters }
    }

    /// It is this one from now on.
    pub(super) fn is(&self, topic: TopicHash) {
        // A swarm is joined once.
        let _ = self.topic.set(topic);
    }
}

impl DataTransform for OwnTopic {
    fn inbound_transform(&self, raw: RawMessage) -> io::Result<Message> {
        if self.topic.get() != Some(&raw.topic) || raw.data.len() > MAX_GOSSIP {
            count(&self.counters.gossip_elsewhere);
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not of this swarm, or too long"));
        }
        Ok(Message { source: raw.source, data: raw.data, sequence_number: raw.sequence_number, topic: raw.topic })
    }

    fn outbound_transform(&self, _: &TopicHash, data: Vec<u8>) -> io::Result<Vec<u8>> {
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn only_what_is_of_our_swarm_and_not_too_long_is_looked_at() {
        let counters = Arc::new(SwarmCounters::default());
        let own = OwnTopic::new(counters.clone());
        let raw = |topic: &str, length| RawMessage {
            source: None,
            data: vec![1; length],
            sequence_number: None,
            topic: TopicHash::from_raw(topic),
            signature: None,
            key: None,
            validated: false,
        };
        assert!(own.inbound_transform(raw("ours", 1)).is_err(), "no swarm was joined yet");
        own.is(TopicHash::from_raw("ours"));
        assert_eq!(own.inbound_transform(raw("ours", MAX_GOSSIP)).unwrap().data.len(), MAX_GOSSIP);
        assert!(own.inbound_transform(raw("theirs", 1)).is_err());
        assert!(own.inbound_transform(raw("ours", MAX_GOSSIP + 1)).is_err());
        assert_eq!(counters.gossip_elsewhere.load(Ordering::Relaxed), 3);
    }
}
