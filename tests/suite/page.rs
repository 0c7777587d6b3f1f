//! Test that the page says what is true, and changes only what it may.
//!
//! It is driven in a headless Chromium, with real daemons behind it.

use crate::support::{Ground, Habits, SmallWeb, Swarm, browser::Browser, nearcrawl};
use nearcrawl_lab::demo::daemons::API_PORT;
use nearcrawl_model::{
    summary::Dimension,
    view::{ResultsView, State, StatusView},
};
use std::{sync::Arc, time::Duration};

const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// What an open page may cost its daemon of a core while nothing happens, beside what it uses without one: dependencies and the daemon are little
/// optimised here.
const MAX_LOAD: f64 = 0.005;

/// What it may take all in all, in bytes.
const MAX_PAGE: usize = 400_000;

async fn status(swarm: &Swarm) -> StatusView {
    serde_json::from_str(&swarm.cli(0, &["status", "--json"]).await).unwrap()
}

/// Sets a field of a form and sends the form.
fn send(form: &str, field: &str, value: &str) -> String {
    format!("(() => {{ document.getElementById('{field}').value = {value:?}; document.getElementById('{form}').requestSubmit(); }})()")
}

fn text(id: &str) -> String {
    // While another page is opened there is nothing.
    format!("(document.getElementById('{id}')?.innerText ?? '')")
}

