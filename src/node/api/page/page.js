"use strict";
// Polls the daemon that served this page. Text from web servers is set as text, never as markup.

const EVERY_MS = 1500;
const DISTINCT_EVERY_MS = 15000;
const PATIENCE_MS = 12000;
const MAX_POINTS = 400;
const MAX_ROWS = 60;
const SVG = "http://www.w3.org/2000/svg";

const at = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en").format;
const points = [];
let by = "country";
let lastState = "";

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
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10000) return `${(ms / 1000).toFixed(1)} s`;
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;
const short = (id) => `…${id.slice(-8)}`;
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

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
  if (!answer.ok) throw Object.assign(new Error(value.error), { hint: value.hint });
  return value;
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
  say("me", short(status.access_point));
  at("me").title = status.access_point;
  say("swarm", `swarm ${status.swarm}`);
  say("fig-subnets", number(status.subnets_owned));
  say("sub-subnets", `of ${number(status.subnets_claimed)} in the swarm`);
  say("fig-waiting", number(status.waiting_urls));
  say("sub-waiting", plural(status.open_connections, "open connection"));
  say("version", `nearcrawl ${status.version}, up ${span(status.uptime_ms)}`);
  say("hierarchy", `hierarchy ${status.hierarchy.hash.slice(0, 8)}, ${plural(status.hierarchy.subnets, "subnet")}`);
  const hits = status.caches.reduce((sum, cache) => sum + cache.hits, 0);
  const all = status.caches.reduce((sum, cache) => sum + cache.hits + cache.misses, 0);
  say("caches", all > 0 ? `URL cache: ${(hits / all * 100).toFixed(1)} % hits` : "");
}

function showMembers(members) {
  const alive = members.filter((member) => member.liveness === "alive").length;
  const most = Math.max(1, ...members.map((member) => member.subnets));
  say("members-note", `${alive} of ${members.length} alive`);
  at("members").replaceChildren(...members.slice(0, MAX_ROWS).map((member) => {
    const name = make("td", "name", make("span", "mono", short(member.access_point)));
    name.title = [member.access_point, ...member.addresses].join("\n");
    if (member.is_me) name.append(make("span", "tag", "this daemon"));
    const dot = make("span", "dot");
    dot.dataset.state = member.liveness;
    const state = make("td", "", make("div", "state", dot, member.liveness, make("small", "", span(member.liveness_for_ms))));
    return make("tr", member.liveness, name, state, make("td", "", bar(member.subnets, most)), make("td", "number", number(member.servers)));
  }));
}

function showResults(results) {
  const total = results.summary.total;
  at("exact").dataset.exact = results.exact ? "yes" : "no";
  say("exact", results.exact ? "exact" : "in transition");
  const kept = results.consistent_age_ms ?? null;
  const since = kept === null ? "" : `last consistent totals, ${span(kept)} old: `;
  const why = results.exact ? "" : results.in_transition_text ? `${since}${results.in_transition_text}; ` : since;
  const inFirst = total.unfinished === 1 ? "is in its first run and counted with what it has" : "are in their first run and counted with what they have";
  const first = total.unfinished > 0 ? `${plural(total.unfinished, "server")} ${inFirst} so far; ` : "";
  say("age", `${why}${first}totals of ${plural(results.covers.length, "member")}, the oldest ${span(results.oldest_roll_up_age_ms)} old`);
  say("fig-servers", number(total.servers));
  const estimates = results.summary.estimates;
  const estimated = estimates.sampled > 0 ? ` (estimated ${number(estimates.up.estimated)} ± ${number(estimates.up.margin)})` : "";
  say("sub-servers", `${number(total.up)} up${estimated}, ${number(total.unfinished)} in their first run`);
  say("fig-pages", number(total.pages));
  const detected = `; ${plural(total.detected_failures, "accessibility failure")} detected in ${number(total.evaluated)}`;
  say("sub-pages", `in ${plural(total.requests, "request")}${total.evaluated > 0 ? detected : ""}`);
  say("fig-bytes", bytes(total.page_bytes));
  say("sub-bytes", `${bytes(total.bytes)} moved in these runs; ${plural(total.failed, "failed request")}`);
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
  at("rows").replaceChildren(...rows.slice(0, MAX_ROWS).map(([value, counts]) => make("tr", "",
    make("td", "", value), make("td", "", bar(counts.servers, most)), make("td", "number roomy", number(counts.up)),
    make("td", "number", number(counts.pages)), make("td", "number roomy", number(counts.requests)),
    make("td", "number roomy", bytes(counts.page_bytes)), make("td", "number roomy", bytes(counts.bytes)))));
  say("rows-note", rows.length === 0 ? "Nothing has been fetched yet." : rows.length > MAX_ROWS ? `and ${number(rows.length - MAX_ROWS)} more: nearcrawl results --by ${by}` : "");

  points.push({ at: performance.now(), pages: total.pages });
  if (points.length > MAX_POINTS) points.splice(0, points.length - MAX_POINTS);
  showChart();
}

