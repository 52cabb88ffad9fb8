package shop.visits;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Visits of pets. */
@SpringBootApplication
public class Visits {
  public static void main(String[] arguments) {
    SpringApplication.run(Visits.class, arguments);
  }
}
