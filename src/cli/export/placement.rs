//! `export placement`: what the members' probes of a survey's sample measured, as the two files that `lab delegation` reads.

use crate::cli::{
    error::{CommandError, Exit},
    owners::Source,
    survey::probes::{Gathered, Probed, unfinished},
};
use clap::Args;
use nearcrawl_model::{
    survey::SurveyRef,
    survey_probes::{ProbeOutcome, SurveyProbes},
    url::Host,
    view::counted,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufWriter, Write},
    net::IpAddr,
    path::{Path, PathBuf},
};

/// Shown under `export placement --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl export placement --survey near --nodes nodes.csv --rtt rtt.csv\n  \
    nearcrawl lab delegation --nodes nodes.csv --rtt rtt.csv --crawlers 3\n\n\
    The survey has a sample: it was made by `nearcrawl survey create near --list unis.csv --probe 100`. Members are sources of round-trip \
    times, servers are targets; a round trip between two members is in the file if they know it. A server that did not answer a member has no \
    line for that pair, and `lab delegation` takes only servers with a line from every crawler. With --member any member is asked, which asks the \
    others; nobody has to be one. While members have servers left to probe, or do \
    not answer, the files have what is there, and the exit code is 69.";

/// The first line of that help, in 80 columns.
pub const USAGE: &str = "nearcrawl export placement --survey <NAME> --nodes <FILE> --rtt <FILE>";

/// The arguments of `export placement`.
#[derive(Args, Clone, Debug)]
pub struct PlacementArgs {
    /// The survey
    #[arg(long, value_name = "NAME")]
    survey: SurveyRef,
    /// Write members and servers to this file, as `lab delegation --nodes` reads it
    #[arg(long, value_name = "FILE")]
    nodes: PathBuf,
    /// Write round-trip times to this file, as `lab delegation --rtt` reads it
    #[arg(long, value_name = "FILE")]
    rtt: PathBuf,
    /// Ask this member over the network, instead of the daemon on this machine; --api is not used then
    #[arg(long, value_name = "MULTIADDR")]
    member: Option<String>,
    /// The daemon's API [default: as configured, else http://127.0.0.1:4880]
    #[arg(long, value_name = "URL", env = "NEARCRAWL_API")]
    api: Option<String>,
}

/// Asks all members, and writes both files.
pub async fn placement(args: &PlacementArgs) -> Result<String, CommandError> {
    let mut source = Source::of(args.member.as_deref(), args.api.as_deref()).await?;
    let survey = Probed::ask(&mut source, &args.survey).await?;
    let Gathered { probes, missing } = survey.gather(&mut source).await?;
    let probes: Vec<SurveyProbes> = probes.into_iter().map(|probes| consistent(probes, &survey.sample)).collect();
    let matrix = Matrix::of(&probes);
    write(&args.nodes, |file| matrix.write_nodes(file))?;
    write(&args.rtt, |file| matrix.write_round_trips(file))?;
    let _ = io::stderr().write_all(matrix.words().as_bytes());
    let missing: Vec<String> = probes.iter().filter_map(unfinished).chain(missing).collect();
    if missing.is_empty() {
        return Ok(String::new());
    }
    Err(CommandError::new(Exit::Unavailable, format!("rows are missing: {}", missing.join("; ")))
        .hint("the files have the others; export again when `nearcrawl survey show` says that all members are whole"))
}

/// What a member tells, without what cannot be: round trips to servers that did not answer, answers without one, servers outside the sample,
/// and all but the first row of each server.
fn consistent(mut probes: SurveyProbes, sample: &BTreeSet<Host>) -> SurveyProbes {
    let mut hosts = BTreeSet::new();
    probes.rows.retain(|row| {
        let answered = row.outcome == ProbeOutcome::Answered;
        row.rtt_us.is_some() == answered
            && (row.address.is_some() || !answered)
            && (sample.is_empty() || sample.contains(&row.host))
            && hosts.insert(row.host.clone())
    });
    probes
}

fn write(path: &Path, content: impl Fn(&mut dyn Write) -> io::Result<()>) -> Result<(), CommandError> {
    let written = File::create(path).and_then(|file| {
        let mut file = BufWriter::new(file);
        content(&mut file)?;
        file.flush()
    });
    written.map_err(|why| CommandError::new(Exit::InUse, format!("{}: {why}", path.display())))
}

/// Round-trip times from members to servers.
struct Matrix<'a> {
    members: &'a [SurveyProbes],
    /// Each server at the address at which most members probed it; none if it has none.
    servers: BTreeMap<&'a Host, Option<IpAddr>>,
}

