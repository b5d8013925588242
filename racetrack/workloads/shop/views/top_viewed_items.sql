-- Rows of item_summary that may be among the first 20 by pageviews. Rows with the same number have
-- the same rank.
SELECT *, rank() OVER (ORDER BY pageviews DESC) AS place
FROM expected.item_summary
QUALIFY place <= 20
