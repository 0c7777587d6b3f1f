//! The experiments behind the figures, paper by paper.

use super::{
    data::Data,
    section::{Effort, Section},
};
use crate::cli::{
    error::{CommandError, Exit},
    hierarchy,
    lab::{cache, choice, depth, files, migration, plot},
    report::{CrawlStatistics, load_charts},
};
use nearcrawl_lab::{
    cache::{
        Experiment as CacheExperiment,
        graph::Graph,
        stream::{self, Part},
        synthetic,
        trace::{Crawl, Order},
    },
    delegation::{
        Experiment as DelegationExperiment, Surroundings,
        round::{Placement, Setup},
        score::Row as DelegationRow,
    },
    depth::Experiment as DepthExperiment,
    migration::{
        Experiment as MigrationExperiment, Outcome, Start,
        score::Reached,
        world::{Capacity, Shape, Sizes},
    },
    web::endless::EndlessWeb,
};
use nearcrawl_model::view::counted;

fn lines(rows: &[&[&str]]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
}

/// Crawl statistics, and figures 2 to 5.
pub(super) fn caching(data: &Data, effort: Effort) -> Result<Vec<Section>, CommandError> {
    let (graphs, web) = match data.links() {
        Some(path) => (vec![files::read_graph(path, None, 64)?], "the web graph cnr-2000, 64 neighbouring pages as a site"),
        None => (effort.seeds(3, 2).into_iter().map(synthetic::web).collect(), "a made-up web of 1,000 sites, with several seeds"),
    };
    let most = effort.of(22, 14);
    let sizes: Vec<usize> = (0..=most).map(|power| 1 << power).collect();
    let policies = cache::choice::policies(cache::choice::ALL)?;
    let threads = if effort.is_quick { 100 } else { 500 };
    let miss_rates = |part: Part| -> Vec<_> {
        let run = |(graph, seed): (&Graph, u64)| {
            let crawl = Crawl { order: Order::Bfs, threads, processes: 4, seed };
            let streams = stream::streams(graph, &crawl, part, false, false);
            let looked_up: usize = streams.iter().map(|stream| stream.items().len()).sum();
            let experiment = CacheExperiment { policies: policies.clone(), sizes: sizes.clone(), seed };
            (experiment.run(&streams, effort.processors, &|| ()), looked_up)
        };
        graphs.iter().zip(effort.seed..).map(run).collect()
    };
    let (full, cross) = (miss_rates(Part::Full), miss_rates(Part::Cross));
    let rows = |runs: &[(Vec<_>, usize)]| runs.iter().map(|(rows, _)| rows.clone()).collect::<Vec<_>>();
    let here = format!(
        "Of {web}, crawled breadth-first by {threads} threads; CLOCK is the daemon's own cache. static-charged pays a miss for each entry that it loads."
    );
    Ok(vec![
        statistics(data, &graphs[0], web, cross[0].1)?,
        Section {
            title: "Figures 2 and 3: miss rate by size of the cache, full trace".to_owned(),
            paper: "A cache of roughly 50,000 entries can achieve a hit rate of almost 80 %; this size is a critical point. LRU and CLOCK perform \
                    almost identically and only slightly worse than MIN, RANDOM is only slightly inferior, STATIC is generally much worse. \
                    We recommend 100 to 500 entries per crawling thread.",
            here: format!(
                "{here} The second figure's axis doubles from mark to mark, so that no value lies outside; infinite is below 1 where MIN's size is finite."
            ),
            charts: cache::plot::charts(&rows(&full), "full trace (the paper's figures 2 and 3)"),
            ..Section::default()
        },
        Section {
            title: "Figures 4 and 5: miss rate by size of the cache, cross sub-trace".to_owned(),
            paper: "The same simulations for the cross-trace, which has only the URLs that were sent to one of the other machines: about 19.5 % of all.",
            here: format!("{here} Of four processes, what the first finds and another owns."),
            charts: cache::plot::charts(&rows(&cross), "cross sub-trace (the paper's figures 4 and 5)"),
            ..Section::default()
        },
    ])
}

