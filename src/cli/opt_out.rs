//! `opt-out`: tells the whole swarm, at any member, that the owner of a server wants no requests, and takes that back.

use super::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
    json,
    table::{Style, Table},
};
use crate::{
    io::swarm::{Reader, ReaderConfig, ask_public},
    node::{
        api::OptOutBody,
        remote_results::{MEMBER_TIMEOUT, NoResults, no_answer, refused},
    },
};
use clap::{Args, Subcommand};
use nearcrawl_model::{
    message::{PublicRequest, PublicResponse},
    opt_out::{MAX_STATEMENTS, OptOutKey, OptOutProof, OptOutSubject, OptOutView},
};

/// Characters of a text from a member that are shown.
const MAX_SAID: usize = 300;

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
    nearcrawl opt-out add museum.or.ke --member /ip4/192.0.2.7/tcp/4817\n  \
    nearcrawl opt-out add 192.0.2.0/24 --proof order\n\n\
    --member says so to any member over the network: no daemon is needed here. A file is looked for by the member that looks after the server \
    only: another one says which that is, and the command to say so there is printed.\n\n\
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
    nearcrawl opt-out list --json | jq -r .[].subject\n  \
    nearcrawl opt-out list --member /ip4/192.0.2.7/tcp/4817\n\n\
    --member asks any member over the network: no daemon is needed here.";

/// Shown under `opt-out remove --help`.
const REMOVE_EXAMPLES: &str = "Examples:\n  \
    nearcrawl opt-out remove museum.or.ke\n  \
    nearcrawl opt-out remove museum.or.ke --member /ip4/192.0.2.7/tcp/4817\n  \
    nearcrawl opt-out remove 192.0.2.0/24 --proof order\n\n\
    The TXT record or the file is taken away first: any member then looks for it, and so do those that saw it. Each goes on asking nothing \
    until it has found none three times within eleven minutes, since one name server, or one of several machines behind an address, may be \
    behind the others. An order is taken back at the daemon where it was given.";

/// The commands about opt-outs.
#[derive(Subcommand, Clone, Debug)]
pub enum OptOutCommand {
    /// Have no member ask a server anything any more
    #[command(after_help = ADD_EXAMPLES)]
    Add(OptOutArgs),
    /// List the opt-outs of the swarm
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
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
    /// Say so to this member over the network, instead of the daemon on this machine; --api is not used then
    #[arg(long, value_name = "MULTIADDR")]
    member: Option<String>,
    #[command(flatten)]
    api: ApiArgs,
}

/// The arguments of `opt-out list`.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// Ask this member over the network, instead of the daemon on this machine; --api is not used then
    #[arg(long, value_name = "MULTIADDR")]
    member: Option<String>,
    #[command(flatten)]
    api: ApiArgs,
}

/// Carries a command about opt-outs out.
pub async fn opt_out(command: OptOutCommand, style: Style) -> Result<String, CommandError> {
    match command {
        OptOutCommand::Add(args) => {
            let view = say(&args, true).await?;
            let said = format!("{} is opted out by {}; all members hear of it now\n", named(&view), proof(&view));
            if args.api.json { json(&view) } else { Ok(said) }
        }
        OptOutCommand::List(args) => {
            let views = match &args.member {
                Some(member) => of_member(member).await?,
                None => ApiClient::new(&args.api)?.get("/api/opt-outs", &[]).await?,
            };
            if args.api.json { json(&views) } else { Ok(listed(&views, style, args.member.as_deref())) }
        }
        OptOutCommand::Remove(args) => {
            let view = say(&args, false).await?;
            if args.api.json { json(&view) } else { Ok(removed(&view)) }
        }
    }
}

async fn say(args: &OptOutArgs, stops: bool) -> Result<OptOutView, CommandError> {
    let wrong = |why: nearcrawl_model::opt_out::OptOutError| CommandError::new(Exit::Data, why.to_string());
    let subject = OptOutSubject::read(&args.subject, args.domain).map_err(wrong)?;
    let key = OptOutKey { subject, proof: args.proof };
    key.check().map_err(wrong)?;
    if let Some(member) = &args.member {
        return say_to_member(member, key, stops).await;
    }
    let body = OptOutBody { subject: args.subject.clone(), domain: args.domain, proof: args.proof };
    let path = if stops { "/api/opt-outs" } else { "/api/opt-outs/withdraw" };
    ApiClient::new(&args.api)?.post(path, &body).await
}

/// Has a member look for the proof, over the network.
async fn say_to_member(member: &str, key: OptOutKey, stops: bool) -> Result<OptOutView, CommandError> {
    let unavailable = |why: NoResults| {
        CommandError::new(Exit::Unavailable, why.to_string()).hint(
            "any member looks for a record, the one that looks after the server for a file; an address is like /ip4/192.0.2.7/tcp/4817",
        )
    };
    match ask_public(member.trim(), PublicRequest::OptOut(key.clone(), stops), MEMBER_TIMEOUT).await {
        Ok(PublicResponse::OptOut(said)) => {
            let unread = |_| CommandError::new(Exit::Unavailable, format!("the member at {member} answers what cannot be read"));
            Ok(printable(serde_json::from_str(&said).map_err(unread)?))
        }
        // Whom it names is not asked by itself: where that leads, only it says.
        Ok(PublicResponse::Refused(why)) => {
            let command = command_there(&why, &key, stops);
            let error = unavailable(refused(member, PublicResponse::Refused(why)));
            Err(match command {
                Some(command) => error.hint(format!("say so to that member: `{command}`")),
                None => error,
            })
        }
        Ok(other) => Err(unavailable(refused(member, other))),
        Err(why) => Err(unavailable(no_answer(member, &why))),
    }
}