impl<'a> Matrix<'a> {
    fn of(members: &'a [SurveyProbes]) -> Matrix<'a> {
        let mut addresses: BTreeMap<&Host, BTreeMap<IpAddr, usize>> = BTreeMap::new();
        for row in members.iter().flat_map(|member| &member.rows) {
            let of_host = addresses.entry(&row.host).or_default();
            if let Some(address) = row.address {
                *of_host.entry(address).or_default() += 1;
            }
        }
        // Of two that are equally frequent the smaller one.
        let most = |found: BTreeMap<IpAddr, usize>| found.into_iter().rev().max_by_key(|(_, times)| *times).map(|(address, _)| address);
        Matrix { members, servers: addresses.into_iter().map(|(host, found)| (host, most(found))).collect() }
    }

    /// Round-trip times to servers, in microseconds.
    fn to_servers(&self) -> impl Iterator<Item = (&SurveyProbes, &Host, u32)> {
        self.members.iter().flat_map(|member| {
            let there = member.rows.iter().filter(|row| self.servers.get(&row.host).is_some_and(|address| *address == row.address));
            there.filter_map(move |row| Some((member, &row.host, row.rtt_us?)))
        })
    }

    fn write_nodes(&self, file: &mut dyn Write) -> io::Result<()> {
        let text = |address: Option<IpAddr>| address.map_or(String::new(), |address| address.to_string());
        writeln!(file, "id,address,is_source,is_target")?;
        for member in self.members {
            writeln!(file, "{},{},1,0", member.access_point, text(member.address))?;
        }
        self.servers.iter().try_for_each(|(host, address)| writeln!(file, "{host},{},0,1", text(*address)))
    }

    fn write_round_trips(&self, file: &mut dyn Write) -> io::Result<()> {
        writeln!(file, "source,target,ms")?;
        let ms = |rtt_us: u32| f64::from(rtt_us) / 1000.0;
        for (member, host, rtt_us) in self.to_servers() {
            writeln!(file, "{},{host},{}", member.access_point, ms(rtt_us))?;
        }
        let known: BTreeSet<_> = self.members.iter().map(|member| member.access_point).collect();
        for member in self.members {
            let others = member.round_trips.iter().filter(|other| known.contains(&other.access_point));
            for other in others.filter(|other| other.access_point != member.access_point) {
                writeln!(file, "{},{},{}", member.access_point, other.access_point, ms(other.rtt_us))?;
            }
        }
        Ok(())
    }

    /// How much of the matrix there is, and why not the rest.
    fn words(&self) -> String {
        let servers = self.members.iter().map(|member| member.servers).max().unwrap_or(0);
        let there: Vec<&Host> = self.to_servers().map(|(_, host, _)| host).collect();
        let from_all =
            self.servers.keys().filter(|server| there.iter().filter(|host| host == server).count() == self.members.len()).count();
        let count = |outcome| self.members.iter().flat_map(|member| &member.rows).filter(|row| row.outcome == outcome).count();
        let answered = count(ProbeOutcome::Answered);
        let left_out = [
            (count(ProbeOutcome::NoAnswer), "without an answer"),
            (count(ProbeOutcome::NoAddress), "of servers without an address"),
            (count(ProbeOutcome::Interrupted), "of probes that a member's end cut off"),
            (answered.saturating_sub(there.len()), "to another address than most members probed"),
            (self.members.iter().map(|member| member.denied as usize).sum(), "denied by a member's configuration"),
            (
                self.members.iter().map(|member| member.servers.saturating_sub(member.done().saturating_add(member.denied)) as usize).sum(),
                "not probed yet",
            ),
        ];
        let left_out: Vec<String> =
            left_out.into_iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count} {why}")).collect();
        let mut words = format!(
            "{} of {} at {}: {} written; {} have one from every member, and only these are sites to `lab delegation`\n",
            there.len(),
            counted(self.members.len() as u64 * u64::from(servers), "round trip"),
            counted(self.members.len(), "member"),
            counted(servers, "server"),
            from_all,
        );
        if !left_out.is_empty() {
            words += &format!("left out: {}\n", left_out.join("; "));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_lab::delegation::{distances::Distances, nodes::Nodes, round};
    use nearcrawl_model::{
        access_point::AccessPoint,
        survey_probes::{MemberRoundTrip, ProbedServer},
        time::WallTime,
    };

    fn row(host: &str, address: Option<&str>, outcome: ProbeOutcome, rtt_us: Option<u32>) -> ProbedServer {
        let address = address.map(|address| address.parse().unwrap());
        ProbedServer { host: host.parse().unwrap(), address, at: WallTime(0), outcome, rtt_us }
    }

    fn member(number: u8, servers: u32, rows: Vec<ProbedServer>) -> SurveyProbes {
        let other = |other: u8| MemberRoundTrip { access_point: AccessPoint([other; 32]), rtt_us: 7_500 };
        SurveyProbes {
            access_point: AccessPoint([number; 32]),
            address: Some(IpAddr::from([9, 0, number, 1])),
            servers,
            denied: 0,
            waiting_for_budget: 0,
            waiting_for_address: 0,
            waiting_for_turn: 0,
            rows,
            round_trips: vec![other(number), other(2), other(99)],
        }
    }

    #[test]
    fn rows_that_cannot_be_are_left_out() {
        use ProbeOutcome::{Answered, NoAddress, NoAnswer};
        let rows = vec![
            row("a.ke", Some("192.0.2.1"), Answered, Some(5)),
            row("a.ke", Some("192.0.2.1"), Answered, Some(9)),
            row("b.ke", Some("192.0.2.2"), NoAnswer, Some(9)),
            row("c.ke", Some("192.0.2.3"), Answered, None),
            row("d.ke", None, Answered, Some(1)),
            row("e.ke", None, NoAddress, None),
            row("elsewhere.ke", Some("192.0.2.9"), Answered, Some(1)),
        ];
        let sample = ["a.ke", "b.ke", "c.ke", "d.ke", "e.ke"].map(|host| host.parse().unwrap()).into();
        let member = |sample: &BTreeSet<Host>| consistent(SurveyProbes { denied: u32::MAX, ..member(1, 5, rows.clone()) }, sample);
        let hosts = |probes: SurveyProbes| probes.rows.into_iter().map(|row| (row.host.to_string(), row.rtt_us)).collect::<Vec<_>>();
        assert_eq!(hosts(member(&sample)), [("a.ke".to_owned(), Some(5)), ("e.ke".to_owned(), None)]);
        assert_eq!(hosts(member(&BTreeSet::new())).len(), 3, "the list is not known");
        assert!(Matrix::of(&[member(&sample)]).words().contains("1 of 5 round trips"));
        // Not even what cannot be ends the command.
        let raw = SurveyProbes { denied: u32::MAX, ..self::member(1, 5, rows.clone()) };
        Matrix::of(&[raw]).words();
    }

    #[test]
    fn the_laboratory_reads_what_is_there_and_nothing_is_made_up_for_what_is_not() {
        use ProbeOutcome::{Answered, Interrupted, NoAddress, NoAnswer};
        let a = |rtt_us| row("a.ke", Some("192.0.2.1"), Answered, Some(rtt_us));
        let members = [
            member(1, 4, vec![a(12_345), row("b.ke", Some("192.0.2.2"), NoAnswer, None), row("c.ke", None, NoAddress, None)]),
            member(
                2,
                4,
                vec![a(400), row("b.ke", Some("192.0.2.2"), Answered, Some(9)), row("d.ke", Some("2001:db8::1"), Interrupted, None)],
            ),
            // The name led elsewhere when this one probed.
            member(3, 4, vec![row("a.ke", Some("192.0.2.77"), Answered, Some(1))]),
        ];
        let matrix = Matrix::of(&members);
        let (mut nodes, mut rtt) = (Vec::new(), Vec::new());
        matrix.write_nodes(&mut nodes).unwrap();
        matrix.write_round_trips(&mut rtt).unwrap();
        let text = String::from_utf8(rtt.clone()).unwrap();
        let [one, two, three] = members.each_ref().map(|member| member.access_point);
        let expected = [
            "source,target,ms".to_owned(),
            format!("{one},a.ke,12.345"),
            format!("{two},a.ke,0.4"),
            format!("{two},b.ke,0.009"),
            format!("{one},{two},7.5"),
            format!("{three},{two},7.5"),
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected, "not to itself, nor to a member that told nothing");
        let read = Nodes::read("nodes.csv", &nodes[..], false).unwrap();
        let distances = Distances::read("rtt.csv", &rtt[..], "nodes.csv", &read).unwrap();
        assert_eq!(distances.strangers(), 0);
        assert!(["a.ke", "b.ke", "c.ke", "d.ke"].iter().all(|host| read.find(host).is_some()));
        // Of three targets with an address one member reached two, one reached one, and one none.
        assert_eq!(round::able(&read, &distances).0, [read.find(&two.to_string()).unwrap()]);
        let words = matrix.words();
        let says = [
            "3 of 12 round trips at 3 members: 4 servers written; 0 have one from every member",
            "1 without an answer; 1 of servers without an address; 1 of probes that a member's end cut off; 1 to another address than most members \
             probed; 5 not probed yet",
        ];
        assert!(says.iter().all(|says| words.contains(says)), "{words}");
    }
}
