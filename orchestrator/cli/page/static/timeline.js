// The phases of the scenario with a cursor, and its planned and applied events.
// @ts-check
import { el, seconds, svg, when } from "./dom.js";

const PHASES = ["ramp", "hold", "drain"];
const LISTED = 60;

export class Timeline {
  /** @param {HTMLElement} place */
  constructor(place) {
    this.plan = /** @type {any} */ (null);
    this.status = /** @type {any} */ ({});
    this.events = /** @type {any[]} */ ([]);
    this.drawing = svg("svg", { viewBox: "0 0 1000 40", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.list = el("ul", { class: "events" });
    this.now = 0;
    place.append(this.drawing, this.list);
  }

  /** @param {any} event */
  add(event) {
    const key = `${event.t_ns} ${event.action} ${event.label}`;
    if (this.events.some((e) => `${e.t_ns} ${e.action} ${e.label}` === key)) return;
    this.events.push(event);
    this.draw();
  }

  /** @param {number} t_ns */
  at(t_ns) { this.now = t_ns; this.draw(); }

  /** Where the scenario is: its phases with their bounds. */
  bounds() {
    const t0 = this.status.t0_ns, phases = this.status.phases ?? {};
    if (!t0 || !this.plan) return null;
    const end = Math.max(...PHASES.map((p) => phases[p]?.[1] ?? 0), t0 + this.plan.ramp_ns + this.plan.hold_ns);
    return { t0, end, phases };
  }

  draw() {
    const bounds = this.bounds();
    this.drawing.replaceChildren();
    this.drawing.style.display = bounds ? "" : "none";
    if (bounds) this.strip(bounds);
    const shown = this.events.slice(-LISTED).reverse();
    this.list.replaceChildren(...shown.map((e) => el("li", { class: e.ok === false ? "bad" : "" },
      el("time", { title: when(e.t_ns / 1e6) }, bounds ? seconds(e.t_ns - bounds.t0) : when(e.t_ns / 1e6)),
      el("span", {}, words(e)))));
    if (!shown.length) this.list.append(el("li", { class: "muted" }, "No event yet."));
  }

  /** @param {{t0: number, end: number, phases: any}} bounds */
  strip({ t0, end, phases }) {
    const x = (/** @type {number} */ t) => (1000 * (t - t0)) / (end - t0);
    const fills = /** @type {Record<string, string>} */ ({ ramp: "var(--open-bg)", hold: "var(--segment)", drain: "var(--grid)" });
    for (const name of PHASES) {
      const of = phases[name];
      if (!of || of[1] <= of[0]) continue;
      this.drawing.append(svg("rect", { x: x(of[0]), y: 8, width: x(of[1]) - x(of[0]), height: 20, fill: fills[name] }, svg("title", {}, name)));
    }
    for (const event of this.plan.events) this.mark(x(t0 + event.at_ns), "var(--muted)", event.label || event.action);
    for (const event of this.events) if (event.t_ns >= t0) this.mark(x(event.t_ns), event.ok === false ? "var(--bad)" : "var(--event)", words(event), 3);
    if (this.now >= t0) this.drawing.append(svg("line", { x1: x(this.now), x2: x(this.now), y1: 0, y2: 40, stroke: "var(--accent)", "stroke-width": 2, "vector-effect": "non-scaling-stroke" }));
  }

  mark(/** @type {number} */ x, /** @type {string} */ colour, /** @type {string} */ title, width = 1.5) {
    this.drawing.append(svg("line", { x1: x, x2: x, y1: 4, y2: 32, stroke: colour, "stroke-width": width, "vector-effect": "non-scaling-stroke" }, svg("title", {}, title)));
  }
}

/** @param {any} event */
export function words(event) {
  const where = (event.targets ?? [event.node, event.software].filter(Boolean)).join(", ");
  const text = event.label || [event.action, where, event.text].filter(Boolean).join(" ");
  return event.ok === false ? `${text}: ${event.error ?? "failed"}` : text;
}
