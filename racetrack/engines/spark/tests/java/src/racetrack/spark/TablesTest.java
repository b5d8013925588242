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
    world.topic("changes");
    world.keep("tables", Kafka.TABLES);
    var first = Registry.row(Registry.PURCHASE, 1L, 7L, 5L, 2L, "1.50");
    var second = Registry.row(Registry.PURCHASE, 2L, 7L, 5L, 2L, "1.50");
    world.change("changes", Registry.PURCHASE, null, first);
    world.change("changes", Registry.PURCHASE, null, second);
    world.change("changes", Registry.PURCHASE, first, null);
    world.settle();
    var rows = world.rows("changes");
    assertEquals(Set.of("2"), rows.keySet());
    assertEquals("1.50", rows.get("2").get("purchase_price").decimalValue().toPlainString());
    assertEquals("id", rows.get("2").fieldNames().next());
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
