# Services of the native runtime, with their components and code. INSTALLS: a component with Python
# packages, installed in a separate stage; may be empty. PREPARE: services that run once during the
# build, the last of which is one of the image's own; may be empty. SERVICES: services that the
# containers run.
ARG BASE
ARG SERVE
FROM ${BASE} AS installed
ARG INSTALLS
COPY install /opt/racetrack
RUN mkdir -p /opt/parts \
 && if [ -n "${INSTALLS}" ]; then sh /opt/racetrack/install.sh "${INSTALLS}"; fi

FROM ${SERVE} AS prepared
ARG PREPARE
ARG NOT_KEPT
COPY --from=installed /opt/parts /opt/racetrack/parts
COPY parts /opt/racetrack/parts
COPY code /opt/racetrack
RUN set -a && . /opt/racetrack/prepare.env \
 && if [ -n "${PREPARE}" ]; then python -m racetrack.stack.native.serve --prepare ${PREPARE}; fi \
 && rm -rf prepare.env ${NOT_KEPT}

FROM ${SERVE}
ARG SERVICES
COPY --from=prepared /opt/racetrack /opt/racetrack
# Where docker-compose.yml mounts the scripts, and where a native run has them.
RUN ln -s /scripts /opt/racetrack/scripts
ENV SERVICES=${SERVICES}
CMD ["sh", "-c", "exec python -m racetrack.stack.native.serve $SERVICES"]
