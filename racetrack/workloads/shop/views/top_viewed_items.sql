-- Every row of item_summary that may be among the first 20 by pageviews; equals share a place.
SELECT *, rank() OVER (ORDER BY pageviews DESC) AS place
FROM expected.item_summary
QUALIFY place <= 20