/// Seconds of a core that a process has used.
fn used(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

/// The part of a core that a process uses, for some seconds.
async fn load(process: u32) -> f64 {
    let (seconds, before) = (15.0, used(process));
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    (used(process) - before) / seconds
}

/// The map has every server in its country, this daemon and the other one; each thing on it is told by pointing at it and by the keyboard alone.
async fn has_a_map(swarm: &Swarm, web: &SmallWeb, browser: &mut Browser) {
    let totals: ResultsView = serde_json::from_str(&swarm.cli(0, &["results", "--json", "--by", "country"]).await).unwrap();
    let by = &totals.results.summary.by[&Dimension::Country];
    assert!(by.len() > 1 && by.values().map(|counts| counts.servers).sum::<u64>() == web.hosts.len() as u64, "{by:?}");
    for (country, counts) in by {
        let label = format!("document.getElementById('map-country-{country}')?.getAttribute('aria-label')");
        browser.until(&format!("/: {} servers?,/.test({label})", counts.servers)).await;
    }
    let [me, other] = [0, 1].map(|daemon| format!("document.getElementById('map-member-{}')", swarm.daemons[daemon].access_point));
    browser.until(&format!("{me}?.getAttribute('aria-label').startsWith('this daemon in ')")).await;
    browser.until(&format!("/^member .* alive, [\\d.]+ ms away$/.test({other}?.getAttribute('aria-label'))")).await;
    browser
        .until("document.querySelectorAll('#map-legend li').length > 0 && document.querySelectorAll('#map-land path').length > 150")
        .await;

    browser.value("document.getElementById('map-list').focus()").await;
    let first = browser.value(&text("map-tells")).await;
    assert!(first.as_str().unwrap().contains(&format!("1 of {} countries", by.len())), "{first}");
    browser.press("End", 35).await;
    browser.until(&format!("{other}.ariaSelected === 'true' && {}.includes('ms away')", text("map-tells"))).await;
    browser.value(&format!("{me}.dispatchEvent(new PointerEvent('pointerover', {{ bubbles: true }}))")).await;
    browser.until(&format!("{}.startsWith('This daemon in ')", text("map-tells"))).await;

    // Nothing is drawn again while nothing changes.
    browser.value("window.country = document.querySelector('#map-countries path')").await;
    browser.value("look()").await;
    assert_eq!(browser.value("window.country === document.querySelector('#map-countries path')").await, true);
}

/// The last hour is drawn, with units, and is there again when the page is opened anew.
async fn has_charts(page: &str, browser: &mut Browser) {
    for _ in 0..2 {
        for what in
            ["Pages a minute, this daemon, in the last hour: the latest ", "Size of pages, whole swarm, in the last hour: the latest "]
        {
            let told = format!(
                "[...document.querySelectorAll('#charts svg')].some((chart) => chart.getAttribute('aria-label').startsWith({what:?}))"
            );
            // The page itself asks every half a minute.
            browser.value("void (window.asking ??= setInterval(readHistory, 300))").await;
            browser.until(&told).await;
        }
        browser.until("document.querySelectorAll('#charts .series').length === 12 && /\\d [kM]?B/.test(document.getElementById('charts').textContent)").await;
        browser.open(page).await;
        browser.until("document.querySelectorAll('#members tr').length === 2").await;
    }
}

/// All that the page loads.
async fn is_small(browser: &mut Browser) {
    browser.until("document.querySelectorAll('#map-land path').length > 150").await;
    let sizes = "performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/page/')).map((entry) => [entry.name, entry.decodedBodySize])";
    let loaded = browser.value(sizes).await;
    let sum: u64 = loaded.as_array().unwrap().iter().map(|entry| entry[1].as_u64().unwrap()).sum();
    assert!(sum > 100_000 && sum as usize <= MAX_PAGE, "{loaded}");
    let outside = "performance.getEntriesByType('resource').filter((entry) => !entry.name.startsWith(location.origin)).length";
    assert_eq!(browser.value(outside).await, 0);
}

/// The page fits, in light and dark, on a desk and on a telephone. With NEARCRAWL_PICTURES its pictures are written there.
async fn fits(browser: &mut Browser) {
    for (name, width, scheme) in
        [("light", 1280, "light"), ("dark", 1280, "dark"), ("phone-light", 375, "light"), ("phone-dark", 375, "dark")]
    {
        browser.looks(width, scheme).await;
        let wide = browser.value("document.documentElement.scrollWidth").await.as_u64().unwrap();
        assert!(wide <= u64::from(width), "{name}: {wide} wide");
        // What a member tells of its budget is seen at each width, with its name.
        let cells =
            "[...document.querySelectorAll('#members [data-label^=budget]')].map((cell) => [cell.innerText, cell.getBoundingClientRect()])";
        let told =
            format!("{cells}.map(([text, at]) => at.width > 30 && at.height > 10 && at.right <= {width} ? text.trim() : 'hidden').sort()");
        browser.until(&format!("JSON.stringify({told}) === '[\"not told\",\"within limits\"]'")).await;
        let label = "getComputedStyle(document.querySelector('#members [data-label^=budget]'), '::before').content";
        assert_eq!(browser.value(label).await.as_str().unwrap().contains("budget, as it tells"), width < 600, "{name}");
        if let Some(directory) = std::env::var_os("NEARCRAWL_PICTURES") {
            let picture = browser.picture().await;
            std::fs::write(std::path::Path::new(&directory).join(format!("{name}.png.base64")), picture).unwrap();
        }
    }
}

/// Our own rules find nothing in the page as it stands.
async fn is_accessible(swarm: &Swarm, browser: &mut Browser) {
    let html = browser.value("'<!doctype html>' + document.documentElement.outerHTML").await;
    let file = swarm.common.write("page.html", html.as_str().unwrap()).unwrap().display().to_string();
    let ended = nearcrawl(&["evaluate", "--json", &file]).await;
    let found: serde_json::Value = serde_json::from_str(&ended.said).unwrap();
    assert_eq!(found[0]["failures"], serde_json::json!({}), "{}", ended.said);
}

/// Where only a part of the hosts of an address was visited the page says so, and what the figures come to.
async fn shows_estimates(browser: &mut Browser) {
    assert_eq!(browser.value("document.getElementById('estimated').hidden").await, true, "all is counted");
    let shown = "(async () => {
        const results = await ask('/api/results?by=country'), 
            estimate = (estimated, margin, not_estimated) => ({ estimated, margin, low: estimated - margin, high: estimated + margin, not_estimated });
        Object.assign(results.summary.estimates, { addresses: 1, hosts: 100000, sampled: 2345, up: estimate(71204, 1310, 0),
            pages: estimate(290000, 9000, 0), page_bytes: estimate(5e9, 0, 100000) });
        showResults({ ...results, sample_text: 'estimated: so many; 2345 of 100000 hosts' });
        const words = ['estimated', 'sub-servers', 'sub-pages', 'sub-bytes'].map((id) => document.getElementById(id).innerText);
        return [document.getElementById('estimated').hidden, ...words];
    })()";
    let shown = browser.value(shown).await;
    assert_eq!((&shown[0], &shown[1]), (&false.into(), &"Estimated: so many; 2345 of 100000 hosts".into()));
    for (place, wanted) in [(2, "estimated 71,204 ± 1,310"), (3, "estimated 290,000 ± 9,000"), (4, "estimated 5.0 GB or more")] {
        assert!(shown[place].as_str().unwrap().contains(wanted), "{shown}");
    }
    browser.until("document.getElementById('estimated').hidden").await;
}

