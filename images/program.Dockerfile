# A Python program of ours, laid out as in its own Dockerfile. INSTALLS: the part with its Python
# packages. COMMAND: what starts it.
ARG BASE
FROM ${BASE} AS installed
ARG INSTALLS
COPY install /opt/racetrack
# librdkafka's name has a hash in it, so whatever loads it directly gets a link with a known name.
RUN sh /opt/racetrack/install.sh "${INSTALLS}" \
 && for file in /opt/parts/*/lib/librdkafka*.so.1; do \
      if [ -e "${file}" ]; then ln -s "${file##*/}" "${file%/*}/librdkafka.so"; fi; \
    done

FROM ${BASE}
ARG INSTALLS
ARG COMMAND
COPY --from=installed /opt/parts /opt/parts
COPY code /app
ENV LIBRDKAFKA=/opt/parts/${INSTALLS}/lib/librdkafka.so \
    PATH=/opt/parts/${INSTALLS}/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    COMMAND=${COMMAND}
WORKDIR /app
USER nobody
CMD ["sh", "-c", "exec $COMMAND"]
