-- MySQL's table as it is now.
SELECT * FROM source.items
