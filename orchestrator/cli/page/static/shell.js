// A node's shell, or a virtual machine's console: xterm.js on a WebSocket that ends in a pty or a serial line.
// @ts-check
import { ask, byId, bytesOf, el } from "./dom.js";
import { Terminal } from "./vendor/xterm.mjs";
import { FitAddon } from "./vendor/addon-fit.mjs";

const LAST_BYTES = 4096;
let close = () => {};

/** What a serial line said last: it says nothing again to who comes later. @param {string} lab @param {string} node */
async function before(lab, node) {
  const path = encodeURIComponent(`raw/logs/${node}.console.log`);
  return bytesOf((await ask(`/api/lab/${encodeURIComponent(lab)}/fetch?path=${path}&offset=-${LAST_BYTES}`)).data);
}

/** @param {string} lab @param {string} node @param {"shell" | "console"} kind */
export function openTerminal(lab, node, kind) {
  close();
  const place = byId("terminal"), screen = el("div", { class: "screen" }), words = el("span", {}, `${node}: connecting`);
  const leave = el("button", { onclick: () => close() }, "close"), from = /** @type {HTMLElement | null} */ (document.activeElement);
  const terminal = new Terminal({ cursorBlink: true, fontSize: 13, theme: { background: "#101316" } });
  const fit = new FitAddon();
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/lab/${encodeURIComponent(lab)}/${kind}/${encodeURIComponent(node)}`);
  socket.binaryType = "arraybuffer";
  place.hidden = false;
  place.replaceChildren(el("div", { class: "row" }, el("b", {}, kind), words, leave, el("span", { class: "note" }, "Shift+Esc leaves the terminal")), screen);
  terminal.loadAddon(fit);
  terminal.open(screen);
  terminal.attachCustomKeyEventHandler((/** @type {KeyboardEvent} */ e) => { // Tab belongs to the shell: some key must lead out
    if (e.key !== "Escape" || !e.shiftKey) return true;
    if (e.type === "keydown") leave.focus();
    return false;
  });
  const size = () => { fit.fit(); if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ rows: terminal.rows, cols: terminal.cols })); };
  const resized = new ResizeObserver(size);
  resized.observe(screen);
  if (kind === "console") before(lab, node).then((said) => terminal.write(said), () => {});
  socket.onopen = () => { words.textContent = node; size(); early.forEach(send); terminal.focus(); };
  socket.onmessage = (message) => { if (typeof message.data === "string") words.textContent = `${node}: ${message.data}`; else terminal.write(new Uint8Array(message.data)); };
  socket.onclose = () => { terminal.options.disableStdin = true; if (words.textContent === node) words.textContent = `${node}: closed`; };
  const encoder = new TextEncoder(), early = /** @type {string[]} */ ([]); // typed before the line was there
  const send = (/** @type {string} */ text) => { if (socket.readyState === WebSocket.OPEN) socket.send(encoder.encode(text)); };
  terminal.onData((/** @type {string} */ text) => { if (socket.readyState === WebSocket.CONNECTING) early.push(text); else send(text); });
  close = () => { resized.disconnect(); socket.close(); terminal.dispose(); place.hidden = true; place.replaceChildren(); from?.focus({ preventScroll: true }); close = () => {}; };
}
