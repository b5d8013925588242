package racetrack.apex;

import racetrack.redis.Done;

/** Of a view, what is needed to count it; without an ad it is none, see `KeepViews`. */
record View(String ad, long timeMs, String campaign, Done done) {}
