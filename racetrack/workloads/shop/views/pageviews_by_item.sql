-- A row per product id that was ever viewed, whether there is such an item or not.
SELECT target_id AS item_id, count(*) AS pageviews
FROM source.pageviews_stg
WHERE pageview_type = 'products'
GROUP BY target_id
