// Maps of the winner over loss x rate, one for each number of receivers. Every estimate was made before (page.py); here they
// are looked up, ranked as answer.py ranks them, and drawn.
"use strict";
const atlas = JSON.parse(document.getElementById("atlas").textContent);
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const shares = bytes(atlas.shares), offs = bytes(atlas.offs), away = bytes(atlas.away);
const TOLERATED = [0.001, 0.01, 0.05, 0.2, 0.5];
const PERCENT = TOLERATED.map((t) => `${100 * t} %`);
const sizes = [atlas.sizes.length, atlas.delays.length, atlas.receivers.length, atlas.rates.length, atlas.losses.length];
const perModel = atlas.duplex.length * sizes.reduce((a, b) => a * b);
const state = { show: 0, deadline: 2, tolerated: 1, delay: 0, size: 0, duplex: 0 }; // show: 0 the winner, else a model
let chosen = null;

function placeIndex(receivers, rate, loss) {
  return [state.size, state.delay, receivers, rate, loss].reduce((at, i, n) => at * sizes[n] + i, state.duplex);
}

function candidates(receivers, rate, loss) {
  const at = placeIndex(receivers, rate, loss), needed = 1 - TOLERATED[state.tolerated];
  const found = atlas.models.map((model, m) => {
    const i = (m * atlas.deadlines.length + state.deadline) * perModel + at;
    const value = shares[i] / 255, off = offs[i] / 255;
    const low = Math.max(0, value - off), high = Math.min(1, value + off);
    const distance = (away[m * perModel + at] / 255) * atlas.furthest, known = distance <= atlas.reach;
    const verdict = !known ? 4 : low >= needed ? 0 : value >= needed ? 1 : high >= needed ? 2 : 3;
    return { model, m, value, low, high, distance, verdict, price: atlas.prices[m * perModel + at] };
  });
  return found.sort((a, b) => a.verdict - b.verdict || (a.verdict < 2 ? a.price - b.price : b.value - a.value || a.price - b.price));
}

const VERDICTS = ["meets", "likely", "perhaps", "no", "unknown"];
const percent = (share) => `${+(100 * share).toPrecision(3)} %`;
const size = (n) => (n >= 1000 ? `${+(n / 1000).toPrecision(3)} kB` : `${n} B`);
const seconds = (s) => (s === null ? "-" : s < 1 ? `${+(1000 * s).toPrecision(3)} ms` : `${+s.toPrecision(3)} s`);

