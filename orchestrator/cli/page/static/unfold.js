// Groups that are unfolded on the map: the server places their nodes.
// @ts-check
import { ask, byId } from "./dom.js";

const ALL = "*";

export class Unfolding {
  /** @param {(query: string) => string} address of a drawing @param {(drawing: any) => void} show @param {(text: string) => void} trouble */
  constructor(address, show, trouble) {
    this.address = address; this.show = show; this.trouble = trouble;
    this.open = /** @type {Set<string>} */ (new Set());
    this.folded = /** @type {any} */ (null);
    this.asked = 0;
    byId("unfold").onclick = () => { if (this.open.size) { this.open.clear(); this.draw(); } else this.turn(ALL); };
  }

  /** @param {string} group */
  has(group) { return this.open.has(ALL) || this.open.has(group); }

  /** Unfold a group, or fold it again. @param {string} group */
  turn(group) {
    if (this.has(group)) {
      if (this.open.delete(ALL) && group !== ALL) for (const name of this.groups()) this.open.add(name);
      this.open.delete(group);
    } else this.open.add(group);
    this.draw();
  }

  groups() { return /** @type {string[]} */ (this.folded?.boxes.filter((/** @type {any} */ b) => b.kind === "group").map((/** @type {any} */ b) => b.name) ?? []); }

  /** A network whose drawing is folded. @param {any} drawing */
  came(drawing) {
    this.folded = drawing;
    byId("unfold").hidden = !this.groups().length;
    this.draw();
  }

  async draw() {
    byId("unfold").textContent = this.open.size ? "Fold" : "Unfold";
    const asked = ++this.asked;
    if (!this.open.size) { this.show(this.folded); return; }
    try {
      const found = await ask(this.address([...this.open].map((name) => `unfold=${encodeURIComponent(name)}`).join("&")));
      if (asked === this.asked) this.show(found.network?.drawing ?? found);
    } catch (error) {
      this.open.clear();
      this.show(this.folded);
      this.trouble(/** @type {Error} */ (error).message);
    }
  }
}
