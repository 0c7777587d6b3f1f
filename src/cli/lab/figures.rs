//! `lab figures`: every figure and table of the four papers that the daemon is built from, on one page.
//!
//! Each stands beside what the paper says of it.

mod data;
mod papers;
mod section;

use super::output::bar;
use crate::{
    cli::{
        chart::escaped,
        error::{CommandError, Exit},
        report::page_head,
    },
    io::snapshot,
};
use clap::Args;
use data::Data;
use section::{Effort, Section};
use std::{fmt::Write, num::NonZero, path::PathBuf, thread};

/// Shown under `lab figures --help`.
pub const EXAMPLES: &str = "\
What is drawn: the figures and tables of Broder, Najork, Wiener (URL caching), Nakahira, Hoshino, Mikami (low-load crawling), Papapetrou, \
Samaras (IPMicra) and Chen, Wang, Goodwin Olsen (TWOMA), measured anew with this program's own rules on generated worlds, measured \
round-trip times and a crawl of real pages. Each stands beside the paper's statement; where this program counts by another criterion, \
the page says so.

DIR has the data: small files come with the program's sources (data/studies), with their licences; large ones are named on the page with \
their checksum, and are drawn if they are in DIR. Bands are 95 % intervals of the mean over the seeds.

Examples:
  nearcrawl lab figures --out figures.html
  nearcrawl lab figures --quick --data data/studies --out figures.html
  nearcrawl export servers > servers.jsonl
  nearcrawl lab figures --servers servers.jsonl --out figures.html";

/// Arguments of `lab figures`.
#[derive(Args, Debug)]
pub struct FiguresArgs {
    /// Write the page to this file
    #[arg(long, value_name = "FILE.html")]
    out: PathBuf,
    /// The folder with the data
    #[arg(long, value_name = "DIR", default_value = "data/studies")]
    data: PathBuf,
    /// Draw the figures of a real crawl from these rows of `export servers`, instead of those in DIR
    #[arg(long, value_name = "FILE.jsonl")]
    servers: Option<PathBuf>,
    /// Draw small worlds and few seeds: within a minute, with wider bands
    #[arg(long)]
    quick: bool,
    /// Seed of all random numbers: equal seeds give equal figures
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
}

/// Draws the figures of one paper.
type Part = fn(&Data, Effort) -> Result<Vec<Section>, CommandError>;

