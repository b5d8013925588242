-- Rows of item_summary that may be among the first 20 by conversion_rate; equal ones share a
-- rank, and those without a rate share the last.
SELECT *, rank() OVER (ORDER BY conversion_rate DESC NULLS LAST) AS place
FROM expected.item_summary
QUALIFY place <= 20
