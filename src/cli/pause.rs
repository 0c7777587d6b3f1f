//! `pause`, `resume`: the daemon asks no server anything for a while.

use super::{
    client::{ApiArgs, ApiClient},
    error::CommandError,
    json,
    survey::millis,
};
use clap::Args;
use nearcrawl_model::{
    allowance::{AllowanceView, Minute},
    time::Millis,
};
use serde_json::json;

/// Shown under `pause --help`.
pub const PAUSE_EXAMPLES: &str = "Examples:\n  \
    nearcrawl pause             until `nearcrawl resume`\n  \
    nearcrawl pause --for 2h\n  \
    nearcrawl status            says that it is paused, and until when\n\n\
    No page, no robots.txt and no probe is asked for; what is under way may take 30 s more, and is called off \
    then, to be asked for again. The daemon stays a member of the swarm and keeps its \
    subnets: their servers wait. The pause holds across restarts. Hours and byte limits are configuration: [allowance].";

/// Shown under `resume --help`.
pub const RESUME_EXAMPLES: &str = "Examples:\n  \
    nearcrawl resume";

/// The arguments of `pause`.
#[derive(Args, Clone, Debug)]
pub struct PauseArgs {
    /// Go on by itself after so long, like 2h
    #[arg(long = "for", value_name = "DURATION", value_parser = millis)]
    length: Option<Millis>,
    #[command(flatten)]
    api: ApiArgs,
}

/// Pauses the daemon.
pub async fn pause(args: &PauseArgs) -> Result<String, CommandError> {
    let view: AllowanceView = ApiClient::new(&args.api)?.post("/api/pause", &json!({ "for_ms": args.length })).await?;
    if args.api.json {
        return json(&view);
    }
    Ok(match view.paused_until_at {
        Some(until) => format!("paused until {}\n", Minute(until)),
        None => "paused until `nearcrawl resume`\n".to_owned(),
    })
}

/// Has it go on.
pub async fn resume(args: &ApiArgs) -> Result<String, CommandError> {
    let view: AllowanceView = ApiClient::new(args)?.post("/api/resume", &json!({})).await?;
    if args.json { json(&view) } else { Ok("resumed\n".to_owned()) }
}