/// Draws everything into one page.
pub fn figures(args: &FiguresArgs) -> Result<String, CommandError> {
    let effort =
        Effort { is_quick: args.quick, seed: args.seed, processors: thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN) };
    let data = Data::open(&args.data, args.servers.as_deref())?;
    let parts: [Part; 4] = [papers::caching, papers::low_load, papers::delegation, papers::migration];
    let bar = bar(parts.len() as u64, "papers");
    let mut papers = Vec::new();
    for part in parts {
        papers.push(part(&data, effort)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let page = page(&papers, &data, effort);
    snapshot::write(&args.out, page.as_bytes()).map_err(|why| CommandError::new(Exit::InUse, why.to_string()))?;
    let count: usize = papers.iter().flatten().map(|section| section.charts.len()).sum();
    Ok(format!("{count} figures are drawn in {}\n", args.out.display()))
}

/// The papers, in the order of the page.
const PAPERS: [&str; 4] = [
    "Broder, Najork, Wiener: Efficient URL Caching for World Wide Web Crawling (WWW 2003)",
    "Nakahira, Hoshino, Mikami: Low Load Server Crawler: Design and Evaluation (WWW 2008)",
    "Papapetrou, Samaras: Distributed Location Aware Web Crawling (IPMicra, WWW 2004)",
    "Chen, Wang, Goodwin Olsen: Towards Distribution of Web Sites in a Crawler used for Large Scale Web Accessibility Assessment (TWOMA)",
];

fn page(papers: &[Vec<Section>], data: &Data, effort: Effort) -> String {
    let mut page = page_head("Figures of the four papers, and ours");
    // Writing to a text does not fail.
    let _ = write!(
        page,
        "<main>\n<h1>Figures of the four papers, and ours</h1>\n<p>Drawn by nearcrawl {} with seed {}{}. What a paper says stands in front \
         of what was measured here. Bands and bars are 95 % intervals of the mean over the seeds or rounds, unless a figure says otherwise.</p>\n",
        env!("CARGO_PKG_VERSION"),
        effort.seed,
        if effort.is_quick { ", with small worlds and few seeds (--quick)" } else { "" }
    );
    let mut number = 0;
    for (title, sections) in PAPERS.iter().zip(papers) {
        let _ = writeln!(page, "<h2>{}</h2>", escaped(title));
        for section in sections {
            let _ = writeln!(
                page,
                "<h3>{}</h3>\n<blockquote><p>The paper: {}</p></blockquote>\n<p>{}</p>",
                escaped(&section.title),
                escaped(section.paper),
                escaped(&section.here)
            );
            page += &table(&section.table, &section.title);
            for chart in &section.charts {
                number += 1;
                let _ = writeln!(page, "<figure>{}</figure>", chart.svg(&format!("figure-{number}")));
            }
        }
    }
    page + "<h2>Data</h2>\n" + &table(&data.table(), "Files that figures are drawn from") + "</main>\n</body>\n</html>\n"
}

fn table(rows: &[Vec<String>], caption: &str) -> String {
    let Some((head, rows)) = rows.split_first() else { return String::new() };
    let heads: String = head.iter().map(|name| format!("<th scope=\"col\">{}</th>", escaped(name))).collect();
    let mut table =
        format!("<div class=\"wide\"><table>\n<caption>{}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n", escaped(caption));
    for row in rows {
        table += "<tr>";
        for (column, cell) in row.iter().enumerate() {
            let _ = if column == 0 {
                write!(table, "<th scope=\"row\">{}</th>", escaped(cell))
            } else {
                write!(table, "<td class=\"word\">{}</td>", escaped(cell))
            };
        }
        table += "</tr>\n";
    }
    table + "</tbody></table></div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_page::evaluation::{Limits, evaluate};
    use std::time::Duration;

    #[test]
    fn all_papers_are_on_one_page_that_needs_nothing_else_and_fails_no_rule() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("figures.html");
        let servers = directory.path().join("servers.jsonl");
        std::fs::write(&servers, crate::cli::report::tests::rows().join("\n")).unwrap();
        let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/data/studies"));
        let args = FiguresArgs { out: out.clone(), data, servers: Some(servers), quick: true, seed: 1 };
        assert!(figures(&args).unwrap().contains("figures are drawn in"));
        let page = std::fs::read_to_string(&out).unwrap();
        for wanted in [
            "429 million",
            "Probes a site as the hierarchy learns",
            "2.66",
            "twoma: ",
            "figure 4",
            "all sites right",
            "Site trees by the depth",
            "Coverage of external hosts (mentions",
            "Misses as a multiple of those of MIN",
            "1a0371b388d70055",
            "db55a42aeba48ff",
            "Duration of all accesses",
        ] {
            assert!(page.contains(wanted), "{wanted} is missing");
        }
        assert!(!page.contains("NaN") && !page.contains("<script") && !page.contains("href="), "nothing from elsewhere");
        assert!(page.matches("<figure>").count() >= 14, "{}", page.matches("<figure>").count());
        let found = evaluate(&page, &Limits::default(), &|| Duration::ZERO);
        assert_eq!((found.total(), found.gate), (0, None), "{found:?}");
        if let Ok(directory) = std::env::var("NEARCRAWL_REPORTS") {
            std::fs::write(format!("{directory}/figures.html"), page).unwrap();
        }
    }

    #[test]
    fn a_file_that_is_another_is_not_drawn_from() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("nodes.csv"), "id,ipv4\n").unwrap();
        let failure = Data::open(directory.path(), None).unwrap_err();
        assert!(failure.to_string().contains("nodes.csv") && failure.to_string().contains("ab472a89ec5c9d0e"), "{failure}");
    }
}
