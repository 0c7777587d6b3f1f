"use strict";
// Polls the daemon that served this page. Text from web servers is set as text, never as markup.

// How often is asked while something changes; while nothing does, the pauses grow up to these.
const EVERY_MS = 1500, MOST_MS = 12000;
const DISTINCT_EVERY_MS = 15000, DISTINCT_MOST_MS = 60000;
const PATIENCE_MS = 12000;
const MAX_ROWS = 60;
const LOG_EVERY_MS = 5000, LOG_MOST_MS = 20000;
const SLOW_EVERY_MS = 20000, SLOW_MOST_MS = 60000;
const HISTORY_EVERY_MS = 30000;
const SVG = "http://www.w3.org/2000/svg";

const at = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en").format;
let hasTotals = false;
let shownNews = "";
let by = "country";
let lastState = "";
let log = "events";
let logLines = [];
let settings = [];

function say(id, text) {
  const element = typeof id === "string" ? at(id) : id;
  if (element.textContent !== text) element.textContent = text;
}

function make(tag, className, ...inside) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...inside.map(asNode));
  return element;
}

function asNode(value) {
  return value instanceof Node ? value : String(value);
}

function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (count >= 999.5 && unit + 1 < units.length) { count /= 1000; unit += 1; }
  return unit === 0 ? `${count} B` : `${count.toFixed(1)} ${units[unit]}`;
}

function span(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 1) return "less than 1 s";
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

// An age in whole seconds, rounded up.
const age = (ms) => span(Math.max(1, Math.ceil(ms / 1000)) * 1000);

const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;
const short = (id) => `…${id.slice(-8)}`;
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// To the second; the day is said if it is another one.
function when(moment) {
  const date = new Date(moment), time = date.toLocaleTimeString("en-GB");
  return date.toDateString() === new Date().toDateString() ? time : `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")} ${time}`;
}

// An id, shortened, with a button that copies it whole.
function identity(id, what) {
  const button = make("button", "copy", "copy");
  button.type = "button";
  button.dataset.copies = id;
  button.dataset.key = `copy ${id} ${what}`;
  button.setAttribute("aria-label", `Copy the id of ${what}, ${short(id)}`);
  const shown = make("span", "mono", short(id));
  shown.title = id;
  return make("span", "identity", shown, button);
}

// Fills a list anew; the element that had the focus has it afterwards, if it is still there.
function fill(list, children) {
  const element = typeof list === "string" ? at(list) : list;
  const key = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  element.replaceChildren(...children);
  if (key) [...element.querySelectorAll("[data-key]")].find((child) => child.dataset.key === key)?.focus({ preventScroll: true });
}

function bar(value, most) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 100 10");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  for (const [name, width] of [["track", 100], ["fill", most > 0 ? Math.max(value > 0 ? 1 : 0, value / most * 100) : 0]]) {
    const rect = document.createElementNS(SVG, "rect");
    rect.setAttribute("class", name);
    rect.setAttribute("width", String(width));
    rect.setAttribute("height", "10");
    svg.append(rect);
  }
  return make("div", "bar", make("span", "", number(value)), svg);
}

async function ask(path, options) {
  const answer = await fetch(path, { ...options, signal: AbortSignal.timeout(PATIENCE_MS) });
  const value = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(value.error), { hint: value.hint, status: answer.status });
  return value;
}

// Changes something. The token is kept while this tab is open, and nowhere else.
async function change(path, body) {
  const token = sessionStorage.getItem("token") ?? "";
  const headers = { "content-type": "application/json", "x-nearcrawl-token": token };
  try {
    return await ask(path, { method: "POST", headers, body: JSON.stringify(body) });
  } catch (failure) {
    if (failure.status === 401) {
      sessionStorage.removeItem("token");
      showToken();
      failure.message = token ? "that is not the daemon's token" : "this needs the daemon's token";
      failure.hint = "Write it into the field under Changes.";
    }
    throw failure;
  }
}

