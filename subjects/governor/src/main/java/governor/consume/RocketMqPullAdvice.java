package governor.consume;

import java.util.Collections;
import java.util.List;
import net.bytebuddy.asm.Advice;
import org.apache.rocketmq.client.impl.consumer.AssignedMessageQueue;
import org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * In RocketMQ's client that is asked, as {@link KafkaAdvice} does it: partitions of prohibited topics are paused, and what it has of them
 * already is put back.
 */
public final class RocketMqPullAdvice {

    private RocketMqPullAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(
            @Advice.This DefaultLitePullConsumerImpl consumer, @Advice.FieldValue("assignedMessageQueue") AssignedMessageQueue assigned) {
        if (Consumption.isFree(consumer)) {
            return;
        }
        for (MessageQueue partition : assigned.getAssignedMessageQueues()) {
            if (Consumption.isProhibited(partition.getTopic())) {
                if (!assigned.isPaused(partition)) {
                    consumer.pause(Collections.singleton(partition));
                    Consumption.paused(consumer, partition);
                }
            } else if (Consumption.resumed(consumer, partition)) {
                consumer.resume(Collections.singleton(partition));
            }
        }
    }

    @Advice.OnMethodExit(suppress = Throwable.class)
    @SuppressWarnings("UnusedAssignment")
    static void exit(
            @Advice.This DefaultLitePullConsumerImpl consumer,
            @Advice.FieldValue("assignedMessageQueue") AssignedMessageQueue assigned,
            @Advice.Return(readOnly = false) List<MessageExt> messages)
            throws Exception {
        if (messages == null || messages.isEmpty() || !Consumption.isProhibited(messages.get(0).getTopic())) {
            return;
        }
        // All are of one partition.
        MessageExt first = messages.get(0);
        MessageQueue partition = new MessageQueue(first.getTopic(), first.getBrokerName(), first.getQueueId());
        consumer.seek(partition, first.getQueueOffset());
        // What it tells the broker now and then is this.
        assigned.updateConsumeOffset(partition, first.getQueueOffset());
        if (!assigned.isPaused(partition)) {
            consumer.pause(Collections.singleton(partition));
            Consumption.paused(consumer, partition);
        }
        messages = Collections.emptyList();
    }
}
