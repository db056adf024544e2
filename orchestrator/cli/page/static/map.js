// The topology: boxes and links at the server's positions, coloured by the samples; pan and zoom.
// @ts-check
import { bps, byId, bytes, level, percent, quantity, svg } from "./dom.js";

const LABELLED = 40; // links; more would cover one another
const MANY = 60; // boxes; more move without transitions
const STRAND = 3.2; // half the distance of a link's two directions
const STUB = 14; // length of a link that is drawn at its node only
const ARROWS = /** @type {Record<string, (columns: number) => number>} */ ({ ArrowLeft: () => -1, ArrowRight: () => 1, ArrowUp: (columns) => -columns, ArrowDown: (columns) => columns });
const ORDER = ["u0", "u1", "u2", "u3", "u4"];

/** Touches nothing that stays as it is. @param {Element} at @param {string} kind */
function become(at, kind) { if (at.getAttribute("class") !== kind) at.setAttribute("class", kind); }

export class TopologyMap {
  /** @param {HTMLElement} place @param {(kind: string, at: any) => void} choose */
  constructor(place, choose) {
    this.choose = choose;
    this.root = svg("svg", { role: "group", "aria-label": "Topology" });
    this.scene = svg("g");
    this.root.append(this.scene);
    place.prepend(this.root);
    this.view = { x: 0, y: 0, scale: 1 };
    this.boxes = /** @type {any[]} */ ([]);
    this.edges = /** @type {any[]} */ ([]);
    this.shape = "";
    byId("in").onclick = () => this.zoom(1.3);
    byId("out").onclick = () => this.zoom(1 / 1.3);
    byId("fit").onclick = () => this.fit();
    this.root.addEventListener("wheel", (/** @type {WheelEvent} */ e) => { e.preventDefault(); this.zoom(e.deltaY < 0 ? 1.15 : 1 / 1.15, e.offsetX, e.offsetY); }, { passive: false });
    let from = /** @type {number[] | null} */ (null);
    this.root.addEventListener("pointerdown", (/** @type {PointerEvent} */ e) => { from = [e.clientX - this.view.x, e.clientY - this.view.y]; });
    window.addEventListener("pointerup", () => { from = null; });
    window.addEventListener("pointermove", (e) => { if (from) { this.view.x = e.clientX - from[0]; this.view.y = e.clientY - from[1]; this.apply(); } });
    new ResizeObserver(() => { if (!this.touched) this.fit(); }).observe(place);
    this.touched = false;
  }

  apply() { this.scene.setAttribute("transform", `translate(${this.view.x} ${this.view.y}) scale(${this.view.scale})`); }

  zoom(/** @type {number} */ by, x = this.root.clientWidth / 2, y = this.root.clientHeight / 2) {
    const { view } = this;
    this.touched = true;
    view.x = x - (x - view.x) * by; view.y = y - (y - view.y) * by; view.scale *= by;
    this.apply();
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.root;
    if (!width || !this.drawing) return;
    const scale = Math.min(1.5, (width - 24) / this.drawing.width, (height - 60) / this.drawing.height);
    this.view = { scale, x: (width - this.drawing.width * scale) / 2, y: (height - 40 - this.drawing.height * scale) / 2 };
    this.touched = false;
    this.apply();
  }

  /** A new network: drawn anew only where its shape has changed. @param {any} network @param {any} drawing */
  show(network, drawing) {
    const shape = JSON.stringify(drawing);
    if (shape !== this.shape) {
      this.shape = shape;
      this.drawing = drawing;
      this.small = drawing.small;
      this.labelled = drawing.edges.filter((/** @type {any} */ e) => e.links.length && !e.stub).length <= LABELLED;
      this.root.classList.toggle("many", drawing.boxes.length > MANY);
      this.edges = drawing.edges.map((/** @type {any} */ edge) => this.edge(edge));
      this.boxes = drawing.boxes.map((/** @type {any} */ box) => this.box(box));
      this.scene.replaceChildren(...this.boxes.filter((b) => b.box.kind === "frame").map((b) => b.at), ...this.edges.map((e) => e.at), ...this.boxes.filter((b) => b.box.kind !== "frame").map((b) => b.at));
      this.fit();
    }
    this.mark(network);
  }

