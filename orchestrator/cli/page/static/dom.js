// Elements and numbers. Text from labs only becomes text nodes; nothing here parses HTML.
// @ts-check
const SVG = "http://www.w3.org/2000/svg";

/** @param {Element} made @param {Record<string, any>} attributes @param {any[]} children */
function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** @param {string} tag @param {Record<string, any>} [attributes] @param {...any} children @returns {any} */
export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

/** @param {string} tag @param {Record<string, any>} [attributes] @param {...any} children @returns {any} */
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/** Three significant digits behind the largest prefix. @param {number} value @param {string} unit @param {number} [step] */
export function quantity(value, unit, step = 1000) {
  const prefixes = ["", "k", "M", "G", "T"];
  let place = 0;
  while (Math.abs(value) >= step && place < prefixes.length - 1) { value /= step; place += 1; }
  const text = value >= 100 || value === 0 ? value.toFixed(0) : value.toPrecision(value < 1 && place === 0 ? 1 : 2);
  return `${text} ${prefixes[place]}${unit}`;
}
/** @param {number} v */ export const bps = (v) => quantity(v, "bit/s");
/** @param {number} v */ export const bytes = (v) => quantity(v, "B");
/** @param {number} v share of 1 */
export const percent = (v) => `${v * 100 >= 10 || v === 0 ? (v * 100).toFixed(0) : (v * 100).toPrecision(2)} %`;
/** @param {number} v */
export function ns(v) {
  if (v >= 1e9) return `${(v / 1e9).toPrecision(3)} s`;
  return v >= 1e6 ? `${(v / 1e6).toPrecision(3)} ms` : `${(v / 1e3).toPrecision(3)} µs`;
}
/** A date and time in ISO 8601, local: 2026-01-31 12:00:00. @param {number} ms since the epoch */
export function when(ms) {
  const at = new Date(ms), two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
/** Seconds of a scenario: 12.3 s. @param {number} v */
export const seconds = (v) => `${(v / 1e9).toFixed(1)} s`;

/** How full, as a class: u0 idle to u4 full. @param {number} share */
export function level(share) {
  if (!(share > 0.0005)) return "u0";
  return share < 0.25 ? "u1" : share < 0.6 ? "u2" : share < 0.9 ? "u3" : "u4";
}

/** A table; cells are text or nodes. @param {string[]} head @param {any[][]} rows @param {number[]} [numbers] */
export function table(head, rows, numbers = []) {
  const cell = (/** @type {string} */ tag, /** @type {any} */ value, /** @type {number} */ place) =>
    el(tag, { class: numbers.includes(place) ? "number" : "break" }, value ?? "");
  return el("table", {}, el("thead", {}, el("tr", {}, head.map((text, place) => cell("th", text, place)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value, place) => cell("td", value, place))))));
}

/** Something else in a place; a button of it that had the focus has it again. @param {HTMLElement} at @param {Element} made */
export function again(at, made) {
  const active = document.activeElement, held = active?.tagName === "BUTTON" && at.contains(active) ? active.textContent : null;
  at.replaceChildren(made);
  if (held) [...made.querySelectorAll("button")].find((button) => button.textContent === held)?.focus({ preventScroll: true });
}

/** @param {string} text @param {string} kind */
export const chip = (text, kind = "") => el("span", { class: `chip ${kind}` }, text);

/** @param {string} base64 */
export const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

/** JSON of an address; an Error with the server's text where it is refused. @param {string} path @param {any} [body] */
export async function ask(path, body) {
  const answer = await fetch(path, body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error((await answer.text()).slice(0, 2000));
  return answer.json();
}