function showToken() {
  const known = sessionStorage.getItem("token") !== null;
  say("token-answer", known ? "Changes are allowed while this tab is open." : "");
}

function showStatus(status) {
  at("state-dot").dataset.state = status.state;
  say("state", status.state);
  say("sentence", capital(status.state_text));
  if (lastState !== status.state) {
    lastState = status.state;
    say("spoken", status.state_text);
  }
  document.title = `${status.state} · nearcrawl`;
  if (at("me").dataset.of !== status.access_point) {
    at("me").dataset.of = status.access_point;
    at("me").replaceChildren(identity(status.access_point, "this daemon"));
  }
  at("alone").hidden = !status.alone_text;
  say("alone", status.alone_text ? capital(status.alone_text.replaceAll("`", "")) : "");
  const limits = (status.allowance.notes_text ?? []).join(" ");
  at("limits").hidden = !limits;
  say("limits", capital(limits));
  const unreached = status.connection_errors_text && !status.state_text.includes(status.connection_errors_text) ? status.connection_errors_text : "";
  at("unreached").hidden = !unreached;
  say("unreached", capital(unreached));
  say("token-file", status.token_file ?? "api.token");
  const paused = status.allowance.paused;
  say("pause-button", paused ? "Resume" : "Pause");
  at("pause-form").dataset.paused = paused ? "yes" : "no";
  at("pause-for").disabled = paused;
  say("swarm", `swarm ${status.swarm}`);
  say("fig-subnets", number(status.subnets_owned));
  say("sub-subnets", `of ${number(status.subnets_claimed)} in the swarm`);
  say("fig-waiting", number(status.waiting_urls));
  say("sub-waiting", plural(status.open_connections, "open connection"));
  say("version", `nearcrawl ${status.version}, up ${span(status.uptime_ms)}`);
  say("reach", `reachability: ${status.reachability.state_text}`);
  say("hierarchy", `hierarchy ${status.hierarchy.hash.slice(0, 8)}, ${plural(status.hierarchy.subnets, "subnet")}`);
  const hits = status.caches.reduce((sum, cache) => sum + cache.hits, 0);
  const all = status.caches.reduce((sum, cache) => sum + cache.hits + cache.misses, 0);
  say("caches", all > 0 ? `URL cache: ${(hits / all * 100).toFixed(1)} % hits` : "");
}

const stateNames = { "within-limits": "within limits", "outside-hours": "outside its hours", "day-spent": "spent for today", "month-spent": "spent for this month", "memory-full": "memory full", "swarm-spent": "spent among members" };
const memberColumns = ["", "country", "distance", "state", "budget, as it tells", "subnets owned", "servers"];
const limitNames = { "crawl-day": "day", "crawl-month": "month", "swarm-day": "day among members" };

