"""From a run folder to figures; reads run folders only, never a live system."""
