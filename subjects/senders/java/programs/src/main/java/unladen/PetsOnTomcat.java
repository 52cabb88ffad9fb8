package unladen;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URL;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.startup.Tomcat;

/**
 * The service of {@link Pets} on Tomcat, for Pinpoint's agent, which does not see the JDK's server. The argument is a folder for
 * Tomcat's files.
 */
public final class PetsOnTomcat extends HttpServlet {
  private static final long serialVersionUID = 1;

  public static void main(String[] arguments) throws LifecycleException {
    Tomcat tomcat = new Tomcat();
    tomcat.setBaseDir(arguments[0]);
    tomcat.setHostname("127.0.0.1");
    tomcat.setPort(0);
    Context context = tomcat.addContext("", null);
    Tomcat.addServlet(context, "pets", new PetsOnTomcat());
    context.addServletMappingDecoded("/*", "pets");
    tomcat.getConnector().setProperty("address", "127.0.0.1");
    tomcat.start();
    System.err.println("listening on 127.0.0.1:" + tomcat.getConnector().getLocalPort());
    tomcat.getServer().await();
  }

  @Override
  protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
    String number = request.getParameter("number");
    if (request.getRequestURI().equals("/prices")) {
      response.setStatus(Integer.parseInt(number) % 5 == 0 ? 500 : 200);
      return;
    }
    URL url = new URL("http://127.0.0.1:" + request.getLocalPort() + "/prices?number=" + number);
    HttpURLConnection connection = (HttpURLConnection) url.openConnection();
    // Pinpoint's agent adds its headers when the JDK takes no more of them, and would begin a trace there now and then.
    connection.setRequestProperty("Pinpoint-Sampled", "s0");
    response.setStatus(connection.getResponseCode() == 200 ? 200 : 203);
  }
}
