# A small Python environment on the base that starts native services in a container. The mirror and
# certificates of this machine stay in the first stage.
ARG BASE
FROM ${BASE} AS installed
COPY . /opt/racetrack
RUN sh /opt/racetrack/install.sh serve

FROM ${BASE}
COPY --from=installed /opt/parts /opt/serve
ENV PATH=/opt/serve/serve/bin:$PATH \
    PYTHONPATH=/opt/racetrack \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /opt/racetrack
