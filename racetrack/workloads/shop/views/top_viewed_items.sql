-- Rows of item_summary that may be among the first 20 by pageviews; equal ones share a rank.
SELECT *, rank() OVER (ORDER BY pageviews DESC) AS place
FROM expected.item_summary
QUALIFY place <= 20
