-- Every row of item_summary that may be among the first 20 by conversion_rate; equals share a
-- place, and those without a rate the last.
SELECT *, rank() OVER (ORDER BY conversion_rate DESC NULLS LAST) AS place
FROM expected.item_summary
QUALIFY place <= 20
