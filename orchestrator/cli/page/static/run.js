// Replays a finished run: its tables give the frames that the live lab would have sent.
// @ts-check
import { ask, byId, chip, el, seconds } from "./dom.js";
import { TopologyMap } from "./map.js";
import { Panel } from "./panel.js";
import { Timeline } from "./timeline.js";
import { Unfolding } from "./unfold.js";

const path = location.pathname.slice("/run/".length);
const CHUNK = 30; // frames asked at once
const KEPT = 120;
const state = {
  lab: "", status: /** @type {any} */ ({}), network: /** @type {any} */ (null), sample: /** @type {any} */ (null), readOnly: true, virtual: false,
  history: /** @type {any[]} */ ([]), warnings: new Map(), files: `/files/${path}`, unfolding: /** @type {any} */ (null),
};
const timeline = new Timeline(byId("timeline"));
const panel = new Panel(byId("panel"), state, timeline);
const map = new TopologyMap(byId("map"), (kind, at) => panel.choose(kind, at));
const unfolding = new Unfolding((query) => `/api/run/${path}?${query}`, (drawing) => {
  map.show(state.network, drawing);
  if (state.sample) map.update(state.sample);
  panel.draw();
}, (text) => trouble(text));
state.unfolding = unfolding;
const chunks = /** @type {Map<number, Promise<any[]>>} */ (new Map());
let run = /** @type {any} */ (null), at = 0, playing = 0, wanted = 0;

/** @param {string} text */
const trouble = (text) => byId("trouble").replaceChildren(text ? el("p", { class: "banner bad" }, text) : "");

/** @param {number} number */
function chunk(number) {
  if (!chunks.has(number)) {
    const asked = ask(`/api/frames/${path}?from=${number * CHUNK}&count=${CHUNK}`);
    asked.catch(() => chunks.delete(number));
    chunks.set(number, asked);
    if (chunks.size > 40) chunks.delete(chunks.keys().next().value ?? -1);
  }
  return /** @type {Promise<any[]>} */ (chunks.get(number));
}

/** @param {number} number */
async function show(number) {
  const ours = ++wanted;
  at = number;
  byId("slider").value = String(number);
  try {
    const found = await chunk(Math.floor(number / CHUNK));
    const before = number >= CHUNK ? await chunk(Math.floor(number / CHUNK) - 1) : [];
    if (ours !== wanted) return; // moved on meanwhile
    const place = number % CHUNK;
    state.history = [...before, ...found.slice(0, place + 1)].slice(-KEPT);
    state.sample = found[place];
    cut(state.sample.t_ns);
    map.update(state.sample);
    panel.sampled();
    timeline.at(state.sample.t_ns);
    byId("moment").textContent = `${seconds(state.sample.t_ns - (run.status.t0_ns ?? run.from_ns))} of ${seconds(run.frames * 1e9)}`;
    if (place > CHUNK / 2 && (Math.floor(number / CHUNK) + 1) * CHUNK < run.frames) chunk(Math.floor(number / CHUNK) + 1);
  } catch (error) { stop(); trouble(/** @type {Error} */ (error).message); }
}

/** Links that were down at a moment. @param {number} t_ns */
function cut(t_ns) {
  const down = new Set();
  for (const event of run.events) {
    if (event.t_ns > t_ns || event.ok === false) continue;
    for (const target of event.targets ?? []) if (event.action === "link-down") down.add(target); else if (event.action === "link-up") down.delete(target);
  }
  for (const [name, link] of Object.entries(state.network.links)) link.down = down.has(name);
  map.mark(state.network);
}

function stop() { clearInterval(playing); playing = 0; byId("play").textContent = "play"; }

function play() {
  if (playing) { stop(); return; }
  if (at >= run.frames - 1) at = 0;
  const speed = Number(byId("speed").value), every = Math.max(100, 1000 / speed);
  byId("play").textContent = "pause";
  playing = window.setInterval(() => {
    const next = Math.min(run.frames - 1, at + Math.max(1, Math.round((speed * every) / 1000)));
    if (next >= run.frames - 1) stop();
    show(next);
  }, every);
}

byId("play").onclick = play;
byId("speed").onchange = () => { if (playing) { stop(); play(); } };
byId("slider").oninput = () => { show(Number(byId("slider").value)); };

ask(`/api/run/${path}`).then(async (found) => {
  run = found;
  state.lab = found.status.lab;
  Object.assign(state, { status: found.status, network: found.network, captures: found.captures });
  for (const warning of found.warnings) state.warnings.set(`${warning.code} ${warning.text}`, warning);
  byId("name").textContent = found.status.lab;
  document.title = `${found.status.lab} - vNET`;
  byId("state").replaceChildren(chip(`replay of a run: ${found.status.state}`, found.status.state === "complete" ? "good" : "bad"), " ", found.status.time === "virtual" ? chip("virtual time", "open") : "");
  byId("about").replaceChildren(el("a", { href: `/files/${path}/report/index.html` }, "report"), ` ${decodeURIComponent(path)}`);
  Object.assign(timeline, { plan: found.plan, status: found.status, events: found.events });
  unfolding.came(found.network.drawing);
  byId("slider").max = String(Math.max(0, found.frames - 1));
  byId("slider").disabled = byId("play").disabled = !found.frames;
  if (found.frames) await show(Math.min(found.frames - 1, 10)); else trouble("This run ended before its second sample, so there is nothing to replay.");
}).catch((error) => trouble(error.message));
