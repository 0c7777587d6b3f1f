//! HTTP interface of a running node on loopback: JSON, metrics, an OpenAPI description and one page.

mod admission;
mod context;
mod description;
mod error;
#[cfg(test)]
pub(crate) mod fake;
mod guard;
mod history;
mod kept_sums;
mod listener;
mod logs;
mod opt_outs;
mod page;
mod routes;
mod settings;
mod sums;
mod surveys;
#[cfg(test)]
mod tests;
mod token;
mod verify;

use crate::io::tasks::{self, TaskKind};
use crate::node::{metrics::Metrics, query::QueryHandle};
pub use admission::{AdmissionBody, TakenInView};
use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{get, post},
};
use context::Context;
pub use context::Local;
pub use error::ErrorView;
pub use history::History;
use listener::Limited;
pub use opt_outs::OptOutBody;
pub use routes::{MAX_ROWS, MAX_SEEDS, SeedsBody};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
pub use sums::{KeptSumsView, SumsBody};
pub use surveys::StateBody;
pub use token::{TOKEN_HEADER, Token, read_token};
use tokio::{net::TcpListener, sync::watch};

/// The largest body that is accepted, in bytes.
pub const MAX_BODY: usize = 1 << 20;

/// How long the API is left alone after serving it failed.
const SERVE_AGAIN: Duration = Duration::from_millis(500);

/// Connections that may be open at once; the next one waits.
pub const MAX_CONNECTIONS: usize = 128;

/// Why the API cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// Another process listens on the address.
    #[error("{listen} is in use by another program: stop it, or set another address as `listen` in section [api]")]
    InUse {
        /// The configured address.
        listen: SocketAddr,
    },
    /// The address cannot be listened on, for another reason.
    #[error("cannot listen on {listen}: {why}; `listen` in section [api] must be an address of this machine")]
    CannotListen {
        /// The configured address.
        listen: SocketAddr,
        /// The error that the system reports.
        why: io::Error,
    },
    /// It stopped working.
    #[error("the API stopped: {0}")]
    Stopped(io::Error),
}

/// A socket that is bound, but not yet served.
#[derive(Debug)]
pub struct Api {
    listener: TcpListener,
    address: SocketAddr,
    local: Local,
}

impl Api {
    /// Binds the socket: from now on connections queue up.
    pub async fn bind(listen: SocketAddr) -> Result<Api, ApiError> {
        let failed = |why: io::Error| match why.kind() {
            io::ErrorKind::AddrInUse => ApiError::InUse { listen },
            _ => ApiError::CannotListen { listen, why },
        };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Api { listener, address, local: Local::default() })
    }

    /// The same with what is on this machine.
    pub fn with(self, local: Local) -> Api {
        Api { local, ..self }
    }

    /// Where it listens: with the port that was given if 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is done; requests under way are answered first.
    pub async fn serve(
        self,
        queries: QueryHandle,
        metrics: Arc<Metrics>,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ApiError> {
        let router = router(Context { queries, metrics, local: self.local }, self.address);
        let listener = Limited::new(self.listener, MAX_CONNECTIONS);
        axum::serve(listener, router).with_graceful_shutdown(shutdown).await.map_err(ApiError::Stopped)
    }
}

impl Api {
    /// Serves until `stop` is true or its sender is gone; if serving fails or panics, it begins again after a moment.
    pub async fn keep_serving(self, queries: QueryHandle, metrics: Arc<Metrics>, stop: watch::Receiver<bool>) {
        let (listen, local) = (self.address, self.local.clone());
        let watching = tokio::spawn(tasks::run(TaskKind::History, local.history.clone().watch(queries.clone(), stop.clone())));
        let mut bound = Some(self);
        loop {
            if let Some(api) = bound.take() {
                let mut stop = stop.clone();
                let stopped = async move { drop(stop.wait_for(|stop| *stop).await) };
                match tasks::run(TaskKind::Api, api.serve(queries.clone(), Arc::clone(&metrics), stopped)).await {
                    Ok(Ok(())) => break,
                    Ok(Err(why)) => tracing::error!("{why}; the API is started again"),
                    Err(why) => tracing::error!("{why}; the API is started again"),
                }
            }
            tokio::time::sleep(SERVE_AGAIN).await;
            match Api::bind(listen).await {
                Ok(api) => bound = Some(api.with(local.clone())),
                Err(why) => tracing::error!("{why}"),
            }
        }
        if let Ok(Err(why)) = watching.await {
            tracing::error!("{why}; the page's charts have a gap");
        }
    }
}

/// Binds and serves in one go.
pub async fn serve(
    listen: SocketAddr,
    queries: QueryHandle,
    metrics: Arc<Metrics>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ApiError> {
    Api::bind(listen).await?.serve(queries, metrics, shutdown).await
}

fn router(context: Context, address: SocketAddr) -> Router {
    let guard = (address.ip(), context.local.token.clone());
    Router::new()
        .route("/api/status", get(routes::status))
        .route("/api/members", get(routes::members))
        .route("/api/ownership", get(routes::ownership))
        .route("/api/results", get(routes::results))
        .route("/api/cross-table", get(routes::cross_table))
        .route("/api/distinct", get(routes::distinct))
        .route("/api/why", get(routes::why))
        .route("/api/verify", get(verify::verify))
        .route("/api/events", get(routes::events))
        .route("/api/servers", get(routes::servers))
        .route("/api/servers/owners", get(routes::server_owners))
        .route("/api/servers/rows", get(routes::server_rows))
        .route("/api/servers/history", get(routes::server_history))
        .route("/api/export/rows", get(routes::export_rows))
        .route("/api/log/events", get(logs::events))
        .route("/api/log/requests", get(logs::requests))
        .route("/api/history", get(logs::history))
        .route("/api/settings", get(settings::settings))
        .route("/api/seeds", post(routes::seeds))
        .route("/api/sums", get(sums::sums).post(sums::keep).layer(DefaultBodyLimit::max(sums::MAX_BODY)))
        .route("/api/surveys", get(surveys::surveys).post(surveys::make).layer(DefaultBodyLimit::max(surveys::MAX_BODY)))
        .route("/api/survey", get(surveys::survey))
        .route("/api/survey/probes", get(surveys::probes))
        .route("/api/survey/state", post(surveys::change))
        .route("/api/pause", post(routes::pause))
        .route("/api/resume", post(routes::resume))
        .route("/api/admission", get(admission::admission).post(admission::take_in))
        .route("/api/opt-outs", get(opt_outs::opt_outs).post(opt_outs::add))
        .route("/api/opt-outs/withdraw", post(opt_outs::withdraw))
        .route("/api/leave", post(routes::leave))
        .route("/api/declare-lost", post(routes::declare_lost))
        .route("/api/measure", post(routes::measure))
        .route("/api/move", post(routes::hand_over))
        .route("/api/pin", post(routes::pin))
        .route("/openapi.json", get(description::openapi))
        .route("/metrics", get(routes::metrics))
        .route("/", get(page::index))
        .route("/bot", get(page::bot))
        .route("/page/{file}", get(page::file))
        .fallback(error::no_such_path)
        .method_not_allowed_fallback(error::no_such_method)
        .with_state(context)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn(error::answer_panics))
        .layer(middleware::from_fn_with_state(guard, guard::check))
}
