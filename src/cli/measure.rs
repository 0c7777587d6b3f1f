//! `measure`: measures how many bytes a second come from a member, and by which way.

use super::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
    json, look, table,
};
use crate::node::config::parse_size;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use nearcrawl_model::{access_point::AccessPoint, view::MeasuredTransfer};
use serde_json::json;
use std::time::Duration;

/// Shown under `measure --help`.
pub const EXAMPLES: &str = "\
The daemon fetches pieces of the hierarchy's file from the member, which every member has, compares them with the file's manifest, and throws \
them away: as many bytes as --bytes says, in whole pieces of 256 KiB. They count towards the budgets of both. The exit status is 69 if no more \
bytes come.

Examples:
  nearcrawl members                            whom it can be measured to
  nearcrawl measure UzbhKMUf
  nearcrawl measure UzbhKMUf --bytes 64MiB --json";

/// What one question to the daemon fetches at most, in bytes.
const AT_ONCE: u64 = 4 << 20;

/// After so many questions by which nothing came it is given up; the pauses between them double.
const MAX_EMPTY: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The arguments of `measure`.
#[derive(Args, Clone, Debug)]
pub struct MeasureArgs {
    /// The member: its peer id, or the last characters of it as `members` shows them
    #[arg(value_name = "MEMBER", value_parser = look::peer)]
    of: String,
    /// How much is fetched: a whole number and its unit (B, KiB, MiB or GiB), at most 1GiB
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = size)]
    bytes: u64,
    #[command(flatten)]
    api: ApiArgs,
}

fn size(text: &str) -> Result<u64, String> {
    let fits = parse_size(text).filter(|bytes| (1..=1 << 30).contains(bytes));
    fits.ok_or_else(|| "write a whole number and its unit (B, KiB, MiB or GiB), at most 1GiB, like 16MiB".to_owned())
}

/// Has the daemon fetch as many bytes as wanted.
pub async fn measure(args: &MeasureArgs) -> Result<String, CommandError> {
    let client = ApiClient::new(&args.api)?;
    let of = look::member(&client, &args.of).await?;
    let bar = bar(args.bytes);
    let (mut measured, mut empty) = (MeasuredTransfer::new(of), 0);
    while measured.bytes() < args.bytes {
        let wanted = (args.bytes - measured.bytes()).min(AT_ONCE);
        let next: Result<MeasuredTransfer, _> = client.post("/api/measure", &json!({ "of": of, "bytes": wanted })).await;
        empty = if next.as_ref().is_ok_and(|next| next.bytes() > 0) { 0 } else { empty + 1 };
        match next {
            Ok(next) => measured = measured.and(&next),
            // Connections change and members are busy for a moment: what was begun goes on if it can.
            Err(why) if why.exit != Exit::Unavailable || measured.bytes() == 0 || empty == MAX_EMPTY => return Err(why),
            Err(_) => {}
        }
        if empty == MAX_EMPTY {
            return Err(stopped(of, &measured));
        }
        if empty > 0 {
            tokio::time::sleep(FIRST_PAUSE * (1 << (empty - 1))).await;
        }
        bar.set_position(measured.bytes());
    }
    bar.finish_and_clear();
    if args.api.json { json(&measured) } else { Ok(text(&measured)) }
}

fn stopped(of: AccessPoint, measured: &MeasuredTransfer) -> CommandError {
    let came = table::bytes(measured.bytes());
    CommandError::new(Exit::Unavailable, format!("only {came} came from {}", of.short()))
        .hint("`nearcrawl status` says how others reach this daemon, and `nearcrawl members` who is silent")
}

fn bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(bytes);
    // A template that does not parse would be a pity, not a failure.
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}") {
        bar.set_style(style);
    }
    bar
}

/// `4.2 MB from …8dWcTn1V in 0.8 s: 5.2 MB a second, through a third member`.
fn text(measured: &MeasuredTransfer) -> String {
    let seconds = measured.took_ms.max(1) as f64 / 1_000.0;
    let rate = table::bytes((measured.bytes() as f64 / seconds) as u64);
    let way = match (measured.direct_bytes, measured.relayed_bytes) {
        (_, 0) => "directly".to_owned(),
        (0, _) => "through a third member".to_owned(),
        (direct, relayed) => format!("{} directly, {} through a third member", table::bytes(direct), table::bytes(relayed)),
    };
    format!("{} from {} in {seconds:.1} s: {rate} a second, {way}\n", table::bytes(measured.bytes()), measured.access_point.short())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli::tests::type_in, node::api::fake::FakeNode};

    #[tokio::test]
    async fn as_many_bytes_come_as_wanted_and_the_way_is_named() {
        let node = FakeNode::start("127.0.0.1:0").await;
        let (api, of) = (format!("--api {}", node.url("/")), AccessPoint([1; 32]));
        let said = type_in(&format!("measure {of} --bytes 9MiB {api}")).await.unwrap();
        assert_eq!(said, format!("9.4 MB from {} in 2.4 s: 3.9 MB a second, through a third member\n", of.short()));
        let json: MeasuredTransfer = serde_json::from_str(&type_in(&format!("measure {of} --json {api}")).await.unwrap()).unwrap();
        assert_eq!((json.relayed_bytes, json.direct_bytes), (4 << 20, 0));
        node.end().await;
    }

    #[test]
    fn sizes_have_a_unit_and_a_limit() {
        assert_eq!(size("64MiB"), Ok(64 << 20));
        for wrong in ["", "0B", "64", "64MB", "2GiB", "-1B"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