// Names and limits are what members tell of themselves, and are set as text.
function showMembers(members) {
  const alive = members.filter((member) => member.liveness === "alive").length;
  const most = Math.max(1, ...members.map((member) => member.subnets));
  const left = members.filter((member) => member.liveness === "left").length;
  say("members-note", `${alive} of ${members.length - left} alive${left > 0 ? `, ${left} left within a day` : ""}`);
  fill("members", members.slice(0, MAX_ROWS).map((member) => {
    const name = make("td", "name", identity(member.access_point, member.is_me ? "this daemon" : "a member"));
    // An address through another member is that one's.
    const own = member.addresses.find((address) => !address.includes("/p2p-circuit"));
    const ip = own?.split("/p2p/")[0].split("/").slice(2).filter((part) => part !== "tcp").join(":") ?? member.address;
    const place = member.is_relayed ? `${ip ?? "address unknown"}, through a relay` : ip;
    if (member.name) name.prepend(make("span", "called", member.name));
    if (member.is_me) name.append(make("span", "tag", "this daemon"));
    else if (place) name.append(make("small", "place", place));
    const dot = make("span", "dot");
    dot.dataset.state = member.liveness;
    const state = make("td", "", make("div", "state", dot, member.liveness, make("small", "", span(member.liveness_for_ms))));
    const distance = make("td", "number", member.rtt_ms == null ? "" : `${member.rtt_ms < 10 ? member.rtt_ms.toFixed(1) : Math.round(member.rtt_ms)} ms`);
    const told = member.allowance;
    const used = told?.used.map((share) => `${Math.round(share.used_ratio * 100)} % of the ${limitNames[share.limit] ?? share.limit}`).join(", ");
    const limits = told ? make("td", "", (stateNames[told.state] ?? told.state), used ? make("small", "place", used) : "") : make("td", "", "not told");
    const country = make("td", "", member.country === "ZZ" ? "" : member.country ?? "");
    const row = make("tr", member.liveness, name, country, distance, state, limits, make("td", "", bar(member.subnets, most)), make("td", "number", number(member.servers)));
    // On a telephone each row is a block whose cells have their names beside them; the roles keep it a table for those who hear it.
    row.role = "row";
    [...row.children].forEach((cell, place) => { cell.role = "cell"; cell.dataset.label = memberColumns[place]; });
    return row;
  }));
}

function showResults(results) {
  const total = results.summary.total;
  const counted = total.servers > 0;
  at("exact").dataset.exact = !counted ? "unknown" : results.exact ? "yes" : "no";
  say("exact", !counted ? "no totals yet" : results.exact ? "exact" : "in transition");
  const kept = results.consistent_age_ms ?? null;
  const since = kept === null ? "" : `last consistent totals, as they were ${age(kept)} ago: `;
  const why = results.exact ? "" : results.in_transition_text ? `${since}${results.in_transition_text}; ` : since;
  const inFirst = total.unfinished === 1 ? "is in its first run and counted with what it has" : "are in their first run and counted with what they have";
  const first = total.unfinished > 0 && !why.includes(inFirst) ? `${plural(total.unfinished, "server")} ${inFirst} so far; ` : "";
  say("age", `${why}${first}totals of ${plural(results.covers.length, "member")}, each confirmed in the last ${age(results.oldest_roll_up_age_ms)}`);
  say("fig-servers", number(total.servers));
  // Where not all hosts of an address were visited the figures are of those that were. Beside them stands what they come to with the others.
  const estimates = results.summary.estimates;
  const isEstimated = estimates.sampled > 0;
  // As the text: an interval whose low end would be less than was counted is told by its ends.
  const interval = ({ estimated, margin, low, high }, told) => margin === 0 ? ""
    : estimated - margin === low ? ` ± ${told(margin)}` : ` (${told(low)} to ${told(high)})`;
  const orMore = (estimate) => Math.max(estimates.not_estimated, estimate.not_estimated) > 0 ? " or more" : "";
  const estimated = (estimate, told) => isEstimated
    ? `estimated ${told(estimate.estimated)}${interval(estimate, told)}${orMore(estimate)}` : "";
  at("estimated").hidden = !results.sample_text;
  say("estimated", capital(results.sample_text ?? ""));
  const up = estimated(estimates.up, number), pages = estimated(estimates.pages, number), size = estimated(estimates.page_bytes, bytes);
  say("sub-servers", `${number(total.up)} up${up ? ` (${up})` : ""}, ${number(total.unfinished)} in their first run`);
  say("fig-pages", number(total.pages));
  const detected = `; ${plural(total.detected_failures, "accessibility failure")} detected in ${number(total.evaluated)}`;
  say("sub-pages", `${pages ? `counted (${pages}); ` : ""}in ${plural(total.requests, "request")}${total.evaluated > 0 ? detected : ""}`);
  say("fig-bytes", bytes(total.page_bytes));
  say("sub-bytes", `${size ? `counted (${size}); ` : ""}${bytes(total.bytes)} moved in these runs; ${plural(total.failed, "failed request")}`);
  const held = [
    [total.waiting_urls_by_budget, "URL", "by the page budget"],
    [total.urls_not_queued, "URL", "not queued because too many waited"],
    [total.hosts_held_by_site_limit, "new host", "by the limit for a site and day"],
    [total.hosts_held_by_domain_limit, "new host", "by the limit for a domain and day"],
  ].filter(([count]) => count > 0).map(([count, what, why]) => `${plural(count, what)} ${why}`);
  at("held-back").hidden = held.length === 0;
  say("held-back", held.length === 0 ? "" : `Held back until later: ${held.join(", ")}`);

  const rows = Object.entries(results.summary.by[by] ?? {}).sort((a, b) => b[1].servers - a[1].servers || (a[0] < b[0] ? -1 : 1));
  const most = Math.max(1, ...rows.map(([, counts]) => counts.servers));
  const servers = estimates.by[by] ?? {};
  const place = (value) => servers[value] ? make("small", "place", estimated(servers[value], number)) : "";
  at("rows").replaceChildren(...rows.slice(0, MAX_ROWS).map(([value, counts]) => make("tr", "",
    make("td", "", value), make("td", "", bar(counts.servers, most), place(value)), make("td", "number roomy", number(counts.up)),
    make("td", "number", number(counts.pages)), make("td", "number roomy", number(counts.requests)),
    make("td", "number roomy", bytes(counts.page_bytes)), make("td", "number roomy", bytes(counts.bytes)))));
  say("rows-note", rows.length === 0 ? "Nothing has been fetched yet." : rows.length > MAX_ROWS ? `and ${number(rows.length - MAX_ROWS)} more: nearcrawl results --by ${by}` : "");
  hasTotals = true;
}

