-- Auctions with the most bids in each closed window of ten seconds; a window begins every two.
WITH counted AS (
    SELECT auction, ("dateTime" // 2000 + hop) * 2000 AS ends_ms, count(*) AS num
    FROM source.nexmark_bid CROSS JOIN range(1, 6) AS hops(hop)
    GROUP BY auction, ends_ms
)
SELECT auction, num, ends_ms - 10000 AS starttime
FROM counted
WHERE ends_ms <= (SELECT at_ms FROM source.nexmark_closed)
QUALIFY num = max(num) OVER (PARTITION BY ends_ms)
