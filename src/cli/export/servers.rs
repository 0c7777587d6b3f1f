//! `export servers`: a row for each server.

use super::{
    column::{Column, flag, int, real, text, time, words},
    derived::{self, answers, crawl_rule, family},
};

/// The columns, and behind them the rest.
pub const COLUMNS: [Column; 71] = [
    text("access_point"),
    text("host").called("url_host_name"),
    text("country"),
    text("registry"),
    text("organisation"),
    text("address"),
    text("tree"),
    int("run"),
    text("status"),
    text("state"),
    text("software"),
    int("pages"),
    int("page_bytes"),
    int("requests"),
    int("bytes"),
    int("busy_ms"),
    int("known"),
    int("fetched"),
    int("unanswered"),
    int("waiting"),
    int("cut_by_depth"),
    int("refused_by_robots"),
    int("cut_by_script"),
    int("failed"),
    int("external_hosts"),
    int("external_urls"),
    int("external_domains"),
    int("deepest"),
    int("crawl_delay_ms"),
    time("first_visit_at"),
    time("last_visit_at"),
    real("inclusion_probability"),
    text("surveys"),
    text("labels"),
    text("address_family").made(family),
    real("rtt_ms").within("facts.rtt_ms"),
    real("first_byte_ms").within("facts.first_byte_ms"),
    text("vantage_country").within("facts.vantage.country"),
    int("vantage_asn").within("facts.vantage.asn"),
    text("http_version").within("facts.http_version"),
    words("alt_svc").within("facts.alt_svc"),
    text("tls_version").within("facts.tls_version"),
    text("certificate_issuer").within("facts.certificate.issuer"),
    time("certificate_not_before_at").within("facts.certificate.not_before_at"),
    time("certificate_not_after_at").within("facts.certificate.not_after_at"),
    int("hsts_ms").within("facts.hsts_ms"),
    flag("redirects_to_https").within("facts.redirects_to_https"),
    text("guard").within("facts.guard"),
    text("language").within("facts.language"),
    text("script").within("facts.script"),
    text("charset").within("facts.charset"),
    text("generator").within("facts.generator"),
    text("title").within("facts.title"),
    text("robots").within("facts.robots"),
    text("content_usage").within("facts.content_usage"),
    text("robots_content_usage").within("facts.robots_content_usage"),
    flag("tdm_reserved").within("facts.tdm_reserved"),
    int("evaluation_rules"),
    int("fetch_200").made(|row| answers(row, derived::is_success)),
    int("fetch_redirPerm").made(|row| answers(row, derived::is_moved)),
    int("fetch_redirTemp").made(|row| answers(row, derived::is_elsewhere)),
    int("fetch_notModified").made(|row| answers(row, |status| status == 304)),
    int("fetch_3xx").made(|row| answers(row, derived::is_other_3xx)),
    int("fetch_gone").made(|row| answers(row, derived::is_gone)),
    int("fetch_4xx").made(|row| answers(row, derived::is_other_4xx)),
    int("fetch_5xx").made(|row| answers(row, |status| status / 100 == 5)),
    int("fetch_other").made(|row| answers(row, |status| !(200..600).contains(&status))),
    text("crawl_rule").made(crawl_rule),
    int("yield_price_millionths").within("crawled_by.yield_price_millionths"),
    int("depth").within("crawled_by.depth"),
    int("max_pages_per_run").within("crawled_by.max_pages_per_run"),
];

#[cfg(test)]
mod tests {
    use super::{super::column::cells, *};
    use nearcrawl_model::{
        facts::{Certificate, Guard, HttpVersion, RobotsSummary, ServerFacts, TlsVersion, Vantage},
        time::WallTime,
    };
    use serde_json::{Map, Value, json};

    #[test]
    fn every_fact_has_a_column() {
        let word = |word: &str| Some(word.to_owned());
        let day = WallTime(1_790_000_000_000);
        let facts = ServerFacts {
            rtt_us: Some(8_250),
            first_byte_us: Some(9_500),
            vantage: Some(Vantage { country: word("KE"), asn: Some(64_512) }),
            http_version: Some(HttpVersion::Http11),
            alt_svc: vec!["h3".to_owned(), "h2".to_owned()],
            tls_version: Some(TlsVersion::Tls13),
            certificate: Some(Certificate { issuer: "R3".to_owned(), not_before_at: day, not_after_at: day }),
            hsts_ms: Some(300_000),
            redirects_to_https: true,
            guard: Some(Guard::AwsWaf),
            language: word("pt-BR"),
            script: word("Latn"),
            charset: word("UTF-8"),
            generator: word("WordPress"),
            title: word("Museum"),
            robots: Some(RobotsSummary::BarsSome),
            content_usage: word("search=y"),
            robots_content_usage: word("search=n"),
            tdm_reserved: Some(true),
        };
        let mut row: Map<String, Value> = [("facts".to_owned(), serde_json::to_value(facts).unwrap())].into_iter().collect();
        let found = cells(&COLUMNS, &mut row);
        assert!(row.is_empty(), "{row:?}");
        let there: Map<String, Value> =
            COLUMNS.iter().zip(found).filter(|(_, cell)| !cell.is_null()).map(|(column, cell)| (column.name.to_owned(), cell)).collect();
        let expected = json!({
            "rtt_ms": 8.25, "first_byte_ms": 9.5, "vantage_country": "KE", "vantage_asn": 64_512, "http_version": "1.1", "alt_svc": "h3; h2",
            "tls_version": "1.3", "certificate_issuer": "R3", "certificate_not_before_at": day, "certificate_not_after_at": day,
            "hsts_ms": 300_000, "redirects_to_https": true, "guard": "aws-waf", "language": "pt-BR", "script": "Latn", "charset": "UTF-8",
            "generator": "WordPress", "title": "Museum", "robots": "bars-some", "content_usage": "search=y", "robots_content_usage": "search=n",
            "tdm_reserved": true,
        });
        assert_eq!(Value::Object(there), expected);
    }

    #[test]
    fn every_answer_is_counted_in_one_of_common_crawl_s_columns() {
        let by_status = json!({"200": 1, "206": 2, "301": 4, "308": 8, "302": 16, "307": 32, "303": 64, "304": 128, "404": 256, "410": 512,
                               "403": 1_024, "503": 2_048, "999": 4_096, "odd": 8_192});
        let Value::Object(mut row) = json!({ "by_status": by_status, "address": "2001:db8::1" }) else { unreachable!() };
        let found = cells(&COLUMNS, &mut row);
        let cell = |name: &str| &found[COLUMNS.iter().position(|column| column.name == name).unwrap()];
        let expected = [
            ("fetch_200", 3),
            ("fetch_redirPerm", 12),
            ("fetch_redirTemp", 48),
            ("fetch_3xx", 64),
            ("fetch_notModified", 128),
            ("fetch_gone", 768),
            ("fetch_4xx", 1_024),
            ("fetch_5xx", 2_048),
            ("fetch_other", 4_096),
        ];
        expected.iter().for_each(|(name, count)| assert_eq!(cell(name), &json!(count), "{name}"));
        assert_eq!((cell("address_family"), &row["by_status"]["200"]), (&json!("ipv6"), &json!(1)));
        assert_eq!((family(&Map::new()), answers(&Map::new(), derived::is_gone)), (Value::Null, Value::Null));
    }
}
