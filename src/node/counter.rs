//! What are people told? The mind's views, with what only the process knows added.

use super::{
    config::Config,
    desk::{Answer, Question},
    perform::Hands,
};
use crate::{
    io::swarm::SwarmSecrets,
    logic::{
        crawler::{Crawler, telling::Outside},
        hierarchy::Hierarchy,
    },
    model::{
        access_point::AccessPoint,
        subnet::Subnet,
        url::PageUrl,
        view::{LeaveView, LimitView, MoveView, RefusedSeed, SeedView, StoreView},
    },
};
use std::collections::{BTreeMap, VecDeque};

/// Troubles with other members that are remembered for people.
const MOST_TROUBLES: usize = 5;

/// What the process knows and the mind does not.
pub struct Counter {
    user_agent: String,
    contact: Option<String>,
    denied: crate::logic::scope::Scope,
    swarm: String,
    addresses: Vec<String>,
    limits: Vec<LimitView>,
    troubles: VecDeque<String>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Counter {
    /// At the daemon's start.
    pub fn new(config: &Config, _hierarchy: &Hierarchy, secrets: Option<SwarmSecrets>) -> Counter {
        Counter {
            user_agent: config.user_agent(),
            contact: config.contact.clone(),
            denied: super::birth::settings(config, false).scope,
            swarm: secrets.map(|secrets| hex(&secrets.swarm)).unwrap_or_default(),
            addresses: Vec::new(),
            limits: Vec::new(),
            troubles: VecDeque::new(),
        }
    }

    /// A new address to be reached at.
    pub fn listening(&mut self, address: &str) {
        self.addresses.push(address.to_owned());
    }

    /// Where others reach us.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// A swarm let us in.
    pub fn admitted(&mut self, secrets: SwarmSecrets) {
        self.swarm = hex(&secrets.swarm);
        self.troubles.clear();
    }

    /// Something went wrong with another member.
    pub fn trouble(&mut self, what: String) {
        if self.troubles.back() != Some(&what) {
            self.troubles.push_back(what);
        }
        while self.troubles.len() > MOST_TROUBLES {
            self.troubles.pop_front();
        }
    }

    /// What came of naming starting points.
    pub fn seeds(&self, _mind: &Crawler, urls: &[PageUrl]) -> SeedView {
        let mut view = SeedView::default();
        for url in urls {
            if self.denied.denies(&url.host()) {
                let why = "the host is on this access point's deny list".to_owned();
                view.refused.push(RefusedSeed { url: url.to_string(), why });
            } else {
                view.accepted += 1;
            }
        }
        view
    }

    /// What leaving will give back.
    pub fn leaving(&self, mind: &Crawler) -> LeaveView {
        LeaveView { released: mind.subnets_held() as u64 }
    }

    /// Whether a subnet can go now.
    pub fn moving(&self, mind: &Crawler, subnet: Subnet, to: AccessPoint) -> MoveView {
        MoveView { subnet, to, why_not: mind.may_move(&subnet, &to).err().map(|why| why.to_string()) }
    }

    /// Answers what only needs looking. Seeds and leaving are the loop's.
    pub fn answer(&self, mind: &Crawler, hands: &Hands, disk: StoreView, question: Question) -> Answer {
        match question {
            Question::Peers => Answer::Peers(mind.peers()),
            Question::Ownership { after, most } => Answer::Ownership(mind.ownership(after, most)),
            Question::Results => Answer::Results(Box::new(mind.results())),
            Question::Why(subject) => Answer::Why(Box::new(mind.why(&subject))),
            Question::Servers { after, most } => Answer::Servers(mind.servers(after.as_ref(), most)),
            Question::AddSeeds(urls) => Answer::Seeds(self.seeds(mind, &urls)),
            Question::Move(subnet, to) => Answer::Moving(self.moving(mind, subnet, to)),
            Question::Leave => Answer::Leaving(self.leaving(mind)),
            Question::Status => Answer::Status(Box::new(mind.status(self.outside(hands, disk)))),
        }
    }

    fn outside(&self, hands: &Hands, disk: StoreView) -> Outside {
        Outside {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            swarm: self.swarm.clone(),
            addresses: self.addresses.clone(),
            contact: self.contact.clone(),
            user_agent: self.user_agent.clone(),
            open_connections: hands.open_connections(),
            store: disk,
            refusals: BTreeMap::new(),
            limits: self.limits.clone(),
            limit_reached: None,
        }
    }
}
