package shop.skywalking;

import java.lang.reflect.Method;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import org.apache.skywalking.apm.agent.core.context.ContextManager;
import org.apache.skywalking.apm.agent.core.context.tag.Tags;
import org.apache.skywalking.apm.agent.core.context.trace.AbstractSpan;
import org.apache.skywalking.apm.agent.core.context.trace.SpanLayer;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.EnhancedInstance;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.MethodInterceptResult;
import org.apache.skywalking.apm.network.trace.component.OfficialComponent;

/** Around {@code PreparedStatement.execute()} and its sisters. */
public final class StatementExit extends Interceptor {
  private static final OfficialComponent JDBC = new OfficialComponent(88, "jdbc-jdbc-driver");

  /** The database, of which the services have one each. */
  private static volatile String peer;

  @Override
  public void beforeMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      MethodInterceptResult result) throws SQLException {
    AbstractSpan span =
        ContextManager.createExitSpan("JDBC/PreparedStatement/" + method.getName(), peer((PreparedStatement) target));
    span.setComponent(JDBC);
    span.setLayer(SpanLayer.DB);
    Tags.DB_TYPE.set(span, "sql");
    Tags.DB_STATEMENT.set(span, (String) target.getSkyWalkingDynamicField());
  }

  @Override
  public Object afterMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      Object returned) {
    ContextManager.stopSpan();
    return returned;
  }

  private static String peer(PreparedStatement statement) throws SQLException {
    if (peer == null) {
      peer = statement.getConnection().getMetaData().getURL();
    }
    return peer;
  }
}
