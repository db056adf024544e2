// Messages of the last samples, by class of traffic and by flow of one class.
// @ts-check
import { bps, el, ns, percent, table } from "./dom.js";

const SAMPLES = 10;
const LISTED = 50; // flows of a class
const COUNTS = ["settled", "received", "unsettled", "judged", "lost"];

/** Summed over the last samples. @param {any[]} history @param {"flows" | "each"} key @param {(name: string) => boolean} wanted @returns {[string, any][]} */
function sums(history, key, wanted) {
  const seen = new Map();
  for (const sample of history.slice(-SAMPLES)) {
    for (const [name, f] of Object.entries(sample[key] ?? {})) {
      if (!wanted(name)) continue;
      const of = seen.get(name) ?? Object.fromEntries(COUNTS.map((count) => [count, 0]));
      for (const count of COUNTS) of[count] += f[count];
      if (f.latency_p50_ns !== undefined) { of.median = f.latency_p50_ns; of.longest = Math.max(of.longest ?? 0, f.latency_max_ns); }
      if (f.bps !== undefined) of.bps = f.bps;
      seen.set(name, of);
    }
  }
  return [...seen];
}

/** @param {any} f */
const cells = (f) => [f.bps === undefined ? f.settled : "", f.bps === undefined ? f.received : bps(f.bps), f.unsettled || "",
  f.judged ? el("span", { class: f.lost ? "bad" : "" }, f.lost ? `${f.lost} (${percent(f.lost / f.judged)})` : "0") : "",
  f.median === undefined ? "" : ns(f.median), f.longest === undefined ? "" : ns(f.longest)];
const HEAD = ["sent", "arrived", "failed", "lost", "median", "longest"], NUMBERS = [1, 2, 3, 4, 5, 6];

/** @param {any[]} history @param {(name: string) => void} choose @param {boolean} serving whether `vnet up` made the lab */
export function classesTable(history, choose, serving) {
  const rows = sums(history, "flows", () => true).map(([name, f]) => [el("button", { onclick: () => choose(name) }, name), ...cells(f)]);
  return rows.length ? table(["in 10 s", ...HEAD], rows, NUMBERS) : el("p", { class: "muted" }, serving ? "no messages: `vnet up` sends none, `vnet run` does" : "No messages yet.");
}

/** The flows of a class, those that lose most first. @param {any[]} history @param {Record<string, string>} classes @param {string} of */
export function flowsTable(history, classes, of) {
  const found = sums(history, "each", (name) => classes[name] === of);
  const share = (/** @type {any} */ f) => (f.judged ? f.lost / f.judged : 0);
  found.sort(([, a], [, b]) => share(b) - share(a) || (b.longest ?? 0) - (a.longest ?? 0));
  return [table(["in 10 s", ...HEAD], found.slice(0, LISTED).map(([name, f]) => [name, ...cells(f)]), NUMBERS),
    found.length > LISTED ? el("p", { class: "note" }, `and ${found.length - LISTED} with fewer losses`) : ""];
}
