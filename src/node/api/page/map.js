"use strict";
// The map: servers by country as a scale of colours, this daemon and the members as marks. world.json has the shapes. Uses what page.js defines.

const STEPS = { few: [1, 2, 5, 10, 20, 50], many: [1, 10, 100, 1000, 10000, 100000] };
const MAX_MARKS = 12;
const countryNames = new Intl.DisplayNames("en", { type: "region", fallback: "none" });
let world = null;
let shownCounts = "";
let shownMarks = "";
let inFocus = "";

function nameOf(code) {
  try {
    return countryNames.of(code) ?? code;
  } catch {
    return code;
  }
}

const countries = (count) => `${number(count)} ${count === 1 ? "country" : "countries"}`;

function shape(tag, attributes, ...inside) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...inside);
  return element;
}

// A point whose size does not depend on the map's.
const point = (kind, x, y) => shape("path", { class: kind, d: `M${x} ${y}h.01` });

const outline = (code, more) => {
  const { x, y, d } = world.countries[code];
  return d ? shape("path", { d, ...more }) : shape("path", { d: `M${x} ${y}h.01`, ...more, class: `${more.class} small` });
};

// One thing on the map that can be pointed at and reached by the arrow keys.
function tells(element, key, text) {
  element.setAttribute("role", "option");
  element.setAttribute("id", `map-${key}`);
  element.setAttribute("aria-label", text);
  element.setAttribute("aria-selected", "false");
  return element;
}

async function prepareMap() {
  if (world) return;
  world = await ask("/page/world.json");
  at("map").setAttribute("viewBox", `25 0 ${world.width - 28} ${world.height}`);
}

async function showMap(counts, members) {
  try {
    await prepareMap();
  } catch {
    world = null;
    return;
  }
  // A distance that is measured anew differs in its last digits.
  const here = members.filter((member) => member.liveness !== "left").map((member) => [member.access_point, member.country, member.is_me, member.liveness, member.rtt_ms == null ? null : Number(member.rtt_ms.toPrecision(2))]);
  const countsNow = JSON.stringify(Object.entries(counts).map(([code, { servers }]) => [code, servers])), marksNow = JSON.stringify(here);
  if (countsNow !== shownCounts) {
    shownCounts = countsNow;
    drawCountries(counts);
  }
  if (marksNow !== shownMarks) {
    shownMarks = marksNow;
    drawMarks(here);
  }
  const empty = at("map-countries").childElementCount + at("map-marks").childElementCount === 0;
  // A list without entries would be none.
  for (const [name, value] of [["role", "listbox"], ["tabindex", "0"], ["aria-label", "Countries and members on the map"]]) {
    if (empty) at("map-list").removeAttribute(name);
    else if (at("map-list").getAttribute(name) !== value) at("map-list").setAttribute(name, value);
  }
  pointAt(document.getElementById(inFocus));
}

function drawCountries(counts) {
  const all = Object.entries(counts).map(([code, { servers }]) => [code, servers]).filter(([, servers]) => servers > 0).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const known = all.filter(([code]) => world.countries[code]), has = new Set(known.map(([code]) => code));
  const most = Math.max(1, ...known.map(([, servers]) => servers)), steps = STEPS[most < 100 ? "few" : "many"];
  const step = (servers) => steps.filter((from) => servers >= from).length - 1;
  at("map-land").replaceChildren(shape("path", { class: "land", d: world.land }), ...Object.keys(world.countries).filter((code) => world.countries[code].d && !has.has(code)).map((code) => outline(code, { class: "land", "data-tells": `${nameOf(code)}: no servers` })));
  // The largest first, so that small countries are drawn over their neighbours.
  at("map-countries").replaceChildren(...known.map(([code, servers], rank) => tells(outline(code, { class: `step${step(servers)}` }), `country-${code}`, `${nameOf(code)}: ${plural(servers, "server")}, ${rank + 1} of ${countries(known.length)}`)));
  at("map-legend").replaceChildren(...steps.filter((from) => from <= most).map((from, index, used) => {
    const last = index + 1 === used.length, upTo = steps[index + 1] - 1;
    const text = last && steps[index + 1] === undefined ? `${number(from)} or more` : upTo > from ? `${number(from)} to ${number(upTo)}` : number(from);
    return make("li", "", make("span", `swatch step${index}`), text);
  }));
  const elsewhere = all.filter(([code]) => !has.has(code)).reduce((sum, [, servers]) => sum + servers, 0);
  const where = elsewhere > 0 ? `; ${plural(elsewhere, "server")} where the country is not known or not on the map` : "";
  say("map-note", all.length === 0 ? "no servers yet" : `servers in ${countries(known.length)}${where}`);
}

