// Accounts for the messages of a program in a vNET lab (docs/accounting.md). Copy this file beside the program.
//
//   var account = new VnetAccounting();
//   for (VnetAccounting.Message message; (message = account.due()) != null; ) { // each when it is due
//     long sentNs = account.nowNs();
//     ...
//     account.sent(message, sentNs);
//   }
//
// A receiver calls account.received(flow, seq, false) for each arrival: put both numbers into the message. Java
// 17 on Linux, where System.nanoTime() is CLOCK_MONOTONIC; threads may share an object.
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

public final class VnetAccounting {
  /** A receiver of messages. */
  public record Peer(String endpoint, String address) {}

  /** A message that is due; size in bytes, scheduledNs in Unix time. */
  public record Message(int flow, long seq, long size, long scheduledNs, List<Peer> to) {}

  public final String endpoint;
  private final FileOutputStream records;
  private String told;
  private Iterator<Message> messages;

  /** Reads what vNET states; ends the program if vNET has not started it with `flows` or `receives`. */
  public VnetAccounting() {
    read();
    endpoint = text(need(told, "endpoint"));
    try {
      records = new FileOutputStream(variable("VNET_RECORDS"), true);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static String variable(String name) {
    String value = System.getenv(name);
    if (value == null)
      throw refuse("no VNET_FLOWS and VNET_RECORDS: the command needs `flows:` or `receives: true`");
    return value;
  }

  private static RuntimeException refuse(String text) {
    System.err.println("vnet_accounting: " + text);
    System.exit(1);
    return new IllegalStateException(text);
  }

  private void read() {
    try {
      told = Files.readString(Path.of(variable("VNET_FLOWS")));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** Returns the lab's time in Unix nanoseconds. */
  public long nowNs() {
    return System.nanoTime() + Long.parseLong(need(told, "clock_offset_ns"));
  }

  /** Waits until vNET states when the scenario starts, and returns that time. */
  public synchronized long begin() {
    for (; need(told, "t0_ns").equals("null"); read()) LockSupport.parkNanos(10_000_000);
    return Long.parseLong(need(told, "t0_ns"));
  }

  /** Waits until the next message of all flows is due, and returns it; null after the last one. */
  public Message due() {
    if (messages == null) messages = all().iterator();
    if (!messages.hasNext()) return null;
    Message message = messages.next();
    for (long left; (left = message.scheduledNs - nowNs()) > 0; ) LockSupport.parkNanos(left);
    return message;
  }

  private List<Message> all() {
    long t0 = begin();
    var found = new ArrayList<Message>();
    for (String flow : parts(need(told, "sends"))) {
      var to = parts(need(flow, "to")).stream()
          .map(peer -> new Peer(text(need(peer, "endpoint")), text(need(peer, "address")))).toList();
      String times = need(flow, "times_ns");
      if (times.equals("null"))
        throw refuse(text(need(flow, "name")) + " has no list of times: it has more than 10,000 messages");
      int number = Integer.parseInt(need(flow, "number"));
      long size = Long.parseLong(need(need(flow, "payload"), "bytes")), seq = 0;
      for (String at : parts(times)) found.add(new Message(number, seq++, size, t0 + Long.parseLong(at), to));
    }
    found.sort(Comparator.comparingLong(Message::scheduledNs).thenComparing(Message::flow));
    return found;
  }

  /** Records a message that was sent, and whose arrival the protocol does not confirm. */
  public void sent(Message message, long sentNs) {
    outcome(message, sentNs, 0, 1, "sent");
  }

  /** Records a message that was acknowledged, or a request whose replies have all arrived. */
  public void settled(Message message, long sentNs, long settledNs, int attempts) {
    outcome(message, sentNs, settledNs, attempts, "settled");
  }

  /** Records a message that was sent, and whose acknowledgement or reply did not come. */
  public void unsettled(Message message, long sentNs, int attempts) {
    outcome(message, sentNs, 0, attempts, "unsettled");
  }

  /** Records a message that was never sent. */
  public void unsent(Message message) {
    outcome(message, 0, 0, 0, "unsent");
  }

  private void outcome(Message m, long sentNs, long settledNs, int attempts, String outcome) {
    long sent = sentNs == 0 ? 0 : Math.max(sentNs, m.scheduledNs);
    write("S," + m.flow + "," + m.seq + "," + m.size + "," + m.scheduledNs + "," + sent + "," + settledNs + ","
        + attempts + "," + outcome);
  }

  /** Records an arrival at this program, now; copy: the protocol marks it as a repetition. */
  public void received(int flow, long seq, boolean copy) {
    write("R," + flow + "," + seq + "," + endpoint + ",0," + nowNs() + "," + (copy ? 1 : 0));
  }

  /** Records the arrival of the reply of an endpoint to a request of this program, now. */
  public void replied(int flow, long seq, String receiver) {
    write("R," + flow + "," + seq + "," + receiver + ",1," + nowNs() + ",0");
  }

  /** Records that this program takes messages from now on. */
  public void listening() {
    write("C," + endpoint + ",listening," + nowNs() + ",");
  }

  private synchronized void write(String line) {
    try {
      records.write((line + "\n").getBytes(StandardCharsets.UTF_8));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  // JSON: what follows finds values, without an escape in the strings that are looked at.

  private static String text(String value) {
    return value.substring(1, value.length() - 1);
  }

  private static String need(String object, String key) {
    var found = parts(object);
    for (int at = 0; at + 1 < found.size(); at += 2)
      if (text(found.get(at)).equals(key)) return found.get(at + 1);
    throw refuse("VNET_FLOWS has no " + key);
  }

  /** Returns the parts of an array or object: its elements, or key and value in turn. */
  private static List<String> parts(String json) {
    var found = new ArrayList<String>();
    int depth = 0, begin = 1;
    boolean quoted = false;
    for (int at = 1; at < json.length(); at++) {
      char one = json.charAt(at);
      if (quoted) {
        if (one == '\\') at++;
        else if (one == '"') quoted = false;
        continue;
      }
      if (one == '"') quoted = true;
      boolean ends = depth == 0 && (one == ',' || one == ':' || one == ']' || one == '}');
      if (ends && !json.substring(begin, at).isBlank()) found.add(json.substring(begin, at).strip());
      if (ends) begin = at + 1;
      if (one == '{' || one == '[') depth++;
      if (one == '}' || one == ']') depth--;
      if (depth < 0) break;
    }
    return found;
  }
}