function lost(failure) {
  document.body.classList.add("lost");
  at("state-dot").dataset.state = "lost";
  say("state", "no answer");
  document.title = "no answer · nearcrawl";
  say("sentence", failure.hint ? capital(failure.message) : "The daemon does not answer");
  at("alone").hidden = at("limits").hidden = at("unreached").hidden = true;
  at("exact").dataset.exact = "unknown";
  say("exact", hasTotals ? "not current" : "no totals yet");
  say("age", failure.hint ?? "The figures below are its last ones; this page keeps trying.");
  if (lastState !== "lost") {
    lastState = "lost";
    say("spoken", "The daemon does not answer");
  }
}

// Whether anything but ages has changed since the last look.
async function look() {
  try {
    const [status, members, results] = await Promise.all([ask("/api/status"), ask("/api/members"), ask(`/api/results?by=${by === "country" ? by : `country,${by}`}`)]);
    document.body.classList.remove("lost");
    showStatus(status);
    showMembers(members);
    showResults(results);
    showMap(results.summary.by.country ?? {}, members);
    const { state, waiting_urls, open_connections, subnets_owned, subnets_claimed } = status;
    const news = JSON.stringify([by, state, waiting_urls, open_connections, subnets_owned, subnets_claimed, results.exact, results.summary,
      members.map((member) => [member.access_point, member.liveness, member.subnets, member.servers, member.name, member.allowance])]);
    const isNew = news !== shownNews;
    shownNews = news;
    return isNew;
  } catch (failure) {
    lost(failure);
    // It is looked for often.
    return true;
  }
}

// Counts of sets: what two servers name counts once. All members are asked for theirs, so not with every look.
function distinctOf(count, what) {
  return count.error_ratio === 0 ? plural(count.count, what) : `≈ ${plural(count.count, what)} ± ${Math.ceil(count.error_ratio * 100)} %`;
}

