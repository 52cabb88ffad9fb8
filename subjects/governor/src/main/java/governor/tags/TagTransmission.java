package governor.tags;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;
import static net.bytebuddy.matcher.ElementMatchers.takesNoArguments;

import governor.Advised;
import governor.Behaviour;
import governor.boot.Tags;
import governor.rules.RuleText;
import java.util.Set;

/**
 * Headers of a request that came in go out with every call that its thread makes meanwhile. The rule: {@code headers=x-tag,x-user}.
 *
 * <p>Out by Apache HttpClient 3 and 4, OkHttp 2, the JDK's URL connection, gRPC, Dubbo, SofaRPC, ServiceComb and the producers of Kafka and
 * RocketMQ. A call that is made on another thread carries none.
 */
public final class TagTransmission implements Behaviour {

    private static final String JDK = "sun.net.www.protocol.http.HttpURLConnection";

    @Override
    public String name() {
        return "tags";
    }

    @Override
    public void rule(RuleText text) {
        Set<String> headers = Set.of();
        if (text != null) {
            headers = text.lowerNames("headers");
            text.end();
        }
        Tags.transmit(headers);
    }

    @Override
    public void install(Advised advised) {
        Servlets.install(advised);
        // The shorter ones call this.
        advised.add(
                "org.apache.commons.httpclient.HttpClient",
                named("executeMethod").and(takesArguments(3)),
                "governor.tags.HttpClient3Advice");
        advised.add(
                "org.apache.http.impl.client.InternalHttpClient",
                named("doExecute").and(takesArguments(3)),
                "governor.tags.HttpClient4Advice");
        advised.add("com.squareup.okhttp.Call", named("execute").and(takesNoArguments()), "governor.tags.OkHttp2Advice");
        // Whichever comes first connects.
        advised.add(
                JDK,
                named("connect").or(named("getInputStream")).or(named("getOutputStream")).and(takesNoArguments()),
                "governor.tags.JdkHttpAdvice");
        advised.add(
                "io.grpc.internal.ClientCallImpl",
                named("start").and(takesArguments(2)),
                "governor.tags.GrpcAdvice");
        advised.add(
                "org.apache.dubbo.rpc.filter.ConsumerContextFilter",
                named("invoke").and(takesArguments(2)),
                "governor.tags.DubboAdvice");
        advised.add(
                "com.alipay.sofa.rpc.filter.ConsumerInvoker",
                named("invoke").and(takesArguments(1)),
                "governor.tags.SofaRpcAdvice");
        advised.add(
                "org.apache.servicecomb.core.handler.impl.TransportClientHandler",
                named("handle").and(takesArguments(2)),
                "governor.tags.ServiceCombAdvice");
        advised.add(
                "org.apache.kafka.clients.producer.KafkaProducer",
                named("send").and(takesArguments(2)).and(takesArgument(0, named("org.apache.kafka.clients.producer.ProducerRecord"))),
                "governor.tags.KafkaAdvice");
        // Where it is called: what it does later it may do on other threads.
        advised.add(
                "org.apache.rocketmq.client.producer.DefaultMQProducer",
                named("send").or(named("sendOneway")).and(takesArgument(0, named("org.apache.rocketmq.common.message.Message"))),
                "governor.tags.RocketMqAdvice");
    }
}
