# Services that the native runtime has too, with its parts and its code. PREPARE names what is run once, if anything, the last one being what
# the image is for; SERVICES what its containers run.
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
