-- The views of each profile that may be among its last ten. Views with the same time have the same
-- rank, since any of them may be in the list.
WITH tenth_newest AS (
    SELECT target_id, list_last(max(received_at, 10)) AS received_at
    FROM source.pageviews_stg
    WHERE pageview_type = 'profiles'
    GROUP BY target_id
)
SELECT
    viewed.target_id AS owner_id,
    viewed.user_id AS viewer_id,
    viewed.received_at,
    viewed.partition,
    viewed.offset,
    rank() OVER (PARTITION BY viewed.target_id ORDER BY viewed.received_at DESC) AS place
FROM source.pageviews_stg AS viewed
JOIN tenth_newest
    ON viewed.target_id = tenth_newest.target_id AND viewed.received_at >= tenth_newest.received_at
WHERE viewed.pageview_type = 'profiles'