/// Section 4.2 of the paper as a table.
fn statistics(data: &Data, graph: &Graph, web: &str, first_process_sends: usize) -> Result<Section, CommandError> {
    let mut links: Vec<usize> = (0..graph.pages() as u32).map(|page| graph.links(page).len()).collect();
    links.sort_unstable();
    let mut unique: Vec<usize> = (0..graph.pages() as u32)
        .map(|page| {
            let mut to = graph.links(page).to_vec();
            to.sort_unstable();
            to.dedup();
            to.len()
        })
        .collect();
    unique.sort_unstable();
    let mean = |counts: &[usize]| format!("{:.2}", counts.iter().sum::<usize>() as f64 / counts.len().max(1) as f64);
    let median = |counts: &[usize]| counts.get(counts.len() / 2).map_or_else(|| "–".to_owned(), usize::to_string);
    let crawl = data.servers().map(CrawlStatistics::read).transpose()?;
    let of_crawl = |value: &dyn Fn(&CrawlStatistics) -> String| crawl.as_ref().map_or_else(|| "–".to_owned(), value);
    let none = || "–".to_owned();
    let sent = format!("{:.1} %", 100.0 * (4 * first_process_sends) as f64 / graph.link_count().max(1) as f64);
    let rows = [
        ("download attempts", "1.04 billion", none(), of_crawl(&|crawl| crawl.requests.to_string())),
        ("successful downloads", "784 million (75 %)", none(), of_crawl(&|crawl| crawl.share_of_requests(crawl.successful))),
        ("HTML pages", "429 million (41 %)", graph.pages().to_string(), of_crawl(&|crawl| crawl.share_of_requests(crawl.pages))),
        ("links", "26.83 billion", graph.link_count().to_string(), none()),
        ("links a page, mean", "62.55", mean(&links), none()),
        ("links a page, median", "23", median(&links), none()),
        ("unique links a page, mean", "42.74", mean(&unique), none()),
        ("unique links a page, median", "17", median(&unique), none()),
        ("links to other processes, of four", "about 19.5 %", sent, none()),
        ("servers (hosts)", "not told", graph.sites().to_string(), of_crawl(&|crawl| crawl.servers.to_string())),
    ];
    let head = ["quantity", "the paper's crawl, 33 days of 2002", "the web of the figures below", "our crawl of real pages"]
        .map(str::to_owned)
        .to_vec();
    Ok(Section {
        title: "Statistics of the crawl (section 4.2)".to_owned(),
        paper: "During the crawl, the four machines performed 1.04 billion download attempts, 784 million of which resulted in successful downloads. \
                429 million of the successfully downloaded documents were HTML pages. These pages contained about 26.83 billion links, equivalent \
                to an average of 62.55 links per page; however, the median number of links per page was only 23.",
        here: format!(
            "The web of the figures is {web}. Records of servers count pages and requests, not links, so a dash stands where the crawl has no count; \
                       its requests include those for robots.txt."
        ),
        table: [head]
            .into_iter()
            .chain(rows.map(|(name, paper, web, crawl)| vec![name.to_owned(), paper.to_owned(), web, crawl]))
            .collect(),
        ..Section::default()
    })
}

