package racetrack.apex;

import racetrack.redis.AdEvent;
import racetrack.redis.Done;

/**
 * An event, and the progress to report once it is processed. If `said` is null, there is only
 * progress to report; see `KeepViews`.
 */
record Event(AdEvent said, Done done) {}
