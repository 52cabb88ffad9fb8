package shop.customers;

import java.util.List;
import org.springframework.data.jpa.repository.JpaRepository;

interface KindRepository extends JpaRepository<Kind, Integer> {
  List<Kind> findAllByOrderByName();
}
