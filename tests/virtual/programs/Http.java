// Serves HTTP on port 9000, or asks a server 4 x 25 times from four threads, as its argument says.
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.concurrent.atomic.AtomicInteger;

class Http {
    public static void main(String[] words) throws Exception {
        if (words.length == 0) {
            HttpServer server = HttpServer.create(new InetSocketAddress(9000), 0);
            server.createContext("/", exchange -> {
                byte[] body = exchange.getRequestURI().getPath().getBytes();
                exchange.sendResponseHeaders(200, body.length);
                exchange.getResponseBody().write(body);
                exchange.close();
            });
            server.start();
            System.out.println("listening");
            return;
        }
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        AtomicInteger right = new AtomicInteger();
        Thread[] threads = new Thread[4];
        for (int one = 0; one < threads.length; one++) {
            String head = "/" + one + "/";
            threads[one] = new Thread(() -> {
                try {
                    for (int number = 0; number < 25; number++) {
                        URI uri = URI.create("http://" + words[0] + ":9000" + head + number);
                        String body = client.send(HttpRequest.newBuilder(uri).build(), BodyHandlers.ofString()).body();
                        if (body.equals(head + number)) right.incrementAndGet();
                        Thread.sleep(20);
                    }
                } catch (Exception error) {
                    error.printStackTrace();
                }
            });
            threads[one].start();
        }
        for (Thread thread : threads) thread.join();
        System.out.println("right " + right.get());
        System.exit(0);
    }
}
