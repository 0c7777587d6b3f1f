//! How does a command reach the daemon? Through its API, and it says clearly when nobody is there.

use super::failure::{Exit, Failure};
use crate::{
    io::client::client,
    node::{
        api::ErrorView,
        config::{Config, SERVICE_CONFIG},
    },
};
use clap::Args;
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde::{Serialize, de::DeserializeOwned};
use std::{path::Path, time::Duration};

/// Where the daemon is, and in which form its answer is wanted.
#[derive(Args, Clone, Debug)]
pub struct ApiArgs {
    /// Where the daemon's API is. Default: the configured address, else http://127.0.0.1:4880
    #[arg(long, value_name = "URL", env = "NEARCRAWL_API")]
    pub api: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// Longer than the daemon itself takes before it says that it is too busy.
const PATIENCE: Duration = Duration::from_secs(15);

/// An answer is no longer than this, in bytes.
const LARGEST_ANSWER: usize = 64 << 20;

/// The daemon's API.
#[derive(Clone, Debug)]
pub struct ApiClient {
    client: Client,
    base: Url,
}

impl ApiClient {
    /// A client for the address that was given, configured, or is the default.
    pub fn new(args: &ApiArgs) -> Result<ApiClient, Failure> {
        let base = args.api.clone().unwrap_or_else(configured);
        let wrong = |why: &str| Failure::new(Exit::Usage, format!("--api {base}: {why}")).hint("write it like --api http://127.0.0.1:4880");
        let url = Url::parse(&base).map_err(|why| wrong(&why.to_string()))?;
        if url.scheme() != "http" {
            return Err(wrong("the API is plain HTTP on this machine"));
        }
        // No proxy: the API answers this machine only, and what is asked is nobody else's business.
        let client = client().no_proxy().timeout(PATIENCE).connect_timeout(Duration::from_secs(3)).build();
        let client = client.map_err(|why| Failure::new(Exit::Internal, format!("no HTTP client: {why}")))?;
        Ok(ApiClient { client, base: url })
    }

    /// Asks for something; `path` begins with `/`, and the parameters are escaped here.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, parameters: &[(&str, &str)]) -> Result<T, Failure> {
        let mut url = self.url(path);
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        self.read(self.client.request(Method::GET, url).send().await).await
    }

    /// Sends something.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        self.read(self.client.request(Method::POST, self.url(path)).json(body).send().await).await
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(path);
        url.set_query(None);
        url
    }

    async fn read<T: DeserializeOwned>(&self, answer: reqwest::Result<Response>) -> Result<T, Failure> {
        let mut answer = answer.map_err(|why| self.unreachable(&why))?;
        let status = answer.status();
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|why| self.unreachable(&why))? {
            if body.len() + chunk.len() > LARGEST_ANSWER {
                return Err(self.no_daemon("answers more than any daemon would"));
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|_| self.no_daemon("does not answer like a nearcrawl of this version"));
        }
        let Ok(view) = serde_json::from_slice::<ErrorView>(&body) else {
            return Err(self.no_daemon(&format!("answers {status}, not like a nearcrawl")));
        };
        let exit = match status {
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE => Exit::Data,
            StatusCode::FORBIDDEN => Exit::NoPermission,
            StatusCode::SERVICE_UNAVAILABLE => Exit::Unavailable,
            _ => Exit::Internal,
        };
        Err(Failure::new(exit, view.error).hint(view.hint))
    }

    fn unreachable(&self, why: &reqwest::Error) -> Failure {
        if why.is_timeout() {
            return Failure::new(Exit::Unavailable, format!("the daemon at {} does not answer in time", self.base))
                .hint("its log says what it is doing: journalctl -u nearcrawl");
        }
        Failure::new(Exit::Unavailable, format!("no daemon answers at {}", self.base))
            .hint("start one with `nearcrawl run` or `systemctl start nearcrawl`, or say where it is with --api URL or NEARCRAWL_API")
    }

    fn no_daemon(&self, why: &str) -> Failure {
        Failure::new(Exit::Unavailable, format!("what listens at {} {why}", self.base))
            .hint("say where the daemon's API is with --api URL or NEARCRAWL_API")
    }
}

/// What the service's configuration says, if there is one that this user may read.
fn configured() -> String {
    let path = Path::new(SERVICE_CONFIG);
    let listen = Config::load(path.exists().then_some(path)).ok().and_then(|config| config.api.listen);
    listen.map_or_else(|| "http://127.0.0.1:4880".to_owned(), |listen| format!("http://{listen}"))
}
