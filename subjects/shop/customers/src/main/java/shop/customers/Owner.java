package shop.customers;

import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import java.util.ArrayList;
import java.util.List;

/** Somebody with pets. */
@Entity
@Table(name = "owners")
class Owner {
  @Id
  @GeneratedValue(strategy = GenerationType.IDENTITY)
  private Integer id;

  private String firstName;

  private String lastName;

  private String address;

  private String city;

  private String telephone;

  @OneToMany(fetch = FetchType.LAZY)
  @JoinColumn(name = "owner_id")
  @OrderBy("name")
  private List<Pet> pets = new ArrayList<>();

  protected Owner() {}

  Owner(String firstName, String lastName, String address, String city, String telephone) {
    this.firstName = firstName;
    this.lastName = lastName;
    this.address = address;
    this.city = city;
    this.telephone = telephone;
  }

  Integer id() {
    return id;
  }

  String firstName() {
    return firstName;
  }

  String lastName() {
    return lastName;
  }

  String address() {
    return address;
  }

  String city() {
    return city;
  }

  String telephone() {
    return telephone;
  }

  List<Pet> pets() {
    return pets;
  }
}
