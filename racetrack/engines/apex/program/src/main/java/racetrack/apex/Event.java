package racetrack.apex;

import racetrack.published.AdEvent;
import racetrack.published.Done;

/** An event, and what is done when it is; null stands for none, see `KeepViews`. */
record Event(AdEvent said, Done done) {}
