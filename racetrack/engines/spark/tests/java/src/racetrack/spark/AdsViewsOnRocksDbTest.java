package racetrack.spark;

/** The same with state outside of the heap. */
class AdsViewsOnRocksDbTest extends AdsViewsTest {
  @Override
  boolean rocksDb() {
    return true;
  }
}
