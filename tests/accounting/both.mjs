// Sends or takes messages over UDP: both.mjs send|take PORT.
import { createSocket } from "node:dgram";
import { Accounting } from "./vnet_accounting.mjs";

const [mode, port] = [process.argv[2], Number(process.argv[3])];
const account = new Accounting();
const socket = createSocket("udp4");
if (mode === "send") {
  for await (const message of account.due()) {
    const sentNs = account.nowNs();
    const text = `${message.flow} ${message.seq} `.padEnd(message.size, ".");
    for (const { address } of message.to) await new Promise((done) => socket.send(text, port, address, done));
    account.sent(message, sentNs);
  }
  socket.close();
} else {
  socket.on("message", (text) => {
    const [flow, seq] = text.toString().split(" ");
    account.received(Number(flow), Number(seq));
  });
  socket.bind(port, () => {
    account.listening();
    console.log("listening");
  });
}
