//! Does the page say what is true, and change only what it may? Driven in a headless Chromium, with real daemons behind it.

use crate::support::{Ground, Habits, SmallWeb, Swarm, browser::Browser, nearcrawl};
use nearcrawl_lab::demo::daemons::API_PORT;
use nearcrawl_model::view::{State, StatusView};
use std::{sync::Arc, time::Duration};

const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// What an open page may cost its daemon of a core: dependencies and the daemon are little optimised here, and half a percent in a release.
const MAX_LOAD: f64 = 0.03;

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

/// The page fits, in light and dark, on a desk and on a telephone. With NEARCRAWL_PICTURES its pictures are written there.
async fn fits(browser: &mut Browser) {
    for (name, width, scheme) in
        [("light", 1280, "light"), ("dark", 1280, "dark"), ("phone-light", 375, "light"), ("phone-dark", 375, "dark")]
    {
        browser.looks(width, scheme).await;
        let wide = browser.value("document.documentElement.scrollWidth").await.as_u64().unwrap();
        assert!(wide <= u64::from(width), "{name}: {wide} wide");
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

    fits(&mut browser).await;
    is_accessible(&swarm, &mut browser).await;
    changes(&mut swarm, &mut browser).await;
    is_accessible(&swarm, &mut browser).await;

    let (process, seconds) = (swarm.daemons[0].process().unwrap(), 5.0);
    let before = used(process);
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    let load = (used(process) - before) / seconds;
    println!("with the page open the daemon uses {:.1} % of a core", load * 100.0);
    assert!(load <= MAX_LOAD, "{load}");

    swarm.daemons[0].kill().await;
    browser.until("document.title === 'no answer · nearcrawl'").await;
    assert_eq!(browser.value(&text("state")).await, "no answer");
    assert_eq!(browser.value(&text("exact")).await, "not current");
    is_accessible(&swarm, &mut browser).await;
    assert!(swarm.stop().await);
}
