//! Numbers that identify work under way, a type for each kind, so that none passes for another.
//!
//! None of them outlives the process that made it, and none is sent to another member. Only numbers of sites are stored.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl From<u64> for $name {
            fn from(number: u64) -> Self {
                $name(number)
            }
        }
    )*};
}

ids! {
    /// A question of a member to us that is to be answered. The transport makes it when the question arrives; it is
    /// void once answered, or when the asker has stopped waiting. For questions that came through a third member, [`Ticket::sealed`].
    Ticket;

    /// A question of ours to a member, or a probe of ours. The asker makes it; it lives until the one answer, which always comes.
    QuestionId;

    /// A question to a member that the process needs for an exchange of several (copies of rows, files). The process makes it; it lives
    /// until the one answer, which always comes.
    TransferId;

    /// A write that is to be durable before something else is done. The machine that waits makes it; it lives until the store names it.
    WriteId;

    /// A question of the crawl to the seen set, or to the store of URLs set aside. The crawl makes it; it lives until the answer.
    SeenTicket;

    /// A site of ours, as the seen set and the store of URLs set aside know it. The crawl gives it when the site is opened; numbers of
    /// different starts of the process differ, so that what an earlier one left can be told apart and forgotten.
    #[derive(Default)]
    SiteNumber;
}

impl Ticket {
    /// The transport never counts so far: tickets from here on are of questions that came sealed, through a third member.
    const SEALED: u64 = 1 << 63;

    /// The ticket of a sealed question with this number.
    pub fn sealed(number: u64) -> Ticket {
        Ticket(number | Ticket::SEALED)
    }

    /// Whether the question came sealed.
    pub fn is_sealed(self) -> bool {
        self.0 & Ticket::SEALED != 0
    }
}

impl QuestionId {
    /// No answer is wanted.
    pub const NO_ANSWER: QuestionId = QuestionId(0);
}

impl SeenTicket {
    /// No answer is wanted.
    pub const NO_ANSWER: SeenTicket = SeenTicket(0);
}
