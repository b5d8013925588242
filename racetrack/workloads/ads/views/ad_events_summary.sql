-- Totals over all partitions: one row, or none before the first event.
SELECT count(*) AS total, max(event_time) AS max_received_at
FROM source.ad_events
HAVING count(*) > 0
