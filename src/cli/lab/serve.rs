//! `nearcrawl lab serve`: offers the laboratory's web to real crawlers over HTTP, with a name server beside it.

use super::depth::choice;
use crate::{
    cli::error::{CommandError, Exit},
    io::snapshot,
};
use clap::Args;
use nearcrawl_lab::depth::crawl::ROBOTS;
use nearcrawl_lab::web::dns::{DnsServer, Zone};
use nearcrawl_lab::web::endless::EndlessWeb;
use nearcrawl_lab::web::endless::place::{HostName, Place};
use nearcrawl_lab::web::server::{HttpAnswer, HttpSite, WebServers};
use nearcrawl_model::{url::Host, view::counted};
use std::{
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};
use tokio::{net::TcpListener, signal};

/// Shown under `lab serve --help`.
pub const EXAMPLES: &str = "\
The web of `nearcrawl lab depth`, over HTTP until interrupted: equal seeds and --change give equal pages. Site n is s<n>.test; sections with \
a name of their own are d<k>.s<n>.test. The Host header selects the site, so all may share one address (--listen); with --apart each has its \
own in 127.0.0.0/8, as if it were a server of its own. More than 900 of them need one socket for all addresses: --listen 0.0.0.0:PORT, which \
is bound to the loopback device, so that no other machine can reach it.

Examples:
  nearcrawl lab serve --sites 100 --dns 127.0.0.53:5353 --seeds seeds.txt
  nearcrawl lab serve --pages 1000000 --apart --listen 0.0.0.0:8080 \\
    --dns 127.0.0.53:5353 --seeds seeds.txt
  curl -H 'Host: s0.test' http://127.0.0.1:8080/

Then, in another terminal:
  nearcrawl crawl $(cat seeds.txt) --allow-range 127.0.0.0/8 \\
    --dns 127.0.0.53:5353 --min-delay 0ms --depth 20";

/// The most sites: that many have an address of their own.
const MAX_SITES: u64 = 1 << 22;

/// The most sites that get a socket each: few enough for the usual limit on open files.
const MAX_SOCKETS: u64 = 900;

/// Arguments of `lab serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Give each site a loopback address of its own, on the same port (Linux only)
    #[arg(long)]
    apart: bool,
    /// How many sites there are [default: 3400]
    #[arg(long, value_name = "N", conflicts_with = "pages", value_parser = clap::value_parser!(u64).range(1..=MAX_SITES))]
    sites: Option<u64>,
    /// As many sites as have so many pages together, down to level 20
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pages: Option<u64>,
    /// Answer questions for the sites' names there, over UDP
    #[arg(long, value_name = "ADDRESS:PORT")]
    dns: Option<SocketAddr>,
    /// Write the front pages' URLs to this file, one a line
    #[arg(long, value_name = "FILE")]
    seeds: Option<PathBuf>,
    /// Multiply a number of the web by a factor, like uneven=0.5
    #[arg(long, value_name = "NAME=FACTOR")]
    change: Vec<String>,
    /// Seed of all random numbers: equal seeds give equal webs
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
}

/// Serves until interrupted.
pub async fn serve(args: &ServeArgs) -> Result<String, CommandError> {
    let served = Served::start(args).await?;
    // The reader may have closed standard output.
    let _ = writeln!(io::stdout().lock(), "{}", served.told());
    signal::ctrl_c().await.map_err(|why| CommandError::new(Exit::Internal, why.to_string()))?;
    served.servers.stop().await;
    Ok(String::new())
}

/// The running web.
pub(super) struct Served {
    pub(super) web: EndlessWeb,
    pub(super) sites: u64,
    servers: WebServers,
    pub(super) dns: Option<DnsServer>,
}

