-- View events per campaign and window of ten seconds, by the current campaign of each ad. Events of
-- ads that are not in MySQL are not counted.
SELECT campaign_id, event_time - event_time % 10000 AS window_start_ms, count(*) AS seen_count
FROM source.ad_events
JOIN source.ads USING (ad_id)
WHERE event_type = 'view'
GROUP BY campaign_id, window_start_ms
