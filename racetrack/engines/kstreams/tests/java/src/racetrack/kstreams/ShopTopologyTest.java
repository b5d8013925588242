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

  private static long pageviews(JsonNode row) {
    return row.get("pageviews").asLong();
  }
}
