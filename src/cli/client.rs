//! The client of the daemon's HTTP API, with an error that says when no daemon answers.

use super::{
    error::{CommandError, Exit},
    run::ConfigArgs,
};
use crate::{
    io::client::client,
    node::api::{ErrorView, TOKEN_HEADER, read_token},
};
use clap::Args;
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde::{Serialize, de::DeserializeOwned};
use std::{path::Path, time::Duration};

/// The options of commands that ask a daemon.
#[derive(Args, Clone, Debug)]
pub struct ApiArgs {
    /// The daemon's API [default: as configured, else http://127.0.0.1:4880]
    #[arg(long, value_name = "URL", env = "NEARCRAWL_API")]
    pub api: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// How long an answer may take: longer than the daemon takes to answer that it is too busy.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The longest answer that is read, in bytes.
const MAX_ANSWER: usize = 64 << 20;

/// What helps where no daemon is.
const NAME_IT: &str = "give the address of the daemon's API with --api URL or NEARCRAWL_API";

/// The daemon's API.
#[derive(Clone, Debug)]
pub struct ApiClient {
    client: Client,
    base: Url,
}

impl ApiClient {
    /// A client for the address that was given, configured, or is the default.
    pub fn new(args: &ApiArgs) -> Result<ApiClient, CommandError> {
        let base = args.api.clone().map_or_else(|| configured(&ConfigArgs::of_environment()), Ok)?;
        let wrong =
            |why: &str| CommandError::new(Exit::Usage, format!("--api {base}: {why}")).hint("write it like --api http://127.0.0.1:4880");
        let url = Url::parse(&base).map_err(|_| wrong("this is no URL"))?;
        if url.scheme() != "http" {
            return Err(wrong("the API is plain HTTP on this machine"));
        }
        // No proxy: the API answers this machine only.
        let client = client().no_proxy().timeout(REQUEST_TIMEOUT).connect_timeout(Duration::from_secs(3)).build();
        let client = client.map_err(|why| CommandError::new(Exit::Internal, format!("no HTTP client: {why}")))?;
        Ok(ApiClient { client, base: url })
    }

    /// Asks for something; `path` begins with `/`, and the parameters are escaped here.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, parameters: &[(&str, &str)]) -> Result<T, CommandError> {
        let mut url = self.url(path);
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        self.read(self.client.request(Method::GET, url).send().await).await
    }

    /// Sends a POST request with a JSON body, and decodes the JSON answer.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, CommandError> {
        let mut request = self.client.request(Method::POST, self.url(path)).json(body);
        // Where the daemon says that its token is; one that has none wants none.
        let status: serde_json::Value = self.get("/api/status", &[]).await?;
        let file = status["token_file"].as_str().map(Path::new);
        let token = file.map(read_token).transpose();
        if let Ok(Some(token)) = &token {
            request = request.header(TOKEN_HEADER, token);
        }
        let answer = request.send().await;
        match (token, file) {
            (Err(why), Some(file)) if answer.as_ref().is_ok_and(|answer| answer.status() == StatusCode::UNAUTHORIZED) => {
                let what = format!("only who may read the daemon's token may change something: {}: {why}", file.display());
                Err(CommandError::new(Exit::NoPermission, what)
                    .hint("run the command as the daemon's user or as root, like `sudo nearcrawl …`"))
            }
            _ => self.read(answer).await,
        }
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(path);
        url.set_query(None);
        url
    }

    async fn read<T: DeserializeOwned>(&self, answer: reqwest::Result<Response>) -> Result<T, CommandError> {
        let mut answer = answer.map_err(|why| self.unreachable(&why))?;
        let status = answer.status();
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|why| self.unreachable(&why))? {
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(self.no_daemon("sends a longer answer than any daemon"));
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|_| self.no_daemon("is not a nearcrawl daemon of this version"));
        }
        let Ok(view) = serde_json::from_slice::<ErrorView>(&body) else {
            return Err(self.no_daemon(&format!("answers {status} and is not a nearcrawl daemon")));
        };
        let exit = match status {
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE => Exit::Data,
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Exit::NoPermission,
            StatusCode::SERVICE_UNAVAILABLE => Exit::Unavailable,
            _ => Exit::Internal,
        };
        Err(CommandError::new(exit, view.error).hint(view.hint))
    }

    fn unreachable(&self, why: &reqwest::Error) -> CommandError {
        if why.is_timeout() {
            return CommandError::new(Exit::Unavailable, format!("the daemon at {} does not answer in time", self.base))
                .hint("its log says what it is doing: journalctl -u nearcrawl");
        }
        CommandError::new(Exit::Unavailable, format!("no daemon answers at {}", self.base))
            .hint("start one with `nearcrawl run` or `systemctl start nearcrawl`, or give its address with --api URL or NEARCRAWL_API")
    }

    fn no_daemon(&self, why: &str) -> CommandError {
        CommandError::new(Exit::Unavailable, format!("the server at {} {why}", self.base)).hint(NAME_IT)
    }
}

/// The API's address in the configuration that is named, which has to have one: another daemon is not asked in its place. If none is named,
/// that of the service's, if this user may read it, else the default.
fn configured(args: &ConfigArgs) -> Result<String, CommandError> {
    let listen = match (args.load(), &args.config) {
        (Err(why), Some(_)) => return Err(why),
        (Ok(config), Some(file)) if config.api.listen.is_none() => {
            let why = format!("the API is switched off in {} (api.listen)", file.display());
            return Err(CommandError::new(Exit::Unavailable, why).hint(NAME_IT));
        }
        (config, _) => config.ok().and_then(|config| config.api.listen),
    };
    Ok(listen.map_or_else(|| "http://127.0.0.1:4880".to_owned(), |listen| format!("http://{listen}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_daemon_of_the_configuration_that_is_named_is_asked_and_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("node.toml");
        let named = |text: &str| {
            fs::write(&file, text).unwrap();
            configured(&ConfigArgs { config: Some(file.clone()) })
        };
        assert_eq!(named("[api]\nlisten = \"127.41.1.1:5004\"\n").unwrap(), "http://127.41.1.1:5004");
        assert_eq!(named("").unwrap(), "http://127.0.0.1:4880");
        let off = named("[api]\nlisten = \"\"\n").unwrap_err();
        assert!(off.exit == Exit::Unavailable && off.message.contains("node.toml (api.listen)"), "{off}");
        assert_eq!(named("[api]\nlisten = 5\n").unwrap_err().exit, Exit::Config);
        let missing = configured(&ConfigArgs { config: Some(directory.path().join("none.toml")) }).unwrap_err();
        assert!(missing.message.contains("none.toml"), "{missing}");
    }
}
