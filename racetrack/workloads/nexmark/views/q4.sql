-- Average of the winning prices in each category. It is truncated, as an average of BIGINT is.
SELECT category AS id, (sum(final) // count(*))::BIGINT AS final
FROM (
    SELECT max(b.price) AS final, a.category
    FROM source.nexmark_auction AS a JOIN source.nexmark_bid AS b
        ON a.id = b.auction AND b."dateTime" BETWEEN a."dateTime" AND a.expires
    GROUP BY a.id, a.category
)
GROUP BY category
