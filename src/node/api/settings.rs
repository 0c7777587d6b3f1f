//! Route that shows the configuration.

use super::{context::Context, error::ErrorView};
use crate::node::config::SettingView;
use axum::{Json, extract::State};

/// The keys of the configuration with their values and meanings, in the order of the packaged example.
#[utoipa::path(get, path = "/api/settings", responses((status = 200, body = Vec<SettingView>), (status = 500, body = ErrorView)))]
pub async fn settings(State(context): State<Context>) -> Json<Vec<SettingView>> {
    Json(context.local.settings.all())
}
