-- Number of pageviews and newest received_at, per partition with pageviews.
SELECT partition, count(*) AS total, max(received_at) AS max_received_at
FROM source.pageviews
GROUP BY partition
