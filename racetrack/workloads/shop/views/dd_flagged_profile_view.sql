-- All pageviews by the flagged users.
SELECT *
FROM source.pageviews_stg
WHERE user_id IN (SELECT user_id FROM expected.dd_flagged_profiles)
