-- Auctions of category 10 by sellers in three states.
SELECT p.name, p.city, p.state, a.id
FROM source.nexmark_auction AS a JOIN source.nexmark_person AS p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
