// Accounts for the messages of a program in a vNET lab (docs/accounting.md). Copy this file beside the program.
//
//   const account = new Accounting();
//   for await (const message of account.due()) { // each when it is due
//     const sentNs = account.nowNs();
//     ...
//     account.sent(message, sentNs);
//   }
//
// A receiver calls account.received(flow, seq) for each arrival: put both numbers into the message. Times are
// BigInt. Node.js only.
import { openSync, readFileSync, writeSync } from "node:fs";

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

function refuse(text) {
  console.error(`vnet_accounting: ${text}`);
  process.exit(1);
}

export class Accounting {
  constructor() {
    const { VNET_FLOWS, VNET_RECORDS } = process.env;
    if (!VNET_FLOWS || !VNET_RECORDS)
      refuse("no VNET_FLOWS and VNET_RECORDS: the command needs `flows:` or `receives: true`");
    this.read();
    this.endpoint = this.told.endpoint;
    this.records = openSync(VNET_RECORDS, "a");
  }

  read() {
    const text = readFileSync(process.env.VNET_FLOWS, "utf8");
    this.told = JSON.parse(text);
    // Times are larger than the numbers that JSON.parse keeps exact.
    const exact = (key) => BigInt(text.match(new RegExp(`"${key}":\\s*(-?\\d+)`))?.[1] ?? 0);
    [this.offsetNs, this.t0Ns] = [exact("clock_offset_ns"), exact("t0_ns")];
  }

  // The lab's time in Unix nanoseconds.
  nowNs() {
    return process.hrtime.bigint() + this.offsetNs;
  }

  // Waits until vNET states when the scenario starts.
  async begin() {
    for (; this.told.t0_ns === null; this.read()) await sleep(10);
    return this.t0Ns;
  }

  // Yields each message of all flows when it is due: {flow, seq, size, scheduledNs, to: [{endpoint, address}]}.
  async *due() {
    await this.begin();
    const all = this.told.sends.flatMap((flow) => {
      if (flow.times_ns === null)
        refuse(`${flow.name} has no list of times: it has more than 10,000 messages`);
      return flow.times_ns.map((at, seq) => ({ flow, at, seq }));
    });
    all.sort((a, b) => a.at - b.at || a.flow.number - b.flow.number || a.seq - b.seq);
    for (const { flow, at, seq } of all) {
      const scheduledNs = this.t0Ns + BigInt(at);
      for (let left; (left = Number(scheduledNs - this.nowNs())) > 0; ) await sleep(left / 1e6);
      yield { flow: flow.number, seq, size: flow.payload.bytes, scheduledNs, to: flow.to };
    }
  }

  // Records a message that was sent, and whose arrival the protocol does not confirm.
  sent(message, sentNs) {
    this.outcome(message, sentNs, 0n, 1, "sent");
  }

  // Records a message that was acknowledged, or a request whose replies have all arrived.
  settled(message, sentNs, settledNs, attempts = 1) {
    this.outcome(message, sentNs, settledNs, attempts, "settled");
  }

  // Records a message that was sent, and whose acknowledgement or reply did not come.
  unsettled(message, sentNs, attempts = 1) {
    this.outcome(message, sentNs, 0n, attempts, "unsettled");
  }

  // Records a message that was never sent.
  unsent(message) {
    this.outcome(message, 0n, 0n, 0, "unsent");
  }

  outcome({ flow, seq, size, scheduledNs }, sentNs, settledNs, attempts, outcome) {
    if (sentNs && sentNs < scheduledNs) sentNs = scheduledNs;
    this.write(`S,${flow},${seq},${size},${scheduledNs},${sentNs},${settledNs},${attempts},${outcome}`);
  }

  // Records an arrival at this program, now; copy: the protocol marks it as a repetition.
  received(flow, seq, copy = false) {
    this.write(`R,${flow},${seq},${this.endpoint},0,${this.nowNs()},${copy ? 1 : 0}`);
  }

  // Records the arrival of the reply of an endpoint to a request of this program, now.
  replied(flow, seq, receiver) {
    this.write(`R,${flow},${seq},${receiver},1,${this.nowNs()},0`);
  }

  // Records that this program takes messages from now on.
  listening() {
    this.write(`C,${this.endpoint},listening,${this.nowNs()},`);
  }

  write(line) {
    writeSync(this.records, line + "\n");
  }
}
