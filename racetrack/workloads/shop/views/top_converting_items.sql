-- Rows of item_summary that may be among the first 20 by conversion_rate. Rows with the same rate
-- have the same rank; rows without a rate share the last rank.
SELECT *, rank() OVER (ORDER BY conversion_rate DESC NULLS LAST) AS place
FROM expected.item_summary
QUALIFY place <= 20
