-- Persons who opened an auction in the window of ten seconds in which they registered, for closed
-- windows.
WITH persons AS (
    SELECT DISTINCT id, name, "dateTime" // 10000 * 10000 AS stime FROM source.nexmark_person
),
sellers AS (
    SELECT DISTINCT seller, "dateTime" // 10000 * 10000 AS stime FROM source.nexmark_auction
)
SELECT p.id, p.name, p.stime
FROM persons AS p JOIN sellers AS s ON p.id = s.seller AND p.stime = s.stime
WHERE p.stime + 10000 <= (SELECT at_ms FROM source.nexmark_closed)
