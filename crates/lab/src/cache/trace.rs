//! Order in which pages are fetched: a crawl of the graph by some threads, each with one site at a time, one page after another.
//!
//! Fetching takes no time: the threads take turns, a page each. A thread stays with its site until no page of it waits any more, then
//! takes the next site of which a page is known, and where none is, a site of which nothing is known yet, drawn at random: so there are
//! always as many sites in progress as there are threads, until sites run out. With several processes each site belongs to one of them,
//! by a hash, and is crawled by threads of that one.

use super::graph::Graph;
use nearcrawl_model::fingerprint::Fingerprint;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::collections::VecDeque;

/// The order in which the pages of a site, and the sites, are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First found, first fetched: about Mercator's order.
    Bfs,
    /// Last found, first fetched.
    Dfs,
    /// A random one of those that wait.
    Random,
}

/// How a graph is crawled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crawl {
    /// What comes first.
    pub order: Order,
    /// Threads of each process: sites in progress at once.
    pub threads: usize,
    /// How many processes share the sites.
    pub processes: usize,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// A page being fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    /// The page's index in the graph.
    pub page: u32,
    /// By which thread; those of the first process come first.
    pub thread: u32,
}

impl Crawl {
    /// The process that a site belongs to.
    pub(crate) fn process_of(&self, site: u32) -> usize {
        (Fingerprint(u64::from(site)).scoped(self.seed).0 % self.processes as u64) as usize
    }

    /// All pages in the order of their fetching, each once.
    pub(crate) fn visits(&self, graph: &Graph) -> Vec<Visit> {
        let mut state = State::new(self, graph);
        let mut visits = Vec::with_capacity(graph.pages());
        loop {
            let before = visits.len();
            state.nothing_left.fill(false);
            for thread in 0..self.threads * self.processes {
                if let Some(page) = state.next(thread) {
                    visits.push(Visit { page, thread: thread as u32 });
                    graph.links(page).iter().for_each(|target| state.found(*target));
                }
            }
            if visits.len() == before {
                return visits;
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Site {
    /// No page of it waits.
    Idle,
    /// Pages wait, no thread has it.
    Ready,
    /// A thread has it.
    InProgress,
}

struct State<'a> {
    crawl: &'a Crawl,
    graph: &'a Graph,
    random: StdRng,
    found: Vec<bool>,
    sites: Vec<Site>,
    /// Pages that wait, for each site.
    waiting: Vec<VecDeque<u32>>,
    /// Sites that are ready, for each process.
    ready: Vec<VecDeque<u32>>,
    /// Sites that may have undiscovered pages, for each process.
    unknown: Vec<VecDeque<u32>>,
    /// The pages of each site that were undiscovered at the last check, the first one last.
    unfound: Vec<Vec<u32>>,
    /// Whether looking for an unknown site was in vain in this round, for each process.
    nothing_left: Vec<bool>,
    /// Each thread's site.
    threads: Vec<Option<u32>>,
}

impl<'a> State<'a> {
    fn new(crawl: &'a Crawl, graph: &'a Graph) -> State<'a> {
        let mut random = StdRng::seed_from_u64(crawl.seed);
        let mut order: Vec<u32> = (0..graph.sites() as u32).collect();
        order.shuffle(&mut random);
        let mut unknown = vec![VecDeque::new(); crawl.processes];
        order.into_iter().for_each(|site| unknown[crawl.process_of(site)].push_back(site));
        let mut unfound = vec![Vec::new(); graph.sites()];
        (0..graph.pages() as u32).rev().for_each(|page| unfound[graph.site_of(page) as usize].push(page));
        State {
            crawl,
            graph,
            random,
            found: vec![false; graph.pages()],
            sites: vec![Site::Idle; graph.sites()],
            waiting: vec![VecDeque::new(); graph.sites()],
            ready: vec![VecDeque::new(); crawl.processes],
            unknown,
            unfound,
            nothing_left: vec![false; crawl.processes],
            threads: vec![None; crawl.threads * crawl.processes],
        }
    }

    /// A link leads to this page.
    fn found(&mut self, page: u32) {
        if std::mem::replace(&mut self.found[page as usize], true) {
            return;
        }
        let site = self.graph.site_of(page);
        self.waiting[site as usize].push_back(page);
        if self.sites[site as usize] == Site::Idle {
            self.sites[site as usize] = Site::Ready;
            self.ready[self.crawl.process_of(site)].push_back(site);
        }
    }

    /// The page that a thread fetches now.
    fn next(&mut self, thread: usize) -> Option<u32> {
        let process = thread / self.crawl.threads;
        if let Some(site) = self.threads[thread].take() {
            if let Some(page) = take(self.crawl.order, &mut self.waiting[site as usize], &mut self.random) {
                self.threads[thread] = Some(site);
                return Some(page);
            }
            self.sites[site as usize] = Site::Idle;
            // Of this one something may be unknown still.
            self.nothing_left[process] = false;
        }
        let site = match take(self.crawl.order, &mut self.ready[process], &mut self.random) {
            Some(site) => site,
            None => self.begin(process)?,
        };
        self.sites[site as usize] = Site::InProgress;
        self.threads[thread] = Some(site);
        take(self.crawl.order, &mut self.waiting[site as usize], &mut self.random)
    }

    /// A site without waiting pages but with undiscovered ones; one of them waits now.
    fn begin(&mut self, process: usize) -> Option<u32> {
        if self.nothing_left[process] {
            return None;
        }
        for _ in 0..self.unknown[process].len() {
            let site = self.unknown[process].pop_front()?;
            let unfound = &mut self.unfound[site as usize];
            while unfound.pop_if(|page| self.found[*page as usize]).is_some() {}
            let Some(page) = unfound.last().copied() else { continue };
            self.unknown[process].push_back(site);
            if self.sites[site as usize] == Site::Idle {
                self.found[page as usize] = true;
                self.waiting[site as usize].push_back(page);
                return Some(site);
            }
        }
        self.nothing_left[process] = true;
        None
    }
}

fn take(order: Order, queue: &mut VecDeque<u32>, random: &mut StdRng) -> Option<u32> {
    match order {
        Order::Bfs => queue.pop_front(),
        Order::Dfs => queue.pop_back(),
        Order::Random if queue.is_empty() => None,
        Order::Random => queue.swap_remove_back(random.random_range(0..queue.len())),
    }
}
