"use strict";
// The last hours as line charts, of /api/history: where nothing is known the line has a gap. Uses what page.js and map.js define.

const CHARTS = [
  ["pages_per_minute", "pages a minute", "this daemon", (count) => number(Math.round(count * 10) / 10)],
  ["requests_per_minute", "requests a minute", "this daemon", (count) => number(Math.round(count * 10) / 10)],
  ["bytes_per_minute", "bytes a minute", "this daemon", (count) => bytes(Math.round(count))],
  ["servers", "servers", "whole swarm", (count) => number(count)],
  ["pages", "pages", "whole swarm", (count) => number(count)],
  ["page_bytes", "size of pages", "whole swarm", (count) => bytes(count)],
];
const CHART = { width: 320, height: 150, left: 58, right: 8, top: 10, bottom: 24 };
const HOURS = [1, 3, 6, 12, 24];
let shownHistory = "";

// The next of 1, 2, 4, 10, 20, 40 …, so that half of it is a whole number, too; at least 1.
function roundUp(value) {
  if (value <= 1) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 10].find((step) => step * unit >= value) * unit;
}

const time = (moment) => new Date(moment).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

function showHistory(history) {
  const now = JSON.stringify(history);
  if (now === shownHistory) return;
  shownHistory = now;
  const count = history.pages.length;
  if (count === 0) {
    say("history-note", "nothing is known yet: the first values come within a minute");
    return;
  }
  const from = Date.parse(history.from_at), every = history.every_ms, end = from + count * every;
  const hours = HOURS.find((hours) => hours * 3600000 >= count * every) ?? 24;
  say("history-note", `the last ${hours === 1 ? "hour" : `${hours} hours`}, by the minute; gaps: the daemon was not running, or totals were in transition`);
  at("charts").replaceChildren(...CHARTS.map(([key, what, whose, unit]) => drawn(history[key], { from, every, end, begin: end - hours * 3600000, hours }, what, whose, unit)));
}

function drawn(values, { from, every, end, begin, hours }, what, whose, unit) {
  const { width, height, left, right, top, bottom } = CHART;
  const known = values.filter((value) => value !== null), most = Math.max(0, ...known), high = roundUp(most);
  const x = (moment) => (left + (moment - begin) / (end - begin) * (width - left - right)).toFixed(1);
  const y = (value) => (height - bottom - value / high * (height - top - bottom)).toFixed(1);
  let way = "", lone = "";
  values.forEach((value, index) => {
    if (value === null) return;
    const point = `${x(from + (index + 0.5) * every)} ${y(value)}`, [before, after] = [values[index - 1] ?? null, values[index + 1] ?? null];
    if (before === null && after === null) lone += `M${point}h.01`;
    else way += before === null ? `M${point}` : `L${point}`;
  });
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "chart" });
  const latest = known.length === 0 ? "not known" : `the latest ${unit(known[known.length - 1])}, the most ${unit(most)}`;
  svg.setAttribute("aria-label", `${capital(what)}, ${whose}, in the last ${hours === 1 ? "hour" : `${hours} hours`}: ${latest}`);
  for (const value of high < 2 ? [0, high] : [0, high / 2, high]) {
    svg.append(shape("path", { class: "rule", d: `M${left} ${y(value)}H${width - right}` }));
    svg.append(shape("text", { x: left - 6, y: Number(y(value)) + 4, "text-anchor": "end" }, unit(value)));
  }
  for (const part of [0, 0.5, 1]) {
    const moment = begin + (end - begin) * part, anchor = ["start", "middle", "end"][part * 2];
    svg.append(shape("text", { x: x(moment), y: height - 6, "text-anchor": anchor }, time(moment)));
  }
  svg.append(shape("path", { class: "series", d: way }), shape("path", { class: "series lone", d: lone }));
  const now = known.length === 0 ? "–" : unit(known[known.length - 1]);
  return make("figure", "", make("figcaption", "", make("strong", "", what), ` ${whose} `, make("span", "now", now)), svg);
}

async function readHistory() {
  try {
    showHistory(await ask("/api/history"));
  } catch {
    // The figures say that there is no answer.
  }
}
