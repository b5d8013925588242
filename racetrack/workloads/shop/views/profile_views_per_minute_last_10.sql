-- Number of profile views less than 600,000 ms old, per owner and minute of UTC. The age depends on
-- the engine's clock, which is only known to lie between two times: so there is a minimum and a
-- maximum.
SELECT
    target_id AS user_id,
    received_at // 60_000 * 60_000 AS received_at_minute,
    count(*) FILTER (getvariable('until_ms') - received_at < 600_000) AS pageviews_least,
    count(*) AS pageviews_most
FROM source.pageviews_stg
WHERE pageview_type = 'profiles' AND getvariable('from_ms') - received_at < 600_000
GROUP BY ALL