function showChart() {
  const first = points[0], last = points[points.length - 1];
  const time = Math.max(1, last.at - first.at);
  const low = Math.min(...points.map((point) => point.pages)), high = Math.max(...points.map((point) => point.pages));
  const x = (point) => ((point.at - first.at) / time * 600).toFixed(1);
  const y = (point) => (high === low ? (high > 0 ? 130 : 189) : 189 - (point.pages - low) / (high - low) * 179).toFixed(1);
  const way = points.length < 2 ? `M0,${y(first)} L600,${y(first)}` : points.map((point, i) => `${i ? "L" : "M"}${x(point)},${y(point)}`).join(" ");
  at("chart-line").setAttribute("d", way);
  at("chart-area").setAttribute("d", `${way} L600,189 L0,189 Z`);
  const rate = (last.pages - first.pages) / time * 1000;
  say("progress-note", points.length < 2 ? "pages, whole swarm" : `${rate >= 10 ? number(Math.round(rate)) : rate.toFixed(1)} pages per second, whole swarm`);
  say("chart-from", points.length < 2 ? "" : `${plural(first.pages, "page")} ${span(last.at - first.at)} ago`);
  say("chart-to", `${number(last.pages)} now`);
}

function lost(failure) {
  document.body.classList.add("lost");
  at("state-dot").dataset.state = "lost";
  say("state", "no answer");
  document.title = "no answer · nearcrawl";
  say("sentence", failure.hint ? capital(failure.message) : "The daemon does not answer");
  at("exact").dataset.exact = "unknown";
  say("exact", points.length > 0 ? "not current" : "no totals yet");
  say("age", failure.hint ?? "The figures below are its last ones; this page keeps trying.");
  if (lastState !== "lost") {
    lastState = "lost";
    say("spoken", "The daemon does not answer");
  }
}

async function look() {
  try {
    const [status, members, results] = await Promise.all([ask("/api/status"), ask("/api/members"), ask(`/api/results?by=${by}`)]);
    document.body.classList.remove("lost");
    showStatus(status);
    showMembers(members);
    showResults(results);
  } catch (failure) {
    lost(failure);
  }
}

// Counts of sets: what two servers name counts once. All members are asked for theirs, so not with every look.
function distinctOf(count, what) {
  return count.error_ratio === 0 ? plural(count.count, what) : `≈ ${plural(count.count, what)} ± ${Math.ceil(count.error_ratio * 100)} %`;
}

async function countDistinct() {
  try {
    if (document.hidden) return;
    const sets = await ask("/api/distinct");
    const own = `distinct: ${plural(sets.servers, "host")} at ${distinctOf(sets.addresses, "address")} in ${distinctOf(sets.domains, "domain")}`;
    at("distinct").hidden = sets.servers === 0;
    say("distinct", `${capital(own)}; they link to ${distinctOf(sets.external_hosts, "external host")} in ${distinctOf(sets.external_domains, "domain")}`);
  } catch {
    // The figures say that there is no answer.
  } finally {
    setTimeout(countDistinct, DISTINCT_EVERY_MS);
  }
}

async function watch() {
  if (!document.hidden) await look();
  setTimeout(watch, EVERY_MS);
}

function choose(tab) {
  by = tab.dataset.by;
  for (const other of document.querySelectorAll("[role=tab]")) {
    other.setAttribute("aria-selected", String(other === tab));
    other.tabIndex = other === tab ? 0 : -1;
  }
  at("totals").setAttribute("aria-labelledby", tab.id);
  say("totals-by", tab.textContent);
  at("rows").replaceChildren();
  look();
}

document.querySelector("[role=tablist]").addEventListener("click", (event) => {
  const tab = event.target.closest("[role=tab]");
  if (tab) choose(tab);
});

document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const now = tabs.indexOf(document.activeElement);
  const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (now < 0 || next === undefined) return;
  event.preventDefault();
  const tab = tabs[(next + tabs.length) % tabs.length];
  tab.focus();
  choose(tab);
});

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
    ...why.history.map((held) => ["history", `epoch ${held.epoch}, ${new Date(held.claimed_at).toLocaleString()}: ${short(held.owner)}, ${REASONS[held.reason] ?? held.reason}${held.released_text ? `; handed over: ${held.released_text}` : ""}`]),
    ["site tree", why.tree && `${why.tree}${why.level === null ? "" : `, level ${why.level}`}`],
    ["state", why.state_text],
    ["robots.txt", why.robots_text],
    ["last visit", why.last_visit_at === null ? null : new Date(why.last_visit_at).toLocaleString()],
    ["next visit", why.next_visit_in_ms === null ? null : why.next_visit_in_ms === 0 ? "now" : `in ${span(why.next_visit_in_ms)}`],
  )];
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
      const lead = make("p", "lead bad", capital(failure.hint ? failure.message : "the daemon does not answer"));
      answer.replaceChildren(lead, make("p", "note", failure.hint ?? "Is it still running? Try again in a moment."));
    } finally {
      button.disabled = false;
    }
  });
}

form("why", async (data) => explain(await ask(`/api/why?q=${encodeURIComponent(data.get("q").trim())}`)));

form("seed", async (data) => {
  const urls = data.get("urls").split("\n").map((line) => line.trim()).filter((line) => line);
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ urls }) };
  const view = await ask("/api/seeds", options);
  const lead = make("p", view.accepted > 0 ? "lead" : "lead bad", `${number(view.accepted)} accepted, ${number(view.refused.length)} refused`);
  if (view.refused.length === 0) at("seed-urls").value = "";
  return [lead, make("ul", "", ...view.refused.slice(0, 20).map((refused) => make("li", "", `${refused.url}: ${refused.reason_text}`)))];
});

document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
watch();
countDistinct();
