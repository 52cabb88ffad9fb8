package shop.customers;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Owners and their pets. */
@SpringBootApplication
public class Customers {
  public static void main(String[] arguments) {
    SpringApplication.run(Customers.class, arguments);
  }
}
