package racetrack.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Set;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import racetrack.upsert.Cluster;
import racetrack.upsert.Registry;

/** MySQL's tables as Debezium tells them; how rows are written. */
class TablesTest {
  private World world;

  @BeforeEach
  void open() throws Exception {
    world = new World();
  }

  @AfterEach
  void close() throws Exception {
    world.close();
  }

  @Test
  void tablesAreAsTheyAreNow() throws Exception {
    world.topic("mysql.shop.purchases", "changes");
    world.keep("tables", Kafka.TABLES, "update");
    var first = Registry.purchase(1, 7L, 5L, 2L, "1.50");
    world.change("shop.purchases", null, first);
    world.change("shop.purchases", null, Registry.purchase(2, 7L, 5L, 2L, "1.50"));
    world.change("shop.purchases", first, null);
    var row = world.row("purchases");
    assertEquals(2, row.get("id").asLong());
    assertEquals("1.50", World.decimal(row, "purchase_price"));
    assertEquals("id", row.fieldNames().next());
  }

  @Test
  void furtherPropertiesOverrideThoseOfTheProgram() {
    World.PROPERTIES.forEach((name, value) -> assertEquals(value, world.spark.conf().get(name)));
  }

  @Test
  void progressIsWrittenLast() throws Exception {
    var producer =
        new MockProducer<>(true, null, new StringSerializer(), new StringSerializer());
    List<Row> rows =
        world.spark
            .sql("SELECT * FROM VALUES ('p', 'k', 'v'), ('a', 'k', NULL) AS (topic, key, value)")
            .collectAsList();
    new Upserts(producer, Cluster.at("nowhere:1"), Set.of("p")).write(rows);
    assertEquals(
        List.of("a", "p"), producer.history().stream().map(ProducerRecord::topic).toList());
  }
}
