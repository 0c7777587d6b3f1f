//! Turns rows as they come into rows as they are written.

use super::{column::Row, history, links::Links, origin, output::Output, pages, progress::Progress, trace::Trace};
use crate::cli::{
    error::{CommandError, Exit},
    survey::SurveyFilter,
    walk::{Hosts, Sink},
};
use nearcrawl_model::access_point::AccessPoint;
use nearcrawl_model::{url::Host, view::counted};

/// What comes.
pub enum Kind {
    Servers,
    History,
    Pages,
    Links(Box<Links>),
}

impl Kind {
    /// What there is a row of, as it is written down beside a file.
    pub fn word(&self) -> &'static str {
        match self {
            Kind::Servers => origin::SERVERS,
            Kind::History => origin::HISTORY,
            Kind::Pages => origin::PAGES,
            Kind::Links(links) if links.is_by_page() => origin::PAGE_LINKS,
            Kind::Links(_) => origin::HOST_LINKS,
        }
    }
}

/// Where it goes.
pub enum To {
    Rows(Box<Output>),
    Trace(Box<Trace>),
}

/// Which rows are meant.
pub enum Wanted {
    All,
    /// Rows of the servers that pass. With `as_text`, their surveys are written as text.
    Servers {
        filter: SurveyFilter,
        as_text: bool,
    },
    /// Rows of these hosts.
    Hosts(Hosts),
}

impl Wanted {
    fn row(&mut self, row: Row) -> Option<Row> {
        match self {
            Wanted::All => Some(row),
            Wanted::Servers { filter, as_text } => filter.row(row, *as_text),
            Wanted::Hosts(hosts) => {
                let is_wanted = host_of(&row).is_some_and(|host| hosts.contains(&host));
                is_wanted.then_some(row)
            }
        }
    }
}

fn host_of(row: &Row) -> Option<Host> {
    row.get("host")?.as_str()?.parse().ok()
}

/// Takes in which hosts belong to a survey.
pub struct Belonging<'a> {
    pub filter: &'a mut SurveyFilter,
    pub hosts: Hosts,
}

impl Sink for Belonging<'_> {
    fn row(&mut self, _: AccessPoint, row: Row) -> Result<bool, CommandError> {
        let Some(host) = host_of(&row) else { return Ok(false) };
        if self.filter.row(row, false).is_some() {
            self.hosts.insert(&host);
        }
        Ok(true)
    }

    fn host_ends(&mut self) -> Result<(), CommandError> {
        Ok(())
    }

    fn host_fails(&mut self) -> Result<bool, CommandError> {
        Ok(true)
    }
}

/// Writes what comes.
pub struct RowSink {
    kind: Kind,
    to: To,
    progress: Progress,
    wanted: Wanted,
    /// Rows of the present host.
    of_host: u64,
}

impl RowSink {
    pub fn new(kind: Kind, to: To, progress: Progress, wanted: Wanted) -> RowSink {
        RowSink { kind, to, progress, wanted, of_host: 0 }
    }

    /// Ends the files; says what is missing, if anything is.
    ///
    /// # Errors
    ///
    /// Rows are missing; or they are those of several surveys of one name: then what was written to a file is taken back.
    pub fn finish(self, missing: &[String]) -> Result<String, CommandError> {
        if let Wanted::Servers { filter, .. } = &self.wanted
            && let Err(several) = filter.finish()
        {
            if let To::Rows(output) = self.to {
                output.discard()?;
            }
            return Err(several);
        }
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
            To::Rows(output) => output.finish(missing.is_empty())?,
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
        self.progress.finish(missing, &left_out)
    }
}

fn failed(why: &std::io::Error) -> CommandError {
    CommandError::new(Exit::Storage, format!("the link graph cannot be written: {why}"))
}

impl Sink for RowSink {
    fn row(&mut self, owner: AccessPoint, row: Row) -> Result<bool, CommandError> {
        let Some(row) = self.wanted.row(row) else { return Ok(true) };
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
            output.host_ends();
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