/// Nothing is changed without the token, and with it what the page says.
async fn changes(swarm: &mut Swarm, browser: &mut Browser) {
    browser.value(&send("pause-form", "pause-for", "")).await;
    browser.until(&format!("{}.includes('token')", text("pause-answer"))).await;
    assert!(!status(swarm).await.allowance.paused, "that was without the token");
    browser.value(&send("token-form", "token", &"0".repeat(64))).await;
    browser.until(&format!("{}.includes('not the daemon')", text("token-answer"))).await;
    browser.value(&send("token-form", "token", &swarm.token(0))).await;
    browser.until(&format!("{}.includes('are allowed')", text("token-answer"))).await;
    assert_eq!(browser.value("document.getElementById('token').value").await, "", "it does not stay in the field");

    browser.value(&send("pause-form", "pause-for", "3600000")).await;
    browser.until(&format!("{}.startsWith('Paused until')", text("pause-answer"))).await;
    browser.until("document.title.startsWith('paused')").await;
    assert_eq!(status(swarm).await.state, State::Paused);
    browser.until(&format!("{} === 'Resume'", text("pause-button"))).await;
    browser.value("document.getElementById('pause-form').requestSubmit()").await;
    browser.until(&format!("{} === 'Pause'", text("pause-button"))).await;
    assert!(!status(swarm).await.allowance.paused);

    browser.value("document.querySelector('[data-survey=unis][data-state=paused]').click()").await;
    browser.until(&format!("{}.includes('unis is paused')", text("survey-answer"))).await;
    browser.until("document.querySelector('[data-survey=unis]').innerText === 'Resume'").await;
    browser.value("document.getElementById('opt-out-proof').value = 'order'").await;
    browser.value(&send("opt-out-form", "opt-out-subject", "no.more.test")).await;
    browser.until(&format!("{}.includes('no.more.test')", text("opt-outs"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_what_is_and_changes_what_it_may() {
    let Some(mut browser) = Browser::start().await else { return println!("this machine has no Chromium: the page is not looked at") };
    let ground = Ground::claim();
    let web = Arc::new(SmallWeb::new(&ground, 4, 6, 0));
    let points = [web.places.access_points[0], web.places.access_points[1]];
    let habits = Habits { min_delay_ms: 50, delay_factor: 0, crawl: "deny_hosts = [\"denied.test\"]\n".to_owned(), ..Habits::default() };
    let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &points, habits).await;
    // A name is what its operator wrote, and shown as such.
    let config = swarm.common.directory.join(format!("{}.toml", points[1]));
    let told = std::fs::read_to_string(&config).unwrap();
    let told = told.replacen("[swarm]\n", "[swarm]\nname = \"<b>Museum</b> & Co\"\ntell_allowance = \"state\"\n", 1);
    std::fs::write(&config, told).unwrap();
    swarm.start([0]).await;
    let page = format!("http://{}:{API_PORT}/", points[0]);
    browser.open(&page).await;
    browser.until("document.getElementById('alone')?.innerText.includes('only member of its swarm')").await;
    assert_eq!(browser.value(&text("exact")).await, "no totals yet", "nothing is exact that has no numbers");
    swarm.start([1]).await;
    let list = swarm.common.write("unis.txt", &web.seeds().join("\n")).unwrap().display().to_string();
    swarm.cli(0, &["survey", "create", "unis", "--list", &list, "--licence", "CC0-1.0"]).await;
    swarm.seed(0, &web.seeds()).await;
    let pages = web.expected(&web.seeds()).pages() as u64;
    swarm.agree(pages, LONG_ENOUGH).await;

    browser.open(&page).await;
    browser.until(&format!("{} === '{pages}'", text("fig-pages"))).await;
    browser.until("document.querySelectorAll('#members tr').length === 2").await;
    for daemon in &swarm.daemons {
        browser.until(&format!("document.querySelector('#members [data-copies=\"{}\"]')", daemon.access_point)).await;
    }
    browser.until("/\\d ms/.test(document.getElementById('members').innerText)").await;
    browser.until(&format!("/<b>Museum<\\/b> & Co[^]*within limits/.test({})", text("members"))).await;
    swarm.cli(1, &["pause"]).await;
    browser.until(&format!("/<b>Museum<\\/b> & Co[^]*paused/.test({})", text("members"))).await;
    swarm.cli(1, &["resume"]).await;
    let listed = swarm.cli(0, &["members"]).await;
    assert!(listed.contains("<b>Museum</b> & Co") && listed.contains("limits"), "{listed}");
    browser.until(&format!("{}.includes('listening for other members')", text("log-rows"))).await;
    browser.until("document.querySelector('#surveys a[download]')").await;
    browser.until(&format!("{}.includes('key')", text("settings-note"))).await;
    let denied = "[...document.querySelectorAll('#settings dt.set + dd')].some((dd) => dd.innerText.includes('denied.test'))";
    browser.value("(() => { const filter = document.getElementById('settings-filter'); filter.value = 'deny_hosts'; filter.dispatchEvent(new Event('input')); })()").await;
    browser.until(denied).await;

    // By the keyboard alone: the other log, and only some of its lines.
    browser.value("document.getElementById('tab-events').focus()").await;
    browser.press("ArrowRight", 39).await;
    browser.until("document.activeElement.id === 'tab-requests' && document.querySelectorAll('#log-rows tr').length > 8").await;
    let host = web.names()[0].0.to_string();
    browser.value(&format!("(() => {{ const filter = document.getElementById('log-filter'); filter.value = {host:?}; filter.dispatchEvent(new Event('input')); }})()")).await;
    let all_of_it = format!("[...document.querySelectorAll('#log-rows tr')].every((row) => row.innerText.includes({host:?}))");
    browser.until(&format!("document.querySelectorAll('#log-rows tr').length > 0 && {all_of_it}")).await;
    let shown = browser.value("document.body.innerText").await;
    assert!(!shown.as_str().unwrap().contains("00Z"), "no moment is shown as programs write it: {shown}");

    has_a_map(&swarm, &web, &mut browser).await;
    shows_estimates(&mut browser).await;
    has_charts(&page, &mut browser).await;
    is_small(&mut browser).await;
    fits(&mut browser).await;
    is_accessible(&swarm, &mut browser).await;
    changes(&mut swarm, &mut browser).await;
    is_accessible(&swarm, &mut browser).await;

    let process = swarm.daemons[0].process().unwrap();
    // The pauses between its questions grow while nothing happens.
    tokio::time::sleep(Duration::from_secs(25)).await;
    let with = load(process).await;
    browser.open("about:blank").await;
    let without = load(process).await;
    println!("the daemon uses {:.2} % of a core with the page open, {:.2} % without", with * 100.0, without * 100.0);
    assert!(with - without <= MAX_LOAD, "{with} {without}");
    browser.open(&page).await;
    browser.until("document.querySelectorAll('#members tr').length === 2").await;

    swarm.daemons[0].kill().await;
    browser.until("document.title === 'no answer · nearcrawl'").await;
    assert_eq!(browser.value(&text("state")).await, "no answer");
    assert_eq!(browser.value(&text("exact")).await, "not current");
    is_accessible(&swarm, &mut browser).await;
    assert!(swarm.stop().await);
}
