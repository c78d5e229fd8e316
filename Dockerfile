# The server on its own: `docker build -t anaphora .` in a checkout, then
#   docker run -p 127.0.0.1:7411:7411 -v anaphora:/data anaphora
FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
# The dependencies at the versions of the lock, then the package; nothing is compiled.
RUN python -m venv /opt/anaphora \
 && sed -n -E 's/^([A-Za-z0-9._-]+==[^ \\]+( ; [^\\]+)?) *\\?$/\1/p' requirements.lock > /tmp/pins.txt \
 && /opt/anaphora/bin/pip install --no-cache-dir --only-binary :all: --no-binary anaphora \
      --constraint /tmp/pins.txt '.[mcp,postgresql,encryption]'

FROM python:3.13-slim
# 10001 is nobody's number in the base image. A volume takes the owner of the folder it covers.
RUN useradd --uid 10001 --create-home anaphora && install -d -o anaphora -g anaphora -m 0700 /data
COPY --from=build /opt/anaphora /opt/anaphora
ENV PATH=/opt/anaphora/bin:$PATH ANAPHORA_HOME=/data PYTHONUNBUFFERED=1
USER anaphora
VOLUME /data
EXPOSE 7411
# /health/live needs no token and touches no data.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:7411/health/live', timeout=4)"]
# Other machines reach this address: every request needs a token (`anaphora token create`).
ENTRYPOINT ["anaphora"]
CMD ["serve", "--host", "0.0.0.0", "--require-token", "--allow-host", "localhost"]
