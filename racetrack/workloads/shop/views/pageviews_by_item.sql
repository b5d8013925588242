-- One row per viewed product id, whether the item exists or not.
SELECT target_id AS item_id, count(*) AS pageviews
FROM source.pageviews_stg
WHERE pageview_type = 'products'
GROUP BY target_id
