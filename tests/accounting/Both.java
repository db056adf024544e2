// Sends or takes messages over UDP: Both send|take PORT.
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;

public final class Both {
  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(arguments[1]);
    var account = new VnetAccounting();
    if (arguments[0].equals("send")) {
      var socket = new DatagramSocket();
      for (VnetAccounting.Message message; (message = account.due()) != null; ) {
        long sentNs = account.nowNs();
        String text = message.flow() + " " + message.seq() + " ";
        byte[] bytes = (text + ".".repeat((int) message.size() - text.length())).getBytes();
        for (var peer : message.to())
          socket.send(new DatagramPacket(bytes, bytes.length, InetAddress.getByName(peer.address()), port));
        account.sent(message, sentNs);
      }
      return;
    }
    var socket = new DatagramSocket(port);
    account.listening();
    System.out.println("listening");
    var packet = new DatagramPacket(new byte[65536], 65536);
    while (true) {
      packet.setLength(65536);
      socket.receive(packet);
      String[] words = new String(packet.getData(), 0, packet.getLength()).split(" ");
      account.received(Integer.parseInt(words[0]), Long.parseLong(words[1]), false);
    }
  }
}
