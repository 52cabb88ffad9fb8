package governor.consume;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * In {@code KafkaConsumer.poll(Duration)}, on the consumer's own thread: pauses the partitions of prohibited topics and resumes them when
 * they no longer are. The consumer stays in its group and keeps its place.
 *
 * <p>A consumer gets its first partitions within a poll, which may bring messages at once. These are put back: its place is the first of
 * them again.
 */
public final class KafkaAdvice {

    private KafkaAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.This KafkaConsumer<?, ?> consumer) {
        if (Consumption.isFree(consumer)) {
            return;
        }
        for (TopicPartition partition : consumer.assignment()) {
            if (Consumption.isProhibited(partition.topic())) {
                if (!consumer.paused().contains(partition)) {
                    consumer.pause(Collections.singleton(partition));
                    Consumption.paused(consumer, partition);
                }
            } else if (Consumption.resumed(consumer, partition)) {
                consumer.resume(Collections.singleton(partition));
            }
        }
    }

    @Advice.OnMethodExit(suppress = Throwable.class)
    @SuppressWarnings({"unchecked", "rawtypes", "UnusedAssignment"})
    static void exit(@Advice.This KafkaConsumer<?, ?> consumer, @Advice.Return(readOnly = false) ConsumerRecords records) {
        if (Consumption.isFree(consumer) || records == null || records.isEmpty()) {
            return;
        }
        Map<TopicPartition, List<ConsumerRecord>> left = new HashMap<>();
        boolean all = true;
        for (Object one : records.partitions()) {
            TopicPartition partition = (TopicPartition) one;
            List<ConsumerRecord> messages = records.records(partition);
            if (Consumption.isProhibited(partition.topic())) {
                all = false;
                consumer.seek(partition, messages.get(0).offset());
                consumer.pause(Collections.singleton(partition));
                Consumption.paused(consumer, partition);
            } else {
                left.put(partition, messages);
            }
        }
        if (!all) {
            records = new ConsumerRecords(left);
        }
    }
}