  /** Marks failed nodes and links that are down. @param {any} network */
  mark(network) {
    this.network = network;
    for (const { at, box } of this.boxes) at.classList.toggle("failed", box.members.some((/** @type {string} */ n) => /fail|stopped/.test(network.nodes[n]?.state ?? "")));
    for (const { edge, words } of this.edges) if (words.length && edge.links.length) this.name(edge, words);
    for (const { at, edge } of this.edges) at.classList.toggle("down", edge.links.length > 0 && edge.links.every((/** @type {string} */ n) => network.links[n]?.down));
  }

  /** @param {any} box */
  box(box) {
    const [x, y, w, h] = [box.x - box.width / 2, box.y - box.height / 2, box.width, box.height];
    const title = box.members.length > 1 ? `${box.name} × ${box.members.length}` : box.name;
    const shown = title.length > 28 ? `${title.slice(0, 27)}…` : title;
    const router = box.role === "router" ? h / 2 : 7;
    const sub = [svg("text", { class: "sub", x: box.x, y: box.y + 8 }), svg("text", { class: "sub", x: box.x, y: box.y + 21 })];
    const bar = svg("rect", { class: "fill", x: x + 8, y: y + h - 5, width: 0, height: 3, rx: 1.5 });
    if (box.kind === "frame") return this.frame(box, title, [x, y, w, h]);
    const plain = this.small || box.kind === "segment";
    const inside = box.inside === null ? 0 : box.name === this.drawing.boxes[box.inside].members[0] ? 0 : -1; // arrows lead on
    const at = svg("g", { class: `box ${box.kind} ${box.role}`, tabindex: inside, role: "button", "aria-label": `${box.kind} ${title}` },
      svg("title", {}, `${box.kind} ${title}`),
      box.members.length > 1 ? svg("rect", { class: "pile", x: x + 4, y: y - 4, width: w, height: h, rx: 7 }) : null,
      svg("rect", { class: "body", x, y, width: w, height: h, rx: router }),
      svg("text", { class: "name", x: box.x, y: plain ? box.y + 4 : box.y - 7 }, shown),
      plain ? null : sub, box.kind === "segment" ? null : bar);
    this.pressed(at, () => this.choose(box.kind, box));
    if (box.inside !== null) at.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => this.walk(e, box));
    return { at, box, sub, bar, title };
  }

  /** Around the nodes of an unfolded group. @param {any} box @param {string} title @param {number[]} place */
  frame(box, title, [x, y, width, height]) {
    const at = svg("g", { class: "box frame", tabindex: 0, role: "button", "aria-label": `group ${title}` },
      svg("rect", { class: "body", x, y, width, height, rx: 9 }), svg("text", { class: "name", x: box.x, y: y + 18 }, title));
    this.pressed(at, () => this.choose("group", box));
    return { at, box, sub: null, bar: null, title };
  }

  /** From one node of a frame to the next. @param {KeyboardEvent} e @param {any} box */
  walk(e, box) {
    const by = ARROWS[e.key], frame = this.drawing.boxes[box.inside];
    if (!by) return;
    e.preventDefault();
    const name = frame.members[frame.members.indexOf(box.name) + by(frame.columns)];
    this.boxes.find((b) => b.box.inside === box.inside && b.box.name === name)?.at.focus();
  }

  /** @param {any} edge */
  edge(edge) {
    const { a, b } = this.ends(edge);
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const twins = edge.stub ? [edge] : this.drawing.edges.filter((/** @type {any} */ e) => (e.a === edge.a && e.b === edge.b) || (e.a === edge.b && e.b === edge.a));
    const aside = (twins.indexOf(edge) - (twins.length - 1) / 2) * 16;
    const [nx, ny] = [-(b.y - a.y) / length, (b.x - a.x) / length];
    const line = (/** @type {number} */ by, /** @type {string} */ kind) => svg("line", { class: kind, x1: a.x + nx * by, y1: a.y + ny * by, x2: b.x + nx * by, y2: b.y + ny * by });
    const plain = edge.links.length === 0;
    const strands = plain ? [line(aside, "u0")] : [line(aside - STRAND, "u0"), line(aside + STRAND, "u0")];
    const middle = this.middle(a, b, nx * aside, ny * aside);
    const words = edge.stub || !this.labelled ? [] : this.words(middle, Math.abs(b.x - a.x), Math.abs(b.y - a.y));
    const name = edge.links.length > 1 ? `${edge.links[0]} … ${edge.links.at(-1)}` : edge.links[0];
    const at = svg("g", { class: `edge${plain ? " plain" : ""}`, ...(plain ? {} : { tabindex: edge.stub ? -1 : 0, role: "button", "aria-label": `link ${name}` }) },
      strands, plain ? null : [line(aside, "hit"), words, svg("title", {}, `link ${name}`)]);
    if (!plain) this.pressed(at, () => this.choose("link", edge));
    if (words.length) words[0].textContent = plain ? "" : name;
    return { at, edge, strands, words };
  }

  /** Three lines of text about a link: over and under its line, or at the right of a steep one. @param {number[]} middle @param {number} across @param {number} down */
  words([x, y], across, down) {
    if (down < across / 2) return [-21, -9, 19].map((dy) => svg("text", { x, y: y + dy }));
    return [-9, 3, 15].map((dy) => svg("text", { class: "beside", x: x + 9 + (18 * across) / down, y: y + dy }));
  }

  /** Where a link's line begins and ends. @param {any} edge */
  ends(edge) {
    const [a, b] = [this.drawing.boxes[edge.a], this.drawing.boxes[edge.b]];
    if (!edge.stub) return { a: this.rim(a, b), b: this.rim(b, a) };
    const x = a.x + (edge.stub * a.width) / 2;
    return { a: { x, y: a.y, width: 0, height: 0 }, b: { x: x + edge.stub * STUB, y: a.y, width: 0, height: 0 } };
  }

  /** The centre of a box; of a frame, its border on the way to another. @param {any} box @param {any} other */
  rim(box, other) {
    if (box.kind !== "frame") return box;
    const [dx, dy] = [other.x - box.x, other.y - box.y], t = Math.min(box.width / 2 / (Math.abs(dx) || 1e-6), box.height / 2 / (Math.abs(dy) || 1e-6));
    return { x: box.x + dx * t, y: box.y + dy * t, width: 0, height: 0 };
  }

  /** The middle of what is seen of a line between two boxes. @param {any} a @param {any} b @param {number} dx @param {number} dy */
  middle(a, b, dx, dy) {
    const out = (/** @type {any} */ box) => Math.min(0.45, Math.min(box.width / 2 / (Math.abs(b.x - a.x) || 1e-6), box.height / 2 / (Math.abs(b.y - a.y) || 1e-6)));
    const t = (out(a) + 1 - out(b)) / 2;
    return [a.x + (b.x - a.x) * t + dx, a.y + (b.y - a.y) * t + dy];
  }

  /** @param {any} at @param {() => void} action */
  pressed(at, action) {
    let down = [0, 0];
    const choose = () => {
      for (const { at: other } of [...this.boxes, ...this.edges]) other.classList.toggle("chosen", other === at);
      action();
    };
    at.addEventListener("pointerdown", (/** @type {PointerEvent} */ e) => { down = [e.clientX, e.clientY]; });
    at.addEventListener("click", (/** @type {MouseEvent} */ e) => { if (Math.hypot(e.clientX - down[0], e.clientY - down[1]) < 5) choose(); });
    at.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(); } });
  }

  /** @param {any} sample */
  update(sample) {
    if (!this.network) return;
    for (const made of this.boxes) this.fillBox(made, sample.nodes);
    for (const made of this.edges) if (made.edge.links.length) this.fillEdge(made, sample.links);
  }

  /** @param {any} made @param {any} nodes */
  fillBox({ box, sub, bar }, nodes) {
    const known = box.members.map((/** @type {string} */ name) => nodes[name]).filter(Boolean);
    if (!known.length || !bar) return;
    const sum = (/** @type {string} */ key) => known.reduce((/** @type {number} */ t, /** @type {any} */ n) => t + n[key], 0);
    const most = Math.max(...known.map((/** @type {any} */ n) => n.cpu));
    bar.setAttribute("width", String((box.width - 16) * Math.min(1, most)));
    become(bar, `fill ${level(most)}`);
    if (this.small) return;
    const each = known.length > 1 ? `CPU ${percent(sum("cpu"))}, most ${percent(most)}` : `CPU ${percent(most)} · ${bytes(sum("memory_bytes"))}`;
    sub[0].textContent = each;
    sub[1].textContent = `↓ ${bps(sum("rx_bps"))}  ↑ ${bps(sum("tx_bps"))}`;
  }

  /** Delay, rate and loss of a direction; of several links, of the first. @param {any} edge @param {"forward" | "reverse"} side */
  brief(edge, side) { return this.network.links[edge.links[0]]?.[side].brief ?? ""; }

  /** Whether both directions have the same impairment, which then stands beside the name. @param {any} edge */
  alike(edge) { return this.brief(edge, "forward") === this.brief(edge, "reverse"); }

  /** The name of a link with its delay, rate and loss. @param {any} edge @param {any[]} words */
  name(edge, words) {
    const name = edge.links.length > 1 ? `${edge.links[0]} … ${edge.links.at(-1)}` : edge.links[0];
    const down = edge.links.every((/** @type {string} */ n) => this.network.links[n]?.down);
    words[0].textContent = [name, down ? "down" : this.alike(edge) ? this.brief(edge, "forward") : ""].filter(Boolean).join(": ");
  }

  /** @param {any} made @param {any} links */
  fillEdge({ at, edge, strands, words }, links) {
    const ways = ["forward", "reverse"].map((side) => {
      const found = { bps: 0, share: 0, dropped: 0, backlog: 0, known: false };
      for (const name of edge.links) {
        const now = links[name]?.[side] ?? (side === "forward" ? links[name]?.both : undefined);
        const link = this.network.links[name];
        if (!now || !link) continue;
        found.known = true;
        found.bps += now.bps;
        found.share = Math.max(found.share, link[side].rate_bps ? now.bps / link[side].rate_bps : now.bps > 100 ? 0.01 : 0);
        found.dropped = Math.max(found.dropped, now.dropped);
        found.backlog += now.backlog_bytes;
      }
      return found;
    });
    ways.forEach((way, place) => become(strands[place], `${level(way.share)}${way.dropped > 0 ? " lossy" : ""}`));
    at.dataset.level = ways.map((way) => level(way.share)).sort((a, b) => ORDER.indexOf(b) - ORDER.indexOf(a))[0];
    if (!words.length) return;
    this.name(edge, words);
    const rated = (/** @type {string} */ side) => this.network.links[edge.links[0]]?.[side].rate_bps;
    const [a, b] = [this.drawing.boxes[edge.a], this.drawing.boxes[edge.b]];
    const arrows = (edge.links.length === 1 && this.network.links[edge.links[0]]?.a === b.name ? b.x < a.x : a.x <= b.x) ? ["→", "←"] : ["←", "→"];
    ways.forEach((way, place) => {
      const brief = this.brief(edge, place ? "reverse" : "forward"), parts = [`${arrows[place]} ${bps(way.bps)}`];
      if (rated(place ? "reverse" : "forward")) parts.push(way.share > 0 && way.share < 0.001 ? "< 0.1 %" : percent(way.share));
      if (way.dropped > 0) parts.push(`${percent(way.dropped)} lost`);
      if (way.backlog > 0) parts.push(`queue ${quantity(way.backlog, "B")}`);
      if (brief && !this.alike(edge)) parts.unshift(brief);
      words[place + 1].textContent = way.known ? parts.join(" · ") : brief;
      words[place + 1].classList.toggle("bad", way.dropped > 0);
    });
  }
}
