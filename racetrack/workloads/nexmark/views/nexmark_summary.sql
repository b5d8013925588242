-- Totals over all partitions: one row, or none before the first event.
SELECT count(*) AS total, max("dateTime") AS max_received_at
FROM source.nexmark
HAVING count(*) > 0
