//! Looks for the proof of an opt-out.
//!
//! It is a TXT record in the DNS, or a file at the web server: one request, or two where the first port is closed.

use crate::node::{
    requests::request_notes::{Note, RequestNotes},
    setup::WebClients,
};
use nearcrawl_model::{
    fetch::{FetchError, FetchOrder, FetchOutcome, FetchPurpose, FetchReason, FetchRule},
    opt_out::{DOMAIN_WORD, OptOutKey, OptOutProof, OptOutSubject, PROOF_PATH, PROOF_WORD, ProofLook, TXT_LABEL},
    revisit::Validators,
    url::{Host, PageUrl},
};
use std::net::IpAddr;

/// Where a file is looked for: at the first two of these that the configuration lets be asked.
const PLACES: [(&str, u16); 4] = [("https", 443), ("http", 80), ("http", 8080), ("https", 8443)];

/// Ports of one host that are asked.
const MAX_ASKED: usize = 2;

/// Characters of what was found instead that are repeated.
const MAX_QUOTED: usize = 80;

/// Looks for a proof; for a file at this address, or where its host is looked up to be.
pub async fn look(web: &WebClients, log: Option<&RequestNotes>, key: &OptOutKey, at: Option<IpAddr>) -> ProofLook {
    match (key.proof, &key.subject) {
        (OptOutProof::Txt, OptOutSubject::Host(name)) => look_for_record(web, log, name, false).await,
        (OptOutProof::Txt, OptOutSubject::Domain(name)) => look_for_record(web, log, name, true).await,
        (OptOutProof::File, OptOutSubject::Host(name)) => look_for_file(web, log, name, at).await,
        _ => ProofLook::Unclear("there is no such proof".to_owned()),
    }
}

/// Whether a TXT record says that nothing is to be asked of its host, or of all hosts of its domain.
fn says_no(text: &str, domain: bool) -> bool {
    let has = |wanted: &str| {
        text.split(|letter: char| letter.is_whitespace() || letter == ';' || letter == ',').any(|word| word.eq_ignore_ascii_case(wanted))
    };
    has(PROOF_WORD) && (!domain || has(DOMAIN_WORD))
}

fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(MAX_QUOTED).collect::<String>())
}

async fn look_for_record(web: &WebClients, log: Option<&RequestNotes>, host: &Host, domain: bool) -> ProofLook {
    let name = format!("{TXT_LABEL}.{host}");
    let note = Note::proof(log, &name);
    let texts = web.resolver.texts(&name).await;
    note.looked();
    match texts {
        Ok(texts) if texts.iter().any(|text| says_no(text, domain)) => ProofLook::Stands,
        Ok(texts) => match texts.first() {
            Some(text) => ProofLook::Gone(format!("the TXT record at {name} says {}", quoted(text))),
            None => ProofLook::Gone(format!("there is no TXT record at {name}")),
        },
        Err(why) => ProofLook::Unclear(format!("{name}: {why}")),
    }
}

/// What one port has to say.
enum Found {
    Proof,
    Nothing(String),
    /// Nobody answers there, or says only to ask the other port.
    Nobody(String),
    Unclear(String),
}

/// The address of a host; else why there is none.
pub async fn locate(web: &WebClients, log: Option<&RequestNotes>, host: &Host) -> Result<IpAddr, String> {
    let note = Note::lookup(log, host);
    let answer = web.resolver.resolve(host, None).await;
    note.resolved(&answer);
    answer.map(|located| located.address).map_err(|why| format!("{host}: {why}"))
}

async fn look_for_file(web: &WebClients, log: Option<&RequestNotes>, host: &Host, at: Option<IpAddr>) -> ProofLook {
    let located = match at {
        Some(address) => Ok(address),
        None => locate(web, log, host).await,
    };
    let address = match located {
        Ok(address) => address,
        Err(why) => return ProofLook::Unclear(why),
    };
    let mut found = Vec::new();
    for (scheme, port) in PLACES {
        let Ok(url) = PageUrl::parse(&format!("{scheme}://{host}:{port}{PROOF_PATH}")) else { continue };
        if let Some(one) = ask(web, log, url, address).await {
            found.push(one);
        }
        if found.len() == MAX_ASKED || matches!(found.last(), Some(Found::Proof)) {
            break;
        }
    }
    judge(&found)
}

