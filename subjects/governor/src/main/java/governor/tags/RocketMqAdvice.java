package governor.tags;

import governor.boot.Tags;
import java.util.Map;
import net.bytebuddy.asm.Advice;
import org.apache.rocketmq.common.message.Message;

/** In RocketMQ's producer: hands the tags on as properties of the message. */
public final class RocketMqAdvice {

    private RocketMqAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.Argument(0) Message message) {
        for (Map.Entry<String, String> tag : Tags.toTransmit().entrySet()) {
            message.putUserProperty(tag.getKey(), tag.getValue());
        }
    }
}
