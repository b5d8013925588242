-- Per partition that has any: how many pageviews there are, and the newest received_at among them.
SELECT partition, count(*) AS total, max(received_at) AS max_received_at
FROM source.pageviews
GROUP BY partition
