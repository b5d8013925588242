# Deephaven's server out of PyPI, as the native runtime has it.
ARG BASE
ARG SERVE
FROM ${BASE} AS installed
COPY install /opt/racetrack
RUN sh /opt/racetrack/install.sh deephaven

FROM ${SERVE} AS prepared
COPY --from=installed /opt/parts /opt/racetrack/parts
COPY code /opt/racetrack
RUN set -a && . /opt/racetrack/prepare.env \
 && python -m racetrack.stack.native.serve --prepare deephaven \
 && rm prepare.env

FROM ${SERVE}
COPY --from=prepared /opt/racetrack /opt/racetrack
# Where docker-compose.yml mounts them, and where a native run has them.
RUN ln -s /scripts /opt/racetrack/scripts
CMD ["python", "-m", "racetrack.stack.native.serve", "deephaven"]
