# psql, for a Materialize that runs elsewhere.
ARG BASE
FROM ${BASE}
ENTRYPOINT ["psql"]
