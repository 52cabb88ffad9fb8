package governed.store;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Locale;

/** Whether what was taken was written: asked of the database itself, by a process that carries no agent. */
final class Count {

    private Count() {}

    /** {@code {"rows_per_insert": 1.0000}}: a share and not a number, so that a faster service is not another one. */
    static String json(Database database, String service) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(service + "/inserts")).build();
        HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        long inserts = Long.parseLong(answer.body());
        long rows = database.entries();
        double share = inserts == 0 ? 0 : (double) rows / inserts;
        return String.format(Locale.ROOT, "{\"rows_per_insert\": %.4f}", share);
    }
}