async function countDistinct() {
  try {
    const sets = await ask("/api/distinct");
    const before = at("distinct").textContent;
    const own = `distinct: ${plural(sets.servers, "host")} at ${distinctOf(sets.addresses, "address")} in ${distinctOf(sets.domains, "domain")}`;
    at("distinct").hidden = sets.servers === 0;
    const left = sets.servers_not_counted > 0 ? ` (without those of ${plural(sets.servers_not_counted, "server")}, of an earlier version)` : "";
    const soFar = sets.in_transition_text ? `; counted so far: ${sets.in_transition_text}` : "";
    say("distinct", `${capital(own)}; they link to ${distinctOf(sets.external_hosts, "external host")} in ${distinctOf(sets.external_domains, "domain")}${left}${soFar}`);
    return at("distinct").textContent !== before;
  } catch {
    // The figures say that there is no answer.
    return false;
  }
}

function choose(list, tab) {
  for (const other of list.querySelectorAll("[role=tab]")) {
    other.setAttribute("aria-selected", String(other === tab));
    other.tabIndex = other === tab ? 0 : -1;
  }
  at(tab.getAttribute("aria-controls")).setAttribute("aria-labelledby", tab.id);
  if (tab.dataset.by) {
    by = tab.dataset.by;
    say("totals-by", tab.textContent);
    at("rows").replaceChildren();
    look();
  } else {
    log = tab.dataset.log;
    logLines = [];
    showLog();
    readLog();
  }
}

for (const list of document.querySelectorAll("[role=tablist]")) {
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) choose(list, tab);
  });
  list.addEventListener("keydown", (event) => {
    const tabs = [...list.querySelectorAll("[role=tab]")];
    const now = tabs.indexOf(document.activeElement);
    const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (now < 0 || next === undefined) return;
    event.preventDefault();
    const tab = tabs[(next + tabs.length) % tabs.length];
    tab.focus();
    choose(list, tab);
  });
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copies]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copies);
    say(button, "copied");
    say("spoken", "copied");
  } catch {
    say(button, button.dataset.copies);
  }
  setTimeout(() => say(button, "copy"), 2000);
});

// What a line of the log of requests says: kind, and a sentence.
function requested(line) {
  const { kind, host, path, address, port, reason, level, run, fetch_status: status, failure, bytes: size, took_ms: took } = line;
  if (kind === "begin" || kind === "end") return [kind, `the daemon ${kind === "begin" ? "began" : "ended"}`];
  if (kind === "gap") return [kind, "lines are missing here: they could not be written"];
  const where = [host, port && ![80, 443].includes(port) ? `:${port}` : "", path ?? ""].join("");
  const came = failure ?? status ?? (address ? address : "");
  const facts = [reason, level == null ? "" : `level ${level}`, run == null ? "" : `run ${run}`, String(came), size == null ? "" : bytes(size), took == null ? "" : `in ${(took / 1000).toFixed(1)} s`];
  return [kind, `${where || address} (${facts.filter((fact) => fact !== "").join(", ")})`];
}

function showLog() {
  const wanted = at("log-filter").value.trim().toLowerCase();
  const lines = logLines.filter((line) => !wanted || line.join(" ").toLowerCase().includes(wanted));
  say("log-kind", log === "events" ? "level" : "what");
  say("log-what", log === "events" ? "what happened" : "whom, why and what came of it");
  say("log-caption", log === "events" ? "The newest 100 events of this daemon" : "The newest 100 requests of this daemon");
  fill("log-rows", lines.map(([moment, kind, text]) => make("tr", kind, make("td", "when", when(moment)), make("td", "kind", kind), make("td", "", text))));
  const none = log === "events" ? "Nothing has happened yet." : "No request is in the log (log.requests switches it on).";
  say("log-note", logLines.length === 0 ? none : wanted ? `${number(lines.length)} of the newest ${number(logLines.length)} lines` : `the newest ${plural(logLines.length, "line")}; older ones: ${log === "events" ? "journalctl -u nearcrawl" : "nearcrawl log"}`);
}

