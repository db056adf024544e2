// A campaign's cells: one row for each point of its factors, one column for each repetition.
// @ts-check
import { ask, byId, chip, el } from "./dom.js";

const path = location.pathname.slice("/campaign/".length);
const EVERY_MS = 4000;
let shown = "";

/** @param {any} cell */
function look(cell) {
  const kind = cell.state === "complete" ? (cell.suspect ? "open" : "good") : cell.state === "failed" ? "bad" : cell.state === "running" ? "open" : "";
  const text = cell.state === "complete" && cell.suspect ? "in doubt" : cell.state;
  const at = chip(text, kind);
  at.title = cell.error ?? cell.cell;
  const to = cell.run_dir.split("/").map(encodeURIComponent).join("/");
  return cell.state === "complete" ? el("span", {}, el("a", { href: `/run/${path}/${to}` }, at)) : at;
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
    byId("about").replaceChildren(left && found.left_s ? `about ${Math.ceil(found.left_s / 60)} min left one by one ` : "", found.report ? el("a", { href: `/files/${path}/report/index.html` }, "report") : "");
    byId("command").replaceChildren(el("code", {}, found.command));
    byId("matrix").replaceChildren(matrix(found));
  } catch (error) { byId("trouble").replaceChildren(el("p", { class: "banner bad" }, /** @type {Error} */ (error).message)); }
}

refresh();
setInterval(() => { if (!document.hidden) refresh(); }, EVERY_MS);
