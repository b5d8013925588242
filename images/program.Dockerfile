# One of Racetrack's Python programs, with the same folders as in the program's other Dockerfile. The
# harness also has the commands that it calls.
# INSTALLS: the component with its Python packages. COMMAND: the command that starts it.
ARG BASE
FROM ${BASE} AS installed
ARG INSTALLS
COPY install /opt/racetrack
# The file name of librdkafka contains a hash, so programs that load it directly get a link with a
# known name.
RUN sh /opt/racetrack/install.sh "${INSTALLS}" \
 && cd "/opt/parts/${INSTALLS}/lib" \
 && for file in librdkafka*.so.1; do if [ -e "${file}" ]; then ln -s "${file}" librdkafka.so; fi; done

FROM ${BASE}
ARG INSTALLS
ARG COMMAND
COPY --from=installed /opt/parts /opt/parts
COPY parts /opt/parts
COPY code /app
ENV LIBRDKAFKA=/opt/parts/${INSTALLS}/lib/librdkafka.so \
    PATH=/opt/parts/${INSTALLS}/bin:/opt/parts/kubectl/bin:/opt/parts/kcat/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    COMMAND=${COMMAND}
WORKDIR /app
USER nobody
CMD ["sh", "-c", "exec $COMMAND"]
