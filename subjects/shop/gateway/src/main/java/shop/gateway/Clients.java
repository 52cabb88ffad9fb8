package shop.gateway;

import org.springframework.cloud.client.loadbalancer.LoadBalanced;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.reactive.function.client.WebClient;

/** How the gateway asks other services itself. */
@Configuration
class Clients {
  @Bean
  @LoadBalanced
  WebClient.Builder webClients() {
    return WebClient.builder();
  }
}
