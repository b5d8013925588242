-- Distinct user ids in the messages of the topic. An id is a decimal number with or without quotes;
-- other messages are ignored.
SELECT DISTINCT replace(message, '"', '')::BIGINT AS user_id
FROM source.dd_flagged_profiles
WHERE regexp_full_match(message, '"?[0-9]{1,18}"?')
