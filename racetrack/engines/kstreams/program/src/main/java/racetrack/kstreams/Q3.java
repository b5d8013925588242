package racetrack.kstreams;

import java.util.Set;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.KStream;
import racetrack.kstreams.Nexmark.Person;

/** Auctions of category 10 by sellers in three states. */
final class Q3 {
  private static final long CATEGORY = 10;
  private static final Set<String> STATES = Set.of("OR", "ID", "CA");

  private Q3() {}

  static void connect(Nexmark nexmark) {
    KStream<Long, Seller> sellers =
        nexmark
            .persons()
            .filter((key, event) -> STATES.contains(event.person().state()))
            .map((key, event) -> KeyValue.pair(event.person().id(), Seller.of(event.person())));
    KStream<Long, Long> auctions =
        nexmark
            .auctions()
            .filter((key, event) -> event.auction().category() == CATEGORY)
            .map((key, event) -> KeyValue.pair(event.auction().seller(), event.auction().id()));
    var join = new Join<>(nexmark.topology, "q3", Seller.SERDE, Nexmark.ID, Row::of);
    nexmark.topology.append(join.of(sellers, auctions), "q3");
  }

  record Seller(String name, String city, String state) {
    static final Serde<Seller> SERDE =
        Compact.ofRow(
            (out, seller) -> {
              Compact.write(out, seller.name);
              Compact.write(out, seller.city);
              Compact.write(out, seller.state);
            },
            in -> new Seller(Compact.readText(in), Compact.readText(in), Compact.readText(in)));

    static Seller of(Person person) {
      return new Seller(person.name(), person.city(), person.state());
    }
  }

  record Row(String name, String city, String state, long id) {
    static Row of(Seller seller, Long auction) {
      return new Row(seller.name, seller.city, seller.state, auction);
    }
  }
}
