# The image of a release: the executable, certificates of the usual authorities, and /tmp. Its context is what `make dist` makes:
#
#     docker build --file Dockerfile --tag unladen target/packages
FROM alpine:3.22 AS unpacked
ARG TARGETARCH
COPY unladen-*-linux.tar.gz /archives/
RUN case "$TARGETARCH" in arm64) arch=aarch64 ;; *) arch=x86_64 ;; esac; \
    mkdir -p /image/tmp /unpacked && chmod 1777 /image/tmp && \
    tar -xzf /archives/unladen-*-"$arch"-linux.tar.gz -C /unpacked && mv /unpacked/*/bin/unladen /image/

FROM scratch
COPY --from=unpacked /image/ /
COPY --from=unpacked /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
ENTRYPOINT ["/unladen"]
