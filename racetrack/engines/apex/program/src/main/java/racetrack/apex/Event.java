package racetrack.apex;

import racetrack.results.reference.AdEvent;
import racetrack.results.reference.Done;

/** An event, and the progress once it is processed; null means no event, see `KeepViews`. */
record Event(AdEvent said, Done done) {}
