package governed.queue;

import java.util.Optional;

/** The command line: see {@link #USAGE}. */
public final class Main {

    private static final String USAGE =
            "queue-app.jar consume          the service: takes the messages of TOPIC from BROKER, which is a QUEUE (kafka, rocketmq-push,\n"
                    + "                               rocketmq-pull; then BROKER is its name server), and says at PORT how many it took\n"
                    + "queue-app.jar produce COUNT    sends so many messages to TOPIC of BROKER, waits until the service at CONSUMER\n"
                    + "                               (http://…) has taken them or takes no more, and says how many it was, as JSON";

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 1 && arguments[0].equals("consume")) {
            try (Consumption consumption = Queue.of(environment("QUEUE")).consume(environment("BROKER"), environment("TOPIC"), "queue");
                    Answers answers = new Answers(Integer.parseInt(environment("PORT")), consumption)) {
                Runtime.getRuntime().addShutdownHook(new Thread(consumption::stop));
                System.out.println("queue: listens on " + answers.address());
                consumption.run();
            }
        } else if (arguments.length == 2 && arguments[0].equals("produce")) {
            Production production = new Production(
                    Queue.of(environment("QUEUE")), environment("BROKER"), environment("TOPIC"), environment("CONSUMER"));
            System.out.println(production.run(Long.parseLong(arguments[1])));
        } else {
            System.err.println(USAGE);
            System.exit(2);
        }
    }

    private static String environment(String name) {
        return Optional.ofNullable(System.getenv(name)).orElseThrow(() -> new IllegalArgumentException(name + " is not set\n" + USAGE));
    }
}
