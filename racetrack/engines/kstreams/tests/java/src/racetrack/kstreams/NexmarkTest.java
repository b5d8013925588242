package racetrack.kstreams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Nexmark's queries: in any order of events, and with messages that are invalid. */
@ParameterizedClass
@EnumSource
class NexmarkTest {
  private static final long DAY_MS = 86_400_000;
  private static final long START_MS = World.NOW_MS / DAY_MS * DAY_MS;

  private World world;

  @Parameter World.Kind kind;

  private void open(String... queries) throws IOException {
    open(1, 0, queries);
  }

  private void open(int partitions, long delayMs, String... queries) throws IOException {
    world = new World(Nexmark::build, kind, partitions, delayMs, queries);
  }

  @AfterEach
  void close() throws Exception {
    if (world != null) {
      world.close();
    }
  }

  @Test
  void invalidMessagesAreLeftOut() throws IOException {
    open("q0");
    for (String text :
        List.of(
            "{", "7", "null", "",
            "{\"event_type\": 7, \"dateTime\": 1}",
            "{\"event_type\": 2, \"dateTime\": 1}",
            "{\"event_type\": 2, \"bid\": {\"bidder\": 1}, \"dateTime\": 1}",
            bid(1, 2, 3, 0).replace("\"price\": 3", "\"price\": \"3\""),
            bid(1, 2, 3, 0).replace("\"price\": 3", "\"price\": 3.0"),
            bid(1, 2, 3, 0).replace("\"price\": 3", "\"price\": null"),
            bid(1, 2, 3, 0).replace("\"a channel\"", "7"),
            bid(1, 2, 3, 0).replace("\"event_type\": 2", "\"event_type\": 1"))) {
      world.send(Nexmark.EVENTS, text);
    }
    world.send(Nexmark.EVENTS, null);
    assertEquals(List.of(), world.added("q0"));
    send(bid(1, 2, 3, 0));
    assertEquals(1, world.added("q0").size());
  }

  @Test
  void sellersAndAuctionsMeetInAnyOrder() throws IOException {
    open("q3");
    send(auction(1, 7, 10, 0, 9), auction(2, 7, 11, 0, 9), person(8, "OR", 0));
    assertEquals(List.of(), world.added("q3"));
    send(person(7, "CA", 0), auction(3, 7, 10, 0, 9), person(9, "WA", 0), auction(4, 9, 10, 0, 9));
    assertEquals(List.of(1L, 3L), numbers("q3", "id"));
  }

  @Test
  void bidsWaitForTheirAuction() throws IOException {
    open("q20");
    send(bid(1, 2, 3, 0), bid(1, 2, 4, 0), bid(5, 2, 9, 0));
    assertEquals(List.of(), world.added("q20"));
    send(auction(1, 7, 10, 0, 9), auction(5, 7, 11, 0, 9), bid(1, 2, 6, 0), bid(5, 2, 8, 0));
    List<JsonNode> rows = world.added("q20");
    assertEquals(List.of(3L, 4L, 6L), rows.stream().map(row -> row.get("price").asLong()).toList());
    assertEquals("an item", rows.get(0).get("itemName").asText());
    assertEquals(START_MS, rows.get(0).get("bid_dateTime").asLong());
    send(auction(6, 7, 10, 0, 9));
    assertEquals(List.of(), world.added("q20"));
  }

  @Test
  void winningPricesAreAveragedWithoutDecimals() throws IOException {
    open("q4");
    send(bid(1, 2, 10, 3), auction(1, 7, 10, 2, 4), auction(2, 7, 10, 2, 4));
    assertEquals(10, average());
    // Too early, or too late.
    send(bid(1, 2, 99, 1), bid(1, 2, 99, 5), bid(2, 2, 25, 4), bid(2, 2, 24, 4));
    assertEquals(17, average());
    send(bid(1, 2, 12, 2));
    assertEquals(18, average());
  }

  private long average() {
    return world.rows("q4", "id", 10).get(0).get("final").asLong();
  }

