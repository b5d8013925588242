# Services of the native runtime, with its parts and code. PREPARE: services that run once during the
# build, the image's own last; may be empty. SERVICES: services that the containers run.
ARG SERVE
FROM ${SERVE} AS prepared
ARG PREPARE
ARG NOT_KEPT
COPY parts /opt/racetrack/parts
COPY code /opt/racetrack
RUN set -a && . /opt/racetrack/prepare.env \
 && if [ -n "${PREPARE}" ]; then python -m racetrack.stack.native.serve --prepare ${PREPARE}; fi \
 && rm -rf prepare.env ${NOT_KEPT}

FROM ${SERVE}
ARG SERVICES
COPY --from=prepared /opt/racetrack /opt/racetrack
ENV SERVICES=${SERVICES}
CMD ["sh", "-c", "exec python -m racetrack.stack.native.serve $SERVICES"]
