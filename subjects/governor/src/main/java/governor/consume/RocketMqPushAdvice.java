package governor.consume;

import java.util.List;
import net.bytebuddy.asm.Advice;
import org.apache.rocketmq.client.impl.consumer.ConsumeMessageService;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * In RocketMQ's client, where it hands messages that it has to the threads of the application: those of prohibited topics wait. They
 * count as not taken, so the client keeps its place, and when it has a thousand it asks for no more.
 */
public final class RocketMqPushAdvice {

    private RocketMqPushAdvice() {}

    /** Returns whether they wait. */
    @Advice.OnMethodEnter(suppress = Throwable.class, skipOn = Advice.OnNonDefaultValue.class)
    static boolean enter(
            @Advice.This ConsumeMessageService service,
            @Advice.Argument(0) List<MessageExt> messages,
            @Advice.Argument(1) ProcessQueue place,
            @Advice.Argument(2) MessageQueue partition) {
        return Consumption.isProhibited(partition.getTopic())
                && Consumption.hold(new HeldMessages(service, messages, place, partition));
    }
}
