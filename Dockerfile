# codex-multi-role as a user without rights of its own. Build: docker build -t codex-multi-role .
# Run: docker run --rm -it -v "$PWD:/work" codex-multi-role --playbook roman-numerals --no-test-sandbox
# Codex's sandbox needs user namespaces, which Docker's defaults forbid: see docs/how-to/install.md.
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[systems,machines]" \
    && useradd --create-home --uid 1000 codex \
    && install --directory --owner=codex --group=codex /work
USER codex
WORKDIR /work
ENTRYPOINT ["codex-multi-role"]
CMD ["--help"]
