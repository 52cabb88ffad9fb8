package governor.consume;

import java.util.List;
import org.apache.rocketmq.client.impl.consumer.ConsumeMessageService;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Messages that RocketMQ's client has and the application does not. */
public final class HeldMessages implements Consumption.Held {

    private final ConsumeMessageService service;
    private final List<MessageExt> messages;
    private final ProcessQueue place;
    private final MessageQueue partition;

    /** With what the service was called with. */
    public HeldMessages(ConsumeMessageService service, List<MessageExt> messages, ProcessQueue place, MessageQueue partition) {
        this.service = service;
        this.messages = messages;
        this.place = place;
        this.partition = partition;
    }

    @Override
    public String topic() {
        return partition.getTopic();
    }

    @Override
    public void release() {
        // If another one has the partition by now, that one has them as well.
        if (!place.isDropped()) {
            service.submitConsumeRequest(messages, place, partition, true);
        }
    }
}
