# psql, for a Materialize that runs elsewhere: its address is what the container is given.
ARG BASE
FROM ${BASE}
ENTRYPOINT ["psql"]
