//! Checks of every report against the reference.
//!
//! A further report is one more row of [`CHECKS`].

mod asking;
mod exports;
mod lists;
mod pages;
mod studies;
mod surveys;
mod totals;
mod words;

pub(crate) use asking::Asking;

use super::compare::Compared;
use crate::demo::daemons::DaemonError;
use futures::future::BoxFuture;

type Check = for<'a> fn(Asking<'a>) -> BoxFuture<'a, Result<Compared, DaemonError>>;

/// All reports, by name.
pub(crate) const CHECKS: [(&str, Check); 27] = [
    ("results", |asking| Box::pin(totals::by_every_member(asking))),
    ("results --member", |asking| Box::pin(totals::by_a_stranger(asking))),
    ("results --csv", |asking| Box::pin(totals::as_csv(asking))),
    ("results (text)", |asking| Box::pin(words::results(asking))),
    ("results --by A,B", |asking| Box::pin(totals::crossed(asking))),
    ("results --distinct", |asking| Box::pin(totals::distinct(asking))),
    ("results --run", |asking| Box::pin(totals::of_each_run(asking))),
    ("results --survey", |asking| Box::pin(surveys::results(asking))),
    ("survey show", |asking| Box::pin(surveys::show(asking))),
    ("servers", |asking| Box::pin(lists::servers(asking))),
    ("export servers --survey", |asking| Box::pin(surveys::export(asking))),
    ("report reachability --survey", |asking| Box::pin(surveys::report(asking))),
    ("export servers", |asking| Box::pin(exports::servers(asking))),
    ("export servers --format csv", |asking| Box::pin(exports::servers_as_csv(asking))),
    ("failing pages", |asking| Box::pin(exports::failing_pages(asking))),
    ("export history", |asking| Box::pin(exports::history(asking))),
    ("export history --format csv", |asking| Box::pin(exports::history_as_csv(asking))),
    ("export pages", |asking| Box::pin(pages::of_pages(asking))),
    ("export links", |asking| Box::pin(pages::of_links(asking))),
    ("export --format parquet", |asking| Box::pin(pages::in_parquet(asking))),
    ("report offshore", |asking| Box::pin(studies::offshore(asking))),
    ("report nearness", |asking| Box::pin(studies::nearness(asking))),
    ("report reachability", |asking| Box::pin(studies::reachability(asking))),
    ("report accessibility", |asking| Box::pin(studies::accessibility(asking))),
    ("report load", |asking| Box::pin(studies::load(asking))),
    ("trend", |asking| Box::pin(exports::trends(asking))),
    ("why", |asking| Box::pin(words::why(asking))),
];

/// Reports that need two runs.
pub(crate) fn is_due(name: &str, run: u32) -> bool {
    name != "trend" || run > 1
}

pub(crate) use exports::during_a_revisit;
