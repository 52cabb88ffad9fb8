package shop.gateway;

import okhttp3.mockwebserver.Dispatcher;
import okhttp3.mockwebserver.MockResponse;
import okhttp3.mockwebserver.MockWebServer;
import okhttp3.mockwebserver.RecordedRequest;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.autoconfigure.web.reactive.AutoConfigureWebTestClient;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.test.web.reactive.server.WebTestClient;

/** The whole gateway with the settings of the config server; one server stands in for all services behind it. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
@AutoConfigureWebTestClient
class GatewayTest {
  static final MockWebServer BEHIND = new MockWebServer();

  static {
    BEHIND.setDispatcher(new Dispatcher() {
      @Override
      public MockResponse dispatch(RecordedRequest request) {
        return switch (request.getPath()) {
          case "/vets" -> json("[{\"id\": 1}]");
          case "/owners/6" -> json("{\"id\": 6, \"pets\": [{\"id\": 7}, {\"id\": 8}]}");
          case "/pets/visits?petId=7,8" -> json("{\"items\": [{\"petId\": 8, \"description\": \"claws\"}]}");
          default -> new MockResponse().setResponseCode(404);
        };
      }
    });
  }

  static MockResponse json(String body) {
    return new MockResponse().setHeader("Content-Type", "application/json").setBody(body);
  }

  @DynamicPropertySource
  static void behind(DynamicPropertyRegistry registry) {
    for (String service : new String[] {"vets", "customers", "visits"}) {
      registry.add("spring.cloud.discovery.client.simple.instances." + service + "[0].uri",
          () -> "http://localhost:" + BEHIND.getPort());
    }
  }

  @AfterAll
  static void stop() throws Exception {
    BEHIND.shutdown();
  }

  @Autowired
  WebTestClient web;

  @Test
  void routesWithoutTheFirstTwoPartsOfThePath() {
    web.get().uri("/api/vet/vets").exchange().expectStatus().isOk().expectBody().json("[{\"id\": 1}]");
  }

  @Test
  void putsOwnersAndVisitsTogether() {
    web.get().uri("/api/gateway/owners/6").exchange().expectStatus().isOk().expectBody()
        .json("{\"id\": 6, \"pets\": [{\"id\": 7, \"visits\": []}, {\"id\": 8, \"visits\": [{\"description\": \"claws\"}]}]}");
  }

  @Test
  void ownersThatAreNotThereAreNotFound() {
    web.get().uri("/api/gateway/owners/99").exchange().expectStatus().isNotFound();
  }
}
