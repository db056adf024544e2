// The panel beside the map: the whole lab, a node, a group or a link, with the changes that are possible.
// @ts-check
import { again, ask, bps, bytes, bytesOf, chip, el, level, percent, svg, table } from "./dom.js";
import { classesTable, flowsTable } from "./flows.js";
import { linkForm, moreForm, settingsForm, snapshotForm } from "./forms.js";

const LOG_MS = 1000;
const LOG_BYTES = 65536;

/** @param {Element | null} at */
const named = (at) => at?.getAttribute("aria-label") ?? at?.textContent ?? "";

export class Panel {
  /** @param {HTMLElement} place @param {any} state @param {any} timeline */
  constructor(place, state, timeline) {
    this.place = place; this.state = state; this.timeline = timeline;
    this.chosen = /** @type {any} */ (null);
    this.live = /** @type {(() => void)[]} */ ([]); // what a new sample redraws
    this.log = /** @type {any} */ (null);
    this.snippets = /** @type {string[]} */ ([]);
    this.points = /** @type {string[]} */ ([]); // captures
    this.notes = /** @type {string[]} */ ([]); // nodes
    this.message = /** @type {{text: string, good: boolean, action?: () => void} | null} */ (null);
    this.first = 0; // when the first change was made
    this.shown = "";
    this.pressing = false; // what is under the pointer must still be there when it is let go
    this.behind = false; // something else was to be drawn meanwhile
    place.addEventListener("pointerdown", () => { this.pressing = true; });
    window.addEventListener("click", () => { this.pressing = false; }, true); // before what the click does
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => setTimeout(() => { this.pressing = false; this.catchUp(); }));
    place.addEventListener("focusout", () => setTimeout(() => this.catchUp()));
    this.sent = false; // what the forms hold: they are emptied then
  }

  /** @param {string} kind @param {any} at */
  choose(kind, at) {
    if (kind === "segment") { this.chosen = at.links.length ? { kind: "link", links: at.links } : null; }
    else if (kind === "link") this.chosen = { kind, links: at.links };
    else this.chosen = { kind: at.members.length > 1 ? "group" : "node", name: at.members.length > 1 ? at.name : at.members[0], members: at.members };
    this.stopLog();
    this.draw();
  }

  draw() {
    const held = this.place.contains(document.activeElement) && /INPUT|SELECT/.test(document.activeElement?.tagName ?? "");
    this.behind = held || this.pressing; // somebody types, or is about to let go
    if (this.behind) return;
    const was = this.standing();
    this.live = [];
    const { network } = this.state, chosen = this.chosen;
    const gone = !chosen || !network || (chosen.kind === "node" && !network.nodes[chosen.name]) || (chosen.kind === "link" && !network.links[chosen.links[0]]);
    const parts = gone ? this.overview() : chosen.kind === "node" ? this.node(chosen.name) : chosen.kind === "group" ? this.group(chosen) : chosen.kind === "flows" ? this.flows(chosen.name) : this.link(chosen.links);
    this.place.replaceChildren(...parts);
    this.sampled();
    this.stand(was);
  }

  catchUp() { if (this.behind) this.draw(); }

  /** What somebody has filled in, opened and stands at. */
  standing() {
    const fields = new Map();
    for (const at of this.place.querySelectorAll(this.sent ? "details[id]" : "input[id], select[id], details[id]")) fields.set(at.id, at);
    const active = document.activeElement, inside = this.place.contains(active);
    const name = inside ? named(active) : "", twins = inside ? this.pressable().filter((at) => named(at) === name) : [];
    const found = { fields, name, place: twins.indexOf(/** @type {any} */ (active)) };
    this.sent = false;
    return found;
  }

  /** As it was before it was drawn anew, where the same is shown. @param {any} was */
  stand(was) {
    const shown = JSON.stringify([this.chosen?.kind, this.chosen?.name, this.chosen?.links?.[0]]), same = shown === this.shown;
    this.shown = shown;
    if (!same) { if (was.name) this.pressable()[0]?.focus({ preventScroll: true }); return; }
    for (const [id, before] of was.fields) {
      const at = /** @type {any} */ (this.place.querySelector(`#${CSS.escape(id)}`));
      if (at?.tagName === "DETAILS") at.open = before.open;
      else if (at?.type === "checkbox") at.checked = before.checked;
      else if (at) at.value = before.value;
    }
    if (!was.name) return;
    const again = this.pressable().filter((at) => named(at) === was.name)[was.place] ?? this.place.querySelector("[role=status]");
    /** @type {HTMLElement | null} */ (again)?.focus({ preventScroll: true });
  }

  pressable() { return /** @type {HTMLElement[]} */ ([...this.place.querySelectorAll("button, a, summary, [tabindex]")]); }

  sampled() { if (this.state.sample && !this.pressing) for (const redraw of this.live) redraw(); }

  back() { return el("button", { onclick: () => { this.chosen = null; this.stopLog(); this.draw(); } }, "← whole lab"); }

  overview() {
    const { warnings, network } = this.state;
    const flows = el("div"), hosts = el("div");
    const choose = (/** @type {string} */ name) => { this.chosen = { kind: "flows", name }; this.draw(); };
    this.live.push(() => again(flows, classesTable(this.state.history, choose, this.serving())), () => this.busiest(hosts));
    return [
      network?.drawing.note ? el("p", { class: "banner open" }, network.drawing.note) : "",
      el("h2", {}, "Flows"), flows, el("h2", {}, "Busiest nodes"), hosts,
      el("h2", {}, warnings.size ? `Warnings (${warnings.size})` : "Warnings"),
      warnings.size ? el("ul", { class: "warnings" }, [...warnings.values()].map((w) => el("li", { class: w.suspect ? "suspect" : "" }, el("b", {}, `${w.code}: `), w.text, el("div", { class: "muted" }, w.remedy)))) : el("p", { class: "muted" }, "None."),
      this.said(), this.captures(),
      this.state.captures?.length ? [el("h2", {}, "Captures"), el("ul", {}, this.state.captures.map((/** @type {string} */ name) => el("li", {}, el("a", { href: `${this.state.files}/pcap/${encodeURIComponent(name)}`, download: name }, name))))] : "",
    ].flat();
  }

  /** The flows of a class of traffic. @param {string} name */
  flows(name) {
    const at = el("div");
    this.live.push(() => at.replaceChildren(...flowsTable(this.state.history, this.timeline.plan?.flows ?? {}, name)));
    return [el("div", { class: "row" }, this.back()), el("h2", {}, `Flows: ${name}`), el("p", { class: "note" }, "Lost: not received within 3 s after it was due."), at];
  }

  /** @param {HTMLElement} at */
  busiest(at) {
    const nodes = Object.entries(this.state.sample.nodes).sort((a, b) => b[1].cpu - a[1].cpu || b[1].rx_bps - a[1].rx_bps).slice(0, 8);
    const name = (/** @type {string} */ n) => el("button", { onclick: () => { this.chosen = { kind: "node", name: n }; this.draw(); } }, n);
    again(at, nodes.length ? table(["node", "CPU", "memory", "receives", "sends"], nodes.map(([n, v]) => [name(n), percent(v.cpu), bytes(v.memory_bytes), bps(v.rx_bps), bps(v.tx_bps)]), [1, 2, 3, 4]) : el("p", { class: "muted" }, "No samples yet."));
  }

  /** @param {any} chosen */
  group(chosen) {
    const cells = el("div", { class: "cells" });
    const buttons = chosen.members.map((/** @type {string} */ name) => el("button", { title: name, "aria-label": name, onclick: () => { this.chosen = { kind: "node", name }; this.draw(); } }));
    cells.append(...buttons);
    const values = el("div");
    this.live.push(() => {
      const { nodes } = this.state.sample;
      chosen.members.forEach((/** @type {string} */ name, /** @type {number} */ place) => {
        const now = nodes[name];
        buttons[place].className = `${level(now?.cpu ?? 0)}${/fail|stopped/.test(this.state.network.nodes[name]?.state ?? "") ? " failed" : ""}`;
        if (now) buttons[place].title = `${name}: CPU ${percent(now.cpu)}, ${bytes(now.memory_bytes)}, receives ${bps(now.rx_bps)}, sends ${bps(now.tx_bps)}`;
      });
      const top = chosen.members.filter((/** @type {string} */ n) => nodes[n]).sort((/** @type {string} */ a, /** @type {string} */ b) => nodes[b].cpu - nodes[a].cpu).slice(0, 10);
      values.replaceChildren(table(["busiest", "CPU", "memory", "receives", "sends"], top.map((/** @type {string} */ n) => [n, percent(nodes[n].cpu), bytes(nodes[n].memory_bytes), bps(nodes[n].rx_bps), bps(nodes[n].tx_bps)]), [1, 2, 3, 4]));
    });
    const unfolded = this.state.unfolding.has(chosen.name);
    const turn = el("button", { onclick: () => this.state.unfolding.turn(chosen.name) }, unfolded ? "fold on the map" : "unfold on the map");
    return [el("div", { class: "row" }, this.back(), turn), el("h2", {}, `${chosen.name} × ${chosen.members.length}`), el("p", { class: "note" }, "Each cell is a node, coloured by its CPU; press one to see the node."), cells, this.said(), values, this.may() ? [moreForm(this, this.state.network.nodes[chosen.members[0]]?.group ?? chosen.name), settingsForm(this, chosen.members)] : ""].flat();
  }

  /** Whether the lab stays up without a scenario. */
  serving() { return Boolean(this.state.phase ? this.state.phase.serving : this.state.status?.serving); }

  may() { return !this.state.readOnly && !this.state.virtual && !this.state.files; }

  /** Captures that run: how much so far, for keeping, and the command that shows them as they pass. */
  captures() {
    const all = Object.entries(this.state.network?.captures ?? {});
    if (!all.length) return "";
    const lab = encodeURIComponent(this.state.lab);
    return [el("h2", {}, "Running captures"), el("ul", { class: "captures" }, all.map(([name, one]) => el("li", {},
      el("b", {}, name), ` at ${one.at}${one.filter ? `, ${one.filter}` : ""} `, el("a", { href: `/api/lab/${lab}/capture/${encodeURIComponent(name)}`, download: `${name}.pcap` }, "download"), " ",
      one.live && this.may() ? el("button", { onclick: () => this.change("capture", { action: "off", name }) }, "turn off") : "",
      el("div", { class: "note" }, "live in Wireshark: ", el("code", {}, `vnet wireshark ${this.state.lab} ${name}`)))))];
  }

  /** The button that turns a capture on, or off where one runs there. @param {string} at */
  capture(at) {
    const running = Object.entries(this.state.network.captures ?? {}).find(([, one]) => one.at === at && one.live);
    if (running) return [el("button", { onclick: () => this.change("capture", { action: "off", name: running[0] }) }, "capture off"), " ", el("a", { href: `/api/lab/${encodeURIComponent(this.state.lab)}/capture/${encodeURIComponent(running[0])}`, download: `${running[0]}.pcap` }, "download")];
    return el("button", { onclick: () => this.change("capture", { action: "on", at }), title: `vnet wireshark ${this.state.lab} '${at}' shows its packets live` }, "capture on");
  }

  /** Asks before what cannot be taken back. @param {string} question @param {string} what @param {any} wanted */
  sure(question, what, wanted) {
    this.message = { text: question, good: false, action: () => this.change(what, wanted) };
    this.draw();
  }

  /** @param {string} name */
  node(name) {
    const node = this.state.network.nodes[name];
    const curves = [["CPU", "cpu", percent], ["memory", "memory_bytes", bytes], ["receives", "rx_bps", bps], ["sends", "tx_bps", bps]].map(([title, key, show]) => this.curve(String(title), (s) => s.nodes[name]?.[/** @type {string} */ (key)], /** @type {any} */ (show)));
    const may = !this.state.readOnly && !this.state.virtual;
    const act = (/** @type {string} */ action, /** @type {string | null} */ software) => el("button", { class: action === "stop" ? "danger" : "", onclick: () => this.change("power", { action, nodes: [name], software }) }, action);
    const programs = Object.entries(node.software).map(([program, state]) => [program, chip(String(state), /ready|agent|running/.test(String(state)) ? "good" : /fail/.test(String(state)) ? "bad" : ""),
      [this.log_of(name, program), " ", may && state !== "agent" ? ["start", "stop", "restart"].map((a) => [act(a, program), " "]) : ""]]);
    const logs = el("div", { id: "log" });
    if (this.log) logs.append(this.log.at);
    return [
      el("div", { class: "row" }, this.back()), el("h2", {}, name), el("p", { class: "note" }, [node.kind, node.group !== name ? `of ${node.group}` : "", node.state].filter(Boolean).join(" · ")),
      el("div", { class: "row" }, may ? [el("button", { onclick: async () => (await import("./shell.js")).openTerminal(this.state.lab, name, "shell") }, "shell"), act("start", null), act("stop", null), act("restart", null), this.capture(`node ${name}`), el("button", { class: "danger", onclick: () => this.sure(`Remove ${name} from the lab?`, "remove", { nodes: [name] }) }, "remove"), node.kind === "vm" ? el("button", { onclick: async () => (await import("./shell.js")).openTerminal(this.state.lab, name, "console") }, "console") : ""] : "", node.kind === "vm" && !this.state.files ? el("button", { onclick: () => this.follow(`raw/logs/${name}.console.log`) }, "console log") : ""),
      this.said(), ...curves, this.limits(node.limits),
      el("h3", {}, "Programs"), programs.length ? table(["program", "state", ""], programs) : el("p", { class: "muted" }, "None."), logs,
      el("h3", {}, "Interfaces"), table(["", "address", "on", "MTU"], node.interfaces.map((/** @type {any} */ i) => [i.name, [i.address ? `${i.address}/${i.prefix}` : "", i.second ? `${i.second}/${i.second_prefix}` : ""].filter(Boolean).join(", "), this.way(name, i.segment), i.mtu]), [3]),
      this.may() ? [el("h3", {}, "Change"), settingsForm(this, [name]), node.kind === "vm" ? snapshotForm(this, name) : "", moreForm(this, node.group)] : "",
    ].flat();
  }

  /** A segment, or the link that leads to it. @param {string} node @param {string} segment */
  way(node, segment) {
    const found = Object.entries(this.state.network.links).find(([name, link]) => name === segment || (link.kind === "access" && link.a === node && link.b === segment));
    return found ? el("button", { onclick: () => { this.chosen = { kind: "link", links: [found[0]] }; this.stopLog(); this.draw(); } }, found[0]) : segment;
  }

  /** Of CPU, as they are enforced. @param {any} limits */
  limits(limits) {
    const parts = Object.entries(limits ?? {}).filter(([, value]) => value !== null && typeof value !== "object").map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`);
    return parts.length ? el("p", { class: "note" }, `limits: ${parts.join(", ")}`) : "";
  }

  /** @param {string} node @param {string} program */
  log_of(node, program) {
    const file = `raw/logs/${node}.${program}.log`;
    if (this.state.files) return el("a", { href: `${this.state.files}/${file}` }, "log");
    return el("button", { onclick: () => this.follow(file) }, "log");
  }

  /** @param {string[]} links */
  link(links) {
    const name = links[0], link = this.state.network.links[name];
    const many = links.length > 1 ? el("p", { class: "note" }, `${links.length} links of a group; this is the first. `, el("select", { "aria-label": "link", onchange: (/** @type {any} */ e) => { this.chosen = { kind: "link", links: [e.target.value, ...links.filter((n) => n !== e.target.value)] }; this.draw(); } }, links.map((n) => el("option", { value: n }, n)))) : "";
    const sides = [["forward", `${link.a} → ${link.b}`], ["reverse", `${link.b} → ${link.a}`]];
    const curves = sides.map(([side, title]) => this.curve(title, (s) => (s.links[name]?.[side] ?? s.links[name]?.both)?.bps, bps));
    const now = el("div");
    this.live.push(() => now.replaceChildren(table(["", "throughput", "utilisation", "lost", "queue"], sides.map(([side, title]) => {
      const of = this.state.sample.links[name]?.[side] ?? this.state.sample.links[name]?.both, rate = link[side].rate_bps;
      return of ? [title, bps(of.bps), rate ? percent(of.bps / rate) : "", percent(of.dropped), bytes(of.backlog_bytes)] : [title, "", "", "", ""];
    }), [1, 2, 3, 4])));
    return [
      el("div", { class: "row" }, this.back()), el("h2", {}, name), many, link.down ? el("p", { class: "banner bad" }, "This link is down.") : "",
      table(["", "requested", "read back"], sides.map(([side, title]) => [title, link[side].requested, link[side].read])), now, ...curves, this.said(), this.may() ? el("div", { class: "row" }, this.capture(`link ${name}`)) : "", this.may() ? linkForm(this, name, link) : "",
    ];
  }

  /** @param {string} what @param {any} wanted */
  async change(what, wanted) {
    if (/INPUT|SELECT/.test(document.activeElement?.tagName ?? "")) /** @type {any} */ (document.activeElement).blur();
    this.message = { text: "…", good: true };
    this.draw();
    try {
      const answer = await ask(`/api/lab/${encodeURIComponent(this.state.lab)}/${what}`, wanted);
      this.message = { text: "Done, read back, and recorded as an event.", good: true };
      this.sent = true;
      if (answer.snippet) this.snippets.push(`  - {at: ${this.moment()}, ${answer.snippet}}${answer.left_out ? `  # and, as in the file: ${answer.left_out}` : ""}`);
      if (answer.capture) this.points.push(`  ${answer.capture}`);
      if (answer.note) this.notes.push(`# ${answer.note}`);
    } catch (error) {
      this.message = { text: /** @type {Error} */ (error).message, good: false };
    }
    this.draw();
  }

  /** When a change was made, as a timeline names moments. */
  moment() {
    const bounds = this.timeline.bounds(), now = Math.max(this.timeline.now, ...this.timeline.events.map((/** @type {any} */ e) => e.t_ns ?? 0));
    const hold = bounds ? bounds.t0 + this.timeline.plan.ramp_ns : 0;
    if (bounds && now > hold) return `hold + ${((now - hold) / 1e9).toFixed(1)} s`;
    this.first ||= Date.now(); // no scenario: from the first change on
    return `hold + ${((Date.now() - this.first) / 1000).toFixed(1)} s`;
  }

  said() {
    const { message } = this;
    return el("div", { role: "status", tabindex: -1 }, message ? el("p", { class: `banner ${message.good ? "good" : message.action ? "open" : "bad"}` }, message.text, message.action ? [" ", el("button", { class: "danger", onclick: message.action }, "yes"), " ", el("button", { onclick: () => { this.message = null; this.draw(); } }, "no")] : "") : "", this.changes());
  }

  changes() {
    if (!this.snippets.length && !this.points.length && !this.notes.length) return "";
    const part = (/** @type {string} */ head, /** @type {string[]} */ lines) => (lines.length ? `${head}\n${lines.join("\n")}\n` : "");
    const text = part("timeline:", this.snippets) + part("captures:", this.points) + part("# by hand, in the file:", this.notes);
    return el("details", { open: true }, el("summary", {}, "Your changes, as a timeline"), el("pre", { class: "log" }, text), el("button", { onclick: () => navigator.clipboard.writeText(text) }, "copy"));
  }

  /** @param {string} title @param {(sample: any) => number | undefined} value @param {(v: number) => string} show */
  curve(title, value, show) {
    const line = svg("polyline"), now = el("b"), most = el("span", { class: "muted" });
    this.live.push(() => {
      const { history } = this.state;
      const points = history.map((/** @type {any} */ s, /** @type {number} */ i) => [i, value(s)]).filter((/** @type {any[]} */ p) => p[1] !== undefined);
      const top = Math.max(1e-9, ...points.map((/** @type {number[]} */ p) => p[1])), last = points.at(-1);
      line.setAttribute("points", points.map((/** @type {number[]} */ [i, v]) => `${(i * 300) / Math.max(1, history.length - 1)},${44 - (40 * v) / top}`).join(" "));
      now.textContent = last ? show(last[1]) : "-";
      most.textContent = last ? `most ${show(top < 1e-8 ? 0 : top)}` : "";
    });
    return el("div", {}, el("div", { class: "gauge" }, el("span", {}, title), el("span", {}, now, " ", most)), svg("svg", { class: "spark", viewBox: "0 0 300 46", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("line", { x1: 0, x2: 300, y1: 44.5, y2: 44.5 }), line));
  }

  /** A file of the run as it grows. @param {string} path */
  follow(path) {
    this.stopLog();
    const text = el("pre", { class: "log", tabindex: 0 }, "…");
    const log = { at: el("div", {}, el("div", { class: "row" }, el("code", {}, path), el("button", { onclick: () => { this.stopLog(); this.draw(); } }, "close")), text), timer: 0, offset: -LOG_BYTES, decoder: new TextDecoder(), stopped: false };
    this.log = log;
    const more = async () => {
      if (log.stopped) return;
      try {
        const found = document.hidden ? null : await ask(`/api/lab/${encodeURIComponent(this.state.lab)}/fetch?path=${encodeURIComponent(path)}&offset=${log.offset}`);
        if (found && found.size === null) text.textContent = "This log does not exist yet.";
        else if (found) {
          const data = bytesOf(found.data);
          const down = text.scrollTop + text.clientHeight >= text.scrollHeight - 4;
          if (log.offset < 0) text.textContent = data.length ? "" : "The log is empty.";
          else if (data.length && text.textContent === "The log is empty.") text.textContent = "";
          log.offset = found.offset + data.length;
          text.append(log.decoder.decode(data, { stream: true }));
          if (text.textContent.length > 4 * LOG_BYTES) text.textContent = text.textContent.slice(-2 * LOG_BYTES);
          if (down) text.scrollTop = text.scrollHeight;
        }
      } catch (error) { text.append(`\n${/** @type {Error} */ (error).message}\n`); this.stopLog(); return; }
      log.timer = window.setTimeout(more, LOG_MS);
    };
    more();
    this.draw();
  }

  stopLog() { if (this.log) { this.log.stopped = true; clearTimeout(this.log.timer); this.log = null; } }
}
