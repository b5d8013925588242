-- Per partition that has any: how many events there are, and the newest event_time among them.
SELECT partition, count(*) AS total, max(event_time) AS max_received_at
FROM source.ad_events
GROUP BY partition
