# syntax=docker/dockerfile:1
# Two images of the same program:
#
#   docker build -t harnessmesh/harness .                              # every role but the tool host
#   docker build -t harnessmesh/harness-toolhost --target toolhost .   # the tool host
FROM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY pkg pkg
COPY services services
COPY schemas schemas
COPY docs/openapi docs/openapi
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/harness ./cmd/harness
RUN mkdir -m 0777 /out/tmp && mkdir -m 0750 /out/data && chown 65532:65532 /out/data

# Commands of agents run in this image, so it has what they are fond of: a shell, git,
# make, Python. Derive your own from it for compilers and the like.
FROM debian:bookworm-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251 AS toolhost
RUN apt-get update \
 && apt-get install -y --no-install-recommends bash ca-certificates curl diffutils file findutils git jq less make patch procps python3 ripgrep unzip xz-utils \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 65532 agent && useradd --uid 65532 --gid 65532 --home-dir /workspaces --shell /bin/bash agent \
 && mkdir -p /data /workspaces && chown 65532:65532 /data /workspaces
COPY --from=build /out/harness /usr/local/bin/harness
USER 65532:65532
WORKDIR /workspaces
ENV HARNESS_DATA=/data
ENTRYPOINT ["/usr/local/bin/harness"]
CMD ["serve", "--roles=toolhost"]

# The others need the program and the certificates of public authorities, and nothing
# that could be started inside them.
FROM scratch AS harness
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build --chown=65532:65532 /out/tmp /tmp
COPY --from=build /out/harness /harness
USER 65532:65532
ENV HARNESS_DATA=/data
EXPOSE 7447 7448 9090
ENTRYPOINT ["/harness"]
CMD ["serve"]
