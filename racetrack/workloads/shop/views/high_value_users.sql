-- Users whose purchases total more than 10,000. A purchase counts as price times quantity, as in
-- the demo.
SELECT bought.id, users.email, bought.lifetime_value, bought.purchases
FROM (
    SELECT user_id AS id, sum(purchase_price * quantity) AS lifetime_value, count(*) AS purchases
    FROM source.purchases
    GROUP BY user_id
) AS bought
LEFT JOIN source.users ON users.id = bought.id
WHERE bought.lifetime_value > 10_000
