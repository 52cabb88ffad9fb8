package shop.visits;

import java.time.LocalDate;
import java.util.List;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

@RestController
class VisitController {
  record VisitView(Integer id, int petId, LocalDate date, String description) {
    static VisitView of(Visit visit) {
      return new VisitView(visit.id(), visit.petId(), visit.date(), visit.description());
    }
  }

  record VisitsView(List<VisitView> items) {}

  record NewVisit(LocalDate date, String description) {}

  private final VisitRepository visits;

  VisitController(VisitRepository visits) {
    this.visits = visits;
  }

  @GetMapping("/pets/visits")
  VisitsView ofPets(@RequestParam List<Integer> petId) {
    return new VisitsView(visits.findByPetIdInOrderByDate(petId).stream().map(VisitView::of).toList());
  }

  @PostMapping("/pets/{petId}/visits")
  @ResponseStatus(HttpStatus.CREATED)
  VisitView add(@PathVariable int petId, @RequestBody NewVisit it) {
    return VisitView.of(visits.save(new Visit(petId, it.date(), it.description())));
  }
}
