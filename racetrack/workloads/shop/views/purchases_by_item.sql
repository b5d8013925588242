-- One row per item_id in purchases.
SELECT
    item_id,
    sum(purchase_price) AS revenue,
    count(*) AS orders,
    sum(quantity) AS items_sold
FROM source.purchases
GROUP BY item_id