/// Figures 1 to 3, on a made-up web and from a real crawl.
pub(super) fn low_load(data: &Data, effort: Effort) -> Result<Vec<Section>, CommandError> {
    let (shape, prices) = (depth::choice::shape(&[])?, depth::choice::prices(depth::choice::PRICES));
    let prices = prices.map_err(|why| CommandError::new(Exit::Internal, why))?.0;
    let (sites, seeds) = (effort.of(3_400, 150) as u64, effort.seeds(5, 2));
    let prices: Vec<_> = prices.into_iter().step_by(effort.of(2, 8)).collect();
    let run = |seed: &u64| {
        let experiment = DepthExperiment { web: EndlessWeb::new(*seed, shape, 80), sites, max_depth: 20, prices: prices.clone() };
        experiment.run(effort.processors, &|| ())
    };
    let runs: Vec<_> = seeds.iter().map(run).collect();
    let mut sections = vec![Section {
        title: "Figures 1 to 3 on a made-up web".to_owned(),
        paper: "The cumulative number of external URLs collected in the virtual Web space levels off at depth level 9. The number of site trees has \
                already become small at depth level 8 and decreases rapidly thereafter. A crawling that limits the crawl depth to level 8 can reduce \
                the processing load by 20 %; for an external URL collection rate of 80 % it can be nearly halved.",
        here: format!(
            "{} a seed, {}; crawled to depth 20. Besides the paper's external URLs the figures have external hosts, and besides one depth for all \
             the rule of yield, which ends each branch where too few new hosts are to be expected. Load is requests; the paper does not say its unit.",
            counted(sites, "site"),
            counted(seeds.len() as u64, "seed")
        ),
        charts: depth::plot::charts(&runs),
        ..Section::default()
    }];
    let (here, charts) = match data.servers() {
        Some(path) => {
            let statistics = CrawlStatistics::read(path)?;
            let here = format!(
                "{} of {}, {}, {}, from `export servers`. External hosts are counted by server, at the level at which its pages name them first; \
                 hosts are summed over servers, as the paper's URLs are. The crawl was limited in depth, and its web is small: the curves show the \
                 form, not the paper's numbers.",
                counted(statistics.servers, "server"),
                counted(statistics.trees, "tree"),
                counted(statistics.pages, "page"),
                counted(statistics.requests, "request")
            );
            (here, load_charts(path)?)
        }
        None => {
            ("There are no rows of a crawl: put servers.jsonl into the folder of --data, or name them by --servers.".to_owned(), Vec::new())
        }
    };
    sections.push(Section {
        title: "Figures 1 to 3 from a real crawl".to_owned(),
        paper: "The solid lines show measured values resulting from crawling in a real Web space. The number of starting URLs was about 3400, with \
                ccTLDs of African countries; the maximum depth level of crawling was 20.",
        here,
        charts,
        ..Section::default()
    });
    Ok(sections)
}

/// The evaluation of IPMicra: its figures in words as a table, and drawn.
pub(super) fn delegation(data: &Data, effort: Effort) -> Result<Vec<Section>, CommandError> {
    let paper = "With a probing threshold set to 50 msec, the delegation procedure resulted to 261 optimal delegations (average) from the 350 (75 %), with \
                 only 1048 probes, while brute force would require 12*350 = 4200. The 89 sub-optimal delegations were having an average probing \
                 difference from the optimal of less than 13. The average number of probes was 2.99 per URL, for the last 50 URLs 2.66, for the \
                 first 300 URLs 3.05.";
    let title = "Evaluation (section 4.4): probes and nearness, and probes over time".to_owned();
    let Some((nodes, rtt)) = data.atlas() else {
        let here = "There are no round-trip times: put nodes.csv and rtt_min_ms.csv.zst into the folder of --data.".to_owned();
        return Ok(vec![Section { title, paper, here, ..Section::default() }]);
    };
    let (nodes, distances) = files::read(nodes, Some(rtt))?;
    let hierarchy = hierarchy::look::load(None).map_err(|why| CommandError::new(Exit::of(why.exit_code()), why.to_string()))?;
    let setup =
        Setup { crawlers: 12, placement: Placement::Spread, sites: None, train: 0.65, whole_subnets: false, downloads_teach: false };
    let policies =
        choice::policies("ipmicra,ipmicra@20,nearcrawl,random-order,popular-first,brute-force,random-delegation", 50.0, &[0.5, 1.0, 2.0])?;
    let experiment = DelegationExperiment { setup, policies, rounds: effort.of(20, 3), seed: effort.seed };
    let surroundings = Surroundings { processor_seconds: &files::processor_seconds, finished: &|| (), threads: effort.processors };
    let rows =
        experiment.run(&nodes, &distances, &hierarchy, &surroundings).map_err(|why| CommandError::new(Exit::Data, why.to_string()))?;
    let mut table = lines(&[
        &["policy", "probes a site", "first 300", "last 50", "optimal", "extra ms where not optimal"],
        &["the paper's", "2.99", "3.05", "2.66", "74.6 % (261 of 350)", "below 13"],
    ]);
    let row = |row: &DelegationRow| {
        let numbers = [row.probes_per_site, row.probes_first_300, row.probes_last_50].map(|probes| format!("{probes:.2}"));
        let optimal = format!("{:.1} ± {:.1} %", 100.0 * row.optimal, 196.0 * row.optimal_se);
        [row.label()].into_iter().chain(numbers).chain([optimal, format!("{:.1}", row.mean_extra_when_wrong_ms)]).collect()
    };
    table.extend(rows.iter().map(row));
    Ok(vec![Section {
        title,
        paper,
        here: "Measured round-trip times between RIPE Atlas anchors; 12 of them, far apart, act as crawlers, the others are sites, of which the first 65 % \
               initialise. The paper does not say how its crawlers were placed, which moves these figures more than any rule does. A site counts as \
               optimal only with a nearest crawler; the paper's probes over time are two means of one run, drawn as two points."
            .to_owned(),
        table,
        charts: plot::charts(&rows),
    }])
}

