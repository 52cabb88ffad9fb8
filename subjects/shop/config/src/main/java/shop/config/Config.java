package shop.config;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.config.server.EnableConfigServer;

/** Serves the settings in {@code settings/} to all other services. */
@SpringBootApplication
@EnableConfigServer
public class Config {
  public static void main(String[] arguments) {
    SpringApplication.run(Config.class, arguments);
  }
}