  @Test
  void bidsAreCountedByDay() throws IOException {
    open("q17");
    send(bid(1, 2, 9_999, 0), bid(1, 2, 10_000, 1), bid(1, 2, 1_000_000, DAY_MS - 1));
    send(bid(1, 2, 5, DAY_MS));
    List<JsonNode> rows = world.rows("q17");
    assertEquals(2, rows.size());
    JsonNode first = rows.get(0).get("total_bids").asLong() == 3 ? rows.get(0) : rows.get(1);
    assertEquals(
        List.of(1L, 1L, 1L), World.numbers(first, "rank1_bids", "rank2_bids", "rank3_bids"));
    assertEquals(
        List.of(9_999L, 1_000_000L, 1_019_999L / 3, 1_019_999L),
        World.numbers(first, "min_price", "max_price", "avg_price", "sum_price"));
    assertEquals("2026-11-18", first.get("day").asText());
  }

  @Test
  void aWindowShowsAllAuctionsWithTheMostBids() throws IOException {
    open("q5");
    send(bid(1, 2, 5, 0), bid(2, 2, 5, 1_999), bid(1, 2, 5, 2_000), bid(3, 2, 5, 3_999));
    assertEquals(List.of("1 1", "2 1"), counts());
    send(bid(2, 2, 5, 4_000));
    assertEquals(List.of("1 2"), counts());
    send(person(1, "OR", 6_000));
    assertEquals(List.of("1 2", "2 2"), counts());
    send(person(1, "OR", 12_000));
    // Ends of 8, 10 and 12 s; the last window lacks the first two bids.
    assertEquals(
        List.of("1 2", "2 2", "1 2", "2 2", "1 1", "2 1", "3 1"), counts());
  }

  private List<String> counts() {
    return world.added("q5").stream().map(row -> row.get("auction") + " " + row.get("num")).toList();
  }

  @Test
  void windowsCloseLaterWithADelay() throws IOException {
    open(1, 1_000, "q5");
    send(bid(1, 2, 5, 0), bid(1, 2, 5, 2_999));
    assertEquals(List.of(), counts());
    send(bid(2, 2, 5, 3_000));
    assertEquals(
        List.of("{\"auction\":1,\"num\":1,\"starttime\":%d}".formatted(START_MS - 8_000)),
        world.added("q5").stream().map(JsonNode::toString).toList());
  }

  @Test
  void windowsStayOpenForAPartitionThatIsBehind() throws IOException {
    open(2, 0, "q5", "q8");
    send(person(7, "OR", 0), auction(1, 7, 10, 0, 9), bid(1, 2, 5, 0), bid(1, 2, 5, 60_000));
    assertEquals(List.of(), counts());
    assertEquals(List.of(), world.added("q8"));
  }

  @Test
  void aQueryThatIsNotThereIsNamed() {
    var error = assertThrows(IllegalArgumentException.class, () -> open("q0", "q6"));
    assertTrue(error.getMessage().contains("q6"));
  }

  private List<Long> numbers(String view, String column) {
    return world.added(view).stream().map(row -> row.get(column).asLong()).toList();
  }

  private void send(String... messages) {
    for (String message : messages) {
      world.send(Nexmark.EVENTS, message);
    }
  }

  private static String person(long id, String state, long afterMs) {
    return event(
        0,
        "person",
        """
        "id": %d, "name": "a name", "emailAddress": "a@b", "creditCard": "1", "city": "a city",
        "state": "%s", "extra": "e"
        """
            .formatted(id, state),
        afterMs);
  }

  private static String auction(long id, long seller, long category, long afterMs, long expiresMs) {
    return event(
        1,
        "auction",
        """
        "id": %d, "itemName": "an item", "description": "d", "initialBid": 1, "reserve": 1,
        "expires": %d, "seller": %d, "category": %d, "extra": "e"
        """
            .formatted(id, START_MS + expiresMs, seller, category),
        afterMs);
  }

  private static String bid(long auction, long bidder, long price, long afterMs) {
    return event(
        2,
        "bid",
        """
        "auction": %d, "bidder": %d, "price": %d, "channel": "a channel",
        "url": "https://a/b/c/d/e", "extra": "e"
        """
            .formatted(auction, bidder, price),
        afterMs);
  }

  private static String event(int type, String name, String fields, long afterMs) {
    return "{\"event_type\": %d, \"%s\": {%s}, \"dateTime\": %d}"
        .formatted(type, name, fields, START_MS + afterMs);
  }
}
