-- One row per item, even if it was never sold or viewed. The conversion rate is null without a
-- pageview.
SELECT
    items.id AS item_id,
    items.name,
    items.category,
    coalesce(sold.revenue, 0) AS revenue,
    coalesce(sold.orders, 0) AS orders,
    coalesce(sold.items_sold, 0) AS items_sold,
    coalesce(viewed.pageviews, 0) AS pageviews,
    coalesce(sold.orders, 0) / viewed.pageviews::DOUBLE AS conversion_rate
FROM source.items
LEFT JOIN expected.purchases_by_item AS sold ON sold.item_id = items.id
LEFT JOIN expected.pageviews_by_item AS viewed ON viewed.item_id = items.id