/// The proof at one port is enough, whatever the other one says; it is gone if no port that answers has it, or leaves that open.
fn judge(found: &[Found]) -> ProofLook {
    if found.iter().any(|one| matches!(one, Found::Proof)) {
        return ProofLook::Stands;
    }
    let mut gone = None;
    let mut unclear = None;
    for one in found {
        match one {
            Found::Proof => {}
            Found::Nothing(text) => gone = gone.or(Some(text)),
            Found::Unclear(text) => return ProofLook::Unclear(text.clone()),
            Found::Nobody(text) => unclear = unclear.or(Some(text)),
        }
    }
    match (gone, unclear) {
        (Some(text), _) => ProofLook::Gone(text.clone()),
        (None, Some(text)) => ProofLook::Unclear(text.clone()),
        (None, None) => ProofLook::Unclear("the configuration lets no port be asked (crawl.ports)".to_owned()),
    }
}

/// Asks one port, and once more where that leads to, if it is the same path of the same domain at the same address: a server may lead all
/// of `example.org` to `www.example.org`. None if the port may not be asked.
async fn ask(web: &WebClients, log: Option<&RequestNotes>, url: PageUrl, address: IpAddr) -> Option<Found> {
    let outcome = fetch(web, log, &url, address).await;
    match &outcome {
        FetchOutcome::Redirect { to, .. } if is_same_file(&url, &to.url) && locate(web, log, &to.url.host()).await == Ok(address) => {
            found(&to.url, fetch(web, log, &to.url, address).await)
        }
        _ => found(&url, outcome),
    }
}

/// Whether a redirect leads to the same path at another host of the same domain, as its owner registered it.
fn is_same_file(from: &PageUrl, to: &PageUrl) -> bool {
    let (host, other) = (from.host(), to.host());
    host != other
        && from.path_and_query() == to.path_and_query()
        && host.registrable().is_some_and(|domain| Some(domain) == other.registrable())
}

/// One request, for the file that is a proof.
async fn fetch(web: &WebClients, log: Option<&RequestNotes>, url: &PageUrl, address: IpAddr) -> FetchOutcome {
    let order = FetchOrder {
        url: url.clone(),
        address,
        purpose: FetchPurpose::Robots,
        validators: Validators::default(),
        front: false,
        evaluate: false,
        reason: FetchReason { rule: FetchRule::OptOut, ..FetchReason::default() },
    };
    // A page that is on its way from there could take long, and is of a server that may want no requests: it is asked for again if it does.
    web.fetcher.close(address).await;
    let note = Note::fetch(log, &order);
    let report = web.fetcher.fetch(order).await;
    note.fetched(&report);
    report.outcome
}

