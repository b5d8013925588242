-- Auctions of category 10 by sellers in three states.
CREATE TABLE q3 (
    name STRING,
    city STRING,
    state STRING,
    id BIGINT
) WITH (
    'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json',
    'topic' = 'flink.q3'
) LIKE at_kafka (EXCLUDING ALL INCLUDING OPTIONS);

INSERT INTO q3
SELECT P.name, P.city, P.state, A.id
FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA');
