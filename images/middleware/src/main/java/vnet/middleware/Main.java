package vnet.middleware;

import vnet.middleware.node.Mmxu;

/** Runs one side of an exchange (`run SETTINGS.json`), or prints the object's length with each serialiser (`sizes SEED`). */
public final class Main {
    private static final int USAGE = 2;

    private Main() {}

    public static void main(String[] args) {
        try {
            if (args.length == 2 && args[0].equals("run")) {
                run(args[1]);
            } else if (args.length == 2 && args[0].equals("sizes")) {
                sizes(Long.parseLong(args[1]));
            } else {
                System.err.println("middleware: run SETTINGS.json, or sizes SEED");
                System.exit(USAGE);
            }
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    private static void run(String path) throws Exception {
        Account account = new Account();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                account.close();
            } catch (java.io.IOException e) {
                e.printStackTrace();
            }
        }));
        Pauses.tell(account);
        new Side(Settings.read(path), account).run();
    }

    private static void sizes(long seed) throws Exception {
        Mmxu object = Mmxu.filled(seed);
        for (String name : Known.names("serialisers")) {
            System.out.println(name + " " + Known.serialiser(name).write(object).length);
        }
    }
}
