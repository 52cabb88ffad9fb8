package governor.tags;

import governor.boot.Tags;
import java.util.Map;
import java.nio.charset.StandardCharsets;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.clients.producer.ProducerRecord;

/** In Kafka's producer: hands the tags on as headers of the message. */
public final class KafkaAdvice {

    private KafkaAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.Argument(0) ProducerRecord<?, ?> message) {
        for (Map.Entry<String, String> tag : Tags.toTransmit().entrySet()) {
            message.headers().remove(tag.getKey());
            message.headers().add(tag.getKey(), tag.getValue().getBytes(StandardCharsets.UTF_8));
        }
    }
}
