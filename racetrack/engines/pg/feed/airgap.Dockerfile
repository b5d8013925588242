# What feeds PostgreSQL, laid out as in the Dockerfile beside this file.
ARG BASE
FROM ${BASE} AS installed
COPY install /opt/racetrack
RUN sh /opt/racetrack/install.sh pgfeed

FROM ${BASE}
COPY --from=installed /opt/parts /opt/parts
COPY code /app
ENV PATH=/opt/parts/pgfeed/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
USER nobody
CMD ["python", "-m", "racetrack.engines.pg.feed.consumer"]
