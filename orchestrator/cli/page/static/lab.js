// A running lab: frames come over a WebSocket that is open only while the page is visible.
// @ts-check
import { ask, byId, chip, el, seconds } from "./dom.js";
import { TopologyMap } from "./map.js";
import { Panel } from "./panel.js";
import { Timeline } from "./timeline.js";
import { Unfolding } from "./unfold.js";

const lab = decodeURIComponent(location.pathname.split("/")[2]);
const AGAIN_MS = 3000;
const KEPT = 120; // samples of every curve
const MOST = 100000; // samples of nodes that are kept for looking back
const state = {
  lab, status: /** @type {any} */ ({}), network: /** @type {any} */ (null), sample: /** @type {any} */ (null), readOnly: true, virtual: false,
  history: /** @type {any[]} */ ([]), warnings: new Map(), phase: /** @type {any} */ (null), unfolding: /** @type {any} */ (null),
};
const timeline = new Timeline(byId("timeline"));
const panel = new Panel(byId("panel"), state, timeline);
const map = new TopologyMap(byId("map"), (kind, at) => panel.choose(kind, at));
const unfolding = new Unfolding((query) => `/api/lab/${encodeURIComponent(lab)}/drawing?${query}`, (drawing) => {
  map.show(state.network, drawing);
  if (state.sample) map.update(state.sample);
  panel.draw();
}, trouble);
state.unfolding = unfolding;
const past = /** @type {any[]} */ ([]); // what was seen so far
let socket = /** @type {WebSocket | null} */ (null), behind = 0; // samples behind the newest that are looked at

byId("name").textContent = lab;
document.title = `${lab} - vNET`;

/** @type {Record<string, (frame: any) => void>} */
const takes = {
  status(frame) {
    Object.assign(state.status, frame);
    state.virtual = frame.time === "virtual";
    timeline.status = frame; timeline.draw();
    byId("about").textContent = [frame.kernel?.kind && `kernel ${frame.kernel.kind}`, frame.driver === "fake" ? "invented figures (driver fake)" : "", frame.run_dir?.split("/").slice(-3).join("/")].filter(Boolean).join(" · ");
    byId("about").title = frame.run_dir ?? "";
    header();
  },
  plan(frame) { timeline.plan = frame; timeline.draw(); },
  network(frame) { state.network = frame; unfolding.came(frame.drawing); },
  sample(frame) {
    if (past.length && frame.t_ns === past[past.length - 1].t_ns && !Object.keys(frame.flows).length) return;
    while (frame.t_ns && past.length && !past[0].t_ns) past.shift(); // from before the first counters
    past.push(frame);
    if (past.length > Math.max(KEPT, MOST / (1 + Object.keys(frame.nodes).length))) past.shift();
    if (behind) behind = Math.min(behind + 1, past.length - 1); else show();
    turned();
  },
  phase(frame) { state.phase = frame; header(); },
  event(frame) { timeline.add(frame); },
  warning(frame) { state.warnings.set(`${frame.code} ${frame.text}`, frame); panel.draw(); header(); },
  silent(frame) { trouble(`${frame.text}; this page waits.`); },
  gone(frame) { trouble(frame.text); },
};

/** The sample that is looked at, with those before it. */
function show() {
  const place = past.length - 1 - behind;
  state.history = past.slice(Math.max(0, place + 1 - KEPT), place + 1);
  state.sample = past[place];
  map.update(state.sample); panel.sampled();
  if (state.sample.t_ns) timeline.at(state.sample.t_ns);
}

/** Where among what was seen it is. */
function turned() {
  byId("back").hidden = past.length < 2;
  byId("slider").max = String(past.length - 1);
  byId("slider").value = String(past.length - 1 - behind);
  byId("newest").disabled = !behind;
  byId("moment").textContent = behind ? `${seconds(past[past.length - 1].t_ns - state.sample.t_ns)} before the newest` : "newest";
}

/** @param {number} place */
function lookAt(place) { behind = past.length - 1 - place; show(); turned(); }

byId("slider").oninput = () => lookAt(Number(byId("slider").value));
byId("newest").onclick = () => lookAt(past.length - 1);

function header() {
  const { status, phase, warnings } = state;
  const name = phase ? phase.serving : status.serving; const shown = name ? "up" : phase?.phase ?? status.phase ?? "";
  byId("state").replaceChildren(chip(status.ready === false ? "starting" : shown, "good"), " ",
    state.virtual ? chip("virtual time: read-only", "open") : "", " ", state.readOnly && !state.virtual ? chip("read-only") : "", " ",
    warnings.size ? chip(`${warnings.size} warning${warnings.size > 1 ? "s" : ""}`, "open") : "");
  const share = phase && phase.total > 0 ? Math.min(1, phase.done / phase.total) : null;
  const filled = el("span");
  if (share !== null) filled.style.width = `${share * 100}%`;
  byId("progress").replaceChildren(share === null ? "" : el("span", { class: "progress", role: "progressbar", "aria-valuenow": Math.round(share * 100) }, filled), " ", el("span", { class: "note" }, phase?.serving ? "" : phase?.text ?? ""));
}

/** @param {string} text */
function trouble(text) {
  byId("trouble").replaceChildren(text ? el("p", { class: "banner bad" }, text) : "");
}

function look() {
  if (socket || document.hidden) return;
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/lab/${encodeURIComponent(lab)}`);
  let ended = false;
  socket.onmessage = (message) => {
    const frame = JSON.parse(message.data);
    if (frame.kind === "gone") ended = true; else if (!ended) trouble("");
    takes[frame.kind]?.(frame);
  };
  socket.onclose = () => {
    socket = null;
    if (document.hidden) return;
    if (!ended) trouble("The server does not answer; this page tries again.");
    setTimeout(look, AGAIN_MS);
  };
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) socket?.close(); else look();
});
/** What may be done here, asked until it is known. */
function mayChange() {
  ask("/api/overview").then((found) => { state.readOnly = found.read_only; header(); panel.draw(); }, (error) => { trouble(error.message); setTimeout(mayChange, AGAIN_MS); });
}
mayChange();
panel.draw();
look();