/// Ten runs of equal sites, as the paper averages; each of another world. It changes after so many crawler runs, or never.
fn played(
    effort: Effort,
    policies: &str,
    (sites, access_points): (&[usize], &[usize]),
    change_every: Option<usize>,
    runs: usize,
) -> Result<Vec<Outcome>, CommandError> {
    let shape = Shape {
        sites: 0,
        access_points: 0,
        sizes: Sizes::Equal,
        noise: 0.0,
        capacity: Capacity::Equal,
        sites_per_subnet: 1,
        purity: 1.0,
        change_every,
        hours: Vec::new(),
    };
    let policies = migration::choice::policies(policies)?;
    let one = |seed: u64| {
        let experiment = MigrationExperiment {
            shape: shape.clone(),
            access_points: access_points.to_vec(),
            sites: sites.to_vec(),
            slices: None,
            runs,
            states: 5,
            policies: policies.clone(),
            start: Start::Uniform,
            prior_error: None,
            rounds: 1,
            seed,
        };
        experiment.run(effort.processors, &|| ())
    };
    Ok(effort.seeds(10, 2).into_iter().map(|seed| one(1_000 * seed)).collect())
}

/// Figures 2 to 4.
pub(super) fn migration(_: &Data, effort: Effort) -> Result<Vec<Section>, CommandError> {
    let (rules, sites) = ("twoma,nearcrawl,uniform,oracle", effort.of(10_000, 300));
    let stays = played(effort, rules, (&[sites], &[8]), None, 200)?;
    let changes = played(effort, rules, (&[sites], &[8]), Some(100), 400)?;
    let here = format!(
        "{sites} sites, 8 access points, 5 states, every site begins at an access point that has nothing to do with its distance; {}.",
        counted(stays.len() as u64, "seed")
    );
    Ok(vec![
        Section {
            title: "Figure 2: duration by crawler run, static environment".to_owned(),
            paper: "TWOMA starts out having an equal performance as a uniform distribution, but quickly reduces the total duration of each crawl as t \
                    increases. TWOMA is able to reduce the duration of each crawl by half.",
            here: format!("{here} Durations are multiples of the oracle's, since the paper's unit depends on its worlds."),
            charts: migration::plot::charts(&stays),
            ..Section::default()
        },
        Section {
            title: "Figure 3: duration by crawler run, the best access points change after each 100th run".to_owned(),
            paper: "The algorithm is able to run in a dynamic environment such as the real web. It reaches close to the optimal distribution before the \
                    environment changes.",
            here,
            charts: migration::plot::charts(&changes),
            ..Section::default()
        },
        runs_needed(effort)?,
    ])
}

