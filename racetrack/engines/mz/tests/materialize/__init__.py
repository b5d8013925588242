"""A Materialize for tests: what it has and PostgreSQL has not, in front of a real PostgreSQL.

`wire` stands between the client and PostgreSQL, and `statements` says in PostgreSQL's words what
Materialize would do. Both do what a real Materialize (26.9) was seen to do, the banner too.
"""

from racetrack.engines.mz.tests.materialize.statements import Outside, made_up, running
from racetrack.engines.mz.tests.materialize.wire import Materialize, running_materialize

__all__ = ["STAND_IN", "Materialize", "Outside", "made_up", "running", "running_materialize"]

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
