package shop.vets;

import java.util.List;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
@RequestMapping("/vets")
class VetController {
  record SpecialtyView(Integer id, String name) {}

  record VetView(Integer id, String firstName, String lastName, List<SpecialtyView> specialties, int nrOfSpecialties) {
    static VetView of(Vet vet) {
      List<SpecialtyView> specialties =
          vet.specialties().stream().map(it -> new SpecialtyView(it.id(), it.name())).toList();
      return new VetView(vet.id(), vet.firstName(), vet.lastName(), specialties, specialties.size());
    }
  }

  private final VetRepository vets;

  VetController(VetRepository vets) {
    this.vets = vets;
  }

  @GetMapping
  @Transactional(readOnly = true)
  public List<VetView> all() {
    return vets.findAll().stream().map(VetView::of).toList();
  }
}
