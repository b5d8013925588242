package racetrack.apex;

import racetrack.redis.Done;

/**
 * The fields of a view that are needed to count it. If `ad` is null, there is only progress to
 * report; see `KeepViews`.
 */
record View(String ad, long timeMs, String campaign, Done done) {}
