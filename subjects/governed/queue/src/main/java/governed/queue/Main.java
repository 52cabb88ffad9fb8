package governed.queue;

import java.util.Optional;

/** The command line: see {@link #USAGE}. */
public final class Main {

    private static final String USAGE =
            "queue-app.jar consume          the service: takes the messages of TOPIC from BROKER, which is a QUEUE (kafka, rocketmq-push,\n"
                    + "                               rocketmq-pull; then BROKER is its name server), and says at PORT how many it took\n"
                    + "queue-app.jar produce COUNT    sends so many messages to TOPIC of BROKER, waits until the service at CONSUMER\n"
                    + "                               (http://…) has taken them or takes no more, and says how many it was, as JSON\n"
                    + "queue-app.jar order COUNT      the same, but has the service at RELAY (http://…) send them, in a request with a tag;\n"
                    + "                               with TELL_TAGGED=true it says as well how many messages carried one";

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 1 && arguments[0].equals("consume")) {
            try (Consumption consumption = queue().consume(environment("BROKER"), environment("TOPIC"), "queue");
                    Answers answers = new Answers(Integer.parseInt(environment("PORT")), consumption)) {
                Runtime.getRuntime().addShutdownHook(new Thread(consumption::stop));
                System.out.println("queue: listens on " + answers.address());
                consumption.run();
            }
        } else if (arguments.length == 2 && arguments[0].equals("produce")) {
            Queue queue = queue();
            String broker = environment("BROKER");
            String topic = environment("TOPIC");
            produce(arguments[1], count -> queue.send(broker, topic, count));
        } else if (arguments.length == 2 && arguments[0].equals("order")) {
            produce(arguments[1], Production.by(environment("RELAY")));
        } else {
            System.err.println(USAGE);
            System.exit(2);
        }
    }

    private static void produce(String count, Production.Sender sender) throws Exception {
        Production production = new Production(environment("CONSUMER"), Boolean.parseBoolean(System.getenv("TELL_TAGGED")));
        System.out.println(production.run(Long.parseLong(count), sender));
    }

    private static Queue queue() {
        return Queue.of(environment("QUEUE"));
    }

    private static String environment(String name) {
        return Optional.ofNullable(System.getenv(name)).orElseThrow(() -> new IllegalArgumentException(name + " is not set\n" + USAGE));
    }
}
