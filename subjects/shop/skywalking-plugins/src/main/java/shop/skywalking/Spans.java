package shop.skywalking;

import java.util.function.BiConsumer;
import java.util.function.UnaryOperator;
import org.apache.skywalking.apm.agent.core.context.CarrierItem;
import org.apache.skywalking.apm.agent.core.context.ContextCarrier;
import org.apache.skywalking.apm.agent.core.context.ContextManager;
import org.apache.skywalking.apm.agent.core.context.ContextSnapshot;
import org.apache.skywalking.apm.agent.core.context.tag.Tags;
import org.apache.skywalking.apm.agent.core.context.trace.AbstractSpan;
import org.apache.skywalking.apm.agent.core.context.trace.SpanLayer;
import org.apache.skywalking.apm.network.trace.component.OfficialComponent;

/** Spans of HTTP, the same for every server and client. */
final class Spans {
  /** Under this name the span of a request is known to what follows it, in Reactor's context. */
  static final String KEY = "shop.skywalking.snapshot";

  private Spans() {}

  static AbstractSpan entry(int id, String component, String method, String path, String url,
      UnaryOperator<String> header) {
    ContextCarrier carrier = new ContextCarrier();
    for (CarrierItem item = carrier.items(); item.hasNext();) {
      item = item.next();
      item.setHeadValue(header.apply(item.getHeadKey()));
    }
    AbstractSpan span = ContextManager.createEntrySpan(method + ":" + path, carrier);
    span.setComponent(new OfficialComponent(id, component));
    span.setLayer(SpanLayer.HTTP);
    Tags.URL.set(span, url);
    Tags.HTTP.METHOD.set(span, method);
    return span;
  }

  /** A call that goes on when this thread has left it, on behalf of the request that `snapshot` tells of. */
  static AbstractSpan exit(int id, String component, String method, String path, String url, String peer,
      ContextSnapshot snapshot, BiConsumer<String, String> header) {
    AbstractSpan span = ContextManager.createExitSpan(path, peer);
    if (snapshot != null) {
      ContextManager.continued(snapshot);
    }
    ContextCarrier carrier = new ContextCarrier();
    ContextManager.inject(carrier);
    for (CarrierItem item = carrier.items(); item.hasNext();) {
      item = item.next();
      header.accept(item.getHeadKey(), item.getHeadValue());
    }
    span.setComponent(new OfficialComponent(id, component));
    span.setLayer(SpanLayer.HTTP);
    Tags.URL.set(span, url);
    Tags.HTTP.METHOD.set(span, method);
    span.prepareForAsync();
    ContextManager.stopSpan(span);
    return span;
  }

  static void status(AbstractSpan span, int status) {
    Tags.HTTP_RESPONSE_STATUS_CODE.set(span, status);
    if (status >= 400) {
      span.errorOccurred();
    }
  }
}
