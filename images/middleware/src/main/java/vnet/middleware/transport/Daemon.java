package vnet.middleware.transport;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import vnet.middleware.Middleware.Address;

/** Runs a server that a middleware needs, in a directory of its own that `close` removes; the listening side runs it while it listens. */
final class Daemon implements AutoCloseable {
    private static final long WITHIN_MS = 60_000; // RabbitMQ needs five seconds of a core
    private static final int ASKED_EVERY_MS = 50;
    private static final int TOLD_LINES = 5;

    private final Process process;
    private final Path directory;

    /** Starts the program whose command `argv` returns for the directory, and waits until it listens; throws IOException if it ends or does not listen in time. */
    Daemon(Address at, Function<Path, List<String>> argv) throws IOException, InterruptedException {
        directory = Files.createTempDirectory("middleware-");
        Path log = directory.resolve("log");
        List<String> words = argv.apply(directory);
        process = new ProcessBuilder(words)
                .directory(directory.toFile())
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WITHIN_MS);
        while (!listens(at)) {
            if (!process.isAlive() || System.nanoTime() > until) {
                process.destroy();
                List<String> lines = Files.readAllLines(log);
                String end = String.join("\n", lines.subList(Math.max(0, lines.size() - TOLD_LINES), lines.size()));
                throw new IOException(words.get(0) + ": does not listen on port " + at.port() + "; its log ends with\n" + end);
            }
            Thread.sleep(ASKED_EVERY_MS);
        }
    }

    /** Writes a file for the server before it starts; returns the file's path. */
    static Path file(Path directory, String name, String content) {
        try {
            Path path = directory.resolve(name);
            Files.createDirectories(path.getParent());
            return Files.writeString(path, content);
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private static boolean listens(Address at) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(at.host(), at.port()), ASKED_EVERY_MS);
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    @Override
    public void close() throws InterruptedException, IOException {
        process.destroy();
        process.waitFor(WITHIN_MS, TimeUnit.MILLISECONDS);
        try (var files = Files.walk(directory)) {
            for (Path path : files.sorted(java.util.Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(path);
            }
        }
    }
}