async function readLog() {
  const which = log;
  try {
    const lines = await ask(`/api/log/${which}`);
    if (which !== log) return true;
    const read = which === "events"
      ? lines.map((line) => [line.logged_at, line.level, line.message_text])
      : lines.map((line) => [line.asked_at, ...requested(line)]);
    if (JSON.stringify(read) === JSON.stringify(logLines)) return false;
    logLines = read;
    showLog();
    return true;
  } catch {
    // The figures say that there is no answer.
  }
}

function command(text) {
  const button = make("button", "copy", "copy");
  button.type = "button";
  button.dataset.copies = text;
  button.dataset.key = text;
  button.setAttribute("aria-label", `Copy the command ${text}`);
  return make("p", "command", make("code", "mono", text), button);
}

function showSurveys(surveys) {
  say("surveys-note", surveys.length === 0 ? "" : `${plural(surveys.length, "survey")}, ${number(surveys.filter((survey) => survey.state === "running").length)} running`);
  if (surveys.length === 0) {
    fill("surveys", [make("li", "note", "There is none. nearcrawl survey create makes one.")]);
    return;
  }
  fill("surveys", surveys.slice(0, MAX_ROWS).map((survey) => {
    const name = `${survey.name}@${survey.creator.slice(-8)}`;
    const link = make("a", "", "plan and list (JSON)");
    link.href = `/api/survey?name=${encodeURIComponent(name)}`;
    link.download = `${survey.name}.json`;
    link.dataset.key = `plan ${name}`;
    const buttons = !survey.is_mine || survey.state === "ended" ? [] : [survey.state === "running" ? "paused" : "running", "ended"].map((state) => {
      const button = make("button", "small", { paused: "Pause", running: "Resume", ended: "End" }[state]);
      button.type = "button";
      button.dataset.survey = survey.name;
      button.dataset.state = state;
      button.dataset.key = `${state} ${name}`;
      button.setAttribute("aria-label", `${button.textContent} the survey ${survey.name}`);
      return button;
    });
    const until = survey.ends_at === null ? "" : `, until ${when(survey.ends_at)}`;
    const size = survey.urls > 0 ? `${plural(survey.urls, "URL")} of ${plural(survey.hosts, "host")}` : "by its scope";
    const downloads = make("details", "", make("summary", "", `Results and reports of ${survey.name}`), make("p", "", link),
      command(`nearcrawl results --survey ${name} --csv`), command(`nearcrawl export servers --survey ${name} --format csv --out servers.csv`),
      command(`nearcrawl report reachability --survey ${name} --format html --out report.html`));
    downloads.open = openDetails.has(name);
    downloads.addEventListener("toggle", () => openDetails[downloads.open ? "add" : "delete"](name));
    downloads.querySelector("summary").dataset.key = `details ${name}`;
    return make("li", "", make("div", "survey-head", make("h3", "", survey.name), make("span", `badge ${survey.state}`, survey.state), ...buttons),
      make("p", "note", `${size}${until}; by `, survey.is_mine ? "this daemon" : identity(survey.creator, `the creator of ${survey.name}`)),
      make("p", "", survey.description), downloads);
  }));
}

const openDetails = new Set();

at("surveys").addEventListener("click", async (event) => {
  const button = event.target.closest("[data-survey]");
  if (!button) return;
  const { survey, state } = button.dataset;
  if (state === "ended" && !confirm(`End the survey ${survey}? It cannot be resumed.`)) return;
  button.disabled = true;
  try {
    const view = await change("/api/survey/state", { name: survey, state });
    at("survey-answer").replaceChildren(make("p", "lead", `${view.name} is ${view.state}`));
    await readSlow();
  } catch (failure) {
    at("survey-answer").replaceChildren(...complaint(failure));
  } finally {
    button.disabled = false;
  }
});

