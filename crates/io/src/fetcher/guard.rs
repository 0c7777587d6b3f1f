//! Recognises guards in front of a server that answer instead of it.
//!
//! Their challenges ask for a human, and we are none.
//!
//! 401, 403, 429 and 451 say "refused" by themselves. Here are the answers that look like a page or like a broken server and are
//! neither: known by what their makers put into the head, or into a small page that is nothing but the challenge.

use hyper::HeaderMap;
use memchr::memmem;
use nearcrawl_model::facts::Guard;

/// Name of a header, what its value contains ("" for anything), and the statuses under which that is a challenge.
type Mark = (&'static str, &'static str, &'static [u16]);

/// Marks in the head. Some guards leave their header on every answer that passes: those count only under the statuses of refusals.
const IN_HEAD: &[Mark] = &[
    // Cloudflare: "Detect a Challenge Page response".
    ("cf-mitigated", "challenge", &[]),
    // Cloudflare's older "I'm under attack" page.
    ("cf-chl-bypass", "", &[503]),
    // AWS WAF: a challenge is a 202, a captcha a 405.
    ("x-amzn-waf-action", "", &[]),
    // Vercel's attack challenge mode.
    ("x-vercel-mitigated", "challenge", &[]),
    ("x-datadome", "", &[405, 503]),
    ("x-sucuri-block", "", &[]),
    ("x-sucuri-id", "", &[406, 503]),
    ("server", "ddos-guard", &[503]),
];

/// Marks by which the guard in front of a server is known, whether it lets a request through or not: name of a header, what its value
/// contains, and whose it is.
const VENDORS: &[(&str, &str, Guard)] = &[
    ("cf-ray", "", Guard::Cloudflare),
    ("server", "cloudflare", Guard::Cloudflare),
    ("x-amzn-waf-action", "", Guard::AwsWaf),
    ("x-vercel-mitigated", "", Guard::Vercel),
    ("x-datadome", "", Guard::DataDome),
    ("x-sucuri-id", "", Guard::Sucuri),
    ("x-sucuri-block", "", Guard::Sucuri),
    ("server", "ddos-guard", Guard::DdosGuard),
    ("x-iinfo", "", Guard::Imperva),
    ("x-cdn", "imperva", Guard::Imperva),
    ("x-cdn", "incapsula", Guard::Imperva),
    ("server", "akamaighost", Guard::Akamai),
];

/// Texts that stand in challenges and nowhere else, and whose they are.
const IN_PAGE: &[(&str, Guard)] = &[
    // Cloudflare. (Ordinary pages behind it may load scripts from /cdn-cgi/challenge-platform/, but have no such options.)
    ("window._cf_chl_opt", Guard::Cloudflare),
    // Imperva: a frame that loads the challenge.
    ("/_Incapsula_Resource?", Guard::Imperva),
    // Akamai Bot Manager.
    ("sec-if-cpt-container", Guard::Akamai),
    // Anubis: proof of work.
    ("id=\"anubis_challenge\"", Guard::Anubis),
    // Sucuri's script that sets a cookie and comes again.
    ("sucuri_cloudproxy_js", Guard::Sucuri),
];

/// Challenges are small and lead nowhere. Pages that are larger or have more links are not searched.
const MAX_BYTES: usize = 64 << 10;
const MAX_LINKS: usize = 8;

/// Whether the head of an answer is a challenge's.
pub fn challenges(status: u16, headers: &HeaderMap) -> bool {
    IN_HEAD.iter().any(|(name, part, statuses)| (statuses.is_empty() || statuses.contains(&status)) && says(headers, name, part))
}

/// Whose guard is in front of the server, as far as the head of an answer shows.
pub fn vendor(headers: &HeaderMap) -> Option<Guard> {
    VENDORS.iter().find(|(name, part, _)| says(headers, name, part)).map(|(.., vendor)| *vendor)
}

fn says(headers: &HeaderMap, name: &str, part: &str) -> bool {
    headers.get(name).is_some_and(|value| value.to_str().is_ok_and(|value| value.to_ascii_lowercase().contains(part)))
}

/// Whose challenge a page with so many links is, if it is one.
pub fn challenger(page: &[u8], links: usize) -> Option<Guard> {
    let mut marks = IN_PAGE.iter().filter(|_| links <= MAX_LINKS && page.len() <= MAX_BYTES);
    marks.find(|(text, _)| memmem::find(page, text.as_bytes()).is_some()).map(|(_, vendor)| *vendor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16, name: &'static str, value: &'static str) -> bool {
        challenges(status, &[(name.parse().unwrap(), value.parse().unwrap())].into_iter().collect())
    }

    #[test]
    fn challenges_are_told_from_what_only_passed_a_guard() {
        for (status, name, value) in [
            (503, "cf-mitigated", "challenge"),
            (200, "CF-Mitigated", "Challenge"),
            (202, "x-amzn-waf-action", "challenge"),
            (405, "x-amzn-waf-action", "captcha"),
            (503, "server", "DDoS-Guard"),
            (503, "x-sucuri-id", "11005"),
        ] {
            assert!(head(status, name, value), "{status} {name}: {value}");
        }
        for (status, name, value) in
            [(200, "server", "ddos-guard"), (503, "server", "cloudflare"), (200, "x-sucuri-id", "11005"), (200, "x-datadome", "protected")]
        {
            assert!(!head(status, name, value), "{status} {name}: {value}");
        }
    }

    #[test]
    fn a_page_about_challenges_is_a_page() {
        let challenge = b"<title>Just a moment...</title><script>window._cf_chl_opt = {}</script>";
        assert_eq!(challenger(challenge, 1), Some(Guard::Cloudflare));
        assert_eq!(challenger(challenge, 30), None, "a page with links leads on");
        assert_eq!(challenger(&[challenge.as_slice(), &[b' '; MAX_BYTES]].concat(), 1), None);
        assert_eq!(challenger(b"<script src=/cdn-cgi/challenge-platform/scripts/jsd/main.js></script>", 0), None);
    }
}
