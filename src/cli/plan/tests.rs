//! Tests that `plan` says what a person needs, and refuses what it cannot use.

use super::*;
use clap::Parser;
use nearcrawl_core::crawl::site::Site;
use nearcrawl_model::{account::LevelCounts, ids::SiteNumber, journal::JournalKey, record::RunState, time::WallTime};
use std::fs;

#[derive(Parser)]
struct TestCli {
    #[command(flatten)]
    args: PlanArgs,
}

async fn ask(line: &str) -> Result<String, CommandError> {
    let words = ["plan"].into_iter().chain(line.split_whitespace());
    // An empty file stands for the built-in values, whatever this machine's configuration says.
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("empty.toml");
    fs::write(&config, "").unwrap();
    let mut args = TestCli::try_parse_from(words).map_err(|why| CommandError::new(Exit::Usage, why.to_string()))?.args;
    args.config.config = Some(config);
    let (text, failure) = plan(&args, Style::Plain).await?;
    // What is printed before it fails is in the message, too.
    failure.map_or(Ok(text.clone()), |failure| Err(CommandError { message: format!("{text}{}", failure.message), ..failure }))
}

fn record(host: &str, levels: &[(u64, u64)]) -> ServerRecord {
    let key = JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: host.parse().unwrap(), run: 1 };
    let mut record = Site::open(key, "9.0.0.1".parse().unwrap(), host.parse().unwrap(), SiteNumber(1), WallTime(0)).record;
    let level = |(requests, external_hosts): &(u64, u64)| LevelCounts {
        pages: *requests,
        requests: *requests,
        bytes: requests * 10_000,
        busy_ms: requests * 50,
        external_hosts: *external_hosts,
    };
    record.levels = levels.iter().map(level).collect();
    record.requests = levels.iter().map(|(requests, _)| requests).sum();
    record.state = RunState::Complete;
    record
}

fn written(directory: &std::path::Path) -> String {
    let records = [record("a.ke", &[(2, 8), (10, 8), (40, 4)]), record("b.ke", &[(2, 0), (6, 0)]), record("c.tz", &[(1, 0)])];
    let lines: String = records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect();
    let path = directory.join("records.jsonl");
    fs::write(&path, lines).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn a_plan_from_records_names_the_depth_and_what_the_seeds_cost() {
    let directory = tempfile::tempdir().unwrap();
    let records = written(directory.path());
    let seeds = directory.path().join("seeds.txt");
    fs::write(&seeds, "# ours\nhttp://a.ke/\nhttp://a.ke/too\nhttps://new.ke/\n").unwrap();
    let line = format!("--coverage 0.8 --records {records} --seeds {}", seeds.display());
    let said = ask(&line).await.unwrap();
    assert!(said.starts_with("Measured on 3 servers, down to depth 2; by the records in"), "{said}");
    assert!(said.contains("Depth 1 finds 80.0 % of the external hosts with 34.4 % of the requests of depth 2."), "{said}");
    assert!(said.contains("mentions, summed over servers"), "{said}");
    assert!(said.contains("2 starting hosts (1 with records of their own): 19 requests, 190.0 kB"), "{said}");
    let told: serde_json::Value = serde_json::from_str(&ask(&format!("{line} --json")).await.unwrap()).unwrap();
    assert_eq!(
        (&told["chosen"]["depth"], &told["total"]["requests"], &told["grounds"]["kind"]),
        (&1.into(), &19.into(), &"measured".into())
    );
    let shallow = ask(&format!("--coverage 0.4 --records {records}")).await.unwrap();
    assert!(shallow.contains("Depth 0 finds 40.0 % of the external hosts with 8.2 % of the requests of depth 2."), "{shallow}");
    let nobody = ask(&format!("--coverage 0.4 --records {records} --tld xx")).await.unwrap_err();
    assert!(nobody.exit == Exit::Data && nobody.message.ends_with("no server is on record under .xx"), "{nobody}");
    let all: serde_json::Value =
        serde_json::from_str(&ask(&format!("--coverage 0.95 --records {records} --tld ke --json")).await.unwrap()).unwrap();
    assert_eq!((&all["chosen"]["depth"], &all["total"]["servers"], &all["grounds"]["servers"]), (&2.into(), &2.into(), &2.into()));
}

#[tokio::test]
async fn without_anything_measured_the_paper_speaks_and_it_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("none.jsonl");
    fs::write(&empty, "").unwrap();
    let line = format!("--coverage 0.8 --records {}", empty.display());
    let failure = ask(&line).await.unwrap_err();
    assert!(failure.exit == Exit::Unavailable && failure.message.contains("no measurements: "), "{failure}");
    let said = ask(&format!("{line} --assumed")).await.unwrap();
    assert!(said.starts_with("No measurements (") && said.contains("All figures are assumptions"), "{said}");
    assert!(said.contains("Depth 5 finds 80.0 % of the external hosts with 53.0 % of the requests of depth 20."), "{said}");
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_with_a_code_and_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let broken = directory.path().join("broken.jsonl");
    fs::write(&broken, "\n{\"host\": 7}\n").unwrap();
    for (line, exit, says) in [
        ("--coverage 95".to_owned(), Exit::Usage, "0.95"),
        ("--coverage 0".to_owned(), Exit::Usage, "0.95"),
        (format!("--coverage 0.9 --records {}", broken.display()), Exit::Data, "line 2"),
        ("--coverage 0.9 --records /nowhere.jsonl".to_owned(), Exit::NoInput, "/nowhere.jsonl"),
        ("--coverage 0.9 --api http://127.0.78.9:9".to_owned(), Exit::Unavailable, "127.0.78.9"),
        (format!("--coverage 0.9 --seeds {}", broken.display()), Exit::Data, "https://example.org/"),
    ] {
        let failure = ask(&line).await.unwrap_err();
        assert!(failure.exit == exit && failure.to_string().contains(says), "{line}: {:?} {failure}", failure.exit);
    }
}
