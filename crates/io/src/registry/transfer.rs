//! One attempt at a download: requests what is missing, writes it down as it comes, and accepts it only when it is whole and right.

use super::{
    checksum,
    download::{Arrival, Download, DownloadError, DownloadLimits, DownloadStep, Trouble},
    notes::{Notes, with_ending},
};
use nearcrawl_model::view::counted;
use reqwest::{Client, Response, StatusCode, header};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// The longest file beside a file that is read for its sum, in bytes.
const MAX_SUM: usize = 4096;

/// The download of one file.
pub(super) struct Transfer<'a> {
    client: &'a Client,
    download: &'a Download,
    limits: &'a DownloadLimits,
    /// Where the good copy is, and the one that is arriving, and the notes of both.
    copy: PathBuf,
    part: PathBuf,
    copy_notes: PathBuf,
    part_notes: PathBuf,
}

/// The server's answer.
enum Answer {
    /// 304: the copy that is there is current.
    Unchanged,
    /// All is in the part now; so much of it was there before.
    Whole { resumed: u64 },
}

impl<'a> Transfer<'a> {
    pub fn new(client: &'a Client, download: &'a Download, directory: &Path, limits: &'a DownloadLimits) -> Transfer<'a> {
        let copy = directory.join(&download.name);
        let part = with_ending(&copy, ".part");
        let (copy_notes, part_notes) = (with_ending(&copy, ".notes"), with_ending(&part, ".notes"));
        Transfer { client, download, limits, copy, part, copy_notes, part_notes }
    }

    fn url(&self) -> &str {
        self.download.url.as_str()
    }

    fn broken(&self, why: impl Into<String>) -> Trouble {
        Trouble::Again(DownloadError::Broken { url: Box::new(self.download.url.clone()), why: why.into() }, Duration::ZERO)
    }

    fn disk(path: &Path) -> impl Fn(io::Error) -> Trouble + '_ {
        |why| Trouble::Final(DownloadError::Disk { path: path.to_owned(), kind: why.kind(), why: why.to_string() })
    }

