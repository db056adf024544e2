// The cells of a campaign: one row for each combination of levels, one column for each repetition.
// @ts-check
import { ask, byId, chip, el } from "./dom.js";

const path = location.pathname.slice("/campaign/".length);
const EVERY_MS = 4000;
let shown = "", readOnly = true;

/** @param {any} cell */
function look(cell) {
  const kind = cell.state === "complete" ? (cell.suspect ? "open" : "good") : cell.state === "failed" ? "bad" : cell.state === "running" ? "open" : "";
  const text = cell.state === "complete" && cell.suspect ? "suspect" : cell.state;
  const at = chip(text, kind);
  at.title = cell.error ?? cell.cell;
  const to = cell.run_dir.split("/").map(encodeURIComponent).join("/");
  const figures = cell.headline ? el("div", { class: "note" }, cell.headline) : "";
  const report = el("a", { class: "note", href: `/files/${path}/${to}/report/index.html` }, "report");
  if (cell.state === "complete") return el("div", {}, el("a", { href: `/run/${path}/${to}`, title: "replay" }, at), " ", cell.report ? report : "", figures);
  return cell.error ? el("div", {}, at, el("div", { class: "note" }, cell.error.slice(0, 120))) : at;
}

/** @param {any} found */
function matrix(found) {
  const factors = [...new Set(found.cells.flatMap((/** @type {any} */ c) => Object.keys(c.levels)))];
  const repetitions = [...new Set(found.cells.map((/** @type {any} */ c) => c.repetition))].sort((a, b) => a - b);
  const rows = new Map();
  for (const cell of found.cells) {
    const key = JSON.stringify(factors.map((f) => cell.levels[f] ?? ""));
    rows.set(key, { ...rows.get(key), [cell.repetition]: cell });
  }
  return el("table", { class: "matrix" },
    el("thead", {}, el("tr", {}, factors.map((f) => el("th", {}, f)), repetitions.map((r) => el("th", {}, `repetition ${r}`)))),
    el("tbody", {}, [...rows].map(([key, cells]) => el("tr", {}, JSON.parse(key).map((/** @type {any} */ v) => el("td", {}, String(v))), repetitions.map((r) => el("td", {}, cells[r] ? look(cells[r]) : ""))))));
}

/** Start, resume or stop; nothing for guests. @param {any} found @param {number} left */
function button(found, left) {
  if (readOnly) return "";
  if (found.running && !found.ours) return el("span", { class: "note" }, "runs in a terminal");
  if (found.running) return el("button", { class: "danger", onclick: () => act("stop") }, "stop");
  return left ? el("button", { onclick: () => act("resume") }, found.cells.some((/** @type {any} */ c) => c.state !== "to come") ? "resume" : "start") : "";
}

/** @param {string} action */
async function act(action) {
  try {
    await ask(`/api/campaigns/${action}`, { path: decodeURIComponent(path) });
    byId("act").replaceChildren(el("p", { class: "banner good" }, action === "stop" ? "Stopping, as with Ctrl-C: the running cell ends first." : "Started; it continues without this page."));
  } catch (error) { byId("act").replaceChildren(el("p", { class: "banner bad" }, /** @type {Error} */ (error).message)); }
  refresh();
}

async function refresh() {
  try {
    const found = await ask(`/api/campaign/${path}`);
    byId("trouble").replaceChildren();
    if (JSON.stringify(found) === shown) return;
    shown = JSON.stringify(found);
    document.title = `${found.name} - vNET`;
    byId("name").textContent = found.name;
    const count = (/** @type {string} */ state) => found.cells.filter((/** @type {any} */ c) => c.state === state).length;
    byId("state").replaceChildren(chip(`${count("complete")} of ${found.cells.length} complete`, "good"), " ", count("failed") ? chip(`${count("failed")} failed`, "bad") : "", " ", count("running") ? chip(`${count("running")} running`, "open") : "");
    const left = found.cells.length - count("complete") - count("failed");
    byId("about").replaceChildren(left && found.left_s ? `about ${Math.ceil(found.left_s / 60)} min left, one run at a time ` : "", found.report ? el("a", { href: `/files/${path}/report/index.html` }, "report") : "");
    byId("command").replaceChildren(el("code", {}, found.command), " ", button(found, left));
    byId("said").replaceChildren(!found.running && left && found.said ? el("pre", { class: "log" }, found.said) : "");
    byId("matrix").replaceChildren(matrix(found));
  } catch (error) { byId("trouble").replaceChildren(el("p", { class: "banner bad" }, /** @type {Error} */ (error).message)); }
}

ask("/api/overview").then((found) => { readOnly = found.read_only; shown = ""; refresh(); }, () => {});
refresh();
setInterval(() => { if (!document.hidden) refresh(); }, EVERY_MS);
