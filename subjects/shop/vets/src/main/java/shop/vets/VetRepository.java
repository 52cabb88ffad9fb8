package shop.vets;

import org.springframework.data.jpa.repository.JpaRepository;

interface VetRepository extends JpaRepository<Vet, Integer> {}