function showOptOuts(views) {
  const inForce = views.filter((view) => view.in_force);
  say("opt-outs-note", views.length === 0 ? "none yet" : `${number(inForce.length)} in force`);
  fill("opt-outs", views.slice(0, 20).map((view) => make("li", "", make("strong", "", view.subject), ` ${view.kind}, ${view.proof}, ${when(view.opted_out_at)}: ${view.state_text}`)));
}

function showSettings() {
  const wanted = at("settings-filter").value.trim().toLowerCase();
  const shown = settings.filter((one) => !wanted || `${one.section}.${one.key} ${one.meaning_text}`.toLowerCase().includes(wanted));
  const set = settings.filter((one) => one.value !== null).length;
  say("settings-note", settings.length === 0 ? "" : `${plural(settings.length, "key")}, ${number(set)} set in the file; the others have their defaults`);
  const sections = [...new Set(shown.map((one) => one.section))];
  fill("settings", sections.map((section) => {
    const rows = shown.filter((one) => one.section === section);
    const list = document.createElement("dl");
    for (const one of rows) {
      const value = one.value ?? (/no default/i.test(one.meaning_text) ? "not set" : one.default);
      list.append(make("dt", one.value === null ? "" : "set", make("code", "mono", one.key)), make("dd", "", make("code", "mono value", value), make("p", "note", one.meaning_text)));
    }
    const name = section === "" ? "general" : `[${section}]`;
    const details = make("details", "", make("summary", "", make("code", "mono", name), ` ${plural(rows.length, "key")}`), list);
    details.open = wanted !== "" || openDetails.has(`settings ${section}`);
    details.addEventListener("toggle", () => { if (wanted === "") openDetails[details.open ? "add" : "delete"](`settings ${section}`); });
    details.querySelector("summary").dataset.key = `settings ${section}`;
    return details;
  }));
}

let shownSlow = "";

async function readSlow() {
  try {
    const [surveys, optOuts, read] = await Promise.all([ask("/api/surveys"), ask("/api/opt-outs"), ask("/api/settings")]);
    const now = JSON.stringify([surveys.map(({ age_ms: _, ...survey }) => survey), optOuts, read]);
    if (now === shownSlow) return false;
    shownSlow = now;
    showSurveys(surveys);
    showOptOuts(optOuts);
    settings = read;
    showSettings();
    return true;
  } catch {
    // The figures say that there is no answer.
  }
}

// Asks again and again, but not in a tab that nobody sees; less often while nothing changes.
async function every(read, ms, most = ms, wait = ms) {
  const next = document.hidden || await read() ? ms : Math.min(wait * 1.5, most);
  setTimeout(() => every(read, ms, most, next), next);
}

at("log-filter").addEventListener("input", showLog);
at("settings-filter").addEventListener("input", showSettings);

function facts(...pairs) {
  const list = document.createElement("dl");
  for (const [name, value] of pairs) {
    if (value !== null && value !== undefined && value !== "") list.append(make("dt", "", name), make("dd", "", value));
  }
  return list;
}

const REASONS = {
  "own-subnet": "its own address is in the subnet",
  "awarded": "the delegation round chose it",
  "owner-dead": "the previous owner died",
  "released": "the previous owner released it",
  "moved": "the previous owner handed it over",
};

