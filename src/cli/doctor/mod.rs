//! `doctor`: says what a daemon will do with a configuration on this machine, and looks for what keeps it from that.
//!
//! Each finding has the key of the configuration that it depends on, and what helps.
//!
//! * [`checks`]: what is looked at, one function each
//! * [`reachability`]: whether others reach the daemon, by what members found out
//! * [`admission`]: whether it may be a member
//! * [`finding`]: what was found

mod admission;
mod checks;
mod finding;
mod reachability;
mod service;

use super::{
    error::{CommandError, Exit},
    json,
    run::ConfigArgs,
    table::Style,
};
use crate::node::config::{Config, check_dial_address};
use clap::Args;
use finding::{Finding, State};
use serde::Serialize;

/// Shown under `doctor --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl doctor                       the service's configuration\n  \
    nearcrawl doctor --config node.toml    another\n  \
    nearcrawl doctor --json                for programs\n  \
    nearcrawl doctor --bootstrap /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…\n\n\
    It asks the DNS one question, and connects to the members of swarm.bootstrap; it sends nothing else. Where no daemon runs it listens at the \
    addresses of swarm.listen for some seconds, and asks one of these members to connect to it there. Memory, open files, disk and DNS are \
    looked at as this shell and this user have them: a service of systemd may have less. If something keeps the daemon from its work the exit \
    code is 78.";

/// The arguments of `doctor`.
#[derive(Args, Clone, Debug)]
pub struct DoctorArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// A member to ask, besides the configured ones (repeatable)
    #[arg(long, value_name = "MULTIADDR")]
    bootstrap: Vec<String>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// What `doctor --json` prints.
#[derive(Debug, Serialize)]
pub(super) struct DoctorView {
    /// What the daemon will do.
    intent_text: Vec<String>,
    findings: Vec<Finding>,
}

/// Looks at everything that this configuration needs.
pub(super) async fn look(config: &Config) -> DoctorView {
    DoctorView { intent_text: checks::intent(config), findings: checks::all(config).await }
}

/// Looks at everything. What was found is printed, too, if there is an error beside it.
pub async fn doctor(args: &DoctorArgs, style: Style) -> Result<(String, Option<CommandError>), CommandError> {
    let mut config = args.config.load()?;
    for address in &args.bootstrap {
        check_dial_address(address).map_err(|wanted| CommandError::new(Exit::Usage, format!("--bootstrap {address}: {wanted}")))?;
        config.swarm.bootstrap.push(address.clone());
    }
    let view = look(&config).await;
    let failed = view.findings.iter().filter(|finding| finding.state == State::Failed).count();
    let failure = (failed > 0).then(|| CommandError::new(Exit::Config, format!("{failed} of {} checks failed", view.findings.len())));
    let text = if args.json { json(&view)? } else { text(&view, style) };
    Ok((text, failure))
}

fn text(view: &DoctorView, style: Style) -> String {
    let mut text = style.heading("What the daemon will do") + "\n";
    view.intent_text.iter().for_each(|line| text += &format!("  {line}\n"));
    text += &format!("\n{}\n", style.heading("What was looked at"));
    for finding in &view.findings {
        let state = match finding.state {
            State::Good => "good",
            State::Warning => "warning",
            State::Failed => "FAILED",
            State::NotChecked => "not known",
        };
        text += &format!("  {state:<9}  {}: {}\n", finding.check, finding.found_text);
        if let Some(remedy) = &finding.remedy_text {
            let key = finding.key.map(|key| format!(" ({key})")).unwrap_or_default();
            text += &format!("             {remedy}{key}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests;
