# The load generator, laid out as in loadgen/Dockerfile.
ARG BASE
FROM ${BASE} AS installed
COPY install /opt/racetrack
RUN sh /opt/racetrack/install.sh loadgen \
 && cd /opt/parts/loadgen/lib && ln -s librdkafka*.so.1 librdkafka.so

FROM ${BASE}
COPY --from=installed /opt/parts /opt/parts
COPY code /app
ENV LIBRDKAFKA=/opt/parts/loadgen/lib/librdkafka.so \
    PATH=/opt/parts/loadgen/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
USER nobody
CMD ["pypy3", "-m", "loadgen"]