function explain(why) {
  const own = why.ownership;
  return [make("p", "lead", why.answer_text), facts(
    ["host", why.host],
    ["address", why.address],
    ["located in", why.path_text.join(" › ")],
    ["owner", own && `${short(own.owner)}${why.owner_is_me ? " (this daemon)" : ""}${why.owner_liveness ? `, ${why.owner_liveness}` : ""}`],
    ["because", own && `${why.reason_text ?? REASONS[own.reason] ?? own.reason}; epoch ${own.epoch}, ${plural(own.probes, "probe")}`],
    ["distance", own && own.rtt_ms !== null ? `${own.rtt_ms.toFixed(1)} ms` : null],
    ["runner-up", own && own.runner_up ? short(own.runner_up) : null],
    ["measured by", own && own.measurements.map((measured) => `${measured.access_point ? short(measured.access_point) : "a former member"} ${measured.rtt_ms.toFixed(1)} ms`).join(", ")],
    ["migration", why.judgement_text],
    ...why.history.map((held) => ["history", `epoch ${held.epoch}, ${when(held.claimed_at)}: ${short(held.owner)}, ${REASONS[held.reason] ?? held.reason}${held.released_text ? `; handed over: ${held.released_text}` : ""}`]),
    ["site tree", why.tree && `${why.tree}${why.level === null ? "" : `, level ${why.level}`}`],
    ["state", why.state_text],
    ["robots.txt", why.robots_text],
    ["last visit", why.last_visit_at === null ? null : when(why.last_visit_at)],
    ["next visit", why.next_visit_in_ms === null ? null : why.next_visit_in_ms === 0 ? "now" : `in ${span(why.next_visit_in_ms)}`],
  )];
}

function complaint(failure) {
  const lead = make("p", "lead bad", capital(failure.hint ? failure.message : "the daemon does not answer"));
  return [lead, make("p", "note", failure.hint ?? "Is it still running? Try again in a moment.")];
}

// Sends a form's request and shows the answer or the error.
function form(name, question) {
  const element = at(`${name}-form`), answer = at(`${name}-answer`);
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = element.querySelector("button");
    button.disabled = true;
    try {
      answer.replaceChildren(...await question(new FormData(element)));
    } catch (failure) {
      answer.replaceChildren(...complaint(failure));
    } finally {
      button.disabled = false;
    }
  });
}

form("why", async (data) => explain(await ask(`/api/why?q=${encodeURIComponent(data.get("q").trim())}`)));

form("seed", async (data) => {
  const urls = data.get("urls").split("\n").map((line) => line.trim()).filter((line) => line);
  const view = await change("/api/seeds", { urls });
  const lead = make("p", view.accepted > 0 ? "lead" : "lead bad", `${number(view.accepted)} accepted, ${number(view.refused.length)} refused`);
  if (view.refused.length === 0) at("seed-urls").value = "";
  return [lead, make("ul", "", ...view.refused.slice(0, 20).map((refused) => make("li", "", `${refused.url}: ${refused.reason_text}`)))];
});

form("token", async (data) => {
  sessionStorage.setItem("token", data.get("token").trim());
  try {
    // Nothing is changed by a request without a body that can be read; but whether the token is right is looked at first.
    await change("/api/pause", null);
  } catch (failure) {
    if (failure.status !== 400) throw failure;
  }
  at("token").value = "";
  return [make("p", "lead", "Changes are allowed while this tab is open.")];
});

form("pause", async (data) => {
  if (at("pause-form").dataset.paused === "yes") {
    await change("/api/resume", {});
    look();
    return [make("p", "lead", "Resumed")];
  }
  const length = data.get("for");
  const view = await change("/api/pause", length ? { for_ms: Number(length) } : {});
  look();
  return [make("p", "lead", view.paused_until_at ? `Paused until ${when(view.paused_until_at)}` : "Paused until it is resumed")];
});

form("opt-out", async (data) => {
  const view = await change("/api/opt-outs", { subject: data.get("subject").trim(), domain: data.get("domain") === "on", proof: data.get("proof") });
  at("opt-out-subject").value = "";
  await readSlow();
  return [make("p", "lead", `${view.subject}: ${view.state_text}`)];
});

document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
showToken();
every(look, EVERY_MS, MOST_MS);
every(countDistinct, DISTINCT_EVERY_MS, DISTINCT_MOST_MS);
every(readLog, LOG_EVERY_MS, LOG_MOST_MS);
every(readSlow, SLOW_EVERY_MS, SLOW_MOST_MS);
every(readHistory, HISTORY_EVERY_MS);
