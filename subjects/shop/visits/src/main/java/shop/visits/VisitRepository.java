package shop.visits;

import java.util.Collection;
import java.util.List;
import org.springframework.data.jpa.repository.JpaRepository;

interface VisitRepository extends JpaRepository<Visit, Integer> {
  List<Visit> findByPetIdInOrderByDate(Collection<Integer> pets);
}
