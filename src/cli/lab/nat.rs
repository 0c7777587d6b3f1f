//! `nearcrawl lab nat`: measures whether members behind routers meet.
//!
//! Real daemons run in a virtual network with routers of all kinds.

use crate::cli::{
    error::{CommandError, Exit},
    print,
};
use clap::{Args, ValueEnum};
use nearcrawl_lab::nat::{self, Kind, NatError, NatPlan};

/// Shown under `lab nat --help`.
pub const EXAMPLES: &str = "\
Daemons of this program run in network namespaces: two that are reached from outside, and two behind a router of each kind. The kernel translates \
addresses there, by rules of nftables. Needs root, /dev/net/tun, `ip` and `nft`; nothing leaves the machine.

Kinds of routers:
    open             none
    full-cone        everything from outside is let in
    port-restricted  answers only; one port outside for one inside
    symmetric        answers only; another port for each connection
    no-udp           answers only; nothing by UDP

For every pair of kinds: how many pairs of daemons there were, how soon nine of ten of the daemons were full members (all members known, a lease, \
reached from outside or through a member that relays), how many pairs were connected directly in the end, and how many through a member that \
relays; and how many of 64 MiB one daemon then fetched from the other, through a member that relays if there is such a pair.

The exit status is 0 if all were members within 30 s, every pair is connected, 95 of 100 pairs directly that can be, and all bytes came. 12 \
daemons take some 3 minutes a round on two cores.

Examples:
  nearcrawl lab nat
  nearcrawl lab nat --kinds port-restricted,symmetric --rounds 3
  nearcrawl lab nat --json | jq '.[] | select(.relayed > 0)'";

/// Kinds of routers, as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KindArg {
    Open,
    FullCone,
    PortRestricted,
    Symmetric,
    NoUdp,
}

impl From<KindArg> for Kind {
    fn from(kind: KindArg) -> Kind {
        match kind {
            KindArg::Open => Kind::Open,
            KindArg::FullCone => Kind::FullCone,
            KindArg::PortRestricted => Kind::PortRestricted,
            KindArg::Symmetric => Kind::Symmetric,
            KindArg::NoUdp => Kind::NoUdp,
        }
    }
}

/// Arguments of `lab nat`.
#[derive(Args, Debug)]
pub struct NatArgs {
    /// Kinds of routers, separated by commas [default: all]
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',')]
    kinds: Vec<KindArg>,
    /// How many networks are made, one after another
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Measures. What came of it is printed, too, if something is not as it must be.
pub async fn nat(args: &NatArgs) -> Result<String, CommandError> {
    let mut kinds: Vec<Kind> = args.kinds.iter().copied().map(Kind::from).collect();
    if kinds.is_empty() {
        kinds = Kind::ALL.to_vec();
    }
    kinds.sort_unstable();
    kinds.dedup();
    let failed = |exit: Exit, why: &dyn std::fmt::Display| CommandError::new(exit, why.to_string());
    let program = std::env::current_exe().map_err(|why| failed(Exit::Internal, &why))?;
    let exit = |why: &NatError| match why {
        NatError::Network(_) => Exit::Unavailable,
        NatError::Directory { .. } => Exit::Storage,
        NatError::Daemon(_) | NatError::Silent(_) => Exit::Broken,
    };
    let table = nat::measure(&NatPlan { kinds, rounds: args.rounds }, program).await.map_err(|why| failed(exit(&why), &why))?;
    let text = if args.json { table.json() } else { table.text() };
    if table.holds() {
        return Ok(text);
    }
    print(&text);
    let failures = table.failures.iter().fold(String::new(), |text, why| text + "; " + why.trim_end());
    Err(CommandError::new(Exit::Broken, format!("something is not as it must be{failures}")))
}
