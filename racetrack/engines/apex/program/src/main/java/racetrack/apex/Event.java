package racetrack.apex;

import racetrack.redis.AdEvent;
import racetrack.redis.Done;

/** An event, and the progress once it is processed; null means no event, see `KeepViews`. */
record Event(AdEvent said, Done done) {}
