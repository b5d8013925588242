package racetrack.kstreams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;
import racetrack.upsert.AdsContract;

@ParameterizedClass
@EnumSource
class AdsTopologyTest extends AdsContract<World> {
  @Parameter World.Kind kind;

  @Override
  protected World open() throws IOException {
    return new World(AdsTopology::build, kind);
  }

  @Test
  void eventsAreCountedByAdWhereTheyAreRead() {
    ad("a", null, "x");
    stage.event(0, "a", "view", 7);
    stage.event(0, "a", "click", 9);
    assertEquals(Set.of("ads", "changes", "counts"), stage.innerTopics());
  }
}
