// What may be changed of a link or a node, as forms: the same as `vnet link`, `set` and `snapshot` offer.
// @ts-check
import { el } from "./dom.js";

const WORDS = [["delay", "20 ms"], ["jitter", "2 ms"], ["loss", "1 %"], ["rate", "10 Mbit/s"], ["duplicate", "0 %"], ["reorder", "0 %"]];
const MORE = [["corrupt", "0 %"], ["delay_correlation", "25 %"], ["loss_correlation", "25 %"], ["limit", "1000"]];
const OF_A_CLASS = [["guaranteed", "2 Mbit/s"], ["ceiling", "5 Mbit/s"], ["class_limit", "100"]];
const DISTRIBUTIONS = ["uniform", "normal", "pareto", "paretonormal"];
const SETTINGS = [["mtu", "1500"], ["cpu_limit", "0.5 cores; 500 MHz"], ["cpu_reserve", "0.1 cores"]];

const said = (/** @type {string} */ word) => word.replaceAll("_", " ").replace(/^mtu$/, "MTU").replace(/^cpu/, "CPU").replace("hostname", "host name");

/** @param {string[][]} words @param {(example: string) => string} hint @returns {[string, any][]} */
const inputs = (words, hint) => words.map(([word, example]) => [word, el("input", { id: `new-${word}`, placeholder: hint(example) })]);
const asIs = (/** @type {string} */ example) => `as it is; or ${example}`;

/** @param {[string, any][]} fields */
const rows = (fields) => fields.map(([word, input]) => [el("label", { for: `new-${word}` }, said(word)), input]);

/** What was filled in. @param {[string, any][]} fields */
const filled = (fields) => Object.fromEntries(fields.filter(([, input]) => input.value.trim()).map(([word, input]) => [word, input.value.trim()]));

/** @param {string} id @param {string[][]} options */
const select = (id, options) => el("select", { id }, options.map(([value, text]) => el("option", { value }, text)));

/** @param {any} panel @param {string} name @param {any} link */
export function linkForm(panel, name, link) {
  const fields = inputs(WORDS, asIs), more = inputs(MORE, asIs), ofClass = inputs(OF_A_CLASS, asIs);
  const side = select("new-side", [["", "both directions"], ["forward", `${link.a} → ${link.b}`], ["reverse", `${link.b} → ${link.a}`]]);
  const shape = select("new-distribution", [["", "as it is"], ...DISTRIBUTIONS.map((d) => [d, d])]);
  const classes = [...new Set([...link.forward.classes, ...link.reverse.classes])];
  const of = select("new-class", [["", "none"], ...classes.map((c) => [c, c])]);
  const send = (/** @type {any} */ wanted) => panel.change("link", { link: name, ...wanted });
  const apply = () => {
    const changes = filled([...fields, ...more, ["distribution", shape]]);
    send({ changes, class: of.value ? { name: of.value, ...filled(ofClass) } : null, sides: side.value ? [side.value] : null });
  };
  return el("form", { onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); apply(); } }, el("h3", {}, "Change"),
    el("div", { class: "form" }, el("label", { for: "new-side" }, "direction"), side, rows(fields)),
    el("details", { id: "more-of-link" }, el("summary", {}, "corruption, correlations, distribution, queue"),
      el("div", { class: "form" }, rows(more), el("label", { for: "new-distribution" }, "distribution"), shape,
        classes.length ? [el("label", { for: "new-class" }, "class of its queue"), of, rows(ofClass)] : "")),
    el("div", { class: "row" }, el("button", { type: "submit" }, "apply"), el("button", { type: "button", onclick: () => send({ clear: true }) }, "plain wire"),
      link.down ? el("button", { type: "button", onclick: () => send({ up: true }) }, "mend") : el("button", { type: "button", class: "danger", onclick: () => send({ down: true }) }, "cut")));
}

/** MTU and limits of nodes; the host name of one. @param {any} panel @param {string[]} nodes */
export function settingsForm(panel, nodes) {
  const fields = inputs(nodes.length === 1 ? [...SETTINGS, ["hostname", "meter-1"]] : SETTINGS, asIs);
  return el("form", { onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); panel.change("set", { nodes, ...filled(fields) }); } },
    el("details", { id: "settings" }, el("summary", {}, nodes.length === 1 ? "MTU, CPU limit, host name" : "MTU, CPU limit of all"),
      el("div", { class: "form" }, rows(fields)), el("div", { class: "row" }, el("button", { type: "submit" }, "set"))));
}

/** More nodes like those of a group. @param {any} panel @param {string} group */
export function moreForm(panel, group) {
  const count = el("input", { id: "new-count", type: "number", min: 1, max: 100, value: 1 }), idle = el("input", { id: "new-idle", type: "checkbox" });
  return el("form", { onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); panel.change("add", { group, count: Number(count.value), idle: idle.checked }); } },
    el("h3", {}, `More like ${group}`), el("div", { class: "row" }, el("label", { for: "new-count" }, "how many"), count, el("label", {}, idle, " without the software of the scenario"), el("button", { type: "submit" }, "add")));
}

/** A virtual machine kept as it is, and taken back to it. @param {any} panel @param {string} node */
export function snapshotForm(panel, node) {
  const name = el("input", { id: "new-snapshot", value: "snapshot" });
  const act = (/** @type {string} */ action) => el("button", { type: "button", onclick: () => panel.change("snapshot", { action, nodes: [node], name: name.value.trim() }) }, action);
  return el("div", { class: "row" }, el("label", { for: "new-snapshot" }, "snapshot"), name, act("snapshot"), act("revert"));
}
