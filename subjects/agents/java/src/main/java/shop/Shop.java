package shop;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/**
 * A shop's product page as JSON, for weighing agents: Spring MVC on Tomcat, JdbcTemplate on HikariCP, three statements a request.
 *
 * <pre>PORT=8080 DATABASE=127.0.0.1:5432 [POOL=10] java -jar shop.jar</pre>
 *
 * <p>POOL is how many connections to the database there are; 10 is the pool's default. It knows nothing of agents. The tables are those
 * of {@code ../shop.sql}.
 */
@SpringBootApplication
public class Shop {
  public static void main(String[] arguments) {
    SpringApplication.run(Shop.class, arguments);
  }
}
