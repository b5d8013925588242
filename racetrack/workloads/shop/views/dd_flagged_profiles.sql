-- The ids that were sent, each once: decimal, with or without quotes; anything else is ignored.
SELECT DISTINCT replace(message, '"', '')::BIGINT AS user_id
FROM source.dd_flagged_profiles
WHERE regexp_full_match(message, '"?[0-9]{1,18}"?')
