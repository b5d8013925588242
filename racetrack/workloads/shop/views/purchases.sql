-- Current rows of the table in MySQL.
SELECT * FROM source.purchases