/// The command that says the same to the member that a refusal names, if it names one by an address.
fn command_there(refusal: &str, key: &OptOutKey, stops: bool) -> Option<String> {
    let (_, named) = refusal.split_once("(--member ")?;
    let (address, _) = named.split_once(')')?;
    let is_address = |letter: char| letter.is_ascii_alphanumeric() || "/.:-".contains(letter);
    if !address.starts_with('/') || address.len() > MAX_SAID || !address.chars().all(is_address) {
        return None;
    }
    let verb = if stops { "add" } else { "remove" };
    let (subject, domain) = match &key.subject {
        OptOutSubject::Host(name) => (name.to_string(), ""),
        OptOutSubject::Domain(name) => (name.to_string(), " --domain"),
        OptOutSubject::Range(range) => (range.to_string(), ""),
    };
    Some(format!("nearcrawl opt-out {verb} {subject}{domain} --proof {} --member {address}", key.proof))
}

/// It came from somewhere on the network and goes to a terminal.
fn printable(view: OptOutView) -> OptOutView {
    let clean = |text: String| text.chars().filter(|letter| !letter.is_control()).take(MAX_SAID).collect();
    OptOutView { subject: clean(view.subject), kind: clean(view.kind), state_text: clean(view.state_text), ..view }
}

/// All that a member knows of, those in force first, as its own daemon lists them.
async fn of_member(member: &str) -> Result<Vec<OptOutView>, CommandError> {
    let unavailable = |why: NoResults| {
        CommandError::new(Exit::Unavailable, why.to_string())
            .hint("any member that answers readers can be asked, like /ip4/192.0.2.7/tcp/4817")
    };
    let reader = Reader::connect(&ReaderConfig::default(), member.trim(), MEMBER_TIMEOUT).await;
    let mut reader = reader.map_err(|why| unavailable(no_answer(member, &why)))?;
    let (mut all, mut after): (Vec<OptOutView>, Option<OptOutKey>) = (Vec::new(), None);
    // One that names more than a member keeps, or goes back and forth, is not followed for ever.
    for part in 0.. {
        let (views, next) = match reader.ask(PublicRequest::OptOuts { after: after.clone() }).await {
            Ok(PublicResponse::OptOuts { views, next }) => (views, next),
            Ok(other) => return Err(unavailable(refused(member, other))),
            Err(why) => return Err(unavailable(no_answer(member, &why))),
        };
        let unread = || CommandError::new(Exit::Unavailable, format!("the member at {member} answers what cannot be read"));
        let views: Vec<OptOutView> = serde_json::from_str(&views).map_err(|_| unread())?;
        all.extend(views.into_iter().map(printable));
        if next.is_some() && next <= after || all.len() > MAX_STATEMENTS || part > MAX_STATEMENTS {
            return Err(unread());
        }
        after = next;
        if after.is_none() {
            break;
        }
    }
    all.sort_by(|one, other| (!one.in_force, &one.subject, one.proof).cmp(&(!other.in_force, &other.subject, other.proof)));
    Ok(all)
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
    if view.in_force && view.proof == OptOutProof::Order {
        return format!("{name}: taken back here, but still opted out on the word of other members ({})\n", view.state_text);
    }
    if view.in_force {
        return format!("{name}: {}; all members hear of it now, and look for themselves\n", view.state_text);
    }
    format!("{name} is not opted out by {} any more; all members hear of it now\n", proof(view))
}

fn listed(views: &[OptOutView], style: Style, member: Option<&str>) -> String {
    if views.is_empty() {
        let place = member.map_or("here".to_owned(), |member| format!("to the member at {member}"));
        return format!("no opt-out is known {place}; `nearcrawl opt-out add --help` says how one is made\n");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_the_member_that_a_refusal_names_is_whole_and_nothing_else_is_made_of_a_refusal() {
        let key = OptOutKey { subject: OptOutSubject::Host("museum.or.ke".parse().unwrap()), proof: OptOutProof::File };
        let refusal =
            |named: &str| format!("a file at 192.0.2.1 is looked for by UzbhKMUf only: say so there ({named}), or publish a TXT record");
        let there = command_there(&refusal("--member /ip4/192.0.2.7/tcp/4817/p2p/12D3KooWUzbhKMUf"), &key, true);
        let command = "nearcrawl opt-out add museum.or.ke --proof file --member /ip4/192.0.2.7/tcp/4817/p2p/12D3KooWUzbhKMUf";
        assert_eq!(there.as_deref(), Some(command));
        for other in ["12D3KooWUzbhKMUf", "--member 12D3KooWUzbhKMUf", "--member /ip4/192.0.2.7; rm -r", "--member /ip4/$(id)"] {
            assert_eq!(command_there(&refusal(other), &key, true), None, "{other}");
        }
    }
}
