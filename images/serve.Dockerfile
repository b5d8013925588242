# The base image and a small Python environment that starts native services in a container. Only the
# first stage, which is discarded, contains the mirror and certificates of the building machine.
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