/// What an answer says; none if the port may not be asked.
fn found(url: &PageUrl, outcome: FetchOutcome) -> Option<Found> {
    Some(match outcome {
        FetchOutcome::Failed(FetchError::ForbiddenAddress) => return None,
        FetchOutcome::Robots { status: 200..=299, body } => {
            let text = String::from_utf8_lossy(&body[..body.len().min(1_024)]).into_owned();
            let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            if line.trim_start_matches('\u{feff}').eq_ignore_ascii_case(PROOF_WORD) {
                Found::Proof
            } else {
                Found::Nothing(format!("{url} begins with {}", quoted(line)))
            }
        }
        FetchOutcome::Robots { status: status @ (404 | 410), .. } | FetchOutcome::Status(status @ (404 | 410)) => {
            Found::Nothing(format!("{url} answers with {status}"))
        }
        FetchOutcome::Robots { status, .. } | FetchOutcome::Status(status) => Found::Unclear(format!("{url} answers with {status}")),
        FetchOutcome::Redirect { to, .. } if to.url.host() == url.host() && to.url.is_secure() != url.is_secure() => {
            Found::Nobody(format!("{url} leads to {}", to.url))
        }
        FetchOutcome::Redirect { to, .. } => Found::Unclear(format!(
            "{url} leads to {}, and no redirect is followed to another server: have {} answer {PROOF_PATH} without one, or publish the TXT record \
             {TXT_LABEL}.{} that says {PROOF_WORD:?}",
            to.url,
            url.host(),
            url.host()
        )),
        // Ours is the fault: the server may well answer.
        FetchOutcome::Failed(FetchError::Cancelled) => Found::Unclear(format!(
            "the look at {url} was called off, because the daemon stops, or its bytes for now (allowance) ran out just then"
        )),
        FetchOutcome::Failed(why @ FetchError::Crashed) => Found::Unclear(format!("{url}: {why}")),
        FetchOutcome::Failed(why) => Found::Nobody(format!("{url}: {why}")),
        FetchOutcome::Page { .. } | FetchOutcome::NotHtml { .. } | FetchOutcome::NotModified { .. } => {
            Found::Unclear(format!("{url} answers with no text file"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{config::Config, setup};
    use hickory_resolver::proto::rr::RecordType;
    use nearcrawl_model::fingerprint::FingerprintKey;
    use nearcrawl_test_servers::{
        dns::{Dns, Reply, a},
        web::{Site, Step},
    };

    /// What is found at good.test, whose server leads everything to the same path of this host; `www.good.test` has the proof.
    async fn redirected_to(other: &'static str) -> Found {
        let site = Site::start(move |asked| {
            let port = asked
                .head
                .split_once("Host: ")
                .or(asked.head.split_once("host: "))
                .and_then(|(_, rest)| rest.lines().next())
                .unwrap_or_default();
            let (host, port) = port.split_once(':').unwrap_or((port, "80"));
            let answer = if host == "www.good.test" {
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\nno-crawl".to_owned()
            } else {
                format!("HTTP/1.1 301 Moved\r\nLocation: http://{other}:{port}{}\r\nContent-Length: 0\r\n\r\n", asked.path())
            };
            vec![Step::Send(answer.into_bytes().into())]
        })
        .await;
        let dns = Dns::start(|name, kind| match (name, kind) {
            ("www.good.test." | "www.evil.test.", RecordType::A) => Reply::Records(vec![a(name, 60, "127.0.0.1")]),
            ("far.good.test.", RecordType::A) => Reply::Records(vec![a(name, 60, "127.0.0.2")]),
            _ => Reply::Records(Vec::new()),
        })
        .await;
        let mut config = Config { contact: Some("nobody@lab.test".to_owned()), ..Config::default() };
        (config.crawl.ports, config.crawl.allow_ranges) = (vec![site.address.port()], vec!["127.0.0.0/8".parse().unwrap()]);
        config.dns.servers = vec![dns.address];
        let web = setup::web_clients(&config, FingerprintKey([7; 16])).unwrap();
        let url = PageUrl::parse(&format!("http://good.test:{}{PROOF_PATH}", site.address.port())).unwrap();
        ask(&web, None, url, site.address.ip()).await.expect("the port may be asked")
    }

    #[tokio::test]
    async fn a_server_that_leads_everything_to_its_other_name_is_asked_there_and_of_another_server_it_is_said_what_helps() {
        assert!(matches!(redirected_to("www.good.test").await, Found::Proof));
        for elsewhere in ["far.good.test", "www.evil.test"] {
            let Found::Unclear(text) = redirected_to(elsewhere).await else { panic!("{elsewhere}") };
            assert!(text.contains("without one") && text.contains("the TXT record _nearcrawl.good.test that says \"no-crawl\""), "{text}");
        }
    }

    #[test]
    fn a_record_speaks_for_its_host_and_with_a_further_word_for_its_domain() {
        assert!(says_no("no-crawl", false) && says_no("v=1; NO-CRAWL; token", false) && !says_no("crawl", false));
        assert!(!says_no("no-crawling", false) && !says_no("no-crawl", true) && says_no("no-crawl domain", true));
    }

    #[test]
    fn a_file_is_gone_only_if_a_port_that_answers_says_so() {
        let nothing = || Found::Nothing("404".to_owned());
        let nobody = || Found::Nobody("refused".to_owned());
        assert_eq!(judge(&[nothing(), Found::Proof]), ProofLook::Stands);
        assert_eq!(judge(&[Found::Unclear("503".to_owned()), Found::Proof]), ProofLook::Stands, "one port is enough");
        assert_eq!(judge(&[nobody(), nothing()]), ProofLook::Gone("404".to_owned()));
        assert_eq!(judge(&[Found::Unclear("503".to_owned()), nothing()]), ProofLook::Unclear("503".to_owned()));
        assert!(matches!(judge(&[nobody(), nobody()]), ProofLook::Unclear(_)) && matches!(judge(&[]), ProofLook::Unclear(_)));
    }
}