function drawMarks(here) {
  const by = new Map();
  for (const member of here) if (world.countries[member[1]]) by.set(member[1], [...by.get(member[1]) ?? [], member]);
  const me = here.find(([, country, isMe]) => isMe && world.countries[country]), from = me && world.countries[me[1]];
  const lines = [], marks = [], labels = [];
  for (const [country, members] of by) {
    const { x, y } = world.countries[country];
    members.sort((a, b) => b[2] - a[2] || (a[4] ?? Infinity) - (b[4] ?? Infinity));
    const distances = members.map(([, , , , rtt]) => rtt).filter((rtt) => rtt !== null);
    if (from && (from.x !== x || from.y !== y) && distances.length > 0) lines.push(shape("path", { d: `M${from.x} ${from.y}L${x} ${y}` }));
    members.slice(0, MAX_MARKS).forEach(([id, , isMe, liveness, rtt], index) => {
      // Around the country's middle, none upon another.
      const away = index === 0 ? 0 : 9 * Math.sqrt(index), angle = index * 2.4;
      const [px, py] = [(x + away * Math.cos(angle)).toFixed(1), (y + away * Math.sin(angle)).toFixed(1)];
      const kind = isMe ? "me" : liveness;
      const text = `${isMe ? "this daemon" : `member ${short(id)}`} in ${nameOf(country)}${isMe ? "" : `, ${liveness}, ${rtt === null ? "distance not measured" : `${rtt} ms away`}`}`;
      marks.push(tells(shape("g", { class: `mark ${kind}` }, point("edge", px, py), point("inner", px, py)), `member-${id}`, text));
    });
    const others = members.length - (members[0][2] ? 1 : 0), far = distances.length === 0 ? "" : `${Math.min(...distances)}${distances.length > 1 ? `–${Math.max(...distances)}` : ""} ms`;
    const what = [members[0][2] ? "me" : "", others > 1 ? `${others} members` : "", far].filter((part) => part).join(", ");
    // With many, the labels would lie upon each other: each mark tells it then.
    if (what && by.size <= MAX_MARKS) labels.push(shape("text", { x: x > world.width - 120 ? x - 14 : x + 14, y: y + 5, "text-anchor": x > world.width - 120 ? "end" : "start" }, what));
  }
  at("map-lines").replaceChildren(...lines);
  at("map-marks").replaceChildren(...marks);
  at("map-labels").replaceChildren(...labels);
  const hidden = here.filter(([, country]) => !world.countries[country]).length;
  say("map-members-note", hidden > 0 ? `${plural(hidden, "member")} where the country is not known.` : "");
}

// Says what something on the map is, and marks it.
function pointAt(element) {
  const list = at("map-list");
  for (const other of list.querySelectorAll("[aria-selected=true]")) if (other !== element) other.setAttribute("aria-selected", "false");
  if (!element || !list.contains(element)) {
    inFocus = "";
    list.removeAttribute("aria-activedescendant");
    return;
  }
  inFocus = element.id;
  if (element.getAttribute("aria-selected") !== "true") element.setAttribute("aria-selected", "true");
  if (list.getAttribute("aria-activedescendant") !== element.id) list.setAttribute("aria-activedescendant", element.id);
  say("map-tells", capital(element.getAttribute("aria-label")));
}

document.getElementById("map").addEventListener("pointerover", (event) => {
  const land = event.target.closest("[data-tells]");
  if (land) {
    pointAt(null);
    say("map-tells", land.dataset.tells);
  } else {
    const element = event.target.closest("[role=option]");
    if (element) pointAt(element);
  }
});

document.getElementById("map-list").addEventListener("focus", () => {
  if (!inFocus) pointAt(at("map-list").querySelector("[role=option]"));
});

document.getElementById("map-list").addEventListener("keydown", (event) => {
  const all = [...at("map-list").querySelectorAll("[role=option]")], now = all.findIndex((element) => element.id === inFocus);
  const next = { ArrowRight: now + 1, ArrowDown: now + 1, ArrowLeft: now - 1, ArrowUp: now - 1, Home: 0, End: all.length - 1 }[event.key];
  if (next === undefined || all.length === 0) return;
  event.preventDefault();
  pointAt(all[(next + all.length) % all.length]);
});
