//! Requests to the daemons' HTTP API, the same that any program on this machine can make.

use super::daemons::API_PORT;
use nearcrawl_model::{subnet::Subnet, summary::Summary};
use serde::{Deserialize, de::DeserializeOwned};
use std::{net::Ipv4Addr, time::Duration};

/// How long one answer may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {why}")]
pub struct AskError {
    /// What was asked.
    pub url: String,
    /// Why there is no answer.
    pub why: String,
}

/// Who owns a subnet: the fields of the API's answer that are needed here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Owned {
    /// The subnet, as text.
    pub subnet: Subnet,
    /// The owner's peer id.
    pub owner: String,
    /// How many probes it took.
    pub probes: u16,
    /// Whether the owner has released it.
    #[serde(default)]
    pub released: bool,
}

/// The swarm's totals, as one member answered them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Told {
    /// Whether they are exact.
    pub exact: bool,
    /// The sums over all servers.
    pub summary: Summary,
}

#[derive(Deserialize)]
struct Status {
    members: Members,
}

#[derive(Deserialize)]
struct Members {
    alive: u64,
}

/// Asks daemons by their address.
#[derive(Clone, Debug)]
pub struct Asker {
    client: reqwest::Client,
}

impl Asker {
    /// One that asks by means of such a client, through no proxy.
    pub fn new(client: reqwest::ClientBuilder) -> Result<Asker, AskError> {
        let failed = |why: reqwest::Error| AskError { url: "an HTTP client".to_owned(), why: why.to_string() };
        Ok(Asker { client: client.no_proxy().timeout(REQUEST_TIMEOUT).build().map_err(failed)? })
    }

    async fn read<T: DeserializeOwned>(&self, request: reqwest::RequestBuilder, url: String) -> Result<T, AskError> {
        let failed = |why: String| AskError { url: url.clone(), why };
        let answer = request.send().await.map_err(|why| failed(why.to_string()))?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|why| failed(why.to_string()))?;
        if !status.is_success() {
            let said: String = String::from_utf8_lossy(&body).chars().take(300).collect();
            return Err(failed(format!("{status}: {said}")));
        }
        serde_json::from_slice(&body).map_err(|why| failed(why.to_string()))
    }

    async fn get<T: DeserializeOwned>(&self, daemon: Ipv4Addr, path: &str) -> Result<T, AskError> {
        let url = format!("http://{daemon}:{API_PORT}{path}");
        self.read(self.client.get(&url), url).await
    }

    /// How many members a daemon knows to be alive, itself among them.
    pub async fn alive(&self, daemon: Ipv4Addr) -> Result<u64, AskError> {
        self.get::<Status>(daemon, "/api/status").await.map(|status| status.members.alive)
    }

    /// The owner of each subnet, as one daemon knows it.
    pub(crate) async fn ownership(&self, daemon: Ipv4Addr) -> Result<Vec<Owned>, AskError> {
        self.get(daemon, "/api/ownership?limit=10000").await
    }

    /// The totals, as one daemon answers them.
    pub async fn results(&self, daemon: Ipv4Addr) -> Result<Told, AskError> {
        self.get(daemon, "/api/results").await
    }

    /// Names URLs to crawl; how many were accepted.
    pub async fn seed(&self, daemon: Ipv4Addr, urls: &[String]) -> Result<u64, AskError> {
        let url = format!("http://{daemon}:{API_PORT}/api/seeds");
        let status: serde_json::Value = self.get(daemon, "/api/status").await?;
        let token = status["token_file"].as_str().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        let request = self.client.post(&url).header("x-nearcrawl-token", token.trim()).json(&serde_json::json!({ "urls": urls }));
        let said: serde_json::Value = self.read(request, url).await?;
        Ok(said["accepted"].as_u64().unwrap_or(0))
    }
}
