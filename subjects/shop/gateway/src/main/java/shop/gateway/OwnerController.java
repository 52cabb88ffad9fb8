package shop.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.function.client.WebClient;
import org.springframework.web.reactive.function.client.WebClientResponseException.NotFound;
import org.springframework.web.server.ResponseStatusException;
import reactor.core.publisher.Mono;

/** An owner from the customers, each pet with its visits from the visits. */
@RestController
class OwnerController {
  private final WebClient client;

  OwnerController(WebClient.Builder clients) {
    client = clients.build();
  }

  @GetMapping("/api/gateway/owners/{id}")
  Mono<ObjectNode> owner(@PathVariable int id) {
    return client.get().uri("http://customers/owners/{id}", id).retrieve().bodyToMono(ObjectNode.class)
        .onErrorMap(NotFound.class, e -> new ResponseStatusException(HttpStatus.NOT_FOUND, "no owner " + id))
        .flatMap(owner -> visits(owner).map(visits -> together(owner, visits)));
  }

  private Mono<JsonNode> visits(ObjectNode owner) {
    String pets = StreamSupport.stream(owner.path("pets").spliterator(), false).map(pet -> pet.path("id").asText())
        .collect(Collectors.joining(","));
    return client.get().uri("http://visits/pets/visits?petId=" + pets).retrieve().bodyToMono(JsonNode.class);
  }

  static ObjectNode together(ObjectNode owner, JsonNode visits) {
    for (JsonNode pet : owner.path("pets")) {
      ArrayNode ofPet = ((ObjectNode) pet).putArray("visits");
      for (JsonNode visit : visits.path("items")) {
        if (visit.path("petId").equals(pet.path("id"))) {
          ofPet.add(visit);
        }
      }
    }
    return owner;
  }
}