impl Served {
    /// Begins to listen.
    pub(super) async fn start(args: &ServeArgs) -> Result<Served, CommandError> {
        let shape = choice::shape(&args.change)?;
        let listener = listener(args.listen, args.apart).await?;
        let refused = |why: io::Error| CommandError::new(Exit::InUse, why.to_string());
        let address = listener.local_addr().map_err(refused)?;
        let each = args.apart && !args.listen.ip().is_unspecified();
        let web = EndlessWeb::new(args.seed, shape, address.port());
        let sites = match args.pages {
            Some(pages) => web.sites_with(pages, 20).min(MAX_SITES),
            None => args.sites.unwrap_or(3_400),
        };
        let home = |site: u64| if args.apart { IpAddr::V4(address_of(site)) } else { address.ip() };
        let dns = match args.dns {
            Some(dns) => {
                let names = (0..sites).flat_map(|site| hosts(&web, site).into_iter().map(move |host| (host, home(site))));
                let started = DnsServer::start(dns, Zone::new(names)).await;
                Some(started.map_err(|why| CommandError::new(Exit::InUse, format!("cannot answer at {dns}: {why}")))?)
            }
            None => None,
        };
        if let Some(path) = &args.seeds {
            let urls: String =
                (0..sites).filter_map(|site| web.url(&web.plan(site), &Place::Front)).map(|url| format!("{url}\n")).collect();
            snapshot::write(path, urls.as_bytes()).map_err(|why| CommandError::new(Exit::InUse, why.to_string()))?;
        }
        let offered = Arc::new(Offered { web: web.clone(), sites });
        let servers = if each {
            if sites > MAX_SOCKETS {
                return Err(CommandError::new(
                    Exit::Usage,
                    format!("{sites} sites apart are more than the {MAX_SOCKETS} that get a socket each"),
                )
                .hint("--listen 0.0.0.0:PORT serves all of them with one, which only this machine can reach; or fewer: --sites N"));
            }
            drop(listener);
            let addresses = (0..sites).map(|site| SocketAddr::new(address_of(site).into(), address.port()));
            let started = WebServers::start(addresses, offered).await;
            started.map_err(|why| CommandError::new(Exit::InUse, why.to_string()).hint("choose another --listen"))?
        } else {
            WebServers::on(listener, address, offered)
        };
        Ok(Served { web, sites, servers, dns })
    }

    /// What people need to know to crawl it.
    fn told(&self) -> String {
        let pages: u64 = (0..self.sites).map(|site| self.web.plan(site).pages(20)).sum();
        let listening = self.servers.addresses().first().map(ToString::to_string).unwrap_or_default();
        let names = self.dns.as_ref().map_or_else(|| "no name server (--dns)".to_owned(), |dns| format!("names at {}", dns.address()));
        format!("{} with {} down to level 20, at {listening}; {names}; until Ctrl-C", counted(self.sites, "site"), counted(pages, "page"))
    }
}

/// All hosts of a site.
fn hosts(web: &EndlessWeb, site: u64) -> Vec<Host> {
    let plan = web.plan(site);
    let apart = (0..).zip(&plan.sections).filter(|(_, section)| section.apart).map(|(number, _)| Some(number));
    [None].into_iter().chain(apart).filter_map(|section| HostName { site, section }.to_string().parse().ok()).collect()
}

/// The loopback address of a site: neighbours live in different /24, as they would in the world.
fn address_of(site: u64) -> Ipv4Addr {
    let [_, _, _, _, _, high, middle, low] = (site << 1).to_be_bytes();
    // 7 bits, so that neither the first nor the last address of a /24 is used.
    Ipv4Addr::new(127, 32 + high, low | (middle & 1), 1 + (middle >> 1))
}

async fn listener(address: SocketAddr, apart: bool) -> Result<TcpListener, CommandError> {
    let refused =
        |why: io::Error| CommandError::new(Exit::InUse, format!("cannot listen on {address}: {why}")).hint("choose another --listen");
    if !apart || !address.ip().is_unspecified() {
        return TcpListener::bind(address).await.map_err(refused);
    }
    // One listener for all loopback addresses, which only the loopback device brings anything to.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM.nonblocking(), None).map_err(refused)?;
    let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
    socket.set_reuse_address(true).map_err(refused)?;
    socket.bind_device(Some(b"lo")).map_err(refused)?;
    socket.bind(&everywhere.into()).map_err(refused)?;
    socket.listen(1024).map_err(refused)?;
    TcpListener::from_std(socket.into()).map_err(refused)
}

/// What the servers say.
struct Offered {
    web: EndlessWeb,
    sites: u64,
}

impl HttpSite for Offered {
    fn respond(&self, host: &str, path: &str) -> HttpAnswer {
        if HostName::read(host).is_none_or(|name| name.site >= self.sites) {
            return HttpAnswer::status(404);
        }
        match path {
            "/robots.txt" => HttpAnswer::ok("text/plain", ROBOTS),
            _ => self.web.page(host, path).map_or_else(|| HttpAnswer::status(404), HttpAnswer::html),
        }
    }
}

#[cfg(test)]
mod tests;
