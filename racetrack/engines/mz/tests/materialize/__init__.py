"""A Materialize for tests: what it has and PostgreSQL has not, in front of a real PostgreSQL.

`wire` stands between the client and PostgreSQL, `statements` says in PostgreSQL's words what
Materialize would do, `outside` is the broker and the registry that it asks, and `sink` writes when
a test lets it. What a real Materialize (26.9) was seen to do, pleasant or not, they do too: a name
that keeps its quotes, a status that comes too early, a count that stays 0, a stall that passes,
and a banner.
"""

from racetrack.engines.mz.tests.materialize.double import Materialize, running_materialize
from racetrack.engines.mz.tests.materialize.outside import FakeOutside, Outside, Running

__all__ = ["STAND_IN", "FakeOutside", "Materialize", "Outside", "Running", "running_materialize"]

# The demo's two progress views, as tables that a test fills.
STAND_IN = """
\\echo :kafka :registry
CREATE TABLE pageviews_progress (
    partition bigint PRIMARY KEY, total bigint, max_received_at bigint);
CREATE VIEW pageviews_summary AS
SELECT sum(total)::bigint AS total, max(max_received_at) AS max_received_at
FROM pageviews_progress
HAVING sum(total) > 0;
"""
