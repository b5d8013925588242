package racetrack.apex;

import racetrack.results.reference.AdEvent;
import racetrack.results.reference.Done;

/** An event, and what is done when it is; null stands for none, see `KeepViews`. */
record Event(AdEvent said, Done done) {}
