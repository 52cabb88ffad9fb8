package shop.discovery;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.netflix.eureka.server.EnableEurekaServer;

/** Knows which service listens where. */
@SpringBootApplication
@EnableEurekaServer
public class Discovery {
  public static void main(String[] arguments) {
    SpringApplication.run(Discovery.class, arguments);
  }
}
