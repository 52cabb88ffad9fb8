package shop.vets;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Vets and what they can do. */
@SpringBootApplication
public class Vets {
  public static void main(String[] arguments) {
    SpringApplication.run(Vets.class, arguments);
  }
}
