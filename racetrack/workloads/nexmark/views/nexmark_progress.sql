-- Number of events and newest dateTime, per partition with events.
SELECT partition, count(*) AS total, max("dateTime") AS max_received_at
FROM source.nexmark
GROUP BY partition
