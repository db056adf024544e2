// The list of labs, campaigns and runs, refreshed while the page is visible.
// @ts-check
import { ask, byId, chip, el, table, when } from "./dom.js";

const EVERY_MS = 4000;
const path = (/** @type {string} */ text) => text.split("/").map(encodeURIComponent).join("/");

/** @param {any} lab */
function labRow(lab) {
  const up = lab.state === "up" || lab.state.startsWith("running");
  return [
    el("a", { href: `/lab/${encodeURIComponent(lab.lab)}` }, lab.lab),
    chip(lab.state, up ? "good" : lab.state.startsWith("dead") ? "bad" : "open"),
    lab.kernel ?? "", lab.nodes ?? "", el("code", {}, lab.run_dir ?? ""),
  ];
}

/** @param {any} run */
function runRow(run) {
  const good = run.state === "complete" && !run.suspect;
  const state = run.state === "complete" && run.suspect ? "complete, suspect" : run.state;
  return [
    run.state === "running" || run.state === "unreadable" ? el("span", {}, run.lab) : el("a", { href: `/run/${path(run.path)}`, title: "replay" }, run.lab), el("span", { title: run.error ?? "" }, chip(state, good ? "good" : run.state === "complete" ? "open" : run.state === "running" ? "" : "bad")),
    [run.kernel, run.time === "virtual" ? "virtual time" : ""].filter(Boolean).join(", "),
    run.warnings || "", when(run.changed_s * 1000),
    run.report ? el("a", { href: `/files/${path(run.path)}/report/index.html` }, "report") : "",
    el("code", {}, run.path),
  ];
}

/** @param {any} one */
function campaignRow(one) {
  const states = new Map();
  for (const cell of one.cells) states.set(cell.state, (states.get(cell.state) ?? 0) + 1);
  return [
    el("a", { href: `/campaign/${path(one.path)}` }, one.name),
    [...states].map(([state, count]) => [chip(`${count} ${state}`, state === "complete" ? "good" : state === "failed" ? "bad" : "open"), " "]),
    when(one.changed_s * 1000),
    one.report ? el("a", { href: `/files/${path(one.path)}/report/index.html` }, "report") : "",
    el("code", {}, one.path),
  ];
}

/** @param {string} id @param {string[]} head @param {any[][]} rows @param {string} none @param {number[]} numbers */
function show(id, head, rows, none, numbers) {
  byId(id).replaceChildren(rows.length ? table(head, rows, numbers) : el("p", { class: "empty" }, none));
}

let shown = "";
async function refresh() {
  try {
    const found = await ask("/api/overview");
    byId("trouble").replaceChildren();
    if (JSON.stringify(found) === shown) return;
    shown = JSON.stringify(found);
    byId("where").textContent = found.results;
    byId("mode").hidden = !found.read_only;
    byId("begin").hidden = found.read_only || found.only !== "";
    const none = found.there ? "None below this directory." : `${found.results} does not exist: run something first, or serve another directory with --results.`;
    show("labs", ["lab", "state", "kernel", "nodes", "run directory"], found.labs.map(labRow), "No lab is running; `vnet up FILE` starts one.", [3]);
    const booked = [...found.others, ...found.reserved.map((/** @type {string} */ one) => `reserved: ${one}`)];
    byId("shared").hidden = !booked.length;
    byId("booked").replaceChildren(...booked.map((one) => el("li", {}, one)));
    show("campaigns", ["campaign", "cells", "begun", "", "directory"], found.campaigns.map(campaignRow), none, []);
    show("runs", ["lab", "state", "kernel", "warnings", "changed", "", "directory"], found.runs.map(runRow), none, [3]);
    if (found.more) byId("runs").append(el("p", { class: "note" }, `and ${found.more} older ones`));
  } catch (error) {
    byId("trouble").replaceChildren(el("p", { class: "banner bad" }, `The server does not answer: ${/** @type {Error} */ (error).message}`));
  }
}

byId("begin").onsubmit = async (/** @type {Event} */ event) => {
  event.preventDefault();
  const value = (/** @type {string} */ id) => byId(id).value.trim();
  byId("begun").replaceChildren(el("p", { class: "note" }, "…"));
  try {
    const begun = await ask("/api/campaigns/begin", { file: value("file"), kernel: value("kernel"), time: value("time") });
    location.href = `/campaign/${path(begun.path)}`;
  } catch (error) { byId("begun").replaceChildren(el("p", { class: "banner bad" }, /** @type {Error} */ (error).message)); }
};
refresh();
setInterval(() => { if (!document.hidden) refresh(); }, EVERY_MS);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