/// Figure 4.
fn runs_needed(effort: Effort) -> Result<Section, CommandError> {
    let numbers: &[usize] = if effort.is_quick { &[100, 300] } else { &[100, 300, 1_000, 3_000, 10_000] };
    let by_sites = played(effort, "twoma,nearcrawl", (numbers, &[8]), None, 400)?;
    let by_points = played(effort, "twoma,nearcrawl", (&[effort.of(1_000, 100)], &[2, 4, 8, 16, 32]), None, effort.of(800, 400))?;
    let mut charts = migration::plot::charts(&by_sites);
    charts.extend(migration::plot::charts(&by_points));
    // Their totals by run are figure 2 with other numbers.
    charts.retain(|chart| chart.title.contains("figure 4"));
    Ok(Section {
        title: "Figure 4: runs until the distribution is optimal".to_owned(),
        paper: "The optimal distribution is when each object has reached its optimal arm. The numbers of the access points plays a significant role \
                compared to the numbers of the objects. The algorithm scales well with regards to the number of web sites.",
        here: format!(
            "The criteria differ. By the paper's words all sites must be right: then the number of sites matters, too, since the slowest of more \
             sites is slower ({}). By the total, within 5 % of the oracle's, it hardly matters ({}), which is what the paper's figure shows. Both are \
             drawn; a rule that did not get there in every seed has no point.",
            from_few_to_many(&by_sites, |reached| reached.all_right),
            from_few_to_many(&by_sites, |reached| reached.within_a_twentieth)
        ),
        table: reached_table(&by_sites),
        charts,
    })
}

/// The mean over the seeds, if it came about in each.
fn mean_runs(outcomes: &[Outcome], place: usize, runs: fn(&Reached) -> Option<f64>) -> Option<f64> {
    let all: Option<Vec<f64>> = outcomes.iter().map(|outcome| runs(outcome.reached.get(place)?)).collect();
    all.map(|all| all.iter().sum::<f64>() / all.len().max(1) as f64)
}

/// `twoma: 34 runs for 100 sites, 73 for 10000`.
fn from_few_to_many(outcomes: &[Outcome], runs: fn(&Reached) -> Option<f64>) -> String {
    let of_rule = |(_, reached): &(usize, &Reached)| reached.policy == "twoma";
    let all: Vec<_> = outcomes.iter().take(1).flat_map(|outcome| outcome.reached.iter().enumerate()).filter(of_rule).collect();
    let ends = [all.first(), all.last()].into_iter().flatten();
    let said = ends.map(|(place, reached)| match mean_runs(outcomes, *place, runs) {
        Some(mean) => format!("{mean:.0} runs for {} sites", reached.sites),
        None => format!("not in every seed for {} sites", reached.sites),
    });
    format!("twoma: {}", said.collect::<Vec<_>>().join(", "))
}

/// Runs until all are right, by sites: the mean over the seeds.
fn reached_table(outcomes: &[Outcome]) -> Vec<Vec<String>> {
    let head = ["rule", "sites", "runs until all sites are right", "runs until the total is within 5 %"].map(str::to_owned).to_vec();
    let Some(first) = outcomes.first() else { return Vec::new() };
    let row = |(place, reached): (usize, &Reached)| {
        let mean = |runs: fn(&Reached) -> Option<f64>| {
            mean_runs(outcomes, place, runs).map_or_else(|| "not in every seed".to_owned(), |mean| format!("{mean:.1}"))
        };
        vec![
            reached.policy.clone(),
            reached.sites.to_string(),
            mean(|reached| reached.all_right),
            mean(|reached| reached.within_a_twentieth),
        ]
    };
    [head].into_iter().chain(first.reached.iter().enumerate().map(row)).collect()
}
