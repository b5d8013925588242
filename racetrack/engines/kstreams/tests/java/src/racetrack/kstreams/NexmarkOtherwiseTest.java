package racetrack.kstreams;

/** The same with other settings: none of them may change what a view holds. */
class NexmarkOtherwiseTest extends NexmarkTest {
  @Override
  World.Kind kind() {
    return World.Kind.OTHERWISE;
  }
}
