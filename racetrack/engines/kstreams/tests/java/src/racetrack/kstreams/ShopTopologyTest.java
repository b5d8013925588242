package racetrack.kstreams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static racetrack.upsert.Registry.purchase;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;
import racetrack.upsert.Registry;
import racetrack.upsert.ShopContract;
import racetrack.upsert.Stage;

/** Further views of the shop, and odd values in all. */
@ParameterizedClass
@EnumSource
class ShopTopologyTest extends ShopContract<World> {
  @Parameter World.Kind kind;

  @Override
  protected World open() throws IOException {
    return new World(ShopTopology::build, kind);
  }

  @Test
  void tablesAreAsTheyAreNow() {
    item(1, "a", null);
    item(2, "b", null);
    item(1, "c", null);
    stage.change("shop.items", Registry.item(2, "b", null), null);
    JsonNode row = stage.row("items");
    assertEquals("c", row.get("name").asText());
    assertEquals("1.50", Stage.decimal(row, "price"));
    assertTrue(row.get("updated_at").isNull());
    assertEquals("id", row.fieldNames().next());
    user(1, null);
    purchased(null, purchase(1, null, null, null, null));
    assertTrue(stage.row("users").get("email").isNull());
    assertTrue(stage.row("purchases").get("item_id").isNull());
  }

  @Test
  void theFirstTwentyAreShownAndEqualsInTheOrderOfTheirIds() {
    LongStream.rangeClosed(1, 25).forEach(id -> item(id, "i" + id, null));
    assertEquals(ids(1, 20), stage.values("top_viewed_items", "item_id"));
    view(7, "/products/24", 0);
    view(7, "/products/24", 0);
    view(7, "/products/23", 0);
    purchased(null, purchase(1, 7L, 23L, 1L, "1.00"));
    Set<Long> expected = ids(1, 18);
    expected.addAll(Set.of(23L, 24L));
    assertEquals(expected, stage.values("top_viewed_items", "item_id"));
    assertEquals(2, stage.row("top_viewed_items", "item_id", 24).get("pageviews").asLong());
    // 23 first, 24 with a rate of zero; those without a rate are last.
    assertEquals(expected, stage.values("top_converting_items", "item_id"));
    stage.change("shop.items", Registry.item(24, "i24", null), null);
    expected.remove(24L);
    expected.add(19L);
    assertEquals(expected, stage.values("top_viewed_items", "item_id"));
  }

  @Test
  void theLastTenViewsOfAProfileAreShown() {
    for (long at = 1; at <= 12; at++) {
      view(at, "/profiles/3", at == 5 ? 100 : at);
    }
    assertEquals(ids(3, 12), stage.values("profile_views", "viewer_id"));
    assertEquals(10, stage.rows("profile_views_enriched").size());
    view(99, "/profiles/3", 1);
    assertEquals(List.of(), stage.rows("profile_views", "viewer_id", 99));
  }

  @Test
  void viewsShowTheEmailsOfNow() {
    user(3, "owner@a");
    view(8, "/profiles/3", 0);
    view(3, "/profiles/3", 1);
    JsonNode row = viewedBy(8);
    assertEquals("owner@a", row.get("owner_email").asText());
    assertTrue(row.get("viewer_email").isNull());
    user(8, "viewer@a");
    user(3, "owner@b");
    row = viewedBy(8);
    assertEquals("owner@b", row.get("owner_email").asText());
    assertEquals("viewer@a", row.get("viewer_email").asText());
    assertEquals("owner@b", viewedBy(3).get("viewer_email").asText());
    stage.change("shop.users", Registry.user(8, "viewer@a"), null);
    assertTrue(viewedBy(8).get("viewer_email").isNull());
  }

  @Test
  void theWindowMovesOnWithTheClock() {
    view(8, "/profiles/3", -599_000);
    view(8, "/profiles/3", -590_000);
    view(8, "/profiles/3", -700_000);
    String view = "profile_views_per_minute_last_10";
    assertEquals(2, stage.rows(view).stream().mapToLong(ShopTopologyTest::pageviews).sum());
    stage.pass(Duration.ofSeconds(2));
    assertEquals(1, stage.rows(view).stream().mapToLong(ShopTopologyTest::pageviews).sum());
    stage.pass(Duration.ofSeconds(20));
    assertEquals(List.of(), stage.rows(view));
  }

  @Test
  void usersOfHighValueComeAndGoInTheTopicToo() {
    var bought = purchase(1, 3L, 5L, 2L, "9000.00");
    purchased(null, bought);
    assertEquals(stage.row("high_value_users"), stage.row("hvu_test"));
    purchased(bought, null);
    assertEquals(List.of(), stage.rows("hvu_test"));
  }

  @Test
  void aLongUrlIsRememberedWhole() {
    String url = "/" + "x".repeat(60_000);
    view(8, url, 0);
    stage.send("dd_flagged_profiles", "8");
    assertEquals(url, stage.row("dd_flagged_profile_view").get("url").asText());
  }

  @Test
  void aMessageThatIsNoPageviewIsAnErrorThatNamesItsPlace() {
    view(8, "/about", 0);
    for (String text :
        Arrays.asList("no JSON", "{\"user_id\": 1}", "{\"user_id\": null}", null)) {
      PrintStream before = System.out;
      ByteArrayOutputStream said = new ByteArrayOutputStream();
      System.setOut(new PrintStream(said, true));
      try {
        assertThrows(RuntimeException.class, () -> stage.send("pageviews", text));
      } finally {
        System.setOut(before);
      }
      String line = said.toString();
      assertTrue(line.matches(
          "(?s)RACETRACK refused topic=pageviews, partition=0, offset=[1-4], field=, reason=.+: .+"), line);
    }
  }

  private void view(long user, String url, long afterMs) {
    stage.pageview(0, user, url, afterMs);
  }

  private void user(long id, String email) {
    stage.change("shop.users", null, Registry.user(id, email));
  }

  private JsonNode viewedBy(long user) {
    return stage.row("profile_views_enriched", "viewer_id", user);
  }

  private static long pageviews(JsonNode row) {
    return row.get("pageviews").asLong();
  }

  private static Set<Long> ids(long first, long last) {
    return LongStream.rangeClosed(first, last).boxed().collect(Collectors.toSet());
  }
}
