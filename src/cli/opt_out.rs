//! `opt-out`: owners of servers say no to the whole swarm, at any member, and take that back.

use super::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
    json,
    table::{Style, Table},
};
use crate::node::api::OptOutBody;
use clap::{Args, Subcommand};
use nearcrawl_model::opt_out::{OptOutKey, OptOutProof, OptOutSubject, OptOutView};

/// Shown under `opt-out --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl opt-out add museum.or.ke\n  \
    nearcrawl opt-out add museum.or.ke --proof file\n  \
    nearcrawl opt-out list\n  \
    nearcrawl opt-out remove museum.or.ke\n\n\
    Any member can be asked. No member asks a server anything that is opted out: no page, no robots.txt, no probe.";

/// Shown under `opt-out add --help`.
const ADD_EXAMPLES: &str = "Examples:\n  \
    nearcrawl opt-out add museum.or.ke\n  \
    nearcrawl opt-out add museum.or.ke --domain\n  \
    nearcrawl opt-out add museum.or.ke --proof file\n  \
    nearcrawl opt-out add 192.0.2.0/24 --proof order\n\n\
    The proof is published first:\n  \
    txt    a TXT record at _nearcrawl.HOST that says no-crawl\n         \
    (with --domain: no-crawl domain)\n  \
    file   https://HOST/.well-known/nearcrawl-opt-out (or http) whose first line\n         \
    is no-crawl\n  \
    order  none: the operator of this daemon answers for it; the only one for\n         \
    addresses and ranges (at most a /16, or a /32 of IPv6)";

/// Shown under `opt-out list --help`.
const LIST_EXAMPLES: &str = "Examples:\n  \
    nearcrawl opt-out list\n  \
    nearcrawl opt-out list --json | jq -r .[].subject";

/// Shown under `opt-out remove --help`.
const REMOVE_EXAMPLES: &str = "Examples:\n  \
    nearcrawl opt-out remove museum.or.ke\n  \
    nearcrawl opt-out remove 192.0.2.0/24 --proof order\n\n\
    The TXT record or the file is taken away first: any member then looks for it once more. An order is taken back at the daemon where it was given.";

/// The commands about opt-outs.
#[derive(Subcommand, Clone, Debug)]
pub enum OptOutCommand {
    /// Have no member ask a server anything any more
    #[command(after_help = ADD_EXAMPLES)]
    Add(OptOutArgs),
    /// List the opt-outs of the swarm
    #[command(after_help = LIST_EXAMPLES)]
    List(ApiArgs),
    /// Take an opt-out back
    #[command(after_help = REMOVE_EXAMPLES)]
    Remove(OptOutArgs),
}

/// The arguments of `opt-out add` and `opt-out remove`.
#[derive(Args, Clone, Debug)]
pub struct OptOutArgs {
    /// A host, a domain, an address or a range of addresses
    #[arg(value_name = "HOST|RANGE")]
    subject: String,
    /// All hosts below that name, too
    #[arg(long)]
    domain: bool,
    /// What shows that you may say so: txt, file or order
    #[arg(long, value_name = "KIND", default_value = "txt")]
    proof: OptOutProof,
    #[command(flatten)]
    api: ApiArgs,
}

/// Carries a command about opt-outs out.
pub async fn opt_out(command: OptOutCommand, style: Style) -> Result<String, CommandError> {
    match command {
        OptOutCommand::Add(args) => {
            let view = say(&args, "/api/opt-outs").await?;
            let said = format!("{} is opted out by {}; all members hear of it now\n", named(&view), proof(&view));
            if args.api.json { json(&view) } else { Ok(said) }
        }
        OptOutCommand::List(api) => {
            let views: Vec<OptOutView> = ApiClient::new(&api)?.get("/api/opt-outs", &[]).await?;
            if api.json { json(&views) } else { Ok(listed(&views, style)) }
        }
        OptOutCommand::Remove(args) => {
            let view = say(&args, "/api/opt-outs/withdraw").await?;
            if args.api.json { json(&view) } else { Ok(removed(&view)) }
        }
    }
}

async fn say(args: &OptOutArgs, path: &str) -> Result<OptOutView, CommandError> {
    let wrong = |why: nearcrawl_model::opt_out::OptOutError| CommandError::new(Exit::Data, why.to_string());
    let subject = OptOutSubject::read(&args.subject, args.domain).map_err(wrong)?;
    OptOutKey { subject, proof: args.proof }.check().map_err(wrong)?;
    let body = OptOutBody { subject: args.subject.clone(), domain: args.domain, proof: args.proof };
    ApiClient::new(&args.api)?.post(path, &body).await
}

fn named(view: &OptOutView) -> String {
    if view.kind == "domain" { format!("{} with all hosts below it", view.subject) } else { view.subject.clone() }
}

fn proof(view: &OptOutView) -> &'static str {
    match view.proof {
        OptOutProof::Txt => "a TXT record",
        OptOutProof::File => "a file",
        OptOutProof::Order => "order",
    }
}

fn removed(view: &OptOutView) -> String {
    let name = named(view);
    if view.in_force {
        return format!("{name}: taken back here, but still opted out on the word of other members ({})\n", view.state_text);
    }
    format!("{name} is not opted out by {} any more; all members hear of it now\n", proof(view))
}

fn listed(views: &[OptOutView], style: Style) -> String {
    if views.is_empty() {
        return "no opt-out is known here; `nearcrawl opt-out add --help` says how one is made\n".to_owned();
    }
    let mut table = Table::new(&["subject", "kind", "proof", "in force", "since", "by"]);
    for view in views {
        let since: String = view.opted_out_at.to_string().chars().take(10).collect();
        let more = if view.said_by.len() > 1 { format!(" and {} more", view.said_by.len() - 1) } else { String::new() };
        let by = view.said_by.first().map_or("-".to_owned(), |by| by.short() + &more);
        let in_force = if view.in_force { "yes" } else { "no" };
        table.row(vec![view.subject.clone(), view.kind.clone(), view.proof.to_string(), in_force.to_owned(), since, by]);
    }
    table.text(style)
}
