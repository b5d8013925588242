-- Number of events and newest event_time, per partition with events.
SELECT partition, count(*) AS total, max(event_time) AS max_received_at
FROM source.ad_events
GROUP BY partition
