//! Judges the servers' logs: requests that nothing explains, and pages that were not requested.

use super::reference::{Asked, Expected, Reference};
use crate::web::server::RequestSeen;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

/// What a daemon had asked for within this time before its end need not have been recorded: copies go out every two seconds, and are waited
/// for. An answer that comes while it is being stopped is not read any more.
const NOT_YET_RECORDED: Duration = Duration::from_secs(10);

/// The end of a process, by the clock of the servers' log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) who: Ipv4Addr,
    pub(crate) when: Duration,
}

/// What the logs say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    /// Requests that neither a run nor the end of a process explains.
    pub(crate) extra: Vec<String>,
    /// Pages that are within the depth and were not asked for.
    pub(crate) missing: Vec<String>,
    /// Requests that were made again because who had made them ended before they were recorded.
    pub(crate) again: u64,
    /// Probes.
    pub(crate) probes: u64,
}

/// Judges all requests up to the end of this run.
pub(crate) fn judge(requests: &[RequestSeen], reference: &Reference, runs: u32, ends: &[End]) -> Verdict {
    let mut allowed: BTreeMap<&Asked, u64> = BTreeMap::new();
    for (asked, times) in reference.runs.iter().take(runs as usize).flat_map(|run| &run.asked) {
        *allowed.entry(asked).or_default() += times;
    }
    let mut verdict = Verdict::default();
    let mut seen: BTreeMap<Asked, Vec<&RequestSeen>> = BTreeMap::new();
    for request in requests {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", _) => seen.entry((request.host.clone(), request.path.clone())).or_default().push(request),
            ("HEAD", "/robots.txt") => verdict.probes += 1,
            (method, path) => verdict.extra.push(format!("{method} {}{path} by {}", request.host, request.peer)),
        }
    }
    for (asked, times) in &allowed {
        let count = seen.get(*asked).map_or(0, Vec::len) as u64;
        // How often a robots.txt that fails is tried is at most so often.
        if asked.1 != "/robots.txt" && count < *times {
            verdict.missing.push(format!("{}{}: {count} of {times}", asked.0, asked.1));
        }
    }
    for ((host, path), requests) in &seen {
        let times = allowed.get(&(host.clone(), path.clone())).copied().unwrap_or(0);
        let times = times * askers(path, reference, host, requests) + second_tries(path, times, requests);
        let lost = requests.iter().filter(|request| is_lost(request, ends)).count() as u64;
        let more = (requests.len() as u64).saturating_sub(times);
        verdict.again += more.min(lost);
        for _ in lost..more {
            let who: Vec<String> = requests.iter().map(|seen| format!("{} at {:.1} s", seen.peer, seen.start.as_secs_f64())).collect();
            let what = if times == 0 { "not to be asked for".to_owned() } else { format!("{times} expected") };
            verdict.extra.push(format!("{host}{path}: {what}; by {}", who.join(", ")));
        }
    }
    verdict
}

/// How many times the usual number is allowed: each owner has its own patience with a robots.txt that fails.
fn askers(path: &str, reference: &Reference, host: &str, requests: &[&RequestSeen]) -> u64 {
    let fails = |server: &Expected| server.refused_by_robots_unavailable > 0;
    if path != "/robots.txt" || !reference.runs.iter().any(|run| run.servers.get(host).is_some_and(fails)) {
        return 1;
    }
    requests.iter().map(|request| request.peer).collect::<BTreeSet<_>>().len() as u64
}

/// How many requests more are allowed for a page that was not answered: each owner asks for it once more in each run.
fn second_tries(path: &str, times: u64, requests: &[&RequestSeen]) -> u64 {
    let unanswered = requests.iter().filter(|request| path != "/robots.txt" && request.status.is_none());
    let (count, peers) = (unanswered.clone().count() as u64, unanswered.map(|request| request.peer).collect::<BTreeSet<_>>());
    count.min(times * peers.len() as u64)
}

/// Whether who sent it ended so soon after that it need not be recorded.
fn is_lost(request: &RequestSeen, ends: &[End]) -> bool {
    ends.iter().any(|end| {
        let answered = request.end.unwrap_or(end.when);
        IpAddr::V4(end.who) == request.peer && request.start <= end.when && answered + NOT_YET_RECORDED >= end.when
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::census::reference::Run;

    fn request(peer: u8, path: &str, at: u64) -> RequestSeen {
        RequestSeen {
            start: Duration::from_secs(at),
            end: Some(Duration::from_secs(at)),
            server: [127, 0, 0, 9].into(),
            peer: [127, 0, 0, peer].into(),
            method: "GET".to_owned(),
            host: "a.test".to_owned(),
            path: path.to_owned(),
            status: Some(200),
        }
    }

    #[test]
    fn a_request_is_explained_by_a_run_or_by_the_end_of_who_sent_it() {
        let asked = ["/", "/p1.html"].map(|path| (("a.test".to_owned(), path.to_owned()), 1));
        let run = Run { servers: BTreeMap::new(), asked: asked.into() };
        let reference = Reference { runs: vec![run.clone(), run] };
        let ends = [End { who: [127, 0, 0, 2].into(), when: Duration::from_secs(20) }];
        let judged = |requests: &[RequestSeen], runs| {
            let Verdict { extra, missing, again, .. } = judge(requests, &reference, runs, &ends);
            (extra.len(), missing.len(), again)
        };
        let once = [request(1, "/", 1), request(2, "/p1.html", 15)];
        assert_eq!(judged(&once, 1), (0, 0, 0));
        assert_eq!(judged(&once, 2), (0, 2, 0));
        let lost = [once.to_vec(), vec![request(1, "/p1.html", 40)]].concat();
        assert_eq!(judged(&lost, 1), (0, 0, 1));
        let twice = [once.to_vec(), vec![request(1, "/", 40), request(1, "/private/x.html", 41)]].concat();
        assert_eq!(judged(&twice, 1), (2, 0, 0));
        let unanswered = |at| RequestSeen { status: None, ..request(1, "/", at) };
        let silent = [unanswered(1), unanswered(20), request(1, "/p1.html", 2)];
        assert_eq!(judged(&silent, 1), (0, 0, 0), "a page that is not answered is asked for once more");
        assert_eq!(judged(&[silent.to_vec(), vec![unanswered(40)]].concat(), 1), (1, 0, 0), "and not again");
        let head = RequestSeen { method: "HEAD".to_owned(), ..request(1, "/", 1) };
        assert_eq!(judged(&[once.to_vec(), vec![head]].concat(), 1), (1, 0, 0));
    }
}