function element(name, attributes = {}, ...children) {
  const svg = ["svg", "rect", "circle", "text", "g", "defs", "pattern", "path", "title"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function control(key, title, options) {
  const set = element("fieldset", {}, element("legend", {}, title));
  options.forEach((text, index) => {
    const input = element("input", { type: "radio", name: key, value: index });
    input.checked = state[key] === index;
    input.addEventListener("change", () => { state[key] = index; draw(); });
    set.append(element("label", {}, input, text));
  });
  return set;
}

const CELL = 30, LEFT = 78, TOP = 6;
function panel(receivers) {
  const columns = atlas.losses.length, rows = atlas.rates.length;
  const width = LEFT + columns * CELL + 8, height = TOP + rows * CELL + 34;
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${atlas.receivers[receivers]} receivers` });
  for (let rate = 0; rate < rows; rate++) {
    const y = TOP + (rows - 1 - rate) * CELL;
    svg.append(element("text", { x: LEFT - 6, y: y + CELL / 2 + 4, "text-anchor": "end" }, atlas.rate_words[rate]));
    for (let loss = 0; loss < columns; loss++) {
      const all = candidates(receivers, rate, loss), best = state.show ? all.find((c) => c.m === state.show - 1) : all[0];
      const cell = element("rect", { class: "cell", x: LEFT + loss * CELL, y, width: CELL, height: CELL, ...paint(best) });
      cell.addEventListener("mouseenter", () => say(receivers, rate, loss));
      cell.addEventListener("click", () => { chosen = [receivers, rate, loss]; draw(); detail(receivers, rate, loss, true); });
      svg.append(cell);
    }
  }
  atlas.losses.forEach((loss, i) => {
    if (i % 2 === 0) svg.append(element("text", { x: LEFT + (i + 0.5) * CELL, y: TOP + rows * CELL + 15, "text-anchor": "middle" }, percent(loss)));
  });
  svg.append(element("text", { x: LEFT + (columns * CELL) / 2, y: TOP + rows * CELL + 30, "text-anchor": "middle" }, "loss, each way"));
  dots(svg, receivers);
  if (chosen && chosen[0] === receivers) {
    const [, rate, loss] = chosen;
    svg.append(element("rect", { class: "chosen", x: LEFT + loss * CELL, y: TOP + (rows - 1 - rate) * CELL, width: CELL, height: CELL }));
  }
  const many = atlas.receivers[receivers];
  return element("figure", {}, element("figcaption", {}, `${many} receiver${many > 1 ? "s" : ""}`), svg);
}

function paint(best) {
  if (best.verdict === 4) return { class: "cell blank" };
  const colour = atlas.colours[best.m];
  if (state.show) return { fill: colour, "fill-opacity": 0.06 + 0.94 * best.value };
  if (best.verdict === 0) return { fill: colour };
  if (best.verdict === 1) return { fill: colour, "fill-opacity": 0.62 };
  if (best.verdict === 2) return { fill: `url(#stripe${best.m})` };
  const grey = Math.round(244 - 110 * best.value);
  return { fill: `rgb(${grey},${grey},${grey})` };
}

// Measured points of the panel whose number of receivers is nearest, in the chosen duplex.
function dots(svg, receivers) {
  const seen = new Set();
  for (const run of atlas.runs) {
    if (seen.has(run.point) || run.place.duplex !== atlas.duplex[state.duplex] || nearestPanel(run.receivers) !== receivers) continue;
    seen.add(run.point);
    const [loss, rate] = run.at, columns = atlas.losses.length, rows = atlas.rates.length;
    // The columns are evenly spaced; the rates nearly so in their logarithm: placed between those of the grid.
    const x = LEFT + (loss * (columns - 1) + 0.5) * CELL, y = TOP + (rows - 1 - rateRow(rate) + 0.5) * CELL;
    const dot = element("circle", { class: "dot", cx: x, cy: y, r: 4 }, element("title", {}, `measured point ${run.point}`));
    dot.addEventListener("click", () => measured(run.point));
    svg.append(dot);
  }
}

function rateRow(scaled) {
  const first = Math.log(atlas.rates[0]), last = Math.log(atlas.rates.at(-1)), value = first + scaled * (last - first);
  const above = Math.max(1, atlas.rates.findIndex((rate) => Math.log(rate) >= value - 1e-9));
  const [a, b] = [Math.log(atlas.rates[above - 1]), Math.log(atlas.rates[above])];
  return above - 1 + (value - a) / (b - a);
}

function nearestPanel(receivers) {
  const off = atlas.receivers.map((n) => Math.abs(Math.log(n / receivers)));
  return off.indexOf(Math.min(...off));
}

function question(receivers, rate, loss) {
  return `${atlas.receivers[receivers]} receivers, ${percent(atlas.losses[loss])} loss, ${atlas.rate_words[rate]}, ${atlas.delays[state.delay]} one way, ` +
    `${atlas.sizes[state.size]}, ${atlas.duplex[state.duplex]} duplex, within ${atlas.deadlines[state.deadline]}`;
}

function say(receivers, rate, loss) {
  const all = candidates(receivers, rate, loss);
  const [best, second] = state.show ? [all.find((c) => c.m === state.show - 1), all[0]] : all;
  const told = (c) => `${c.model} ${percent(c.value)} (${percent(c.low)} to ${percent(c.high)}), ${VERDICTS[c.verdict]}`;
  document.getElementById("sentence").textContent =
    `${question(receivers, rate, loss)}: ${best.verdict === 4 ? "not known" : `${told(best)}; ${state.show ? "best" : "then"} ${told(second)}`}`;
}

function headed(...names) {
  return element("thead", {}, element("tr", {}, ...names.map((name) => element("th", {}, name))));
}

function bar(c) {
  const needed = 1 - TOLERATED[state.tolerated];
  const of = (share) => `${100 * share}%`;
  return element("div", { class: "bar", title: `${percent(c.low)} to ${percent(c.high)}` },
    element("b", { style: `width:${of(c.value)};background:${atlas.colours[c.m]};opacity:.75` }),
    element("u", { style: `left:${of(c.low)};width:${of(c.high - c.low)}` }),
    element("s", { style: `left:${of(needed)}` }));
}

function detail(receivers, rate, loss, scroll) {
  const body = element("tbody");
  for (const c of candidates(receivers, rate, loss)) {
    body.append(element("tr", {}, element("td", {}, c.model), element("td", {}, VERDICTS[c.verdict]), element("td", {}, c.verdict === 4 ? "" : bar(c)),
      element("td", {}, c.verdict === 4 ? "-" : `${percent(c.value)} (${percent(c.low)} to ${percent(c.high)})`),
      element("td", {}, c.verdict === 4 ? "-" : size(c.price)), element("td", {}, c.distance.toFixed(2))));
  }
  const ranked = element("table", {}, headed("model", "verdict", "in time; line: interval", "in time", "bytes on the wire per update and receiver", "nearest measurement"), body);
  const at = [atlas.losses[loss] / 0.4, scaledRate(rate), null, null, null, state.duplex];
  const note = element("p", { class: "why" }, "Distances: 1 is the whole range of one axis. Nearest measured points in loss and rate, of this duplex and about this many receivers:");
  const near = [...new Map(atlas.runs.filter((run) => run.place.duplex === atlas.duplex[state.duplex] && nearestPanel(run.receivers) === receivers)
    .map((run) => [run.point, run])).values()].sort((a, b) => gap(a, at) - gap(b, at)).slice(0, 4);
  const buttons = element("p");
  for (const run of near) {
    const button = element("button", { type: "button" }, `point ${run.point}: ${run.place.loss}, ${run.place.rate}, ${run.place.delay}, ${run.place.size}`);
    button.addEventListener("click", () => measured(run.point));
    buttons.append(button, " ");
  }
  open(question(receivers, rate, loss), [element("div", { class: "scroll" }, ranked), note, buttons], scroll);
}

function scaledRate(rate) {
  const first = Math.log(atlas.rates[0]);
  return (Math.log(atlas.rates[rate]) - first) / (Math.log(atlas.rates.at(-1)) - first);
}

const gap = (run, at) => at.reduce((sum, v, i) => (v === null ? sum : sum + (v - run.at[i]) ** 2), 0);

function measured(point) {
  const runs = atlas.runs.filter((run) => run.point === point);
  const words = Object.entries(runs[0].place).map(([name, value]) => `${name} ${value}`).join(", ");
  const deadlines = atlas.measured_deadlines.map(seconds);
  const body = element("tbody");
  for (const run of runs) {
    body.append(element("tr", {}, element("td", {}, run.model), element("td", {}, `${run.delivered} of ${run.owed}`),
      element("td", {}, run.confirmed === null ? "not measured" : String(run.confirmed)), element("td", {}, seconds(run.p50_s)), element("td", {}, seconds(run.p99_s)),
      element("td", {}, size(run.bytes)), element("td", {}, String(run.again)), ...run.within.map((share) => element("td", { style: shade(share) }, percent(share))),
      element("td", {}, run.suspect ? "suspect" : "")));
  }
  const table = element("table", {}, headed("model", "delivered", "confirmed", "median", "p99", "bytes per update", "sent again", ...deadlines.map((d) => `≤ ${d}`), ""), body);
  const commands = element("details", {}, element("summary", {}, "Repeat these runs"), ...runs.map((run) => element("p", {}, element("code", {}, run.command))));
  open(`Measured point ${point}: ${words}`, [element("div", { class: "scroll" }, table), commands], true);
}

const shade = (share) => `background:rgba(0,158,115,${(0.55 * share).toFixed(2)})`;

function open(title, children, scroll) {
  const section = document.getElementById("detail");
  section.hidden = false;
  document.getElementById("detail-title").textContent = title;
  document.getElementById("detail-body").replaceChildren(...children);
  if (scroll) section.scrollIntoView({ behavior: "smooth", block: "nearest" });
}

function stripes() {
  const defs = element("defs");
  atlas.colours.forEach((colour, m) => {
    const pattern = element("pattern", { id: `stripe${m}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
    pattern.append(element("rect", { width: 6, height: 6, class: "blank" }), element("rect", { width: 2.4, height: 6, fill: colour }));
    defs.append(pattern);
  });
  return element("svg", { width: 0, height: 0, style: "position:absolute" }, defs);
}

function draw() {
  document.getElementById("panels").replaceChildren(...atlas.receivers.map((_, i) => panel(i)));
  if (chosen) detail(...chosen, false);
}

document.getElementById("controls").append(control("show", "show", ["cheapest that meets", ...atlas.models]),
  control("deadline", "deadline", atlas.deadlines), control("tolerated", "tolerated loss", PERCENT), control("delay", "delay, one way", atlas.delays),
  control("size", "size of an update", atlas.sizes), control("duplex", "duplex", atlas.duplex));
document.getElementById("legend").append(...atlas.models.map((model, m) => element("span", {}, element("i", { style: `background:${atlas.colours[m]}` }), model)));
document.body.append(stripes());
draw();
