# aigo-bridge with Inspect, without lighteval: `docker build -t aigo-bridge .`, then
# `docker run --rm -v "$PWD:/work" aigo-bridge run run.yaml`.
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN python -m venv /opt/aigo-bridge \
    && /opt/aigo-bridge/bin/pip install --no-cache-dir --constraint constraints.txt ".[stats]" \
    && /opt/aigo-bridge/bin/pip uninstall --yes pip \
    && find /opt/aigo-bridge -name __pycache__ -type d -prune -exec rm -rf {} +

FROM python:3.12-slim
COPY --from=build /opt/aigo-bridge /opt/aigo-bridge
ENV PATH=/opt/aigo-bridge/bin:$PATH PYTHONUTF8=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
# Nobody in particular: with `--user "$(id -u):$(id -g)"` results belong to whoever runs it.
RUN useradd --uid 10001 --create-home --home-dir /work aigo
USER 10001
WORKDIR /work
ENTRYPOINT ["aigo-bridge"]
CMD ["--help"]
