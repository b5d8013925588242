-- Totals over all partitions: one row, or none before the first pageview.
SELECT count(*) AS total, max(received_at) AS max_received_at
FROM source.pageviews
HAVING count(*) > 0
