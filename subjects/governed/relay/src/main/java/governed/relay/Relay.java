package governed.relay;

import governed.queue.Queue;
import java.io.IOException;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** A service that sends messages because a request has asked it to, in the thread of that request: `relay-app.jar`. */
@SpringBootApplication
@RestController
public class Relay {

    private final Queue queue;
    private final String broker;
    private final String topic;

    Relay(@Value("${relay.queue}") String queue, @Value("${relay.broker}") String broker, @Value("${relay.topic}") String topic) {
        this.queue = Queue.of(queue);
        this.broker = broker;
        this.topic = topic;
    }

    public static void main(String[] arguments) {
        new SpringApplicationBuilder(Relay.class).properties("spring.config.name=relay").run(arguments);
    }

    @GetMapping(path = "/ready", produces = MediaType.TEXT_PLAIN_VALUE)
    public String ready() {
        return "ready";
    }

    /** Answers when all of them are with the broker. */
    @PostMapping(path = "/send", produces = MediaType.TEXT_PLAIN_VALUE)
    public String send(@RequestParam("count") long count) throws IOException {
        queue.send(broker, topic, count);
        return Long.toString(count);
    }
}