    /// Deletes the part that has been downloaded.
    fn start_over(&self) -> Result<(), Trouble> {
        for path in [&self.part_notes, &self.part] {
            match fs::remove_file(path) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(Self::disk(path)(why)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes one attempt to download and check the file.
    pub async fn attempt(
        &mut self,
        watch: &mut (dyn FnMut(DownloadStep) + Send),
        check: &(dyn Fn(&Path) -> Result<(), String> + Sync),
    ) -> Result<Arrival, Trouble> {
        let resumed = match self.receive(watch).await? {
            Answer::Unchanged => return Ok(Arrival::Unchanged),
            Answer::Whole { resumed } => resumed,
        };
        watch(DownloadStep::Checking);
        let said = self.published_sum().await?;
        let found = File::open(&self.part).and_then(checksum::sum).map_err(Self::disk(&self.part))?;
        if let Some(said) = said.clone().filter(|said| *said != found) {
            // Perhaps a new version appeared meanwhile: then all of it has to come again.
            self.start_over()?;
            return Err(Trouble::Again(DownloadError::Checksum { url: Box::new(self.download.url.clone()), said, found }, Duration::ZERO));
        }
        if let Err(why) = check(&self.part) {
            self.start_over()?;
            return Err(Trouble::Final(DownloadError::Refused { url: Box::new(self.download.url.clone()), why }));
        }
        let bytes = fs::metadata(&self.part).map_err(Self::disk(&self.part))?.len();
        fs::rename(&self.part, &self.copy).map_err(Self::disk(&self.copy))?;
        // Should the process die between these two, the next visit only downloads once more.
        match fs::rename(&self.part_notes, &self.copy_notes) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(Self::disk(&self.copy_notes)(why)),
            _ => {}
        }
        Ok(Arrival::New { bytes, resumed, confirmed: said.is_some() })
    }

    /// Asks for what is missing and writes it down.
    async fn receive(&self, watch: &mut (dyn FnMut(DownloadStep) + Send)) -> Result<Answer, Trouble> {
        let there = fs::metadata(&self.part).map_or(0, |part| part.len());
        let notes = Notes::read(&self.part_notes, self.url()).filter(|notes| there > 0 && notes.validator().is_some());
        let mut request = self.client.get(self.download.url.clone()).header(header::ACCEPT_ENCODING, "identity");
        if let Some(validator) = notes.as_ref().and_then(Notes::validator) {
            request = request.header(header::RANGE, format!("bytes={there}-")).header(header::IF_RANGE, validator);
        } else {
            self.start_over()?;
            if let Some(notes) = Notes::read(&self.copy_notes, self.url()).filter(|_| self.copy.exists()) {
                if let Some(etag) = &notes.etag {
                    request = request.header(header::IF_NONE_MATCH, etag);
                }
                if let Some(date) = &notes.last_modified {
                    request = request.header(header::IF_MODIFIED_SINCE, date);
                }
            }
        }
        let response = timeout(self.limits.head, request.send()).await.map_err(|_| self.broken("no answer in time"))?;
        let response = response.map_err(|why| self.broken(whole_story(&why)))?;
        match (response.status(), &notes) {
            (StatusCode::NOT_MODIFIED, None) => Ok(Answer::Unchanged),
            (StatusCode::PARTIAL_CONTENT, Some(notes)) => {
                if continues(&response, there, notes) {
                    self.write(response, there, watch).await?;
                    return Ok(Answer::Whole { resumed: there });
                }
                self.start_over()?;
                Err(self.broken("the server sent another part than was asked for"))
            }
            (StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => {
                // The last attempt may have ended right after the last byte.
                let total = text(&response, header::CONTENT_RANGE).and_then(|range| range.rsplit_once('/')?.1.parse::<u64>().ok());
                if total == Some(there) {
                    return Ok(Answer::Whole { resumed: there });
                }
                self.start_over()?;
                Err(self.broken("the file changed on the server"))
            }
            (StatusCode::OK, _) => {
                self.start_over()?;
                let etag = text(&response, header::ETAG).map(str::to_owned);
                let last_modified = text(&response, header::LAST_MODIFIED).map(str::to_owned);
                let notes = Notes { url: self.url().to_owned(), etag, last_modified };
                notes.write(&self.part_notes).map_err(Self::disk(&self.part_notes))?;
                self.write(response, 0, watch).await?;
                Ok(Answer::Whole { resumed: 0 })
            }
            (status, _) => Err(self.refused(status, &response)),
        }
    }

    /// What to do after an answer that is no file.
    fn refused(&self, status: StatusCode, response: &Response) -> Trouble {
        let failure = DownloadError::Status { url: Box::new(self.download.url.clone()), status };
        let later = status.is_server_error() || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
        if !later {
            return Trouble::Final(failure);
        }
        let asked =
            text(response, header::RETRY_AFTER).and_then(|seconds| seconds.parse().ok()).map_or(Duration::ZERO, Duration::from_secs);
        Trouble::Again(failure, asked)
    }

    /// Writes the body at the end of the part.
    async fn write(&self, mut response: Response, there: u64, watch: &mut (dyn FnMut(DownloadStep) + Send)) -> Result<(), Trouble> {
        let total = response.content_length().map(|rest| rest.saturating_add(there));
        let too_large = || Trouble::Final(DownloadError::TooLarge(self.download.url.clone(), self.limits.largest));
        if total.is_some_and(|total| total > self.limits.largest) {
            return Err(too_large());
        }
        let disk = Self::disk(&self.part);
        let mut file = OpenOptions::new().append(true).create(true).open(&self.part).map_err(&disk)?;
        let mut received = there;
        let (mut until, mut in_window) = (Instant::now() + self.limits.window, 0);
        loop {
            watch(DownloadStep::Received(received, total));
            let next = match tokio::time::timeout_at(until, response.chunk()).await {
                Ok(next) => next.map_err(|why| self.broken(whole_story(&why)))?,
                // Nothing came: the window is judged below.
                Err(_) => Some(bytes::Bytes::new()),
            };
            let Some(bytes) = next else { break };
            received += bytes.len() as u64;
            in_window += bytes.len() as u64;
            if received > self.limits.largest {
                drop(file);
                self.start_over()?;
                return Err(too_large());
            }
            file.write_all(&bytes).map_err(&disk)?;
            if Instant::now() >= until {
                if in_window < self.limits.least {
                    return Err(self.broken(format!("only {} came in {:?}", counted(in_window, "byte"), self.limits.window)));
                }
                (until, in_window) = (Instant::now() + self.limits.window, 0);
            }
        }
        if total.is_some_and(|total| received < total) {
            return Err(self.broken("the line broke"));
        }
        file.sync_all().map_err(&disk)
    }

    /// The sum that is published beside the file; none if there is none.
    async fn published_sum(&self) -> Result<Option<String>, Trouble> {
        let mut url = self.download.url.clone();
        url.set_path(&format!("{}.md5", url.path()));
        let ask = async {
            let mut response = self.client.get(url).send().await?;
            let status = response.status();
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await?.filter(|_| body.len() < MAX_SUM) {
                body.extend_from_slice(&chunk);
            }
            Ok::<_, reqwest::Error>((status, body))
        };
        let answer = timeout(self.limits.head, ask).await.map_err(|_| self.broken("no answer in time for the MD5 sum"))?;
        let (status, body) = answer.map_err(|why| self.broken(whole_story(&why)))?;
        match status {
            StatusCode::OK => Ok(checksum::said(&String::from_utf8_lossy(&body))),
            // Otherwise a server that is out of order could talk us out of checking.
            status if status.is_server_error() => Err(self.broken(format!("the server says {status} for the MD5 sum"))),
            _ => Ok(None),
        }
    }
}

/// Whether a part begins where the last one ended, and is of the same version.
fn continues(response: &Response, there: u64, notes: &Notes) -> bool {
    let range = text(response, header::CONTENT_RANGE).and_then(|range| range.strip_prefix("bytes "));
    let start = range.and_then(|range| range.split_once('-')).and_then(|(start, _)| start.parse::<u64>().ok());
    let etag = text(response, header::ETAG);
    start == Some(there) && (etag.is_none() || etag == notes.etag.as_deref())
}

fn text(response: &Response, name: header::HeaderName) -> Option<&str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}

/// An error with all its causes: the first alone only says that something failed.
fn whole_story(error: &reqwest::Error) -> String {
    let mut story = Vec::new();
    let mut next: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(cause) = next {
        story.push(cause.to_string());
        next = cause.source();
    }
    if story.is_empty() { error.to_string() } else { story.join(": ") }
}
