//! Rows as they come become rows as they are written.

use super::{column::Row, history, links::Links, output::Output, pages, progress::Progress, trace::Trace, walk::Sink};
use crate::cli::{
    error::{CommandError, Exit},
    survey::SurveyFilter,
};
use nearcrawl_model::access_point::AccessPoint;
use nearcrawl_model::view::counted;

/// What comes.
pub enum Kind {
    Servers,
    History,
    Pages,
    Links(Box<Links>),
}

/// Where it goes.
pub enum To {
    Rows(Output),
    Trace(Box<Trace>),
}

/// Writes what comes.
pub struct RowSink {
    kind: Kind,
    to: To,
    progress: Progress,
    /// Which servers are meant, and whether their surveys are written as text.
    filter: (SurveyFilter, bool),
    /// Rows of the present host.
    of_host: u64,
}

impl RowSink {
    pub fn new(kind: Kind, to: To, progress: Progress, filter: (SurveyFilter, bool)) -> RowSink {
        RowSink { kind, to, progress, filter, of_host: 0 }
    }

    /// Ends the files; says what is missing, if anything is.
    pub fn finish(self, missing: &[String]) -> Result<String, CommandError> {
        let mut left_out = Vec::new();
        if let Kind::Links(links) = &self.kind {
            if links.unnamed > 0 {
                left_out.push(format!("{} to pages that are on record without their names", counted(links.unnamed, "link")));
            }
            if links.not_counted > 0 {
                left_out.push(format!("{} of hosts that link to more than a million others", counted(links.not_counted, "link")));
            }
        }
        match self.to {
            To::Rows(output) => output.finish()?,
            To::Trace(trace) => {
                left_out.clear();
                if trace.left_out > 0 {
                    left_out.push(format!(
                        "{} out of scope, or to pages that are on record without their names",
                        counted(trace.left_out, "link")
                    ));
                }
                trace.finish().map_err(|why| failed(&why))?;
            }
        }
        self.filter.0.finish()?;
        self.progress.finish(missing, &left_out)
    }
}

fn failed(why: &std::io::Error) -> CommandError {
    CommandError::new(Exit::Storage, format!("the link graph cannot be written: {why}"))
}

impl Sink for RowSink {
    fn row(&mut self, owner: AccessPoint, row: Row) -> Result<bool, CommandError> {
        let (filter, as_text) = &mut self.filter;
        let Some(row) = filter.row(row, *as_text) else { return Ok(true) };
        match (&mut self.kind, &mut self.to) {
            (Kind::Servers, To::Rows(output)) => output.add(row).map(|()| self.of_host += 1)?,
            (Kind::History, To::Rows(output)) => {
                let Some(runs) = history::runs_of(row) else { return Ok(false) };
                self.of_host += runs.len() as u64;
                runs.into_iter().try_for_each(|run| output.add(run))?;
            }
            (Kind::Pages, To::Rows(output)) => {
                if !pages::is_visit(&row) {
                    return Ok(false);
                }
                self.of_host += 1;
                output.add(row)?;
            }
            (Kind::Links(links), to) => {
                let head = Links::head(owner, &row);
                let count = &mut self.of_host;
                let taken = links.take(owner, row, |url, link| match to {
                    To::Rows(output) => {
                        *count += 1;
                        output.add(Links::page_row(&head, url, &link))
                    }
                    To::Trace(trace) => {
                        *count += u64::from(trace.add(url, &link).map_err(|why| failed(&why))?);
                        Ok(())
                    }
                })?;
                if !taken {
                    return Ok(false);
                }
            }
            (_, To::Trace(_)) => return Ok(false),
        }
        self.progress.draw();
        Ok(true)
    }

    fn host_ends(&mut self) -> Result<(), CommandError> {
        if let (Kind::Links(links), To::Rows(output)) = (&mut self.kind, &mut self.to) {
            for row in links.end() {
                self.of_host += 1;
                output.add(row)?;
            }
        }
        if let To::Rows(output) = &mut self.to {
            output.host_ends()?;
        }
        self.progress.wrote(std::mem::take(&mut self.of_host));
        Ok(())
    }

    fn host_fails(&mut self) -> Result<bool, CommandError> {
        if let Kind::Links(links) = &mut self.kind {
            links.forget();
        }
        let taken_back = match &mut self.to {
            To::Rows(output) => output.take_back()?,
            To::Trace(_) => self.of_host == 0,
        };
        let written = std::mem::take(&mut self.of_host);
        if !taken_back {
            self.progress.wrote(written);
        }
        Ok(taken_back)
    }
}
