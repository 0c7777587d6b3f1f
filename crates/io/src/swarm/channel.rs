//! The stream on which a member's question is answered.

use super::brief::Reply;
use libp2p::request_response::ResponseChannel;
use nearcrawl_model::message::Response;
use std::time::Instant;

/// How a question is answered.
#[derive(Debug)]
pub(super) enum Channel {
    /// On the stream that was opened for it.
    Own(ResponseChannel<Response>),
    /// On the stream for short ones.
    Brief(Reply),
}

impl Channel {
    /// Whether the asker still waits.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        match self {
            Channel::Own(channel) => channel.is_open(),
            Channel::Brief(reply) => reply.is_open(now),
        }
    }
}
