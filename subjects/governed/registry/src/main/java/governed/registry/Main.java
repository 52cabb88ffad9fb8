package governed.registry;

import java.nio.file.Path;

/** The command line: see {@link #USAGE}. */
public final class Main {

    private static final String USAGE =
            "registry-app.jar serve PORT FOLDER [NODES]   a ZooKeeper on 127.0.0.1:PORT with its data in FOLDER;\n"
                    + "                                         a node for every file below NODES\n"
                    + "registry-app.jar put HOST:PORT PATH TEXT     sets a node of one that runs\n"
                    + "registry-app.jar remove HOST:PORT PATH       removes one";

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        String command = arguments.length == 0 ? "" : arguments[0];
        if (command.equals("serve") && (arguments.length == 3 || arguments.length == 4)) {
            serve(arguments);
        } else if (command.equals("put") && arguments.length == 4) {
            try (Nodes nodes = new Nodes(arguments[1])) {
                nodes.put(arguments[2], arguments[3]);
            }
        } else if (command.equals("remove") && arguments.length == 3) {
            try (Nodes nodes = new Nodes(arguments[1])) {
                nodes.remove(arguments[2]);
            }
        } else {
            System.err.println(USAGE);
            System.exit(2);
        }
    }

    private static void serve(String[] arguments) throws Exception {
        Registry registry = Registry.start(Integer.parseInt(arguments[1]), Path.of(arguments[2]));
        Runtime.getRuntime().addShutdownHook(new Thread(registry::close));
        if (arguments.length == 4) {
            try (Nodes nodes = new Nodes(registry.address())) {
                nodes.putAll(Path.of(arguments[3])).forEach(path -> System.out.println("registry: made " + path));
            }
        }
        System.out.println("registry: listens on " + registry.address());
        registry.join();
    }
}
