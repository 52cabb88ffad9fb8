package shop;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.springframework.http.ResponseEntity;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

@RestController
class Products {
  private static final int REVIEWS = 5;

  record Product(int id, String name, int cents) {}

  record Review(int stars, String words) {}

  /** A product, where it is in stock, and its latest reviews. */
  record Page(int id, String name, int cents, Map<String, Integer> stock, List<Review> reviews) {}

  private final JdbcTemplate database;

  Products(JdbcTemplate database) {
    this.database = database;
  }

  @GetMapping("/products/{number}")
  ResponseEntity<Page> page(@PathVariable int number) {
    List<Product> found = database.query("SELECT id, name, cents FROM product WHERE id = ?",
        (row, index) -> new Product(row.getInt(1), row.getString(2), row.getInt(3)), number);
    if (found.isEmpty()) {
      return ResponseEntity.notFound().build();
    }
    Map<String, Integer> stock = new HashMap<>();
    database.query("SELECT place, pieces FROM stock WHERE product = ? ORDER BY place",
        row -> { stock.put(row.getString(1), row.getInt(2)); }, number);
    List<Review> reviews = database.query("SELECT stars, words FROM review WHERE product = ? ORDER BY id DESC LIMIT ?",
        (row, index) -> new Review(row.getInt(1), row.getString(2)), number, REVIEWS);
    Product product = found.get(0);
    return ResponseEntity.ok(new Page(product.id(), product.name(), product.cents(), stock, reviews));
  }
}
